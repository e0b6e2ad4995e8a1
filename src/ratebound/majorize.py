"""Majorization-minimization of the ramp problem (Algorithm 1 of the paper), with an elastic price.

From an anchor, solve the convex upper bound that is tight there, move to its solution, repeat. The
paper starts from a feasible model; here every convex problem is elastic (a unit of violation costs
``multiplier_bound``), so any start will do: the penalised ramp objective

    objective + multiplier_bound * (sum of violations)

never rises while the price stays the same. Where goals remain missed when progress ends, the price
grows tenfold, at most to `LARGEST_PRICE`. Before that it may fall: goals without interior (equal
rates of two groups) can be met by the rates and yet by no convex bound but at the anchor, and a
high price would hold the model there. The first convex problems are solved loosely: a bound that is
soon replaced need not be minimised to the last digit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ratebound.homotopy import Homotopy, Tracked
from ratebound.ramp import RampProblem
from ratebound.rows.base import Floats, Rows
from ratebound.rows.kernel import KernelRows
from ratebound.solvers.base import ConvexProblem, Solution, Solver, Start, Status

LARGEST_PRICE = 1e6
PRICE_GROWTH = 10.0
SATURATED = 0.9
LOOSEST_GAP = 3e-2
TRACKED_GAP = 1e-3  # of the first convex problem where the homotopy has come close already
WARM_GAP = 1e-3  # from a start near the end, a step that is solved loosely is taken once more
TIGHTEST_GAP = 1e-9
ROUNDING = 1e-12
CONFLICT_BARRIER = 1e-3  # of the largest ceiling


@dataclass(frozen=True)
class Step:
    """One majorization step, as it stands in ``history_``.

    Attributes
    ----------
    iteration : int, from 1
    objective : float, ramp objective with regulariser after the step, in the user's units
    violation : float, largest violation of a goal by the expected (ramp) rates
    penalised : float, objective plus the price of all violation
    decrease : float, relative decrease of the penalised objective
    gap : float, certified relative gap of the step's convex problem
    upper, lower : float, bounds on the optimum of the step's convex problem
    multiplier_bound : float, price of a unit of violation
    solver_iterations : int
    seconds : float, since the start
    attempt : int
        1, and one more wherever steps began anew: from the first start as goals were still missed,
        or with tightened bounds to meet them strictly.
    homotopy : str
        In an attempt's first step, what the homotopy did before it; "" without one.
    """

    iteration: int
    objective: float
    violation: float
    penalised: float
    decrease: float
    gap: float
    upper: float
    lower: float
    multiplier_bound: float
    solver_iterations: int
    seconds: float
    attempt: int = 1
    homotopy: str = ""

    def __str__(self) -> str:
        missed = f"missed by {self.violation:.1e}" if self.violation > 0 else "goals met"
        return (
            f"step {self.iteration:3d}  objective {self.objective:.6f}  {missed:17s}  "
            f"decrease {self.decrease:.1e}  gap {self.gap:.1e}  {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Majorized:
    """Where majorization ended.

    Attributes
    ----------
    coef, intercept : the model
    objective : float, ramp objective with regulariser, in the nonnegative form
    violation : float, largest violation by ramp rates (at most 0 where all goals are met)
    solution : Solution, of the last convex problem: its certificate and multipliers
    problem : RampProblem, at the last price
    convex_violations : (m,), of the last convex problem at its solution
    conflict_radius : float, no model with a smaller ||coef|| meets the last convex bound (0:
        unproven)
    history : tuple of Step
    converged : bool
    why : str, why it ended
    stopped : bool
        Whether a callback or the time limit ended it, so that nothing should follow.
    """

    coef: Floats
    intercept: float
    objective: float
    violation: float
    solution: Solution
    problem: RampProblem
    convex_violations: Floats
    conflict_radius: float
    history: tuple[Step, ...]
    converged: bool
    why: str
    stopped: bool

    def better_than(self, other: Majorized, tol: float) -> bool:
        """Whether this model is feasible and the other not, or else the lower of the two."""
        met, other_met = self.violation <= tol, other.violation <= tol
        if met != other_met:
            return met
        if met:
            return self.objective < other.objective
        return self.violation < other.violation

    def after(self, history: tuple[Step, ...]) -> Majorized:
        """The same, with the steps of a later attempt that came to nothing better."""
        return replace(self, history=history)

    def restart(self) -> Start:
        """Where to continue from."""
        barrier = _warm_barrier(LOOSEST_GAP)
        return Start(self.coef, self.intercept, self.solution.multipliers, barrier)


#: Called with every step; True stops.
Callback = Callable[[Step], bool]


@dataclass(frozen=True)
class Majorization:
    """Settings of Algorithm 1.

    Parameters
    ----------
    solver : Solver
    tol : float
        Relative decrease at which steps stop, and certified relative gap of the last convex
        problem.
    max_iter : int
        Steps at most.
    adapt_price : bool
        Whether the price of violation may change: fall while it is paid for the bounds' slack only,
        grow while goals are missed.
    homotopy : Homotopy, optional
        What to follow to a start where none is given; else, and where it stalls, that is the zero
        model.
    first_gap : float
        Certified relative gap of the first convex problem.
    """

    solver: Solver
    tol: float = 1e-4
    max_iter: int = 50
    adapt_price: bool = True
    homotopy: Homotopy | None = None
    first_gap: float = LOOSEST_GAP

    def run(
        self,
        problem: RampProblem,
        start: Start | None = None,
        *,
        on_step: Callback | None = None,
        deadline: float | None = None,
        earlier: tuple[Step, ...] = (),
    ) -> Majorized:
        """Majorize from a start, by default as the settings say, until progress is below ``tol``.

        The history goes on from that of earlier attempts.

        Where goals are still missed at a price that has grown, the model may be held by rows that
        an anchor at a lower price has given up (their bound is then constant). So the steps are
        taken once more, from the first start at the last price, and the better of the two is kept.
        """
        first = self._run(problem, start, on_step, deadline, earlier)
        price = first.problem.multiplier_bound
        if first.violation <= self.tol or price <= problem.multiplier_bound or not first.converged:
            return first
        second = self._run(problem.priced(price), None, on_step, deadline, first.history)
        return second if second.better_than(first, self.tol) else first.after(second.history)

    def best_of(
        self,
        problem: RampProblem,
        starts: int,
        random: np.random.RandomState,
        *,
        on_step: Callback | None = None,
        deadline: float | None = None,
    ) -> Majorized:
        """Majorize from the settings' start, then from random ones, and keep the best."""
        best = self.run(problem, on_step=on_step, deadline=deadline)
        for _ in range(1, starts):
            if best.stopped:
                break
            start = Start(random_model(problem.rows, random), 0.0, np.zeros(len(problem.bound)))
            fit = self.run(problem, start, on_step=on_step, deadline=deadline)
            if fit.better_than(best, self.tol):
                best = fit
        return best

    def _run(
        self,
        problem: RampProblem,
        start: Start | None,
        on_step: Callback | None,
        deadline: float | None,
        earlier: tuple[Step, ...],
    ) -> Majorized:
        began = time.monotonic() - (earlier[-1].seconds if earlier else 0.0)

        def late() -> bool:
            return deadline is not None and time.monotonic() > deadline

        gap = max(self.first_gap, self.tol)
        followed = ""
        settled = False  # whether the price shall not fall (again)
        if start is None and self.homotopy is not None:
            asked = problem.multiplier_bound
            problem, tracked = self._follow(problem, self.homotopy, late)
            settled = problem.multiplier_bound < asked
            followed = f"{tracked.steps} Newton steps of the homotopy"
            if tracked.start is None:
                followed += f", which stalled: {tracked.stalled}"
            else:
                gap = max(TRACKED_GAP, self.tol)
                start = replace(tracked.start, barrier=_warm_barrier(gap))
        if start is None:
            zeros = np.zeros(problem.rows.n_features)
            start = Start(zeros, 0.0, np.zeros(len(problem.bound)))
        current = _Point.at(problem, start.coef, start.intercept)
        best = current
        solution: Solution | None = None
        history = list(earlier)
        attempt = earlier[-1].attempt + 1 if earlier else 1
        radius = 0.0
        converged, why = False, f"stopped after max_iter={self.max_iter} majorization steps"
        stopped = False
        for iteration in range(1, self.max_iter + 1):
            solution, convex = self._descend(problem, current, start, gap, late)
            point = _Point.at(problem, solution.coef, solution.intercept)
            if point.penalised > current.penalised:  # nothing better can be told from rounding
                point = current
            decrease = (current.penalised - point.penalised) / _scale(problem, point)
            history.append(
                Step(
                    len(history) + 1,
                    point.objective + problem.constant,
                    point.violation,
                    point.penalised + problem.constant,
                    decrease,
                    solution.gap,
                    solution.upper + problem.constant,
                    solution.lower + problem.constant,
                    problem.multiplier_bound,
                    solution.iterations,
                    time.monotonic() - began,
                    attempt,
                    followed,
                )
            )
            followed = ""
            current = point
            best = _better(best, current, self.tol)
            start = Start(current.coef, current.intercept, solution.multipliers, _warm_barrier(gap))
            if late() or (on_step is not None and on_step(history[-1])):
                why = "stopped by the time limit" if late() else "stopped by the callback"
                stopped = True
                break
            missed = current.violation > self.tol
            if iteration == self.max_iter:  # too late for another price
                converged = decrease < self.tol and solution.gap <= self.tol
                why = "converged" if converged else why
                break
            if self.adapt_price and not settled and not missed and _is_saturated(solution, problem):
                # the bounds cannot be met where the rates themselves are: it is the bounds' slack
                # that is paid for, and so high a price would hold the model at its anchor
                problem = problem.priced(problem.multiplier_bound / PRICE_GROWTH)
                current = _Point.at(problem, current.coef, current.intercept)
                best = _Point.at(problem, best.coef, best.intercept)
                continue
            if decrease < max(self.tol, min(10 * self.tol, 1e-3) if missed else 0.0):
                if missed and self.adapt_price and problem.multiplier_bound < LARGEST_PRICE:
                    settled = True
                    radius = _conflict_radius(convex, solution)
                    price = min(problem.multiplier_bound * PRICE_GROWTH, LARGEST_PRICE)
                    problem = problem.priced(price)
                    current = _Point.at(problem, current.coef, current.intercept)
                    best = _Point.at(problem, best.coef, best.intercept)
                    continue
                if decrease < self.tol and solution.gap <= self.tol:
                    converged, why = True, "converged"
                    break
            gap = max(min(gap, 0.5 * decrease), self.tol)
        if solution is None:
            raise ValueError("max_iter must be at least 1")
        if current.violation > self.tol:
            radius = _conflict_radius(convex, solution)
        violations = convex.violations(convex.rows.hinge_sums(solution.coef, solution.intercept))
        if late():
            current = best
        return Majorized(
            current.coef, current.intercept, current.objective, current.violation, solution,
            problem, violations, radius, tuple(history), converged, why, stopped,
        )  # fmt: skip

    def _follow(
        self, problem: RampProblem, homotopy: Homotopy, late: Callable[[], bool]
    ) -> tuple[RampProblem, Tracked]:
        """Follow the homotopy; once more at a lower price where it pays for the bounds' slack."""
        tracked = homotopy.run(problem, late)
        if tracked.start is None or not self.adapt_price:
            return problem, tracked
        largest = float(np.max(tracked.start.multipliers, initial=0.0))
        if largest < SATURATED * problem.multiplier_bound:
            return problem, tracked
        cheaper = problem.priced(problem.multiplier_bound / PRICE_GROWTH)
        again = homotopy.run(cheaper, late)
        again = replace(again, steps=again.steps + tracked.steps)
        if again.start is not None:
            there = _Point.at(problem, again.start.coef, again.start.intercept)
            here = _Point.at(problem, tracked.start.coef, tracked.start.intercept)
            if there.penalised < here.penalised:
                return cheaper, again
        return problem, replace(tracked, steps=again.steps)

    def _descend(
        self,
        problem: RampProblem,
        anchor: _Point,
        start: Start,
        gap: float,
        late: Callable[[], bool],
    ) -> tuple[Solution, ConvexProblem]:
        """Solve the bound at the anchor so well that the penalised objective does not rise."""
        convex = problem.convex_at(anchor.coef, anchor.intercept)
        rounding = ROUNDING * abs(anchor.penalised)
        while True:
            solution = self.solver.solve(convex, gap, start, late)
            rose = solution.upper > anchor.penalised + rounding
            if not rose or gap <= TIGHTEST_GAP or solution.status is not Status.OPTIMAL:
                return solution, convex
            gap *= 0.1
            start = replace(start, multipliers=solution.multipliers, barrier=solution.barrier)


