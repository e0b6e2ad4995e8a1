"""Goals on data as solvers and reports see them: cells of rows and one small table.

With the decisions of a classifier (0 or 1, or probabilities of a positive decision) written as
q_i, row i's weight as w_i and its cell as c(i), everything that the goals read of them is

    P[c] = sum of w_i q_i over the rows i of cell c            (one number per cell)

    objective      cost @ P + cost_constant
    constraint j   table[j] @ P + offset[j] <= 0

A *cell* is a combination of dataset, label, baseline and group memberships that some goal
distinguishes. A rate's term is a coefficient, divided by the weight of the rows it is a share of,
on P of each of its cells; "classified negative" is the cell's weight minus P. Rows that no goal
reads, and rows of weight 0, belong to no cell (-1).

Every constraint is normalised so that tolerances mean the same for all of them:

    R >= g             g - R <= 0                 N / D >= k         k D - N <= 0
    .gap() <= g        r_a - r_b - g <= 0         .ratio() >= k      k r_b - r_a <= 0

the last two for every ordered pair (a, b) of groups. A goal on a score gap reads cells of its own,
that hold no rows of the data (:mod:`ratebound.score_gaps`); what decisions say leaves their P
unknown (NaN), and `with_score_gaps` fills it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ratebound.data import BoundData
from ratebound.rates import Constraint
from ratebound.score_gaps import GapCells

Floats = NDArray[np.float64]

#: A goal is met when no normalised row of it exceeds zero by more than this.
MET_TOLERANCE = 1e-9

#: Shares of weight up to this are rounding: a denominator this small counts as zero.
_NOTHING = 1e-12


class InfeasibleGoals(ValueError):
    """Goals that no classifier whatever can meet, or that contradict each other."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows that lie together: their features, weights and cells.

    Attributes
    ----------
    X : array, sparse matrix or frame with n rows
        As the user gave it, not copied.
    weight : ndarray of float64, shape (n,)
    cell : ndarray of int32, shape (n,)
        -1 where no goal reads the row.
    """

    X: Any
    weight: Floats
    cell: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LinearForm:
    """coefficients @ P + constant."""

    coefficients: Floats
    constant: float

    def value(self, P: Floats) -> float:
        """Return the form's value at the cell sums P."""
        return float(self.coefficients @ P + self.constant)


@dataclass(frozen=True, eq=False)
class CompiledGoal:
    """One constraint as the user wrote it, with its rates as linear forms of P.

    A goal that is not a family has a single form, labelled "".

    Attributes
    ----------
    constraint : Constraint
    label, text, sense : str
    bound : float
        As written; 0 where the right side is a rate, which is then subtracted from the left.
    kind : {"linear", "ratio", "min", "max", "gap", "group ratio", "score gap"}
    rows : slice
        Its rows of the problem's table.
    row_labels : tuple of str
        One readable inequality per row.
    groups : tuple of str
        One label per form; of a score gap, whose forms are signed differences, one per pair.
    pairs : ndarray of intp, shape (rows, 2)
        The forms (a, b) that a row compares; a == b where a row reads a single form.
    numerators : csr_array, shape (groups, cells); numerator_constants : ndarray, shape (groups,)
    denominators, denominator_constants
        Likewise, or None where the rates are linear.
    """

    constraint: Constraint
    label: str
    text: str
    sense: str
    bound: float
    kind: str
    rows: slice
    row_labels: tuple[str, ...]
    groups: tuple[str, ...]
    pairs: NDArray[np.intp]
    numerators: sparse.csr_array
    numerator_constants: Floats
    denominators: sparse.csr_array | None = None
    denominator_constants: Floats | None = None

    @property
    def is_family(self) -> bool:
        """Whether the goal is about a rate per group."""
        return self.kind not in ("linear", "ratio")

    @property
    def forms(self) -> tuple[tuple[str, LinearForm, LinearForm | None], ...]:
        """(group label, numerator, denominator or None) of each form, dense."""

        def dense(matrix: sparse.csr_array, constants: Floats, i: int) -> LinearForm:
            return LinearForm(matrix[[i]].toarray()[0], float(constants[i]))

        found: list[tuple[str, LinearForm, LinearForm | None]] = []
        for i, group in enumerate(self.groups):
            below = None
            if self.denominators is not None and self.denominator_constants is not None:
                below = dense(self.denominators, self.denominator_constants, i)
            found.append((group, dense(self.numerators, self.numerator_constants, i), below))
        return tuple(found)

    def rates(self, P: Floats) -> Floats:
        """Return the rate of each form; NaN where it is 0/0."""
        values = np.asarray(self.numerators @ P + self.numerator_constants, dtype=np.float64)
        if self.denominators is None or self.denominator_constants is None:
            return values
        return _divide(values, self.denominators @ P + self.denominator_constants)

    def values(self, P: Floats) -> dict[str, float]:
        """Return the rate of each group; empty for a goal that is not a family.

        Of a score gap, the difference of each pair where there are several.
        """
        is_gap = self.kind == "score gap"
        if not self.is_family or (is_gap and len(self.groups) == 1):
            return {}
        rates = self.rates(P)
        values = np.abs(rates) if is_gap else rates
        return dict(zip(self.groups, values.tolist(), strict=True))

    def value(self, P: Floats) -> float:
        """Return the number that the user's bound is compared with; NaN where it is 0/0."""
        rates = self.rates(P)
        if not self.is_family:
            return float(rates[0])
        rates = rates[~np.isnan(rates)]
        if not rates.size:
            return float("nan")
        low, high = float(rates.min()), float(rates.max())
        if self.kind == "min":
            return low
        if self.kind == "max":
            return high
        if self.kind == "gap":
            return high - low
        if self.kind == "score gap":
            return max(high, -low)
        return float(_divide(np.array([low]), np.array([high]))[0])


