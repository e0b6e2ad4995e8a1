"""Alternating directions over few rows of many columns: one factor for all steps and problems.

For the convex problem of `ratebound.solvers.base`, every row i keeps a copy z_i of its score, which
bears the row's charge l_i (its live hinges times their ceilings T = cost + constraints' v), and a
dual variable xi_i, the slope of the charge at the copy. One after the other, with stiffnesses r_i =
share * alpha / ||x_i||^2,

1. the model is fitted to targets ``z_i - xi_i / r_i``, minimising ``alpha/2 ||coef||^2 + sum r_i/2
   (score_i - target_i)^2``, by two triangular solves with a factor that never changes
   (`ratebound.rows.split`);
2. copies and multipliers go to the saddle point, minimal over z and maximal over 0 <= v <= V, of::

       sum_i l_i(z_i; T(v)) + r_i/2 (z_i - (s_i + xi_i / r_i))^2
           - bound @ v - sum_j spread_j/2 (v_j - v_j before)^2

   with s the scores, drawn on by `RELAXATION`. For given v every copy has a closed form; v then
   takes Newton steps in as many dimensions as there are goals, each a pass over the copies. The
   spread of a multiplier that keeps going one way shrinks, as its price may be far;
3. ``xi_i += r_i (s_i - z_i)`` (drawn on), which is then a slope of l_i at z_i: a point of the dual
   box, whatever came before.

It is Douglas and Rachford's splitting (in Boyd and others' form, over-relaxed), of which every step
costs n^2 operations for n rows. To a gap of 1e-3 it takes some tens to a few hundred of them; the
interior point takes some fifteen steps of n^3. Bounds are made of the dual variables, which always
lie in their box, and of the model with the intercept at its best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats, Split, SplitTerms
from ratebound.solvers.base import Solution, Start, Status, Stop
from ratebound.solvers.newton import one_blas_thread
from ratebound.solvers.proven import Proven

RELAXATION = 1.7
FIRST_SHARE = 30.0  # of the stiffness, at most
MOST_SHARE = 300.0
SHARE_OF_REACH = 0.15  # of how far a typical row's dual variable can move its own score
CHECKED = 8  # steps from one look at the bounds to the next
FIRST_BALANCE = 64  # steps after which the stiffness is looked at; then when they have doubled
UNBALANCED = 5.0  # ratio of the two distances from which on the stiffness changes
SPREAD = 1e-2  # of the multipliers, as a share of the stiffest that their goals' hinge sums can be
FASTER = 1.5  # what a multiplier's pace is multiplied by while it keeps going one way
SLOWER = 0.25  # and where it turns
FASTEST = 1e9
SETTLED = 1e-4  # share of the tolerance that the multipliers may leave to be gained
NEWTON_STEPS = 30  # of the multipliers at most
TRIALS = 20  # lengths tried along a step, and intercepts


@dataclass(frozen=True)
class AlternatingDirections:
    """Alternating-directions solver of one convex problem.

    It holds a triangle of rows x rows in single precision: for a few thousand rows.

    Parameters
    ----------
    max_iter : int
        Steps at most.
    """

    max_iter: int = 5000

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve until the relative gap is at most tolerance, as every `Solver` does.

        A start with a barrier is taken to be near: copies and dual variables of an earlier solve
        with the same rows are kept.
        """
        with one_blas_thread():
            return _Run(problem, tolerance, start, stop, self.max_iter).solve()


