"""Random problems, fixed before any solver runs on them.

An `Instance` is the problem, over coef w and intercept b (0 unless `fit_intercept`),

    minimise    sum_i weight_i [max(c_i, 0) ramp(z_i) + max(-c_i, 0) ramp(-z_i)]
                + alpha/2 |w|^2 + multiplier_bound * sum_j max(0, left_j - right_j)

with z_i = <w, x_i> + b, c_i = cost[cell_i], S_ji = table[j, cell_i] and

    left_j  = sum_i weight_i [max(S_ji, 0) ramp(z_i) + max(-S_ji, 0) ramp(-z_i)]
    right_j = -offset_j + sum_i weight_i max(-S_ji, 0)

so that left_j <= right_j says table[j] @ P + offset[j] <= 0, where P[c] is the sum of
weight * ramp(z) over the rows of cell c. In its convex problem ramp(z) is replaced by
max(0, 1/2 + z) where the anchor's score is at most 1/2 and by 1 elsewhere, and ramp(-z)
by the mirror image of this.

`random_instance(seed, index)` makes one instance from two numbers alone. Of the indices
0, 1, 2, ... any first so many hold at least a third of each of four overlapping kinds:

    index % 3 == 0          degenerate (see DEGENERACIES)
    index // 3 % 3 == 0     fewer rows than columns
    index // 9 % 3 == 0     infeasible, for the ramp and hence for every convex bound
    index // 27 % 3 == 0    alpha below 1e-5
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEGENERACIES = (
    "constant column",
    "duplicate columns",
    "duplicate rows",
    "zero rows",
    "one-sided costs",
    "no interior",
)


@dataclass(frozen=True)
class Instance:
    """One problem as the module docstring writes it.

    Attributes
    ----------
    X : (n, d) rows.
    weight : (n,) nonnegative weights, not all zero.
    cell : (n,) integers, the cell of each row.
    cost : (C,) signed cost of a positive decision in each cell.
    cost_constant : cost @ P + cost_constant is the objective's sum over i.
    table : (m, C) signed coefficients of the constraints.
    offset : (m,) constants of the constraints.
    alpha : weight of the regulariser.
    multiplier_bound : price of a unit of violation.
    anchor_coef, anchor_intercept : where the convex bound touches the ramp.
    fit_intercept : whether b is free; if not it is 0.
    kinds : what the generator put into it.
    """

    X: Floats
    weight: Floats
    cell: NDArray[np.intp]
    cost: Floats
    cost_constant: float
    table: Floats
    offset: Floats
    alpha: float
    multiplier_bound: float
    anchor_coef: Floats
    anchor_intercept: float
    fit_intercept: bool
    kinds: frozenset[str] = frozenset()

    @property
    def total_cost(self) -> float:
        """Sum of the costs of all rows; what 1e-3 of is the floor of relative errors."""
        return float(np.sum(self.weight * np.abs(self.cost[self.cell])))

    def relative_to(self, upper: float) -> float:
        """The divisor that makes a difference of objective values relative."""
        return max(abs(upper), 1e-3 * self.total_cost, np.finfo(float).tiny)


def bounds_of(table: Floats, offset: Floats, weight: Floats, cell: NDArray[np.intp]) -> Floats:
    """right_j of the nonnegative form."""
    return -offset + np.maximum(-table[:, cell], 0.0) @ weight


def random_instances(seed: int, count: int) -> Iterator[Instance]:
    """The first `count` instances of a seed."""
    for index in range(count):
        yield random_instance(seed, index)


def random_instance(seed: int, index: int) -> Instance:
    """Instance number `index` of a seed; the same two numbers always make the same one."""
    rng = np.random.default_rng([seed, index])
    kinds: set[str] = set()
    if index % 3 == 0:
        how_many = int(rng.integers(1, 4))
        chosen = rng.choice(len(DEGENERACIES), size=how_many, replace=False)
        kinds.update({"degenerate"}, (DEGENERACIES[k] for k in chosen))
    if index // 3 % 3 == 0:
        kinds.add("n < d")
    if index // 9 % 3 == 0:
        kinds.add("infeasible")
    if index // 27 % 3 == 0:
        kinds.add("small alpha")

    X = _rows(rng, kinds)
    n = len(X)
    weight = _weights(rng, n)
    cells = int(rng.integers(1, 9))
    cell = rng.integers(0, cells, size=n)
    if "duplicate rows" in kinds:
        # Half of the copies share their original's cell, half contradict it.
        copies = int(rng.integers(1, n))
        originals = rng.integers(0, n - copies, size=copies)
        X[n - copies :] = X[originals]
        same = rng.random(copies) < 0.5
        cell[n - copies :] = np.where(same, cell[originals], cell[n - copies :])

    cost = rng.normal(size=cells)
    cost[rng.random(cells) < 0.2] = 0.0
    heaviest = int(np.argmax(np.bincount(cell, weights=weight, minlength=cells)))
    if cost[heaviest] == 0.0:
        cost[heaviest] = 1.0  # some row of positive weight has a cost
    if "one-sided costs" in kinds:
        cost = np.abs(cost) * rng.choice([-1.0, 1.0])
    cost = cost / float(np.sum(weight * np.abs(cost[cell])))
    cost_constant = float(np.sum(weight * np.maximum(-cost[cell], 0.0)))

    fit_intercept = bool(rng.random() < 0.85)
    anchor_coef, anchor_intercept = np.zeros(X.shape[1]), 0.0
    if rng.random() < 0.5:
        anchor_coef, anchor_intercept = _classifier(rng, X, fit_intercept)
    anchor_scores = X @ anchor_coef + anchor_intercept

    table = _table(rng, weight, cell, cells)
    right = rng.uniform(0.05, 0.9, size=len(table))
    if "infeasible" not in kinds and rng.random() < 0.7:
        # Goals that a hidden classifier meets, tightly or with room, even as convex bounds.
        coef, intercept = _classifier(rng, X, fit_intercept)
        left = _convex_left(table, weight, cell, X @ coef + intercept, anchor_scores)
        room = rng.exponential(0.05, size=len(table))
        right = left + np.where(rng.random(len(table)) < 0.2, 0.0, room)
        if "no interior" not in kinds:
            kinds.add("feasible")
    table, right = _degrade(rng, kinds, weight, cell, table, right)
    # Solved for the offset; exactly so, to the last bit, where right is 0.
    offset = np.maximum(-table[:, cell], 0.0) @ weight - right

    exponent = rng.uniform(-8.0, -5.0) if "small alpha" in kinds else rng.uniform(-5.0, 2.0)
    return Instance(
        X=X,
        weight=weight,
        cell=cell,
        cost=cost,
        cost_constant=cost_constant,
        table=table,
        offset=offset,
        alpha=float(10.0**exponent),
        multiplier_bound=float(rng.choice([1.0, 10.0, 100.0, 1e4])),
        anchor_coef=anchor_coef,
        anchor_intercept=anchor_intercept,
        fit_intercept=fit_intercept,
        kinds=frozenset(kinds),
    )


def _rows(rng: np.random.Generator, kinds: set[str]) -> Floats:
    """Rows whose columns are normal, zero-one or of different scales."""
    if "n < d" in kinds:
        d = int(rng.integers(4, 41))
        n = int(rng.integers(3, d))
    else:
        n = int(rng.integers(3, 61))
        d = int(rng.integers(1, min(n, 40) + 1))
    X = rng.normal(size=(n, d))
    style = rng.choice(["normal", "zero-one", "scales", "shifted"])
    if style == "zero-one":
        X = (rng.uniform(-0.5, 1.0) < X).astype(np.float64)
    elif style == "scales":
        X = X * 10.0 ** rng.uniform(-1.5, 1.5, size=d)
    elif style == "shifted":
        X = X + rng.normal(scale=2.0, size=d)
    if "constant column" in kinds:
        X[:, rng.integers(0, d)] = rng.choice([0.0, 1.0, -3.0])
    if "duplicate columns" in kinds and d > 1:
        copies = int(rng.integers(1, d))
        X[:, d - copies :] = X[:, rng.integers(0, d - copies, size=copies)]
    if "zero rows" in kinds:
        X[rng.random(n) < rng.uniform(0.1, 1.0)] = 0.0
    return X


def _weights(rng: np.random.Generator, n: int) -> Floats:
    """Weights all one, random, or random with zeros among them."""
    style = rng.choice(["one", "random", "zeros"])
    if style == "one":
        return np.ones(n)
    weight = rng.exponential(size=n) + 0.01
    if style == "zeros":
        weight[rng.random(n) < 0.3] = 0.0
        weight[rng.integers(0, n)] = 1.0
    return weight


def _classifier(rng: np.random.Generator, X: Floats, fit_intercept: bool) -> tuple[Floats, float]:
    """A linear classifier whose scores are spread over the ramp and beyond."""
    coef = rng.normal(size=(X.shape[1],))
    spread = float(np.std(X @ coef))
    coef *= rng.uniform(0.2, 2.0) / (spread if spread > 1e-3 else 1.0)
    return coef, float(rng.normal(scale=0.5)) if fit_intercept else 0.0


def _table(rng: np.random.Generator, weight: Floats, cell: NDArray[np.intp], cells: int) -> Floats:
    """Up to eight rates over some of the cells, each with a largest value of 1."""
    m = int(rng.integers(0, 9))
    table = rng.normal(size=(m, cells))
    if rng.random() < 0.5:
        table = np.sign(table)
    table[rng.random((m, cells)) < 0.4] = 0.0
    return _normalised(table, weight, cell)


def _normalised(table: Floats, weight: Floats, cell: NDArray[np.intp]) -> Floats:
    """Divide every constraint by the largest value that its left side can have."""
    cell_weight = np.bincount(cell, weights=weight, minlength=table.shape[1])
    largest = np.abs(table) @ cell_weight
    return table / np.where(largest > 0.0, largest, 1.0)[:, np.newaxis]


def _convex_left(
    table: Floats, weight: Floats, cell: NDArray[np.intp], scores: Floats, anchor: Floats
) -> Floats:
    """left_j with the convex bounds in place of the ramp."""
    positive = np.where(anchor <= 0.5, np.maximum(0.0, 0.5 + scores), 1.0)
    negative = np.where(anchor >= -0.5, np.maximum(0.0, 0.5 - scores), 1.0)
    per_row = table[:, cell]
    return np.maximum(per_row, 0.0) @ (weight * positive) + np.maximum(-per_row, 0.0) @ (
        weight * negative
    )


def _degrade(
    rng: np.random.Generator,
    kinds: set[str],
    weight: Floats,
    cell: NDArray[np.intp],
    table: Floats,
    right: Floats,
) -> tuple[Floats, Floats]:
    """Append the constraints without interior and those that contradict each other."""
    cells = table.shape[1]
    heavy = int(np.argmax(np.bincount(cell, weights=weight, minlength=cells)))
    one = np.zeros(cells)
    one[heavy] = 1.0
    new: list[tuple[Floats, float]] = []
    if "no interior" in kinds:
        for _ in range(int(rng.integers(1, 3))):
            # Errors on some cells <= 0, or accuracy >= 1 there.
            left = np.where(rng.random(cells) < 0.3, rng.choice([-1.0, 1.0], size=cells), 0.0)
            left[heavy] = rng.choice([-1.0, 1.0])
            new.append((left, 0.0))
    if "infeasible" in kinds and rng.random() < 0.5:
        # Each can be met, both cannot: few positives and few negatives in one cell.
        new += [(one, rng.uniform(0.0, 0.45)), (-one, rng.uniform(0.0, 0.45))]
    elif "infeasible" in kinds:
        # A sum of nonnegative things below a negative number.
        new.append((rng.choice([-1.0, 1.0]) * one, -rng.uniform(0.05, 0.5)))
    if not new:
        return table, right
    # Keep at most eight, in an order that says nothing.
    table = np.vstack([*(left for left, _ in new), table])[:8]
    right = np.concatenate([[bound for _, bound in new], right])[:8]
    order = rng.permutation(len(right))
    return _normalised(table, weight, cell)[order], right[order]
