"""A kernel problem by a solver for columns: on a factor of the kernel that grows where it matters.

In the coordinates of a factor (`ratebound.rows.factor`) the convex problem is one over rank
columns, for the interior point. Its model is a combination of rows whose scores and norm are those
of the kernel itself, so that its value is an upper bound for the true problem. The dual point is
feasible for the true problem, where its value is less by what the factor leaves of its norm::

    lower = 1/2 sum p - q' K q / (2 alpha) - bound @ v + constant,    q = p0 - p1

with the kernel itself: the gap between the two includes the error of the factor. While it is too
wide, the factor grows by

- the combination ``sum q_i phi(x_i)`` of the dual point: along it the model is free to go where the
  true dual point would have it, which is all that rows with p at an end of its box ask for;
- the rows at the kink of their hinge, with p between the ends of its box and the largest
  residuals: each of these needs a column of its own.

So the rank that is needed is about the number of rows at a kink, not the rank of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import DualPoint, Floats
from ratebound.rows.kernel import KernelRows
from ratebound.solvers.base import Solution, Solver, Start, Status, Stop
from ratebound.solvers.interior_point import InteriorPoint
from ratebound.solvers.newton import Units

SHARE = 0.3  # of the tolerance, that the solver on the factor may use up
NEXT = 0.02  # of the gap on a factor, asked for on the next
FIRST_GAP = 1e-2  # relative gap on the first factor, of which little is known
INSIDE = 0.02  # share of its box that p is away from both ends at a kink
SNAPPED = 1e-2  # share of its box from an end, at most, within which p is put there
FEW_ROWS = 96  # that are asked for in a round at least
TIGHTEST = 1e-10


@dataclass(frozen=True)
class GrowingRank:
    """Solver of one convex problem over `KernelRows`.

    Parameters
    ----------
    solver : Solver
        Solves the problem over the columns of a factor; it must leave its dual point in the rows,
        as `InteriorPoint` does.
    max_rounds : int
        Factors tried at most.
    """

    solver: Solver = field(default_factory=InteriorPoint)
    max_rounds: int = 60

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve until the relative gap is at most tolerance, as every `Solver` does."""
        return _Run(self, problem, tolerance, start, stop).solve()


