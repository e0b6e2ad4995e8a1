"""The best bounds that a solver has proven so far, with the model and multipliers behind them."""

from __future__ import annotations

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import DualPoint, Floats
from ratebound.solvers.base import Solution, Status


class Proven:
    """Bounds on the optimum of a convex problem: nothing but the signs of hinges to begin with.

    Parameters
    ----------
    problem : ConvexProblem
    coef : (d,), the model to return where none is looked at
    """

    def __init__(self, problem: ConvexProblem, coef: Floats) -> None:
        self.problem = problem
        self.upper: float = np.inf
        self.coef = coef
        self.intercept = 0.0
        self.violation: float = np.inf
        # no hinge is negative: a bound from below at the prices of what no model can meet
        self.multipliers = np.where(problem.bound < 0, problem.multiplier_bound, 0.0)
        self.lower = problem.constant - float(problem.bound @ self.multipliers)

    @property
    def gap(self) -> float:
        """The certified relative gap."""
        return self.problem.relative(self.upper - self.lower, self.upper)

    def look_above(self, coef: Floats, intercept: float) -> None:
        """Keep this model where its elastic value is lower."""
        hinges = self.problem.rows.hinge_sums(coef, intercept)
        upper = self.problem.value(coef, hinges)
        if upper < self.upper:
            self.upper, self.coef, self.intercept = upper, coef, intercept
            self.violation = float(np.max(self.problem.violations(hinges), initial=-np.inf))

    def look_below(self, multipliers: Floats, point: DualPoint) -> None:
        """Keep these multipliers where they and the dual point give a higher bound."""
        lower = self.problem.dual_bound(multipliers, point, self.upper)
        if lower > self.lower:
            self.lower, self.multipliers = lower, multipliers

    def solution(self, barrier: float, iterations: int, status: Status) -> Solution:
        """Return the best as a solver's answer."""
        return Solution(
            self.coef, self.intercept, self.multipliers, self.upper, min(self.lower, self.upper),
            self.gap, self.violation, barrier, iterations, status,
        )  # fmt: skip