@dataclass(frozen=True)
class _Point:
    """A model with its ramp values."""

    coef: Floats
    intercept: float
    objective: float
    violation: float
    penalised: float

    @classmethod
    def at(cls, problem: RampProblem, coef: Floats, intercept: float) -> _Point:
        positives = problem.rows.ramp_sums(coef, intercept)
        return cls(
            coef,
            intercept,
            problem.objective(coef, positives),
            float(np.max(problem.violations(positives), initial=-np.inf)),
            problem.penalised(coef, positives),
        )


def _better(best: _Point, other: _Point, tol: float) -> _Point:
    """The feasible one, or of two feasible ones the lower, or of none the less violated."""
    if (other.violation <= tol) != (best.violation <= tol):
        return other if other.violation <= tol else best
    if other.violation <= tol:
        return other if other.objective <= best.objective else best
    return other if other.penalised <= best.penalised else best


def _is_saturated(solution: Solution, problem: RampProblem) -> bool:
    """Whether the solution pays for violating its convex bounds."""
    largest = float(np.max(solution.multipliers, initial=0.0))
    return solution.violation > 0 and largest >= SATURATED * problem.multiplier_bound


def _scale(problem: RampProblem, point: _Point) -> float:
    # where nothing is minimised, all that is left may be 0
    return max(point.penalised, 1e-3 * problem.total_cost) or 1.0


