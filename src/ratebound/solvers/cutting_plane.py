"""Algorithm 2 of the paper: a cutting plane over the Lagrange multipliers, from inexact oracles.

The elastic convex problem of `ratebound.ramp.ConvexProblem` is the saddle point::

    maximise over 0 <= v <= multiplier_bound    psi(v) = min over (coef, intercept) of Psi

    Psi = <cost, H> + constant + alpha/2 ||coef||^2 + violations @ v

(v bounded by the price of violation is what makes it elastic). psi is concave, and its value for
given v is that of a support vector machine with weighted terms, which an *oracle*
(`ratebound.solvers.oracles.SVMOptimizer`) minimises as accurately as it is told to. Every model
that it returns is a *cut*: Psi at that model is linear in v, and nowhere below psi. With the cuts'
minimum h_t, step t has::

    L_t = the best lower bound of psi that an oracle has proven
    U_t = max of h_t over the box, by a linear program

and a chooser (`ratebound.solvers.choosers`) names the next v and the accuracy there.

The answer is the combination ``sum theta_s (coef_s, intercept_s)`` of the cuts' models, theta the
dual variables of the linear program. For v >= 0 Psi is convex in the model, so that the combination
has an elastic value of at most U_t. The algorithm as printed (its line 7) returns the model of the
cut with the best lower bound instead. That is an erratum: a minimiser of Psi at the best v need not
meet the goals, however small U_t - L_t is, because Psi has others (or a rounder minimum than its
cuts show); ``answer="cut"`` keeps it for comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import scipy.optimize

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats
from ratebound.solvers.base import Solution, Start, Status, Stop
from ratebound.solvers.choosers import (
    CenterOfMass,
    CutChooser,
    Level,
    Maximization,
    Program,
)
from ratebound.solvers.oracles import Answer, SVMOptimizer, answer_at, remembering

__all__ = ["CenterOfMass", "CuttingPlane", "Level", "Maximization", "Progress"]

FIRST_SHARE = 0.25  # of the start's value, that an optimum is expected to have at least
USEFUL = 1e-6  # share of the gap that an honest cut takes at least
PATIENCE = 4  # cuts in a row that were no use
ROUNDING = 1e-14  # of values of about 1
SINGLE = 1e-12  # weight of all other cuts, below which a combination is one cut


class Progress(NamedTuple):
    """Where a solve stands after a cut.

    Attributes
    ----------
    cuts : int, calls of the oracle so far
    passes : float, passes over the rows so far, the oracle's and the cutting plane's own
    lower, upper : float, what is proven: lower <= optimum <= upper
    program : float, U_t, the largest value that the cuts leave possible
    accuracy : float, what the last call was asked for
    multipliers : (m,), what it was asked about
    lines : int, cuts in the linear program: those of the oracle, of the start and of combinations
    """

    cuts: int
    passes: float
    lower: float
    upper: float
    program: float
    accuracy: float
    multipliers: Floats
    lines: int


@dataclass(frozen=True)
class CuttingPlane:
    """Cutting-plane solver of one convex problem (Algorithm 2 of the paper).

    Parameters
    ----------
    oracle : SVMOptimizer
        Minimises Psi for given multipliers.
    chooser : CutChooser
        `Level`, `Maximization` or `CenterOfMass`.
    max_iter : int
        Cuts at most.
    answer : {"combination", "cut"}
        The combination of models described above, or the paper's single cut.
    deepen : bool
        Whether each combination is a cut too. It costs a pass over the rows, and lies nowhere above
        the cuts that it combines.
    trace : callable, optional
        Told the `Progress` after each cut.
    """

    oracle: SVMOptimizer
    chooser: CutChooser = field(default_factory=Level)
    max_iter: int = 200
    answer: Literal["combination", "cut"] = "combination"
    deepen: bool = True
    trace: Callable[[Progress], None] | None = None

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve until the relative gap is at most tolerance, as every `Solver` does.

        With an oracle that proves no lower bound, until psi would be known that well if the oracle
        were as accurate as it was asked to be; the solution then says ``lower = -inf``.
        """
        return _Run(self, problem, tolerance, start, stop).solve()


