"""Majorization along a smoothed hinge: the fast start.

For a barrier weight μ every term's hinge and dual variable can be eliminated exactly: they are
smooth functions of the score and the ceiling T = cost + multipliers @ table (the closed forms of
`ratebound.kernels.smooth_terms`). What is left is the saddle function of the elastic barrier
problem, ::

    L(w, b, v) = sum_k φ(u_k, T_k) + α/2 ||w||² - bound · v + ω μ sum_j (log v_j + log(V - v_j))
    φ(u, T)    = min over h > max(0, u) of  T h - μ log h - μ log(h - u),    u_k = 1/2 + s_k z_k

convex in (w, b) and concave in the multipliers v, with the gradients Σ p s (x, 1) + α w and
A h - bound + ω μ / v - ω μ / (V - v), and Newton's system that of the interior point. Rows keep no
state but their scores.

From w = 0 and μ = 1/4 one Newton step follows the other while μ is halved; once μ is below
`ANCHORED` the bounds are taken anew at every step's scores, so that the steps follow the ramp
problem itself and not one of its convex bounds. Where μ has become so small that hinges are all but
exact, majorization takes over.

How far a step goes: the gradient (of L in (w, b), of -L in v) is a monotone map G, so its component
along a direction, G(point + step · direction) · direction, never falls as the step grows. Where a
Newton direction starts it is negative: minus the square of the direction's length in the metric of
the system. A step is accepted unless this slope has grown to `SLOPE` times that square; else it is
cut where the chord between the slopes vanishes. That is one pass over scores a trial, no merit
function, and nothing that the rounding of large sums could hide.

On the way a small difference grows, tenfold a step towards the end; and sums over rows in another
order, or over a row twice in place of its weight, differ by rounding. So directions and step
lengths are taken to a few digits only (`_few_digits`): the next step starts from the very same
point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ratebound.ramp import RampProblem
from ratebound.rows.base import Floats, Rows, Smooth
from ratebound.solvers.base import Start
from ratebound.solvers.newton import (
    CONSTRAINT_SHARE,
    Units,
    newton_system,
    one_blas_thread,
    scaled_table,
)

FIRST_BARRIER = 0.25
LAST_BARRIER = 1.3e-4
NEAR = 2e-3  # barrier from which on the point will do as a start, should the path end there
ANCHORED = 0.02  # barrier below which the bounds are taken anew at every step
SHRINK = 0.5  # of the barrier, once the steps are close to the path
CENTRED = 0.3  # a step's squared length over barrier * weight of the terms that counts as close
PROGRESS = 0.25  # and how much of such a step must have been taken
SLOPE = 0.3  # that a step may leave behind itself, as a share of the slope where it started
PATIENCE = 40  # steps at one barrier weight
TRIALS = 12  # step lengths tried at most
KEPT = 0.1  # share of a multiplier, or of its room below the price, that a step leaves
MULTIPLIER_START = 0.1
DIGITS = 2.0**-14  # of a direction, as a share of the length of the whole
STEP_DIGITS = 2.0**-10
TINY = np.finfo(float).tiny
ACCURACY = 1e-2  # of a direction where the system is solved by iteration
MOST_CONSTRAINTS = 1024  # all are in the system from the start: late ones disturb the path


@dataclass(frozen=True)
class Tracked:
    """Where the homotopy led.

    Attributes
    ----------
    start : Start or None
        Where majorization should start; None where the homotopy stalled.
    steps : int
        Newton systems factorised.
    passes : int
        Passes over the rows' scores, those of rejected steps included.
    stalled : str
        Why it came to nothing; "" where it did.
    """

    start: Start | None
    steps: int
    passes: int
    stalled: str = ""


@dataclass(frozen=True)
class Homotopy:
    """Settings of the homotopy.

    Parameters
    ----------
    max_iter : int
        Newton steps after which it counts as stalled.
    """

    max_iter: int = 200

    def run(self, problem: RampProblem, stop: Callable[[], bool] | None = None) -> Tracked:
        """Follow the path from the zero model; stop() ends it where it stands."""
        count = len(problem.bound)
        if count > MOST_CONSTRAINTS:
            why = f"{count} constraints are more than the {MOST_CONSTRAINTS} it can follow"
            return Tracked(None, 0, 0, why)
        convex = problem.convex_at(np.zeros(problem.rows.n_features), 0.0)
        units = Units.of(convex, problem.rows.live_weight)
        with one_blas_thread():
            return _Path(problem, units).follow(self.max_iter, stop)


class _Path:
    """The current point, and Newton's steps along the path; in units of a typical cost."""

    def __init__(self, problem: RampProblem, units: Units) -> None:
        self.problem = problem
        self.rows: Rows = problem.rows.compact()
        self.units = units
        self.cost = problem.cost * units.cost
        self.alpha = problem.alpha * units.cost
        self.highest = problem.multiplier_bound * units.multipliers
        self.terms_weight = float(problem.rows.live_weight.sum())
        self.weight = CONSTRAINT_SHARE * self.terms_weight
        self.barrier = FIRST_BARRIER
        self.coef = np.zeros(self.rows.n_features)
        self.intercept = 0.0
        self.passes = 0
        touched = np.asarray(problem.constraints.sum(axis=0)).reshape(self.cost.shape) > 0
        self.charged = (problem.cost > 0) | touched
        self.wanted = touched & (problem.rows.cell_weight > 0)
        self.rows.set_anchor(self.coef, self.intercept)
        self.table = scaled_table(problem.constraints, units.constraints)
        spread = self.weight * self.barrier
        self.multipliers = np.minimum(MULTIPLIER_START, 0.5 * self.highest)
        self.slack = spread / self.multipliers
        self.excess = spread / (self.highest - self.multipliers)
        self.has_path = self._anchor()
        self.sums = self._smooth(self.multipliers, 0.0)

    def follow(self, max_iter: int, stop: Callable[[], bool] | None) -> Tracked:
        if not self.has_path:
            return Tracked(None, 0, 0, "all terms are of one sign")
        here = 0
        for steps in range(1, max_iter + 1):
            length, step = self._newton()
            here += 1
            if not np.isfinite(length + step + self.intercept + float(np.sum(self.multipliers))):
                return Tracked(None, steps, self.passes, "a step was not finite")
            if step == 0.0:
                return self._give_up(steps, "no step made progress")
            stopped = stop is not None and stop()
            close = length <= CENTRED * self.barrier * self.terms_weight and step >= PROGRESS
            if stopped or (close and self.barrier <= LAST_BARRIER):
                return Tracked(self._start(), steps, self.passes)
            if close:
                self.barrier *= SHRINK
                here = 0
            if here == PATIENCE:
                return self._give_up(steps, f"{here} steps at one barrier weight")
            if self.barrier < ANCHORED and not self._anchor():
                return Tracked(None, steps, self.passes, "it led to one decision for all rows")
            self.sums = self._smooth(self.multipliers, 0.0)
        return self._give_up(max_iter, f"not at its end after {max_iter} Newton steps")

    def _give_up(self, steps: int, why: str) -> Tracked:
        if self.barrier <= NEAR:
            return Tracked(self._start(), steps, self.passes)
        return Tracked(None, steps, self.passes, why)

    def _start(self) -> Start:
        multipliers = self.multipliers / self.units.multipliers
        coef = self.rows.lift(self.coef)
        # beyond this all scores are flat: where the path ran along a ray, its end nearest the data
        reach = 0.5 + self.problem.rows.largest_norm * np.sqrt(self.rows.squared_norm(self.coef))
        return Start(
            coef,
            float(np.clip(self.intercept, -reach, reach)),
            np.clip(multipliers, 0.0, self.problem.multiplier_bound),
            self.barrier,
        )

    def _anchor(self) -> bool:
        """Take the bounds that are tight at the scores; whether terms of both signs are left."""
        dead = self.rows.choose_sides()
        self.bound = self.problem.bound - self.problem.constraints @ dead.ravel()
        left = self.problem.rows.cell_weight - dead > 1e-12 * self.problem.rows.cell_weight
        return bool(np.any(left & self.charged, axis=1).all())

    # ---- Newton ------------------------------------------------------------------------------

    def _smooth(self, multipliers: Floats, step: float) -> Smooth:
        self.passes += 1
        ceiling = self.cost + (self.table.T @ multipliers).reshape(self.cost.shape)
        return self.rows.smooth(ceiling, self.barrier, step)

    def _residual(self, sums: Smooth, multipliers: Floats) -> Floats:
        """The gradient in the multipliers: what their constraints lack, barrier included."""
        room = self.highest - multipliers
        lacking = self.table @ sums.hinges.ravel()
        lacking -= self.bound * self.units.constraints
        return np.asarray(lacking + self.weight * self.barrier * (1.0 / multipliers - 1.0 / room))

    def _newton(self) -> tuple[float, float]:
        """One step; the squared length of the direction, and how much of it was taken."""
        problem, rows = self.problem, self.rows
        multipliers, room = self.multipliers, self.highest - self.multipliers
        features, bias = rows.smooth_gradient()
        gradient = np.append(features + self.alpha * self.coef, bias)
        residual = self._residual(self.sums, multipliers)
        system = newton_system(
            rows, rows.smooth_curvature(self.wanted), self.alpha, self.table, self.wanted,
            self.slack / multipliers + self.excess / room, problem.fit_intercept, ACCURACY,
        )  # fmt: skip
        gradient = gradient[: system.size]
        model, move = system.solve(-gradient, -residual)
        length = float(residual @ move - gradient @ model)
        model = _few_digits(model, np.sqrt(max(length, 0.0) / np.maximum(system.diagonal, TINY)))
        move = _few_digits(move, multipliers)
        coef = model[: rows.n_features]
        intercept = float(model[-1]) if problem.fit_intercept else 0.0
        rows.smooth_direction(coef, intercept)
        step, moved = self._search(coef, move, length)

        spread = self.weight * self.barrier
        to_slack = spread / multipliers - self.slack - self.slack / multipliers * move
        to_excess = spread / room - self.excess + self.excess / room * move
        self.slack = np.maximum(self.slack + step * to_slack, KEPT * self.slack)
        self.excess = np.maximum(self.excess + step * to_excess, KEPT * self.excess)
        self.multipliers = moved
        self.coef = self.coef + step * coef
        self.intercept += step * intercept
        rows.smooth_move(step)
        return length, step

    def _search(self, coef: Floats, move: Floats, length: float) -> tuple[float, Floats]:
        """How far to go, and the multipliers there; 0 where no step will do."""
        old = self.multipliers
        low, high = KEPT * old, old + (1.0 - KEPT) * (self.highest - old)
        linear = self.alpha * float(coef @ self.coef)
        quadratic = self.alpha * float(coef @ coef)
        step = 1.0
        for _ in range(TRIALS):
            moved = np.clip(old + step * move, low, high)
            sums = self._smooth(moved, step)
            slope = sums.slope + linear + step * quadratic
            slope -= float(self._residual(sums, moved) @ move)
            if slope <= SLOPE * length:
                return step, moved
            shorter = step * float(np.clip(length / (length + slope), 0.1, 0.9))
            step = float(_few_digits(np.array([shorter]), np.array([step]), STEP_DIGITS)[0])
        return 0.0, old


def _few_digits(values: Floats, sizes: Floats, digits: float = DIGITS) -> Floats:
    """Round values to a multiple of a power of two, about this share of their natural sizes."""
    _, exponents = np.frexp(sizes * digits)
    unit = np.ldexp(1.0, exponents)
    return np.asarray(np.where(np.isfinite(values), np.round(values / unit) * unit, values))