def random_model(rows: Rows, random: np.random.RandomState) -> Floats:
    """A random direction with scores of the size at which the ramp bends."""
    coef = np.asarray(random.normal(size=rows.n_features))
    if isinstance(rows, KernelRows):
        size = float(np.std(rows.scored(coef, 0.0).score))
    else:
        size = rows.largest_norm
    return coef * (random.exponential() / max(size, np.finfo(float).tiny))


def _warm_barrier(gap: float) -> float:
    """Barrier at which the terms are recomputed at the next anchor."""
    return float(np.clip(30.0 * gap, 1e-2, 0.25))


def _conflict_radius(convex: ConvexProblem, solution: Solution) -> float:
    """The R for which no ||coef|| <= R meets the convex bound; 0 where nothing is proven."""
    multipliers = solution.multipliers
    charges = (convex.constraints.T @ multipliers).reshape(convex.cost.shape)
    rows = convex.rows.compact()
    if not rows.has_duals:  # the solver keeps none there: those of the path at its model
        ceiling = convex.ceiling(multipliers)
        near = CONFLICT_BARRIER * float(np.max(ceiling, initial=0.0))
        rows.begin(rows.lower(solution.coef), solution.intercept, ceiling, near)
    point = rows.dual_point(charges)
    return convex.conflict_radius(multipliers, point)