class _Run:
    """One solve."""

    def __init__(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None,
        stop: Stop | None,
        max_iter: int,
    ) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.stop = stop
        self.max_iter = max_iter
        self.flat = problem.constraints.toarray()
        self.table = self.flat.reshape(-1, *problem.cost.shape)
        self.terms: SplitTerms = problem.rows.split_terms()
        near = start is not None and start.barrier is not None
        self.coef = np.zeros(problem.rows.n_features) if start is None else start.coef
        self.intercept = 0.0 if start is None or not problem.fit_intercept else start.intercept
        multipliers = np.zeros(len(problem.bound)) if start is None else start.multipliers
        self.multipliers = np.clip(multipliers, 0.0, problem.multiplier_bound)
        self.terms.begin(self.coef, self.intercept, afresh=not near)
        self.share = 0.0
        self.moved = np.zeros(len(problem.bound))
        self.pace = np.ones(len(problem.bound))
        self.best = Proven(problem, self.coef)

    # ---- the outline -------------------------------------------------------------------------

    def solve(self) -> Solution:
        status = Status.ITERATIONS
        balanced = FIRST_BALANCE
        apart = moved = 0.0
        for iterations in range(self.max_iter + 1):
            stopped = self.stop is not None and self.stop()
            last = stopped or iterations == self.max_iter
            if last or iterations % CHECKED == 0:
                self._certify(fitted=iterations > 0)
                if self.best.gap <= self.tolerance:
                    status = Status.OPTIMAL
                    break
            if last:
                status = Status.INTERRUPTED if stopped else Status.ITERATIONS
                break
            if iterations == 0:
                self._stiffen(self._first_share())
            elif iterations == balanced:
                balanced *= 2
                if not 1 / UNBALANCED <= apart / max(moved, 1e-300) <= UNBALANCED:
                    self._stiffen(self.share * (apart / max(moved, 1e-300)) ** 0.5)
            self.terms.fit(RELAXATION, self.problem.fit_intercept)
            before = self.multipliers
            self._settle()
            self._pace(self.multipliers - before)
            apart, moved = self.terms.move()
        return self.best.solution(self.share, iterations, status)

    # ---- stiffness ---------------------------------------------------------------------------

    def _first_share(self) -> float:
        """Duals of long rows are as small as 1 / ||x||^2, those of short ones as large as T."""
        problem = self.problem
        weight = max(float(problem.rows.cell_weight.sum()), 1e-300)
        reach = problem.rows.largest_norm**2 * problem.total_cost / (weight * problem.alpha)
        return float(np.clip(SHARE_OF_REACH * reach, 1e-3, FIRST_SHARE))

    def _stiffen(self, share: float) -> None:
        self.share = float(np.clip(share, 1e-3, MOST_SHARE))
        self.terms.stiffen(self.share, self.problem.alpha)
        # were every row of a goal to give way, its value would fall by as much a unit of v
        weight = self.problem.rows.cell_weight
        give = float(np.mean(1.0 / self.terms.stiffness)) if len(self.terms.stiffness) else 1.0
        size = np.sum(self.table**2 * weight, axis=(1, 2)) * give
        self.spread = SPREAD * np.where(size > 0, size, 1.0)

    # ---- copies and multipliers --------------------------------------------------------------

    def _settle(self) -> None:
        """Take copies and multipliers to their saddle point."""
        problem = self.problem
        centre = self.multipliers
        unit = 1.0 / problem.relative(1.0, self.best.upper)
        enough = SETTLED * self.tolerance * unit
        split, height = self._height(centre, centre)
        for steps in range(NEWTON_STEPS):
            v = self.multipliers
            slope = self._violations(split.hinges) - self.spread / self.pace * (v - centre)
            free = ((v > 0) | (slope > 0)) & ((v < problem.multiplier_bound) | (slope < 0))
            if not free.any():
                return
            step = np.zeros(len(v))
            bend = self._bend(split)[np.ix_(free, free)]
            step[free] = np.linalg.solve(bend, slope[free])
            # what little a step gains here can be much for the problem: one is always taken
            if steps > 0 and 0.5 * float(slope @ step) <= enough:
                return
            length = 1.0
            for _ in range(TRIALS):
                self.multipliers = np.clip(v + length * step, 0.0, problem.multiplier_bound)
                split, higher = self._height(self.multipliers, centre)
                if higher >= height:
                    break
                length *= 0.5
            if not higher > height:
                return
            height = higher

    def _pace(self, moved: Floats) -> None:
        """Multipliers that keep going one way may go faster, up to the price if need be."""
        onward = moved * self.moved > 0
        self.moved = moved
        self.pace = np.clip(np.where(onward, FASTER, SLOWER) * self.pace, 1.0, FASTEST)

    def _height(self, v: Floats, centre: Floats) -> tuple[Split, float]:
        """The saddle function, minimised over the copies."""
        split = self.terms.split(self._ceiling(v))
        away = v - centre
        height = split.value - float(self.problem.bound @ v)
        return split, height - 0.5 * float(away @ (self.spread / self.pace * away))

    # the problem's own sparse products take longer than a pass over the copies
    def _ceiling(self, v: Floats) -> Floats:
        return np.asarray(self.problem.cost + (v @ self.flat).reshape(self.problem.cost.shape))

    def _violations(self, hinges: Floats) -> Floats:
        return np.asarray(self.flat @ hinges.ravel() - self.problem.bound)

    def _bend(self, split: Split) -> Floats:
        """How fast the saddle function's slope in the multipliers falls."""
        above, below = self.table[:, 0], self.table[:, 1]
        lowest, middle, highest = split.bends
        bend = (above * highest) @ above.T + (below * lowest) @ below.T
        bend += ((above - below) * middle) @ (above - below).T
        return np.asarray(bend + np.diag(self.spread / self.pace))

    # ---- bounds ------------------------------------------------------------------------------

    def _certify(self, fitted: bool) -> None:
        problem = self.problem
        coef, intercept = self.coef, self.intercept
        if fitted:
            coef, intercept = self.terms.model(), self.terms.intercept
            if problem.fit_intercept:
                intercept += self._shift()
        self.best.look_above(coef, intercept)
        point = self.terms.dual_point(problem.ceiling(self.multipliers), problem.fit_intercept)
        self.best.look_below(self.multipliers, point)

    def _shift(self) -> float:
        """What to add to the intercept for the lowest elastic value: tangents of a convex line."""
        sides: dict[bool, tuple[float, float, float]] = {}
        shift, width, lowest = 0.0, 1e-3, (np.inf, 0.0)
        for _ in range(TRIALS):
            value, slope = self._shifted(shift)
            lowest = min(lowest, (value, shift))
            if slope == 0.0:
                break
            sides[slope > 0] = shift, value, slope
            if len(sides) < 2:
                width *= 8.0
                shift -= np.sign(slope) * width
                continue
            (left, at_left, falls), (right, at_right, rises) = sides[False], sides[True]
            crossing = (at_left - at_right + rises * right - falls * left) / (rises - falls)
            if not left < crossing < right or crossing == shift:
                break
            shift = crossing
        return lowest[1]

    def _shifted(self, shift: float) -> tuple[float, float]:
        """The elastic value but for the norm, with the intercept moved so far, and its slope."""
        problem = self.problem
        hinges, slopes = self.terms.shifted(shift)
        excess = self._violations(hinges)
        price = np.where(excess > 0, problem.multiplier_bound, 0.0)
        value = float(np.sum(problem.cost * hinges) + price @ excess)
        return value, float(np.sum(self._ceiling(price) * slopes))
