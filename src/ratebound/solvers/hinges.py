"""What multipliers make of rows: a two-sided hinge each, with the box of its dual variable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats, RowMatrix


@dataclass(frozen=True)
class Hinges:
    """What the multipliers make of a problem: a two-sided hinge a row, and what rows do not see.

    Attributes
    ----------
    low, high : (n,), the box [-T1, T0] of every row's dual variable
    alpha : float
    constant : float, the part of Psi without rows
    """

    low: Floats
    high: Floats
    alpha: float
    constant: float

    @classmethod
    def of(cls, problem: ConvexProblem, multipliers: Floats, matrix: RowMatrix) -> Hinges:
        """The hinges of a problem at multipliers, given its rows."""
        ceiling = np.maximum(problem.ceiling(multipliers), 0.0)
        cell = np.maximum(matrix.cell, 0)
        used = np.where(matrix.cell >= 0, matrix.weight, 0.0)
        high = np.where(matrix.live & 1, used * ceiling[0, cell], 0.0)
        low = np.where(matrix.live & 2, -used * ceiling[1, cell], 0.0)
        constant = problem.constant - float(problem.bound @ multipliers)
        return cls(low, high, problem.alpha, constant)

    @property
    def lighter_side(self) -> float:
        """The smaller sum of ceilings: what the hinges cost at coef = 0 and the best intercept."""
        return min(float(np.sum(self.high)), -float(np.sum(self.low)))

    def charge(self, scores: Floats) -> float:
        """Sum of the hinges."""
        above, below = np.maximum(0.5 + scores, 0.0), np.maximum(0.5 - scores, 0.0)
        return float(np.sum(self.high * above - self.low * below))

    def sides(self, dual: Floats) -> Floats:
        """The dual variables of both sides, (2, n), that add most to the dual."""
        kink = self.low + self.high
        first = np.clip(np.where(dual >= kink, self.high, dual - self.low), 0.0, self.high)
        return np.array([first, np.clip(first - dual, 0.0, -self.low)])

    def best_intercept(self, scores: Floats, near: float) -> float:
        """The exact minimiser over the intercept for given scores without it.

        The slope rises by a ceiling at every breakpoint, so the minimiser is a weighted quantile of
        them. Only those between `near` and the minimiser, and as many on its other side, are
        sorted.
        """
        points = np.concatenate([-0.5 - scores, 0.5 - scores])
        rises = np.concatenate([self.high, -self.low])
        counted = rises > 0
        points, rises = points[counted], rises[counted]
        if not len(points):
            return near
        lowest = float(np.sum(self.low))

        def slope_below(intercept: float) -> float:
            return lowest + float(np.sum(rises[points < intercept]))

        width = 0.1
        first, last = float(points.min()), float(points.max())
        while True:
            left, right = max(near - width, first), min(near + width, last)
            left_done = left == first or slope_below(left) < 0
            right_done = right == last or slope_below(np.nextafter(right, np.inf)) >= 0
            if left_done and right_done and left <= right:
                break
            width *= 8
        inside = np.flatnonzero((points >= left) & (points <= right))
        inside = inside[np.argsort(points[inside], kind="stable")]
        slopes = slope_below(left) + np.cumsum(rises[inside])
        return float(points[inside[min(int(np.searchsorted(slopes, 0.0)), len(inside) - 1)]])
