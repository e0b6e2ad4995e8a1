"""Where the cutting plane over multipliers cuts next, and how accurately (the paper's CutChooser).

What is known of the concave function to maximise, ``psi(v) = min over models of Psi(model, v)``,
are cuts above it and one number below its maximum::

    psi(v) <= h(v) = min over cuts s of  values[s] + slopes[s] @ v,     0 <= v <= highest
    lower  <= max psi <= upper = max h

A maximiser lies in the *superlevel hypograph* ``{(v, z): 0 <= v <= highest, lower <= z <= h(v)}``,
and a chooser names a point v of it and the accuracy that psi is wanted to there. All is in units in
which typical costs and constraints are 1 (`ratebound.solvers.cutting_plane`).

>>> import numpy as np
>>> values, slopes = np.array([0.2, 1.0]), np.array([[0.5], [-0.5]])
>>> program = Program(
...     values, slopes, highest=np.array([10.0]), maximizer=np.array([0.8]), upper=0.6,
...     lower=0.2, centre=np.array([0.0]),
... )
>>> point, accuracy = Maximization().choose(program)
>>> point.round(3), round(accuracy, 4)
(array([0.8]), 0.2)
>>> point, accuracy = CenterOfMass().choose(program)
>>> point.round(3), round(accuracy, 4)
(array([0.8]), 0.0667)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg
import scipy.optimize

from ratebound.rows.base import Floats

__all__ = ["CenterOfMass", "CutChooser", "Level", "Maximization", "Program"]


@dataclass(frozen=True)
class Program:
    """What is known of the function to maximise.

    Attributes
    ----------
    values : (cuts,)
    slopes : (cuts, m)
    highest : (m,), the multipliers lie between 0 and this
    maximizer : (m,), where the lowest cut is highest
    upper : float, how high it is there (U_t)
    lower : float, at most the maximum that is sought (L_t)
    centre : (m,), the multipliers at which the lower bound was found
    """

    values: Floats
    slopes: Floats
    highest: Floats
    maximizer: Floats
    upper: float
    lower: float
    centre: Floats

    def height(self, point: Floats) -> float:
        """The lowest cut at a point (h_t)."""
        return float(np.min(self.values + self.slopes @ point))

    def raised(self, point: Floats, level: float) -> Floats:
        """The point moved into the box, and toward the maximiser until no cut is below the level.

        Cuts are concave together, so the share of the way is a quotient; choosers may compute in
        rounded arithmetic and still cut where psi may be that high.
        """
        point = np.clip(point, 0.0, self.highest)
        here, top = self.height(point), self.height(self.maximizer)
        if here >= level:
            return point
        share = min(1.0, (level - here) / (top - here)) if top > here else 1.0
        return np.asarray((1.0 - share) * point + share * self.maximizer)


class CutChooser(Protocol):
    """Names the next multipliers (CutChooser in the paper's Algorithm 2)."""

    def choose(self, program: Program) -> tuple[Floats, float]:
        """Return the point to cut at, no cut there below `lower`, and a positive accuracy."""
        ...


@dataclass(frozen=True)
class Maximization:
    """Cuts at the maximiser of the cuts, to half the gap (the paper's first definition).

    Kelley's method: simple, with no bound on its steps, and in several dimensions it needs many,
    because the maximiser jumps from corner to corner until all slopes around it are known.
    """

    def choose(self, program: Program) -> tuple[Floats, float]:
        """The maximiser, and half the gap."""
        return program.maximizer, 0.5 * (program.upper - program.lower)


@dataclass(frozen=True)
class Level:
    """Cuts where the cuts reach a level between the bounds, as near as possible to the best point.

    The next point is the solution of::

        minimise ||v - centre||^2   subject to   h(v) >= lower + share * (upper - lower),
                                                 0 <= v <= highest

    (the level method of Lemaréchal, Nemirovskii and Nesterov, from the point of the best lower
    bound). Whichever way psi turns out there, the gap shrinks: above the level the lower bound
    rises, below it a cut takes off more than the accuracy. Steps stay where the cuts are known.

    Parameters
    ----------
    share : float, where between the bounds the level is
    accuracy : float, share of the gap to which psi is wanted; less than `share`
    """

    share: float = 0.5
    accuracy: float = 0.1

    def choose(self, program: Program) -> tuple[Floats, float]:
        """The point of the level nearest to the centre, and a share of the gap."""
        spread = program.upper - program.lower
        level = program.lower + self.share * spread
        return program.raised(_nearest(program, level), level), self.accuracy * spread


def _nearest(program: Program, level: float) -> Floats:
    """The point of ``{h >= level}`` in the box that is nearest to the centre.

    With the rows ``G y >= r`` in y = v - centre this is least distance programming: by Lawson and
    Hanson, when u >= 0 is the nearest that ``[G, r]' u`` comes to the last unit vector, y is read
    off what is missing. Rows are normalised first.
    """
    centre = program.centre
    m = len(centre)
    short = level - program.values - program.slopes @ centre
    if not np.any(short > 0):
        return centre
    unit = max(float(np.max(short)), np.finfo(float).tiny)  # the unit of distance
    sides = np.concatenate([-centre, centre - program.highest])
    rows = np.vstack([program.slopes, np.eye(m), -np.eye(m)])
    system = np.column_stack([rows, np.concatenate([short, sides]) / unit])
    system /= np.maximum(np.linalg.norm(system, axis=1, keepdims=True), np.finfo(float).tiny)
    wanted = np.zeros(m + 1)
    wanted[m] = 1.0
    try:
        weights, missing = scipy.optimize.nnls(system.T, wanted)
    except RuntimeError:  # too many exchanges: the way to the maximiser remains
        return centre
    residual = wanted - system.T @ weights
    if missing <= 0 or residual[m] <= 0:
        return centre
    return np.asarray(centre - unit * residual[:m] / residual[m])


@dataclass(frozen=True)
class CenterOfMass:
    """Cuts at the centre of mass of the superlevel hypograph (the paper's second definition).

    With (v, z) that centre, psi is wanted to half of z - lower. Every cut then takes at least the
    share 1/2e of the hypograph's volume. For one and two multipliers the centre is exact; above
    that it is the mean over a random walk (hit-and-run, the same one every time), near enough to
    the centre to cut well, but without the promise.

    Parameters
    ----------
    walk : int, steps of the walk per dimension
    seed : int
    """

    walk: int = 400
    seed: int = 0

    def choose(self, program: Program) -> tuple[Floats, float]:
        """The centre of mass, and half its height."""
        m = len(program.highest)
        found = _exact_centre(program) if m <= 2 else self._sampled_centre(program)
        if found is None:  # no volume left in floating point
            return program.maximizer, 0.5 * (program.upper - program.lower)
        point, height = found
        accuracy = 0.5 * (height - program.lower)
        return program.raised(point, height), accuracy

    def _sampled_centre(self, program: Program) -> tuple[Floats, float] | None:
        """Mean of a walk that keeps to {lower <= z <= h(v)}, each step along a random line.

        Lines are drawn with the covariance of what was walked before, so that a thin set is crossed
        lengthwise too; along a line the mean is known, which halves the noise.
        """
        body = _Body.of(program)
        state = body.deepest()
        if state is None:
            return None
        rng = np.random.default_rng(self.seed)
        size = len(state)
        root: Floats = np.eye(size)
        steps = self.walk * size
        for share in (0.05, 0.1, 0.25, 1.0):  # the last walk counts, the others learn the shape
            middles = np.empty((max(int(share * steps), 10 * size), size))
            directions = rng.normal(size=middles.shape) @ root.T
            places = rng.uniform(size=len(middles))
            visited = np.empty_like(middles)
            room = body.bounds - body.rows @ state
            for k, (direction, place) in enumerate(zip(directions, places, strict=True)):
                rate = body.rows @ direction
                with np.errstate(divide="ignore", invalid="ignore"):
                    limits = np.maximum(room, 0.0) / rate
                last = np.min(limits[rate > 0])
                first = np.max(limits[rate < 0])
                middles[k] = state + 0.5 * (first + last) * direction
                step = first + place * (last - first)
                state = state + step * direction
                room = room - step * rate
                visited[k] = state
            covariance = np.cov(visited.T) + 1e-12 * np.diag(np.var(visited, axis=0) + 1e-300)
            root = np.asarray(np.linalg.cholesky(covariance))
        mean = middles.mean(axis=0)
        return body.point(mean), body.height(mean)


# ---- exact centres: one and two multipliers -----------------------------------------------------


def _exact_centre(program: Program) -> tuple[Floats, float] | None:
    """Centre of mass (v, z) of the hypograph over one or two multipliers.

    Over the polygon on which one cut is the lowest, the mass above v is linear in v, and its
    moments have degree two: the three midpoints of a triangle's edges integrate them exactly. A
    single multiplier is given a second one that changes nothing.
    """
    m = len(program.highest)
    slopes, highest = program.slopes, program.highest
    if m == 1:
        slopes = np.column_stack([slopes, np.zeros(len(slopes))])
        highest = np.append(highest, 1.0)
    depths = program.values - program.lower  # of the cuts above the lower bound, at v = 0
    shares = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    superlevel = shares * highest
    for slope, depth in zip(slopes, depths, strict=True):
        superlevel = _clipped(superlevel, slope, depth)
    moments = np.zeros(4)  # of 1, v_1, v_2 and z - lower
    newest_first = np.arange(len(slopes))[::-1]  # late cuts are the low ones: they empty it soon
    for s in newest_first:
        polygon = superlevel
        for other in newest_first:
            if other != s and len(polygon) > 2:
                apart = slopes[other] - slopes[s], depths[other] - depths[s]
                # of two equal cuts only one may count
                if other > s and not np.any(apart[0]) and apart[1] == 0:
                    polygon = polygon[:0]
                else:
                    polygon = _clipped(polygon, *apart)
        moments += _moments(polygon, slopes[s], depths[s])
    if not moments[0] > 0:
        return None
    middle = moments[1:] / moments[0]
    return middle[:m], program.lower + float(middle[2])


def _clipped(polygon: Floats, slope: Floats, depth: float) -> Floats:
    """The part of a convex polygon where ``depth + slope @ v >= 0``."""
    heights = depth + polygon @ slope
    inside = heights >= 0
    if inside.all():
        return polygon
    after, heights_after = np.roll(polygon, -1, axis=0), np.roll(heights, -1)
    crosses = inside != np.roll(inside, -1)
    fall = np.where(crosses, heights - heights_after, 1.0)
    crossings = polygon + (heights / fall)[:, np.newaxis] * (after - polygon)
    corners = np.stack([polygon, crossings], axis=1)
    return np.asarray(corners[np.column_stack([inside, crosses])])


def _moments(polygon: Floats, slope: Floats, depth: float) -> Floats:
    """Moments of {(v, z): v in the polygon, 0 <= z <= depth + slope @ v}."""
    if len(polygon) < 3:
        return np.zeros(4)
    first, second, third = polygon[:1], polygon[1:-1], polygon[2:]
    a, b = second - first, third - first
    areas = 0.5 * np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    middles = 0.5 * np.stack([first + second, second + third, third + first])
    heights = depth + middles @ slope
    mass = areas * heights / 3.0
    return np.array(
        [mass.sum(), *np.einsum("kt,ktj->j", mass, middles), 0.5 * np.sum(mass * heights)]
    )


# ---- the walk: three multipliers and more -------------------------------------------------------


@dataclass(frozen=True)
class _Body:
    """The hypograph as ``rows @ x <= bounds``, x = ((v - maximizer) / unit, (z - lower) / unit)."""

    rows: Floats
    bounds: Floats
    program: Program
    unit: float

    @classmethod
    def of(cls, program: Program) -> _Body:
        m = len(program.highest)
        unit = max(program.upper - program.lower, np.finfo(float).tiny)
        tops = program.values + program.slopes @ program.maximizer - program.lower
        flat = np.zeros((m, 1))
        rows = np.vstack(
            [
                np.column_stack([-program.slopes, np.ones(len(tops))]),
                np.column_stack([np.eye(m), flat]),
                np.column_stack([-np.eye(m), flat]),
                np.append(np.zeros(m), -1.0),
            ]
        )
        sides = [tops, program.highest - program.maximizer, program.maximizer, np.zeros(1)]
        return cls(rows, np.concatenate(sides) / unit, program, unit)

    def deepest(self) -> Floats | None:
        """The centre of the largest ball inside."""
        size = self.rows.shape[1]
        norms = np.linalg.norm(self.rows, axis=1)
        found = scipy.optimize.linprog(
            np.append(np.zeros(size), -1.0),
            A_ub=np.column_stack([self.rows, norms]),
            b_ub=self.bounds,
            bounds=[(None, None)] * size + [(0.0, None)],
        )
        if found.x is None or not found.success or found.x[size] <= 0:
            return None
        return np.asarray(found.x[:size])

    def point(self, x: Floats) -> Floats:
        return np.asarray(self.program.maximizer + self.unit * x[:-1])

    def height(self, x: Floats) -> float:
        return self.program.lower + self.unit * float(x[-1])
