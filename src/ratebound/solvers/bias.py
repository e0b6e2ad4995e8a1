"""Algorithm 3 of the paper: a cutting plane over the bias, from ascents at one bias after another.

For multipliers v the oracle's problem (`ratebound.solvers.oracles`) is convex in the intercept::

    minimise over low <= b <= high    phi(b) = min over coef of Psi(coef, b)

`Ascent` finds phi at a given b: a model, ``u = Psi(coef, b) >= phi(b)``, and a dual point xi, whose
value in the dual is linear in b with slope ``sum xi`` and nowhere above phi: a *cut*. Step t has::

    h_t(b) = the largest cut at b
    L_t = min of h_t over the interval     U_t = the smallest u

and a chooser names the next b and the accuracy there. The paper writes its bias with the other
sign, b' = -b, which mirrors the slopes and nothing else.

The interval is ``|b| <= 1/2 + max ||x|| sqrt(2 u_0 / alpha)`` with u_0 the value at coef = 0: as
beyond the outermost breakpoint moving b inward raises no hinge, it holds a minimiser over all b.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats
from ratebound.solvers.base import Stop
from ratebound.solvers.hinges import Hinges
from ratebound.solvers.oracles import Answer, SVMOptimizer, answer_at
from ratebound.solvers.sdca import SDCA, Ascent, Found

__all__ = ["BiasCuttingPlane", "Epigraph"]


@dataclass(frozen=True)
class Epigraph:
    """What is known of a convex function of one variable: cuts below it, and one number above.

    Attributes
    ----------
    values : (cuts,), of the cuts at b = 0
    slopes : (cuts,)
    low, high : float, the interval of b
    upper : float, at least the minimum that is sought (U_t)
    """

    values: Floats
    slopes: Floats
    low: float
    high: float
    upper: float

    def corners(self) -> tuple[Floats, Floats]:
        """The corners (b, h) of the largest cut over the interval, from left to right.

        From the cut that is largest at the left end, the next one is the first to cross it among
        the steeper ones.
        """
        at = self.values + self.slopes * self.low
        current = int(np.lexsort((self.slopes, at))[-1])
        b = [self.low]
        h = [float(at[current])]
        while True:
            steeper = self.slopes > self.slopes[current]
            rise = np.where(steeper, self.slopes - self.slopes[current], 1.0)
            crossing = (self.values[current] - self.values) / rise
            crossing = np.where(steeper, crossing, np.inf)
            first = float(np.min(crossing))
            if not first < self.high:
                b.append(self.high)
                h.append(float(self.values[current] + self.slopes[current] * self.high))
                return np.array(b), np.array(h)
            tied = np.flatnonzero(crossing == first)
            current = int(tied[np.argmax(self.slopes[tied])])
            b.append(max(first, b[-1]))
            h.append(float(self.values[current] + self.slopes[current] * b[-1]))

    def minimizer(self) -> float:
        """Where the largest cut is smallest."""
        b, h = self.corners()
        return float(b[np.argmin(h)])

    def lower(self) -> float:
        """The minimum of the largest cut over the interval (L_t), never above it by rounding.

        A mixture of cuts is a cut, and so at least its value at 0 less |slope| times the longer end
        of the interval. The best mixtures are single cuts, and pairs mixed to slope 0.
        """
        reach = max(abs(self.low), abs(self.high))
        best = float(np.max(self.values - np.abs(self.slopes) * reach))
        falling, rising = np.flatnonzero(self.slopes < 0), np.flatnonzero(self.slopes > 0)
        if len(falling) and len(rising):
            one, other = np.meshgrid(falling, rising, indexing="ij")
            share = self.slopes[other] / (self.slopes[other] - self.slopes[one])
            slope = share * self.slopes[one] + (1 - share) * self.slopes[other]
            mixed = share * self.values[one] + (1 - share) * self.values[other]
            best = max(best, float(np.max(mixed - np.abs(slope) * reach)))
        return best

    def centre_of_mass(self) -> tuple[float, float] | None:
        """The centre (b, z) of ``{(b, z): h(b) <= z <= upper}``; None where it has no area.

        Between two corners the depth below `upper` is linear in b, so that the moments are those of
        a trapezoid, exact.
        """
        b, h = self.corners()
        depth = self.upper - h
        left, right = b[:-1], b[1:]
        first, last = depth[:-1], depth[1:]
        # cut every piece where it leaves the epigraph
        fall = np.where(first != last, first - last, 1.0)
        leaves = left + (right - left) * np.clip(first / fall, 0.0, 1.0)
        start = np.where(first >= 0, left, np.where(last > 0, leaves, right))
        end = np.where(last >= 0, right, np.where(first > 0, leaves, start))
        first, last = np.maximum(first, 0.0), np.maximum(last, 0.0)
        width = end - start
        area = width * (first + last) / 2
        if not float(np.sum(area)) > 0:
            return None
        along = start * area + width * width * (first + 2 * last) / 6
        below = width * (first * first + first * last + last * last) / 6
        total = float(np.sum(area))
        return float(np.sum(along)) / total, self.upper - float(np.sum(below)) / total


@dataclass(frozen=True)
class BiasCuttingPlane:
    """Minimise Psi over coef by coordinate ascent and over the bias by a cutting plane.

    The paper's SVMOptimizer as printed (Algorithm 3), for comparison: `SDCA` alone, whose bias is
    free, needs a fraction of its passes.

    Parameters
    ----------
    ascent : SDCA
        Finds the minimum over coef at a held bias (the paper's SDCAOptimizer).
    chooser : {"center-of-mass", "minimization"}
        "center-of-mass" cuts at the centre of mass (b, z) of what lies between cuts and the upper
        bound, to an accuracy of half of U - z, and begins with the upper bound doubled (Definition
        4 of the paper); its steps are bounded by a logarithm. "minimization" cuts where the largest
        cut is smallest, to half the gap (Definition 3).
    max_iter : int
        Ascents at most.
    """

    ascent: SDCA = field(default_factory=SDCA)
    chooser: Literal["center-of-mass", "minimization"] = "center-of-mass"
    max_iter: int = 100

    def __post_init__(self) -> None:
        if self.chooser not in ("center-of-mass", "minimization"):
            raise ValueError(
                f"chooser={self.chooser!r} of BiasCuttingPlane is neither 'center-of-mass' nor "
                "'minimization'"
            )

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Return a model whose upper and lower differ by at most accuracy, from a cold start."""
        return self.session().minimize(problem, multipliers, accuracy, stop)

    def session(self) -> SVMOptimizer:
        """Return this oracle with a memory of its last dual point."""
        return _Session(self)


class _Session:
    """Keeps the dual variables from one bias to the next and from one question to the next."""

    def __init__(self, settings: BiasCuttingPlane) -> None:
        self.settings = settings
        self.ascent: Ascent | None = None

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Cut until the bounds are within accuracy of each other."""
        if self.ascent is None or self.ascent.stored.rows is not problem.rows:
            self.ascent = Ascent(problem.rows, self.settings.ascent)
        hinges = self.ascent.hinges_of(problem, multipliers)
        if hinges.lighter_side <= 0 or not problem.fit_intercept:  # no bias to look for
            found = self.ascent.solve(problem, multipliers, accuracy, stop)
        else:
            found = self._over_bias(self.ascent, problem, multipliers, accuracy, stop, hinges)
        return answer_at(
            problem, multipliers, found.coef, found.intercept, found.lower, found.passes
        )

    def _over_bias(
        self,
        ascent: Ascent,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None,
        hinges: Hinges,
    ) -> Found:
        first = hinges.lighter_side  # at coef = 0 and the cheaper of the biases -1/2 and 1/2
        reach = 0.5 + problem.rows.largest_norm * float(np.sqrt(2 * first / hinges.alpha))
        cheaper = -0.5 if -np.sum(hinges.low) <= np.sum(hinges.high) else 0.5
        coef = np.zeros(problem.rows.n_features)
        best = Found(coef, cheaper, hinges.constant + first, -np.inf, 0.0, 0.0)
        centred = self.settings.chooser == "center-of-mass"
        upper = hinges.constant + (2 * first if centred else first)
        values, slopes = [hinges.constant], [0.0]
        passes = 0.0
        for count in range(self.settings.max_iter + 1):
            known = Epigraph(np.array(values), np.array(slopes), -reach, reach, upper)
            lower = known.lower()
            stopped = count > 0 and stop is not None and stop()
            if best.upper - lower <= accuracy or stopped or count == self.settings.max_iter:
                break
            b, wanted = _chosen(known, lower, centred)
            found = ascent.solve(problem, multipliers, wanted, stop, held_at=b)
            passes += found.passes
            upper = min(upper, found.upper)
            if found.upper < best.upper:
                best = found
            values.append(found.lower - found.slope * b)
            slopes.append(found.slope)
        return Found(best.coef, best.intercept, best.upper, lower, 0.0, passes)


def _chosen(known: Epigraph, lower: float, centred: bool) -> tuple[float, float]:
    """The next bias, and the accuracy wanted there (CutChooser in Algorithm 3)."""
    found = known.centre_of_mass() if centred else None
    if found is None:  # also where rounding leaves no area
        return known.minimizer(), 0.5 * (known.upper - lower)
    b, z = found
    return b, 0.5 * (known.upper - z)
