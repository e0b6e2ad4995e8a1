"""What a solver of the convex problem (`ratebound.ramp.ConvexProblem`) takes and returns.

Every solver returns ``lower <= optimum <= upper``: ``upper`` is the elastic value of the returned
model itself, and ``lower`` the dual value of clipped and balanced variables
(`ConvexProblem.dual_bound`), so both hold wherever the solver was stopped.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats

__all__ = ["ConvexProblem", "Solution", "Solver", "Start", "Status", "Stop"]


class Status(enum.Enum):
    """How a solve ended; the value is what a person reads."""

    OPTIMAL = "solved to the tolerance asked for"
    ITERATIONS = "stopped at the iteration limit"
    STALLED = "stopped where rounding allows no further progress"
    INTERRUPTED = "stopped by the time limit"


@dataclass(frozen=True)
class Start:
    """Where a solver may start: a model, its multipliers, the barrier to take up the path at."""

    coef: Floats
    intercept: float
    multipliers: Floats
    barrier: float | None = None


@dataclass(frozen=True)
class Solution:
    """A model, multipliers, and the proof of how good they are.

    Attributes
    ----------
    coef : (d,)
    intercept : float
    multipliers : (m,)
    upper, lower : float, lower <= optimum <= upper
    gap : float, upper - lower as a share of the objective
    violation : float, the largest violation of a constraint (negative: room)
    barrier : float, the last barrier weight, for a warm start
    iterations : int
    status : Status
    """

    coef: Floats
    intercept: float
    multipliers: Floats
    upper: float
    lower: float
    gap: float
    violation: float
    barrier: float
    iterations: int
    status: Status


#: Called after each iteration; True stops the solver with what it has.
Stop = Callable[[], bool]


class Solver(Protocol):
    """Solves a `ConvexProblem` until its relative gap is at most the tolerance."""

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve from a start (default: the zero model) until the gap is met or stop() says so."""
        ...
