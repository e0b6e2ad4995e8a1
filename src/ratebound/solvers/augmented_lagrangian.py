"""Augmented Lagrangian with semismooth Newton steps: for sparse rows with many columns.

For the convex problem of `ratebound.solvers.base`, every live term k has a share in [0, 1] and the
dual variable ``share_k T_k(v)``, T = cost + constraints' v its ceiling; the elastic problem is the
saddle point over the model, the shares and the multipliers ``0 <= v <= V``. Kept near *centres*,
which are the shares and multipliers found last, it is smooth::

    F(model) = max over shares and v of   alpha/2 ||coef||^2 - bound @ v
                 + sum_k T_k(v) [share_k u_k - width/2 (share_k - centre_k)^2]
                 - sum_j spread_j/2 (v_j - v_centre_j)^2

with ``u = 1/2 + sign z``. For a given model the maximisers are clipped straight lines, ``share =
clip(centre + u / width, 0, 1)`` and ``v = clip(v_centre + (A h - bound) / spread, 0, V)``, h the
smooth hinges in brackets. F is convex, its gradient is ``alpha coef + sum_k share_k T_k s_k x_k``,
and Newton's matrix is ::

    alpha I + X' D X + G' (1 / spread) G

where D = T / width for rows that have a share inside (0, 1), a few per cent of all near the end,
and 0 for others, and where G has a row, the gradient of (A h)_j, for each v_j inside (0, V).
Conjugate gradients solve it with products that read the few bent rows only; the length of the step
is where F is lowest along it, which the rows' scores tell without X. When F is as low as the gap
makes worth while, the centres follow. So the width need not go to zero: where the centres stay, the
hinges are exact.

Shares times ceilings are dual variables wherever the method stops, so its bounds always hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats, Slopes
from ratebound.solvers.base import Solution, Start, Status, Stop
from ratebound.solvers.newton import newton_system
from ratebound.solvers.proven import Proven

FIRST_WIDTH = 2.0  # at coef = 0 every u is 1/2, and no share is clipped
LAST_WIDTH = 0.1
NARROWER = 0.25  # factor of the width whenever the centres follow
SPREAD = 1e-2  # of multipliers a unit of width, where typical costs and constraint values are 1
ACCURACY = 0.1  # of conjugate gradients
SETTLED = 0.5  # share of the gap that what is left of the gradient may cost
IRRELEVANT = 0.2  # share of the tolerance that it may always cost
RIDGE = 1e-6  # of the intercept's curvature, added to it
LEVEL = 0.1  # share of the first slope along a step that may be left where it ends
TRIALS = 30  # lengths tried along a step


@dataclass(frozen=True)
class AugmentedLagrangian:
    """Augmented-Lagrangian solver of one convex problem.

    Parameters
    ----------
    max_iter : int
        Newton steps and moves of the centres at most.
    """

    max_iter: int = 500

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve until the relative gap is at most tolerance, as every `Solver` does.

        A start with a barrier is taken to be near: the centres of an earlier solve with the same
        rows are kept.
        """
        return _Run(problem, tolerance, start, stop, self.max_iter).solve()


@dataclass
class _Point:
    """Where the run stands: multipliers and sums at its model, and about what bounds they give."""

    multipliers: Floats
    ceiling: Floats
    residual: Floats
    upper: float
    lower: float
    left: float  # what the residual takes from lower


