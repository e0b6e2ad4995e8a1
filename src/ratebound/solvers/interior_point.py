"""Primal-dual interior point: model, bias and multipliers at once, goals at the cost of a border.

For the convex problem of `ratebound.solvers.base`, every live term k has a hinge h >= 0 and a slack
r = h - 1/2 - s z >= 0, every constraint a slack t >= 0 and an elastic excess e >= 0 with
``A h + t - e = bound``; their dual variables are q, p, v and y = V - v. On the central path
``p r = q h = mu`` per unit of a row's weight and ``v t = y e = omega mu``. Eliminating all that
belongs to a term leaves, with D = (p/r)(q/h) / (p/r + q/h) summed over a row's terms, one symmetric
system in
the steps of (coef, intercept, multipliers)::

    [ alpha I + X' D X    X' D 1    C'  ]
    [ 1' D X              1' D 1    c'  ]
    [ C                   c         -N  ]

whose first block is that of a plain support vector machine. Steps follow Mehrotra's predictor and
corrector with one step length for primal and dual variables.

Among tens of thousands of terms a handful would shorten nearly every step to a fraction (measured:
one to five of 65,000). They are not asked: a step goes as far as all but a small share of the terms
allow, and a variable that would lose more than most of its value in it keeps a share, its partner
moving with it. So ``h - r = 1/2 + s z`` and ``p + q = T`` stay true for every term, and what the
few change in the model's stationarity and in the m constraints is in the next step's residuals. On
the known problems this takes less than half the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats, Rows
from ratebound.solvers.base import Solution, Start, Status, Stop
from ratebound.solvers.newton import (
    CONSTRAINT_SHARE,
    Units,
    newton_system,
    one_blas_thread,
    scaled_table,
)

INITIAL_BARRIER = 0.25
MULTIPLIER_START = 0.1
SHORTENED = 0.95  # share of the longest step that is taken
CLOSE = 30.0  # multiple of the tolerance from which on the bounds are evaluated every time
FULL_STEP = 0.7  # after a shorter step residuals are left, which only the bounds can weigh
ADMISSION = 0.1  # relative gap from which on violated constraints enter
SHORT_STEP = 0.05  # steps shorter than this, PATIENCE in a row, call for recentring
PATIENCE = 3
RECENTRED = 10.0  # what recentring multiplies the barrier by
SETBACK = 3.0  # growth of the barrier after which outliers are no longer left behind
AHEAD = 1e-3  # barrier aimed at, at least, as a share of the gap per term
OUTLIERS = 3e-2  # share of the terms' weight that need not shorten a step
GAIN = 1.5  # how much farther a step must reach without the outliers to leave them behind
KEPT = 0.3  # share of a variable that an outlier keeps at least in a step
ACCURACY = 1e-2  # of a direction where the system is solved by iteration
NEW_CONSTRAINTS = 16  # violated constraints that enter at a time
FEW_CONSTRAINTS = 64  # up to which all are in the system from the start


@dataclass(frozen=True)
class InteriorPoint:
    """Interior-point solver of one convex problem.

    Parameters
    ----------
    max_iter : int
        Newton systems factorised at most.
    """

    max_iter: int = 100

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve until the relative gap is at most tolerance, as every `Solver` does."""
        with one_blas_thread():
            return _Run(problem, tolerance, start, stop, self.max_iter).solve()


@dataclass
class _Best:
    """The best upper and lower bound seen, with the model and multipliers that prove them."""

    upper: float = np.inf
    lower: float = -np.inf
    coef: Floats = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0
    violation: float = np.inf
    multipliers: Floats = field(default_factory=lambda: np.zeros(0))