class _Run:
    """One solve: the best bounds so far, and the dual point on which the factor grows."""

    def __init__(
        self,
        settings: GrowingRank,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None,
        stop: Stop | None,
    ) -> None:
        if not isinstance(problem.rows, KernelRows):
            raise TypeError("GrowingRank solves problems over KernelRows; others need no factor")
        self.settings = settings
        self.problem = problem
        self.rows = problem.rows
        self.tolerance = tolerance
        self.start = start
        self.stop = stop
        self.upper, self.lower = np.inf, -np.inf
        self.model = np.zeros(self.rows.n_features), 0.0
        self.multipliers: Floats = np.zeros(len(problem.bound))
        self.violation = np.inf

    def solve(self) -> Solution:
        inner = max(SHARE * self.tolerance, min(FIRST_GAP, SHARE * self.rows.left_out))
        start = self.start
        iterations = 0
        status = Status.ITERATIONS
        for _ in range(self.settings.max_rounds):
            found = self._solve_reduced(inner, start)
            iterations += found.iterations
            point = self._dual_point(found, inner)
            combination = point.features[0] - point.features[1]
            product = self.rows.product(combination)
            point = self._bound(found, point, combination, product)
            gap = self._gap()
            if gap <= self.tolerance:
                status = Status.OPTIMAL
                break
            if self.stop is not None and self.stop():
                status = Status.INTERRUPTED
                break
            left_out = float(combination @ product) - float(
                np.sum((self.rows.factor.values.T @ combination) ** 2)
            )
            left_out = self.problem.relative(left_out / (2 * self.problem.alpha), self.upper)
            self.rows.left_out = max(left_out, 0.0)
            grown = left_out > SHARE * self.tolerance and self._grow(found, combination, product)
            if not grown and inner <= TIGHTEST:
                status = Status.STALLED
                break
            inner = max(SHARE * self.tolerance, NEXT * gap) if grown else 0.1 * inner
            barrier = float(np.clip(3.0 * gap, 1e-2, 0.25))
            start = Start(*self.model, self.multipliers, barrier)
        return Solution(
            *self.model, self.multipliers, self.upper, self.lower, self._gap(), self.violation,
            found.barrier, iterations, status,
        )  # fmt: skip

    def _gap(self) -> float:
        return self.problem.relative(self.upper - self.lower, self.upper)

    def _solve_reduced(self, tolerance: float, start: Start | None) -> Solution:
        """Solve over the columns of the present factor; the model there is one here."""
        if start is not None:
            start = replace(start, coef=self.rows.lower_reduced(start.coef))
        self.reduced = replace(self.problem, rows=self.rows.reduced())
        found = self.settings.solver.solve(self.reduced, tolerance, start, self.stop)
        if found.upper < self.upper:
            self.upper = found.upper
            self.model = self.rows.lift_reduced(found.coef), found.intercept
            self.violation = found.violation
        return found

    # ---- the dual point ----------------------------------------------------------------------

    def _dual_point(self, found: Solution, tolerance: float) -> DualPoint:
        """The solver's dual point, with what is near an end of its box put there, and balanced."""
        unit = Units.of(self.reduced, self.rows.live_weight).cost
        ceiling = self.problem.ceiling(found.multipliers)
        point = self.rows.dual_point(ceiling * unit).features / unit
        box = self._box(ceiling)
        near = min(SNAPPED, tolerance)
        point[point <= near * box] = 0.0
        ends = point >= (1.0 - near) * box
        point[ends] = box[ends]
        if self.problem.fit_intercept:
            _balance(point, ends)
        return DualPoint(point, point.sum(axis=1))

    def _box(self, ceiling: Floats) -> Floats:
        """The largest dual variables, (2, n)."""
        rows = self.rows
        live = np.array([rows.live & 1, rows.live & 2], dtype=bool) & (rows.cell >= 0)
        return np.where(live, rows.weight * ceiling[:, np.maximum(rows.cell, 0)], 0.0)

    def _bound(
        self, found: Solution, point: DualPoint, combination: Floats, product: Floats
    ) -> DualPoint:
        """Take the lower bound of this dual point, at the scale at which it is highest."""
        squared = float(combination @ product)
        gain = 0.5 * float(point.totals.sum()) * self.problem.alpha
        scale = 1.0 if squared <= gain else max(gain, 0.0) / squared
        point = DualPoint(scale * point.features, scale * point.totals)
        direction = point.features[0] - point.features[1]
        self.rows.remember(direction, scale * product, scale**2 * squared)
        lower = self.problem.dual_bound(found.multipliers, point, self.upper)
        if lower > self.lower:
            self.lower = min(lower, self.upper)
            self.multipliers = found.multipliers
        return point

    # ---- growth ------------------------------------------------------------------------------

    def _grow(self, found: Solution, combination: Floats, product: Floats) -> bool:
        """Whether there was something that the factor did not have."""
        factor = self.rows.factor
        grown = factor.add_combination(combination, product)
        candidates = self._at_kink(found)
        return factor.add_rows(candidates) > 0 or grown

    def _at_kink(self, found: Solution) -> npt.NDArray[np.intp]:
        """Rows whose dual variables lie inside their box, those with most to gain first."""
        factor = self.rows.factor
        unit = Units.of(self.reduced, self.rows.live_weight).cost
        ceiling = self.problem.ceiling(found.multipliers)
        box = self._box(ceiling)
        share = self.rows.dual_point(ceiling * unit).features / unit / np.maximum(box, 1e-300)
        inside = np.max(np.where(box > 0, share * (1.0 - share), 0.0), axis=0)
        count = int(np.sum((inside > INSIDE * (1.0 - INSIDE)) & (factor.residual > 0)))
        count = int(np.clip(count, FEW_ROWS, max(FEW_ROWS, factor.rank)))
        weight = self.rows.weight
        return np.argsort(-factor.residual * inside * weight, kind="stable")[:count]


def _balance(point: Floats, ends: npt.NDArray[np.bool_]) -> None:
    """Make the two sides' sums equal: at the kinks, where it costs least, or else everywhere."""
    totals = point.sum(axis=1)
    heavier = int(np.argmax(totals))
    excess = float(totals[heavier] - totals[1 - heavier])
    inside = ~ends[heavier] & (point[heavier] > 0)
    available = float(point[heavier][inside].sum())
    if excess < available:
        point[heavier][inside] *= 1.0 - excess / available
    elif totals[heavier] > 0:
        point[heavier] *= totals[1 - heavier] / totals[heavier]
