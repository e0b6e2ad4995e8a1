"""Plain models and thresholds on their scores: what methods of the experiments are held against.

A row is positive where its score is at least the cut.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ratebound import Goals, RateBoundSVC
from ratebound.ramp import ConvexProblem
from ratebound.solvers.base import Solution, Start, Stop
from ratebound.solvers.interior_point import InteriorPoint

Floats = NDArray[np.float64]

#: alpha of the smaller experiments on Adult, for all methods: 30 over the number of training rows.
#: At the paper's 1/n the ramp, which gives up rows that a hinge must heed, fits training rows at
#: the expense of test rows; to the plain SVM it makes next to no difference.
ALPHA = 30.0
GAP = 1e-4  # certified, of the one convex problem


@dataclass(frozen=True)
class ToTheEnd:
    """Solves convex problems to this gap, as a support vector machine is: one step is all it has.

    Majorization solves its first problem loosely, as others follow it.
    """

    gap: float

    def solve(
        self,
        problem: ConvexProblem,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve like every `Solver`."""
        return InteriorPoint().solve(problem, min(tolerance, self.gap), start, stop)


def cut_for_recall(score: Floats, y: NDArray[Any], recall: float) -> float:
    """Return the highest cut at which at least this share of the rows with y = 1 is positive."""
    falling = np.sort(score[y == 1])[::-1]
    needed = math.ceil(recall * len(falling) - 1e-9)
    return float(falling[needed - 1]) if needed > 0 else math.inf


def cut_for_coverage(score: Floats, coverage: float) -> float:
    """Return the lowest cut at which at most this share of rows is positive."""
    falling = np.sort(score)[::-1]
    allowed = math.floor(coverage * len(falling) + 1e-9)
    if allowed == len(falling):
        return -math.inf
    # rows that share the score of the first that must be negative are negative too
    return float(np.nextafter(falling[allowed], math.inf))


def hinge_relaxation(
    goals: Goals, X: Any, y: NDArray[Any], alpha: float, sample_weight: Floats | None = None
) -> RateBoundSVC:
    """Fit once with a hinge in place of every rate: the convex bound at zero, and no other step.

    Without constraints and with the error rate as objective this is the plain support vector
    machine, its scores halved.
    """
    svc = RateBoundSVC(
        goals, alpha=alpha, max_iter=1, start="zero", threshold="zero", solver=ToTheEnd(GAP)
    )
    with warnings.catch_warnings():  # one step is all that is asked for
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(X, y, sample_weight=sample_weight)
    return svc


def plain_svm(
    X: Any, y: NDArray[Any], alpha: float, sample_weight: Floats | None = None
) -> RateBoundSVC:
    """Fit a support vector machine."""
    return hinge_relaxation(Goals(), X, y, alpha, sample_weight)
