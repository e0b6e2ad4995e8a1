"""Problems along a path, each solved from where those before it ended.

Along a path of ramp problems (falling alpha, a goal's bound on its way from loose to tight)
solutions move little from one to the next. The first problem is solved as the estimator says; every
later one by majorization from the line through the last two solutions, at the new position
(measured on ten alphas of Adult: less than a third of the Newton steps of ten single fits, at ramp
objectives that are as low or lower).

What a warm start changes: the ramp problem has several local optima, and a model on a path can be
another than that of a single fit. It is a function of the path alone, and each one comes with the
certificate of its own last convex problem, as any fit does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ratebound.outcome import Solved
from ratebound.problem import RateProblem
from ratebound.ramp import RampProblem
from ratebound.svc import RateBoundSVC

if TYPE_CHECKING:
    from ratebound.majorize import Majorized
    from ratebound.solvers.base import Start

#: Barrier at which the interior point takes up its path: farther out, steps are spent on coming
#: back; farther in, on what the prediction has missed.
WARM_BARRIER = 0.03


class Stop(NamedTuple):
    """One problem of a path: where it lies on it, and what is to be solved there."""

    position: float
    rates: RateProblem
    problem: RampProblem


def follow(svc: RateBoundSVC, stops: Iterable[Stop]) -> Iterator[Solved]:
    """Solve the problems of a path in its order, each from a prediction by the last two.

    Parameters
    ----------
    svc : RateBoundSVC
        Whose parameters (goals and alpha apart, which are in the problems) hold.
    stops : iterable of Stop
        Over the same features and constraints. A callback or time limit that stops a fit ends the
        path there.
    """
    before: list[tuple[float, Majorized]] = []
    for stop in stops:
        start = _predicted(before, stop.position) if before else None
        solved = svc._solve(stop.rates, stop.problem, start)
        yield solved
        if solved.fit.stopped:
            return
        before = [*before[-1:], (stop.position, solved.fit)]


def _predicted(before: list[tuple[float, Majorized]], position: float) -> Start:
    """The model and multipliers on the line through the last two, at a position."""
    from ratebound.solvers.base import Start

    there, last = before[-1]
    coef, intercept = last.coef, last.intercept
    multipliers = last.solution.multipliers
    if len(before) > 1 and before[0][0] != there:
        earlier, first = before[0]
        # no farther than the last two are apart: a long leap is no line
        ahead = min((position - there) / (there - earlier), 1.0)
        coef = coef + ahead * (coef - first.coef)
        intercept = intercept + ahead * (intercept - first.intercept)
        multipliers = multipliers + ahead * (multipliers - first.solution.multipliers)
    return Start(coef, intercept, np.maximum(multipliers, 0.0), WARM_BARRIER)