class _Run:
    """One solve: the cuts, the bounds, and the best model."""

    def __init__(
        self,
        settings: CuttingPlane,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None,
        stop: Stop | None,
    ) -> None:
        self.settings = settings
        self.oracle = remembering(settings.oracle)
        self.problem = problem
        self.tolerance = tolerance
        self.stop = stop
        self.start = start
        self.cuts: list[Answer] = []
        self.asked: list[tuple[Floats, Answer]] = []
        self.passes = 0.0
        self.best_value = np.inf
        self._scale()
        # No hinge is negative, so this bounds psi at the prices of what no model can meet.
        self.centre = np.where(problem.bound < 0, problem.multiplier_bound, 0.0)
        self.proven = problem.constant - float(problem.bound @ self.centre)
        self.multipliers = self.centre
        self.lower = self.proven  # L_t; above what is proven only for an oracle that proves nothing
        if start is not None:
            self.centre = np.clip(start.multipliers, 0.0, problem.multiplier_bound)

    def _scale(self) -> None:
        """Units in which costs and constraints are about 1, so that distances mean something."""
        problem = self.problem
        weight = problem.rows.live_weight
        size = problem.constraints @ weight.ravel() + np.abs(problem.bound)
        self.size = np.where(size > 0, size, 1.0)
        self.unit = problem.total_cost
        if not self.unit > 0:  # nothing to minimise but violation
            self.unit = problem.multiplier_bound * float(np.max(self.size, initial=0.0)) or 1.0
        self.highest = problem.multiplier_bound * self.size / self.unit

    # ---- the outline -------------------------------------------------------------------------

    def solve(self) -> Solution:
        self._add_start()
        useless = 0
        while True:
            program = self._program()
            if program is None:
                status = Status.STALLED
                break
            stopped = self.stop is not None and self.stop()
            if self._is_close(self.best_value, self.proven):
                status = Status.OPTIMAL
                break
            if self._is_close(program.upper * self.unit, self.lower) or useless == PATIENCE:
                status = Status.STALLED
                break
            if stopped or len(self.asked) == self.settings.max_iter:
                status = Status.INTERRUPTED if stopped else Status.ITERATIONS
                break
            # An oracle that falls short of the accuracy asked for may need to be asked for more.
            useless = 0 if self._cut(program, 0.5**useless) else useless + 1
        return self._solution(status)

    def _is_close(self, upper: float, lower: float) -> bool:
        return self.problem.relative(upper - lower, upper) <= self.tolerance

    # ---- cuts --------------------------------------------------------------------------------

    def _add_start(self) -> None:
        """The start's own model is the first cut, which gives u_0."""
        problem, start = self.problem, self.start
        coef = np.zeros(problem.rows.n_features) if start is None else start.coef
        intercept = 0.0 if start is None or not problem.fit_intercept else start.intercept
        self._add(self._evaluate(coef, intercept))

    def _evaluate(self, coef: Floats, intercept: float) -> Answer:
        nothing = np.zeros(len(self.problem.bound))
        answer = answer_at(self.problem, nothing, coef, intercept, -np.inf, 1.0)
        self.passes += answer.passes
        return answer

    def _elastic(self, answer: Answer) -> float:
        excess = float(np.sum(np.maximum(answer.violations, 0.0)))
        return answer.base + self.problem.multiplier_bound * excess

    def _add(self, answer: Answer) -> None:
        self.cuts.append(answer)
        self._consider(answer)

    def _consider(self, answer: Answer) -> None:
        value = self._elastic(answer)
        if value < self.best_value:
            self.best_value = value
            self.best = answer

    def _cut(self, program: Program, share: float) -> bool:
        """Ask the oracle where the chooser says; whether that was of use."""
        point, accuracy = self._choose(program)
        multipliers = np.clip(point * self.unit / self.size, 0.0, self.problem.multiplier_bound)
        accuracy *= share * self.unit
        answer = self.oracle.minimize(self.problem, multipliers, accuracy, self.stop)
        before = self.lower
        self.passes += answer.passes
        self.asked.append((multipliers, answer))
        self._add(answer)
        if answer.lower > self.proven:
            self.proven = answer.lower
            self.multipliers = multipliers
        # without a bound of its own an oracle is taken to be as accurate as it was asked to be
        steering = answer.lower if answer.lower > -np.inf else answer.upper - accuracy
        if steering > self.lower:
            self.lower = steering
            self.centre = multipliers
        if self.settings.trace is not None:
            self.settings.trace(
                Progress(
                    len(self.asked), self.passes, self.proven, self.best_value,
                    program.upper * self.unit, accuracy, multipliers, len(self.cuts),
                )
            )  # fmt: skip
        depth = program.height(point) * self.unit - answer.upper
        gain = max(depth, self.lower - before)
        return gain > USEFUL * (program.upper - program.lower) * self.unit

    def _choose(self, program: Program) -> tuple[Floats, float]:
        if len(self.problem.bound):
            point, accuracy = self.settings.chooser.choose(program)
            return (program.centre if self.start and not self.asked else point), accuracy
        # No multipliers: psi is one number, and asking for it accurately enough once is best.
        expected = self.lower if self.asked else FIRST_SHARE * self.best_value
        return program.centre, self.tolerance / self.problem.relative(self.unit, expected)

    # ---- the linear program ------------------------------------------------------------------

    def _program(self) -> Program | None:
        """Maximise the lowest cut over the box, and combine the cuts that meet there.

        maximise z  subject to  z <= values[s] + slopes[s] @ v  (theta_s),  0 <= v <= highest
        """
        values = np.array([cut.base for cut in self.cuts]) / self.unit
        slopes = np.array([cut.violations for cut in self.cuts]) / self.size
        centre = self.centre * self.size / self.unit
        lower = self.lower / self.unit
        # Around the centre and in units of the gap, tolerances of the program are shares of it.
        gap = max(self.best_value / self.unit - lower, ROUNDING * max(1.0, abs(lower)))
        m = len(centre)
        sides = np.column_stack([-centre, self.highest - centre]) / gap
        found = scipy.optimize.linprog(
            np.append(np.zeros(m), -1.0),
            A_ub=np.column_stack([-slopes, np.ones(len(values))]),
            b_ub=(values + slopes @ centre - lower) / gap,
            bounds=[*map(tuple, sides), (None, None)],
            method="highs-ds",
        )
        if found.x is None or not found.success:
            return None
        shares = np.maximum(-found.ineqlin.marginals, 0.0)
        shares /= shares.sum()
        self._combine(shares)
        # Any shares give an upper bound of h, so that it is one however the program was solved.
        mixed = shares @ slopes
        upper = float(shares @ values + self.highest @ np.maximum(mixed, 0.0))
        maximizer = np.clip(centre + gap * found.x[:m], 0.0, self.highest)
        return Program(values, slopes, self.highest, maximizer, upper, lower, centre)

    def _combine(self, shares: Floats) -> None:
        """The model that combines the cuts' models; by convexity no worse than U_t."""
        if np.max(shares) > 1.0 - SINGLE:
            return
        used = np.flatnonzero(shares)
        coef = np.sum([shares[s] * self.cuts[s].coef for s in used], axis=0)
        intercept = float(sum(shares[s] * self.cuts[s].intercept for s in used))
        combination = self._evaluate(coef, intercept)
        if self.settings.deepen:
            self._add(combination)
        else:
            self._consider(combination)

    # ---- the answer --------------------------------------------------------------------------

    def _solution(self, status: Status) -> Solution:
        problem = self.problem
        model = self.best
        silent = self.asked and all(answer.lower == -np.inf for _, answer in self.asked)
        multipliers = self.centre if silent else self.multipliers
        if self.settings.answer == "cut" and self.asked:
            _, model = max(self.asked, key=lambda asked: asked[1].lower)
        hinges = problem.rows.hinge_sums(model.coef, model.intercept)
        upper = problem.value(model.coef, hinges)
        lower = -np.inf if silent else min(self.proven, upper)
        gap = problem.relative(upper - lower, upper)
        if status is Status.OPTIMAL and gap > self.tolerance:
            status = Status.STALLED
        return Solution(
            model.coef,
            model.intercept,
            multipliers,
            upper,
            lower,
            gap,
            float(np.max(problem.violations(hinges), initial=-np.inf)),
            self.start.barrier if self.start and self.start.barrier else 1.0,
            len(self.asked),
            status,
        )