@dataclass(frozen=True, eq=False)
class RateProblem:
    """Goals on data, as the module's docstring writes them.

    Attributes
    ----------
    blocks : tuple of RowBlock
        One per X of the data, in its order; where datasets overlap in an X, further blocks over
        the same X follow.
    cell_weight : ndarray, shape (cells,)
    cost : ndarray, shape (cells,)
    cost_constant : float
    table : csr_array, shape (constraints, cells)
    offset : ndarray, shape (constraints,)
    goals : tuple of CompiledGoal
    objective : LinearForm
        The same numbers as `cost` and `cost_constant`.
    objective_text : str
    cell_names : tuple of str
    places : mapping of str to int
        The block that holds a dataset; datasets that no goal reads may be missing.
    reads : tuple of str
        The datasets that some goal reads.
    data : BoundData
    score_gaps : tuple of GapCells
        The cells of goals on score gaps, after all others.
    """

    blocks: tuple[RowBlock, ...]
    cell_weight: Floats
    cost: Floats
    cost_constant: float
    table: sparse.csr_array
    offset: Floats
    goals: tuple[CompiledGoal, ...]
    objective: LinearForm
    objective_text: str
    cell_names: tuple[str, ...]
    places: Mapping[str, int]
    reads: tuple[str, ...]
    data: BoundData
    score_gaps: tuple[GapCells, ...] = ()

    @property
    def gap_cells(self) -> slice:
        """The cells of all goals on score gaps."""
        count = len(self.cell_weight)
        return slice(self.score_gaps[0].first if self.score_gaps else count, count)

    def violations(self, P: Floats) -> Floats:
        """Return table @ P + offset: positive where a constraint row is not met."""
        return np.asarray(self.table @ P + self.offset, dtype=np.float64)

    def objective_value(self, P: Floats) -> float:
        """Return the objective, as a number the user would compute."""
        return self.objective.value(P)

    def positives(self, block_values: Sequence[ArrayLike]) -> Floats:
        """Return P for decisions (0 or 1) or probabilities of a positive decision, per block."""
        P = np.zeros(len(self.cell_weight))
        P[self.gap_cells] = np.nan
        for block, values in zip(self.blocks, block_values, strict=True):
            P += _sum_by_cell(block.cell, block.weight * np.asarray(values), len(P))
        return P

    def positives_by_dataset(self, values: Mapping[str, ArrayLike]) -> Floats:
        """Return P from one array per dataset; datasets that no goal reads may be left out."""
        P = self._sums(values)
        P[self.gap_cells] = np.nan
        return P

    def with_score_gaps(self, P: Floats, scores: Mapping[str, ArrayLike]) -> Floats:
        """Return P with the cells of score gaps filled, from the scores of every dataset."""
        sums = self._sums(scores)
        P = P.copy()
        for gap in self.score_gaps:
            P[gap.cells] = gap.positives(sums)
        return P

    def _sums(self, values: Mapping[str, ArrayLike]) -> Floats:
        sums = np.zeros(len(self.cell_weight))
        for name in self.reads:
            bound = self.data.datasets[name]
            cell = self.blocks[self.places[name]].cell
            cell = cell if bound.rows is None else cell[bound.rows]
            sums += _sum_by_cell(cell, bound.weight * np.asarray(values[name]), len(sums))
        return sums


def _divide(above: Floats, below: Floats) -> Floats:
    """Return above / below; NaN for 0/0, infinite for a share over nothing."""
    nothing = np.abs(below) <= _NOTHING
    with np.errstate(divide="ignore", invalid="ignore"):
        divided = above / below
    over_nothing = np.where(np.abs(above) <= _NOTHING, np.nan, np.copysign(np.inf, above))
    return np.where(nothing, over_nothing, divided)


def _sum_by_cell(cell: NDArray[np.int32], values: Floats, count: int) -> Floats:
    """Sum values over the rows of each cell; rows without one (-1) go to a bin that is dropped."""
    sums = np.bincount(cell + 1, weights=values, minlength=count + 1)
    return sums[1:].astype(np.float64)