class _Run:
    """One solve: scaled data, the current iterate, and Newton's steps."""

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
        self.rows: Rows = problem.rows.compact()
        self.best = _Best()
        n_constraints = len(problem.bound)
        self.coef = np.zeros(self.rows.n_features) if start is None else self.rows.lower(start.coef)
        self.intercept = 0.0 if start is None or not problem.fit_intercept else start.intercept
        units = Units.of(problem, self.rows.live_weight)
        self.cost_scale, self.constraint_scale = units.cost, units.constraints
        self.multiplier_scale = units.multipliers
        self.highest = problem.multiplier_bound * self.multiplier_scale
        self.alpha = problem.alpha * self.cost_scale
        self.cost = problem.cost * self.cost_scale
        self.terms_weight = float(self.rows.live_weight.sum())
        self.constraint_weight = max(CONSTRAINT_SHARE * self.terms_weight, np.finfo(float).tiny)
        multipliers = np.zeros(n_constraints) if start is None else start.multipliers
        self.all_multipliers = np.clip(multipliers * self.multiplier_scale, 0.0, self.highest)
        self.leave_outliers = True
        self.warm = start is not None and start.barrier is not None
        self.barrier = INITIAL_BARRIER
        if start is not None and start.barrier is not None:
            self.barrier = start.barrier

    # ---- the outline -------------------------------------------------------------------------

    def solve(self) -> Solution:
        closed = self._one_sided()
        if closed is not None:
            return closed
        self.hinges = self.rows.hinge_sums(self.coef, self.intercept)
        self._activate(self._first_constraints())
        status = Status.ITERATIONS
        iterations = 0
        short_steps = 0
        step = 1.0
        for iterations in range(self.max_iter + 1):
            stopped = self.stop is not None and self.stop()
            last = stopped or iterations == self.max_iter
            self.certified = last or iterations == 0 or step < FULL_STEP or self._is_close()
            if self.certified:
                self._certify()
                if self._gap() <= self.tolerance:
                    status = Status.OPTIMAL
                    break
            if last:
                status = Status.INTERRUPTED if stopped else Status.ITERATIONS
                break
            if self.certified and iterations > 0 and self._is_partial():
                self._admit_violated()
            step = self._newton()
            if not np.isfinite(step + self.intercept):
                status = Status.STALLED
                break
            short_steps = short_steps + 1 if step < SHORT_STEP else 0
            if short_steps == PATIENCE:
                short_steps = 0
                self._recentre()
        best = self.best
        return Solution(
            best.coef,
            best.intercept,
            best.multipliers,
            best.upper,
            best.lower,
            self._gap(),
            best.violation,
            self.barrier,
            iterations,
            status,
        )

    def _gap(self) -> float:
        return self.problem.relative(self.best.upper - self.best.lower, self.best.upper)

    def _is_close(self) -> bool:
        """Whether the barrier leaves so small a gap that the bounds are worth two passes."""
        left = self.barrier * self.count / self.cost_scale
        close = max(CLOSE * self.tolerance, ADMISSION if self._is_partial() else 0.0)
        return self.problem.relative(left, self.best.upper) <= close

    # ---- constraints enter when they matter --------------------------------------------------

    def _first_constraints(self) -> npt.NDArray[np.int64]:
        count = len(self.problem.bound)
        if count <= FEW_CONSTRAINTS:
            return np.arange(count)
        violation = self.problem.violations(self.hinges) * self.constraint_scale
        worst = np.argsort(-violation, kind="stable")[:NEW_CONSTRAINTS]
        return np.union1d(worst[violation[worst] > 0], np.flatnonzero(self.all_multipliers > 0))

    def _is_partial(self) -> bool:
        return len(self.active) < len(self.problem.bound)

    def _admit_violated(self) -> None:
        """Take the constraints that the current model violates most into the system."""
        violation = self.problem.violations(self.hinges) * self.constraint_scale
        violation[self.active] = 0.0
        worst = np.argsort(-violation, kind="stable")[:NEW_CONSTRAINTS]
        worst = worst[violation[worst] > 0]
        if len(worst):
            self.all_multipliers[self.active] = self.multipliers
            self._activate(np.concatenate([self.active, worst]))

    def _one_sided(self) -> Solution | None:
        """Solve a problem whose live terms all pull the bias one way: it has no central path.

        All hinges vanish on a ray of the intercept; the end of that ray nearest the data, with
        coef = 0, costs nothing, and only what the bounds cannot have remains.
        """
        problem = self.problem
        charged = problem.ceiling(np.ones(len(problem.bound))) > 0
        live = charged & (self.rows.live_weight > 0)
        present = np.asarray(np.any(live, axis=1))
        if present.all() or not (problem.fit_intercept or not present.any()):
            return None
        coef = np.zeros(problem.rows.n_features)
        intercept = 0.0
        if problem.fit_intercept and present.any():
            intercept = -0.5 if present[0] else 0.5
        violations = problem.violations(np.zeros_like(problem.cost))
        multipliers = np.where(violations > 0, problem.multiplier_bound, 0.0)
        value = problem.value(coef, np.zeros_like(problem.cost))
        lower = problem.constant - float(problem.bound @ multipliers)
        lower = min(lower, value)
        return Solution(
            coef, intercept, multipliers, value, lower,
            problem.relative(value - lower, value),
            float(np.max(violations, initial=-np.inf)), self.barrier, 0, Status.OPTIMAL,
        )  # fmt: skip

    def _activate(self, active: npt.NDArray[np.int64]) -> None:
        """Take these constraints into the system and recompute the terms centrally."""
        self.active = np.sort(active).astype(np.int64)
        scale = self.constraint_scale[self.active]
        self.table = scaled_table(self.problem.constraints[self.active], scale)
        self.bound = self.problem.bound[self.active] * scale
        highest = self.highest[self.active]
        spread = self.constraint_weight * self.barrier
        apart = np.minimum(MULTIPLIER_START, 0.5 * highest)
        if (
            self.warm
        ):  # no farther from 0 and from the price than the path is, at this room or excess
            violation = np.abs(self.table @ self.hinges.ravel() - self.bound)
            apart = np.minimum(apart, spread / np.maximum(violation, spread / highest))
        self.multipliers = np.clip(self.all_multipliers[self.active], apart, highest - apart)
        self.room = highest - self.multipliers
        self.slack = spread / self.multipliers
        self.excess = spread / self.room
        self.ceiling = self._ceiling(self.cost, self.multipliers)
        touched = np.asarray(self.table.sum(axis=0)).reshape(self.cost.shape) > 0
        self.wanted = touched & (self.rows.live_weight > 0)
        weight = self.rows.live_weight[self.ceiling > 0].sum()
        self.count = 2.0 * float(weight) + 2.0 * len(self.active) * self.constraint_weight
        self.rows.begin(self.coef, self.intercept, self.ceiling, self.barrier)

    def _recentre(self) -> None:
        """Start the terms again from the current model, farther from the boundary."""
        self.all_multipliers = np.zeros(len(self.problem.bound))
        self.all_multipliers[self.active] = self.multipliers
        self.barrier *= RECENTRED
        self._activate(self.active)

    def _ceiling(self, base: Floats | float, multipliers: Floats) -> Floats:
        return np.asarray(base + (self.table.T @ multipliers).reshape(self.cost.shape))

    # ---- certificate -------------------------------------------------------------------------

    def _certify(self) -> None:
        problem, best = self.problem, self.best
        hinges = self.hinges = self.rows.hinge_sums(self.coef, self.intercept)
        coef = self.rows.lift(self.coef)
        upper = problem.value(coef, hinges)
        if upper < best.upper:
            best.upper = upper
            best.coef = coef
            best.intercept = self.intercept
            best.violation = float(np.max(problem.violations(hinges), initial=-np.inf))
        multipliers = np.zeros(len(problem.bound))
        multipliers[self.active] = self.multipliers / self.multiplier_scale[self.active]
        multipliers = np.clip(multipliers, 0.0, problem.multiplier_bound)
        # Clipping is to the ceilings of exactly these multipliers, in units of the problem.
        point = self.rows.dual_point(problem.ceiling(multipliers) * self.cost_scale)
        lower = problem.dual_bound(multipliers, point.scaled(1.0 / self.cost_scale), best.upper)
        if lower > best.lower:
            best.lower = lower
            best.multipliers = multipliers

    # ---- Newton ------------------------------------------------------------------------------

    def _newton(self) -> float:
        """One predictor-corrector step; the step length taken."""
        self._factorise()
        affine = self._direction(0.0, np.zeros(len(self.active)), np.zeros(len(self.active)))
        reach = min(1.0, 1.0 / max(affine.steepest, 1e-300))
        now = self.barrier * self.count
        after = now + reach * affine.linear + reach * reach * affine.quadratic
        centring = min(1.0, max(after, 0.0) / now) ** 3
        # the barrier does not run ahead of what the bounds have reached: residuals must follow it
        target = centring * self.barrier
        if self.certified:
            reached = self.cost_scale * (self.best.upper - self.best.lower) / self.count
            target = max(target, min(AHEAD * reached, self.barrier))
        self.rows.correct(self.ceiling, affine.ceiling_step)
        slack_extra = affine.slack_step * affine.step
        excess_extra = -affine.excess_step * affine.step
        chosen = self._direction(target, slack_extra, excess_extra)
        step, kept = self._step_length(chosen)
        before = self.barrier
        self._advance(step, kept, chosen)
        if kept == KEPT and self.barrier > SETBACK * before:
            self.leave_outliers = False  # they are not outliers, or there are too few terms
        return step

    def _step_length(self, move: _Direction) -> tuple[float, float]:
        """How far to go, and the share of a variable that a term keeps at least.

        As far as all terms can go, unless all but a few outliers can go much farther.
        """
        longest = SHORTENED / max(move.steepest, SHORTENED)
        allowed = move.blocked <= OUTLIERS * self.terms_weight
        free = float(np.sum(allowed)) / len(move.blocked)  # blocked rises: the allowed come first
        free = min(free, SHORTENED / max(move.steepest_goal, SHORTENED))
        if self.leave_outliers and free > GAIN * longest:
            return free, KEPT
        return longest, 0.5 * (1.0 - SHORTENED)

    def _factorise(self) -> None:
        sums = self.rows.curvature(self.ceiling, self.wanted)
        self.system = newton_system(
            self.rows, sums, self.alpha, self.table, self.wanted,
            self.slack / self.multipliers + self.excess / self.room,
            self.problem.fit_intercept, ACCURACY,
        )  # fmt: skip

    def _direction(self, target: float, slack_extra: Floats, excess_extra: Floats) -> _Direction:
        """Newton direction for products target (omega target), with these second-order terms."""
        rows = self.rows
        sums = rows.target(self.ceiling, target)
        residual = np.append(sums.features + self.alpha * self.coef, sums.bias)
        residual = residual[: self.system.size]
        wanted = target * self.constraint_weight
        to_slack = (wanted - slack_extra) / self.multipliers - self.slack
        to_excess = (wanted - excess_extra) / self.room - self.excess
        gap = self.bound - self.table @ sums.hinges.ravel() - self.slack - to_slack
        gap += self.excess + to_excess
        model, step = self.system.solve(-residual, gap)
        coef = model[: rows.n_features]
        intercept = float(model[-1]) if self.problem.fit_intercept else 0.0
        ceiling_step = self._ceiling(0.0, step)
        lengths = rows.direction(coef, intercept, self.ceiling, ceiling_step, target)
        slack_step = to_slack - self.slack / self.multipliers * step
        excess_step = to_excess + self.excess / self.room * step
        pairs = (
            (self.slack, slack_step),
            (self.multipliers, step),
            (self.excess, excess_step),
            (self.room, -step),
        )
        steepest = max([float(np.max(-d / x, initial=0.0)) for x, d in pairs])
        linear = lengths.linear + float(
            self.slack @ step
            + self.multipliers @ slack_step
            - self.excess @ step
            + self.room @ excess_step
        )
        quadratic = lengths.quadratic + float(slack_step @ step - excess_step @ step)
        return _Direction(
            coef, intercept, step, ceiling_step, slack_step, excess_step,
            max(steepest, lengths.steepest), steepest, lengths.blocked, linear, quadratic,
        )  # fmt: skip

    def _advance(self, step: float, kept: float, move: _Direction) -> None:
        products = self.rows.advance(step, kept, self.ceiling, move.ceiling_step)
        self.coef = self.coef + step * move.coef
        self.intercept += step * move.intercept
        self.multipliers = self.multipliers + step * move.step
        self.room = self.room - step * move.step  # not top - multipliers: that loses small rooms
        self.slack = self.slack + step * move.slack_step
        self.excess = self.excess + step * move.excess_step
        self.ceiling = self._ceiling(self.cost, self.multipliers)
        products += float(self.slack @ self.multipliers + self.excess @ self.room)
        self.barrier = products / self.count


@dataclass(frozen=True)
class _Direction:
    """A step of everything, and how far and how well it goes."""

    coef: Floats
    intercept: float
    step: Floats  # of the multipliers
    ceiling_step: Floats
    slack_step: Floats
    excess_step: Floats
    steepest: float  # 1 / (longest step for all)
    steepest_goal: float  # the same for what belongs to constraints
    blocked: Floats
    linear: float
    quadratic: float