class _Run:
    """One solve: model, width and centres."""

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
        self.terms = problem.rows.proximal()
        self.coef = np.zeros(problem.rows.n_features) if start is None else start.coef
        self.intercept = 0.0 if start is None or not problem.fit_intercept else start.intercept
        multipliers = np.zeros(len(problem.bound)) if start is None else start.multipliers
        self.centre = np.clip(multipliers, 0.0, problem.multiplier_bound)
        near = start is not None and start.barrier is not None
        self.width = LAST_WIDTH if near else FIRST_WIDTH
        self.terms.begin(self.coef, self.intercept, afresh=not near)
        size = problem.constraints @ problem.rows.live_weight.ravel() + np.abs(problem.bound)
        unit = problem.total_cost if problem.total_cost > 0 else problem.multiplier_bound
        self.spread = SPREAD * np.where(size > 0, size, 1.0) ** 2 / unit
        self.moved = False
        self.best = Proven(problem, self.coef)

    # ---- the outline -------------------------------------------------------------------------

    def solve(self) -> Solution:
        status = Status.ITERATIONS
        for iterations in range(self.max_iter + 1):
            point = self._measure()
            stopped = self.stop is not None and self.stop()
            width = point.upper - point.lower
            close = self.problem.relative(width, point.upper) <= self.tolerance
            settled = self._is_settled(point, width)
            if close or settled or stopped or iterations == self.max_iter:
                self._certify(point)
                if self.best.gap <= self.tolerance:
                    status = Status.OPTIMAL
                    break
            if stopped or iterations == self.max_iter:
                status = Status.INTERRUPTED if stopped else Status.ITERATIONS
                break
            if settled:
                self._move_centres(point)
            elif not self._newton(point):  # too steep for its rounding: smoother is easier
                self.width /= NARROWER
            self.moved = settled
        return self.best.solution(self.width, iterations, status)

    def _is_settled(self, point: _Point, width: float) -> bool:
        """Whether a better minimum of F would not be a better bound to speak of."""
        irrelevant = IRRELEVANT * self.tolerance / self.problem.relative(1.0, point.upper)
        # centres that move again before the model does would only repeat themselves
        return point.left <= (irrelevant if self.moved else max(SETTLED * width, irrelevant))

    # ---- values ------------------------------------------------------------------------------

    def _multipliers(self, hinges: Floats) -> Floats:
        moved = self.centre + self.problem.violations(hinges) / (self.width * self.spread)
        return np.clip(moved, 0.0, self.problem.multiplier_bound)

    def _measure(self) -> _Point:
        problem = self.problem
        hinges, _ = self.terms.along(0.0, self.width)
        multipliers = self._multipliers(hinges)
        ceiling = problem.ceiling(multipliers)
        slopes: Slopes = self.terms.gradient(ceiling, self.width)
        totals = np.sum(ceiling * slopes.shares, axis=1)
        residual = slopes.features + problem.alpha * self.coef
        left = float(residual @ residual) / (2 * problem.alpha)
        if problem.fit_intercept:
            # to balance the signs takes this share of the heavier one, and of the bound
            imbalance = float(totals[0] - totals[1])
            left += abs(imbalance) * (0.5 + float(np.sum(totals)) / max(totals.max(), 1e-300))
            residual = np.append(residual, imbalance)
        lower = (
            problem.constant
            + 0.5 * float(totals.sum())
            - float(problem.bound @ multipliers)
            - problem.rows.squared_norm(slopes.features) / (2 * problem.alpha)
        )
        upper = problem.value(self.coef, slopes.hinges)
        return _Point(multipliers, ceiling, residual, upper, lower, left)

    def _certify(self, point: _Point) -> None:
        self.best.look_above(self.coef, self.intercept)
        dual = self.terms.dual_point(point.ceiling, self.width)
        self.best.look_below(point.multipliers, dual)

    # ---- steps -------------------------------------------------------------------------------

    def _move_centres(self, point: _Point) -> None:
        self.terms.recentre(self.width)
        self.centre = point.multipliers
        self.width = max(self.width * NARROWER, LAST_WIDTH)

    def _newton(self, point: _Point) -> bool:
        """Step along Newton's direction to the lowest F; whether there was any way to go."""
        problem = self.problem
        rows = problem.rows
        inside = (point.multipliers > 0) & (point.multipliers < problem.multiplier_bound)
        table = problem.constraints[inside]
        touched = np.asarray(table.sum(axis=0)).reshape(problem.cost.shape) > 0
        wanted = touched & (rows.live_weight > 0)
        sums = self.terms.curvature(wanted)
        # without bent rows nothing holds the intercept
        ridge = min(problem.alpha, RIDGE * sums.bias) if sums.bias > 0 else problem.alpha
        spread = self.width * self.spread[inside]
        system = newton_system(
            rows, sums, problem.alpha, table, wanted, spread, problem.fit_intercept, ACCURACY, ridge
        )
        step, _ = system.solve(-point.residual, np.zeros(int(inside.sum())))
        coef = step[: rows.n_features]
        intercept = float(step[-1]) if problem.fit_intercept else 0.0
        self.terms.direction(coef, intercept)
        length = self._length(coef)
        if not length > 0:
            return False
        self.terms.move(length)
        self.coef = self.coef + length * coef
        self.intercept += length * intercept
        return True

    def _length(self, coef: Floats) -> float:
        """Length of the step at which F is about level along it; 0 where it does not fall."""
        problem = self.problem
        linear = problem.alpha * float(self.coef @ coef)
        quadratic = problem.alpha * float(coef @ coef)

        def slope(length: float) -> float:
            hinges, slopes = self.terms.along(length, self.width)
            charge = np.sum(problem.ceiling(self._multipliers(hinges)) * slopes)
            return float(charge) + linear + length * quadratic

        first = slope(0.0)
        if not first < 0:
            return 0.0
        short, at_short = 0.0, first
        far, at_far = np.inf, np.inf
        length = 1.0
        for _ in range(TRIALS):
            value = slope(length)
            if abs(value) <= -LEVEL * first:
                return length
            if value < 0:
                short, at_short = length, value
            else:
                far, at_far = length, value
            if far == np.inf:
                length *= 2.0
            else:
                share = at_short / (at_short - at_far)
                length = short + (far - short) * min(max(share, 0.1), 0.9)
        return short
