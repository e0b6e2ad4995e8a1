"""Rows that a fold holds out: dealing them, deciding them, and judging goals on them.

A fold is a weight of zero. Nothing is cut or copied: the same data with other weights is the
training data of a fold, and the sums of held-out decisions over the cells are all that goals and
objective need of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ratebound.compile import compile_goals
from ratebound.data import BoundData
from ratebound.goals import Goals
from ratebound.problem import CompiledGoal, RateProblem
from ratebound.ramp import ramp

Floats = npt.NDArray[np.float64]
#: By dataset, which of its rows a fold holds out.
HeldOut = Mapping[str, npt.NDArray[np.bool_]]

ROUNDING = 1e-9  # of a standard error


def cells_of(whole: RateProblem, name: str) -> npt.NDArray[np.int32]:
    """The cell of every row of a dataset, -1 where no goal reads it."""
    bound = whole.data.datasets[name]
    if name not in whole.reads:
        return np.full(bound.n_rows, -1, dtype=np.int32)
    cell = whole.blocks[whole.places[name]].cell
    return cell if bound.rows is None else cell[bound.rows]


def dealt(whole: RateProblem, name: str, count: int) -> npt.NDArray[np.intp]:
    """The fold of every row of a dataset: row by row within a cell, then on to the next cell."""
    cell = cells_of(whole, name)
    fold = np.empty(len(cell), dtype=np.intp)
    fold[np.argsort(cell, kind="stable")] = np.arange(len(cell)) % count
    return fold


def weighted(data: BoundData, shares: Mapping[str, Floats]) -> BoundData:
    """The same data with every row's weight multiplied by its share."""
    weighted = {
        name: replace(bound, weight=bound.weight * shares[name])
        for name, bound in data.datasets.items()
    }
    return replace(data, datasets=weighted)


def objective_on(goals: Goals, data: BoundData, held_out: HeldOut) -> RateProblem | None:
    """What is minimised, over held-out rows alone; None where they do not define it."""
    shares = {name: out.astype(np.float64) for name, out in held_out.items()}
    objective = Goals(goals.minimize, pos_label=goals.pos_label)
    try:
        return compile_goals(objective, weighted(data, shares))
    except ValueError:
        return None


def decisions(
    whole: RateProblem,
    arrays: Mapping[int, Any],
    score: Callable[[Any], Floats],
    intercept: float,
    threshold: float,
    rule: str,
) -> dict[str, Floats]:
    """Decisions (expected ones with the paper's rule) for the rows of the datasets read.

    ``score`` gives the scores of rows without the intercept.
    """
    scores: dict[int, Floats] = {}
    decided = {}
    for name in whole.reads:
        bound = whole.data.datasets[name]
        if bound.block not in scores:
            X = arrays[id(whole.data.blocks[bound.block])]
            scores[bound.block] = score(X) + intercept
        z = scores[bound.block] if bound.rows is None else scores[bound.block][bound.rows]
        decided[name] = ramp(z) if rule == "zero" else (z > threshold).astype(np.float64)
    return decided


def held_out_sums(whole: RateProblem, held_out: HeldOut, decided: Mapping[str, Floats]) -> Floats:
    """Over the held-out rows of every cell, the sums of w, w q, w², w² q and w² q².

    Parameters
    ----------
    whole : RateProblem
    held_out : mapping of dataset to bool array
    decided : mapping of dataset to decisions q

    Returns
    -------
    ndarray of shape (5, cells)
    """
    sums = np.zeros((5, len(whole.cell_weight)))
    for name, q in decided.items():
        w = whole.data.datasets[name].weight * held_out[name]
        cell = cells_of(whole, name) + 1
        parts = (w, w * q, w * w, w * w * q, w * w * q * q)
        for k, values in enumerate(parts):
            sums[k] += np.bincount(cell, weights=values, minlength=sums.shape[1] + 1)[1:]
    return sums


def judged(problem: RateProblem, goal: CompiledGoal, sums: Floats) -> tuple[float, float, float]:
    """A goal's largest violation, its standard error, and the largest in standard errors.

    Given its weight, a cell's sum of w q over independent rows has the variance
    sum of w² (q - mean)²; a constraint is a combination of cells.
    """
    weight, positive, squares, first, second = sums
    mean = positive / np.where(weight > 0, weight, 1.0)
    variance = np.maximum(second - 2 * mean * first + mean**2 * squares, 0.0)
    table = problem.table[goal.rows]
    violation = table @ positive + problem.offset[goal.rows]
    error = np.sqrt(table.power(2) @ variance)
    worst = int(np.argmax(violation))
    excess = violation / np.maximum(error, ROUNDING)
    return float(violation[worst]), float(error[worst]), float(excess.max())
