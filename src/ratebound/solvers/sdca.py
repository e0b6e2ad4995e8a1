"""Stochastic dual coordinate ascent over two-sided hinges (the paper's SDCAOptimizer).

For multipliers v every row has two ceilings, T0 on its hinge ``max(0, 1/2 + z)`` and T1 on
``max(0, 1/2 - z)``: weight times ``problem.ceiling(v)``, 0 on a side that is not live. With
``z = <coef, x> + intercept`` the oracle's problem is::

    minimise over coef, intercept   Psi = sum l_i(z_i) + alpha/2 ||coef||^2 + constant - <bound, v>
                                    l(z) = T0 max(0, 1/2 + z) + T1 max(0, 1/2 - z)

The conjugate of ``l`` on ``-T1 <= xi <= T0`` is ``l*(xi) = |xi - T0 + T1| / 2 - (T0 + T1) / 2``:
one dual variable a row stands for both of its sides, with ``coef = -sum xi x / alpha`` and for a
held intercept::

    maximise over xi    -sum l*(xi_i) + intercept sum xi - ||sum xi x||^2 / (2 alpha)
                        + constant - <bound, v>

A free intercept asks for ``sum xi = 0``. The dual point of the certificate is xi split over the
sides, ``xi = p0 - p1`` with p0 = T0 or p1 = T1, whichever leaves both in their box.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ratebound import kernels
from ratebound.ramp import ConvexProblem
from ratebound.rows.base import DualPoint, Floats, Rows
from ratebound.solvers.base import Stop
from ratebound.solvers.hinges import Hinges
from ratebound.solvers.oracles import Answer, SVMOptimizer, answer_at
from ratebound.solvers.stored_rows import GramPart, StoredRows

ROUNDING = 1e-15  # of the values whose difference is the gap
APPROACH = 0.8  # what alpha is multiplied by from pass to pass of an approach
REACH = 2.0  # boxes that the first pass of an approach reaches through
LARGEST_PART = 0.6  # share of the rows up to which those of a Gram matrix are copied
SOLVED = 0.01  # progress on a part of the rows after which it is time to look at all of them
RELAXATION = 1.7  # of the passes between two looks at all rows but the last of them
TRIES = 8  # slopes computed in a search along a line


@dataclass(frozen=True)
class Found:
    """The best that an ascent found: a model from above, a dual point from below.

    Attributes
    ----------
    coef, intercept, upper : the model and its Psi
    lower : float, at most the minimum of Psi over coef, and over the intercept where it is free
    slope : float, how the value of the dual point changes with the intercept, its sum of xi
    passes : float
    """

    coef: Floats
    intercept: float
    upper: float
    lower: float
    slope: float
    passes: float


class Ascent:
    """Coordinate ascent over one matrix of rows; its dual point stays from call to call."""

    def __init__(self, rows: Rows, settings: SDCA) -> None:
        self.stored = StoredRows(rows)
        self.settings = settings
        self.dual: Floats = np.zeros(self.stored.n_rows)
        self.intercept = 0.0
        self.hinges: Hinges | None = None  # those of the dual point

    def hinges_of(self, problem: ConvexProblem, multipliers: Floats) -> Hinges:
        """The hinges of a problem over these rows, whose live sides are those of its anchor."""
        return Hinges.of(problem, multipliers, self.stored.matrix)

    def start_at(self, hinges: Hinges, dual: Floats, intercept: float) -> None:
        """Take up a dual point of these hinges."""
        self.hinges, self.dual, self.intercept = hinges, dual, intercept

    def forget(self) -> None:
        """Start from nothing again."""
        self.hinges, self.dual, self.intercept = None, np.zeros(self.stored.n_rows), 0.0

    def solve(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
        held_at: float | None = None,
    ) -> Found:
        """Ascend until upper - lower <= accuracy, with the intercept held or free."""
        hinges = self.hinges_of(problem, multipliers)
        if held_at is None and hinges.lighter_side <= 0 and problem.fit_intercept:
            return self._one_sided(hinges)
        if held_at is None and not problem.fit_intercept:
            held_at = 0.0
        started = self.hinges is not None
        carried = self._carry_over(hinges) and not self.stored.is_gram
        if held_at is not None:
            self.intercept = held_at
        run = _Run(self, hinges, held_at, stop)
        # Rows of a Gram matrix keep more of what they have found without it: nine questions about
        # census rows under a narrow kernel took 672 passes with it, seven 202 without.
        if carried or not started:
            run.approach()
        elif self.stored.is_gram:
            run.patience = 4.0

        def proven(point: DualPoint, reach: float) -> float:
            """Any dual point is a bound; with a held intercept there is nothing to balance."""
            if held_at is None:
                return problem.dual_bound(multipliers, point, reach)
            return (
                hinges.constant
                + 0.5 * float(point.totals.sum())
                + held_at * float(point.totals[0] - point.totals[1])
                - point.squared_norm(problem.rows, np.ones(2)) / (2 * problem.alpha)
            )

        return run.ascend(accuracy, proven)

    def _one_sided(self, hinges: Hinges) -> Found:
        """Without hinges on one side the intercept alone makes the others zero."""
        intercept = 0.5 if float(np.sum(hinges.high)) <= 0 else -0.5
        coef = np.zeros(self.stored.n_coef)
        return Found(coef, intercept, hinges.constant, hinges.constant, 0.0, 0.0)

    def _carry_over(self, hinges: Hinges) -> bool:
        """Give every dual variable the share of its new box that it had of its old one.

        Returns whether boxes differ at all.
        """
        old, self.hinges = self.hinges, hinges
        if old is None:
            return False
        if np.array_equal(old.low, hinges.low) and np.array_equal(old.high, hinges.high):
            return False
        sides = old.sides(self.dual)
        features = self.stored.features(sides)
        scores = self.stored.scores((features[1] - features[0]) / old.alpha) + self.intercept
        # A side without a ceiling had no dual variable: it gets what its score asks for.
        some = old.high > 0
        first = np.where(some, sides[0] / np.where(some, old.high, 1.0), scores > -0.5)
        some = old.low < 0
        second = np.where(some, sides[1] / np.where(some, -old.low, 1.0), scores < 0.5)
        self.dual = np.clip(first * hinges.high + second * hinges.low, hinges.low, hinges.high)
        return True


class _Ground(NamedTuple):
    """What passes move over: all rows or some, with the hinges and dual variables of these."""

    rows: StoredRows | GramPart
    hinges: Hinges
    dual: Floats


class _Model(NamedTuple):
    """A model with its scores but for the intercept."""

    coef: Floats
    intercept: float
    scores: Floats
    squared_norm: float


class _Run:
    """One ascent over fixed hinges."""

    def __init__(
        self, ascent: Ascent, hinges: Hinges, held_at: float | None, stop: Stop | None
    ) -> None:
        self.ascent = ascent
        self.stored = ascent.stored
        self.settings = ascent.settings
        self.hinges = hinges
        self.held_at = held_at
        self.stop = stop
        self.stopped = False
        self.random = np.random.default_rng(self.settings.seed)
        self.order = np.flatnonzero(hinges.high > hinges.low)
        squares = self.stored.squared_norms[self.order]
        self.mean_square = float(np.mean(squares)) if len(squares) else 0.0
        self.passes = 0.0
        self.patience = 1.0
        self.upper = np.inf
        self.lower = -np.inf
        self.best = _Model(
            np.zeros(self.stored.n_coef), held_at or 0.0, np.zeros(self.stored.n_rows), 0.0
        )

    def _bias_step(self, alpha: float) -> float:
        """How far the intercept moves a unit of dual variable; 0 where it is held.

        As if the intercept were the coefficient of a feature a fifth as long as a typical row: of
        the lengths tried on real data one of the fastest.
        """
        if self.held_at is not None:
            return 0.0
        return (0.04 * self.mean_square or 1.0) / alpha

    def _pass(
        self,
        there: _Ground,
        order: npt.NDArray[np.intp],
        far: float,
        moving: Floats,
        alpha: float,
        relaxation: float,
    ) -> tuple[npt.NDArray[np.intp], float]:
        """Visit these rows in random order; what is left of them, and the worst of them."""
        self.random.shuffle(order)
        self.passes += len(order) / len(self.order)
        self.ascent.intercept, count, worst = there.rows.ascend(
            order, there.hinges, alpha, self._bias_step(alpha), relaxation, far,
            there.dual, moving, self.ascent.intercept,
        )  # fmt: skip
        self.stopped = self.stopped or (self.stop is not None and self.stop())
        return order[:count], worst

    def _reach(self) -> float:
        """The multiple of alpha at which a pass takes a typical variable through its box."""
        boxes = (self.hinges.high - self.hinges.low)[self.order]
        # the box of a unit of weight, as rows of much weight need more passes
        typical = float(boxes @ boxes) / max(float(np.sum(boxes)), np.finfo(float).tiny)
        return self.mean_square * typical / self.hinges.alpha

    def approach(self) -> None:
        """Passes at a multiple of alpha that falls to the problem's.

        A visit moves a dual variable by alpha / ||x||^2 at most, so that from zero as many passes
        as a ceiling holds of these are needed; at the largest alpha one pass reaches the ceilings,
        where many variables belong, and on the way down the others leave them. After the boxes have
        changed it pays as well (seven questions about census rows: 409 passes; from zero 465; from
        the last dual point without it 727).
        """
        multiple = REACH * self._reach()
        if not multiple > 1.0:
            return
        count = min(math.ceil(math.log(multiple) / -math.log(APPROACH)), 60)
        factor = multiple ** (-1 / count)
        alpha = self.hinges.alpha * multiple
        sides = self.hinges.sides(self.ascent.dual)
        features = self.stored.features(sides)
        moving = (features[1] - features[0]) / alpha
        if self.stored.is_gram:
            moving = self.stored.scores(moving)
        self.passes += 1.0
        for step in range(count):
            self._pass(self._all(), self.order.copy(), np.inf, moving, alpha * factor**step, 1.0)
            moving /= factor
            if self.stopped:
                return
        self.patience = 4.0

    def ascend(self, accuracy: float, proven: Callable[[DualPoint, float], float]) -> Found:
        """Pass over the rows that may still move; between whiles look at all rows."""
        hinges, ascent = self.hinges, self.ascent
        far = np.inf
        while True:
            coef, scores = self._measure(proven)
            width = self.upper - self.lower
            rounding = ROUNDING * max(abs(self.upper), abs(hinges.constant))
            if width <= max(accuracy, rounding) or self.stopped or not len(self.order):
                break
            if self.passes >= self.settings.max_epochs:
                break
            # The intercept is the centre less its step times the imbalance. Moving the centre to
            # where the intercept is (the method of multipliers) takes the imbalance to zero.
            imbalance = float(np.sum(ascent.dual))
            ascent.intercept -= self._bias_step(hinges.alpha) * imbalance
            rooms = np.empty_like(scores)
            kernels.dual_rooms(
                scores + ascent.intercept, ascent.dual, hinges.low, hinges.high, rooms
            )
            order = self.order[rooms[self.order] < far]
            if not len(order):
                order, far = self.order.copy(), np.inf
            moving = scores if self.stored.is_gram else coef
            far = self._visit(order, far, moving.copy())  # the model may be the best so far
            self.patience = min(2 * self.patience, self.settings.patience)
        best = self.best
        return Found(best.coef, best.intercept, self.upper, self.lower, self.slope, self.passes)

    def _all(self) -> _Ground:
        return _Ground(self.stored, self.hinges, self.ascent.dual)

    def _visit(self, order: npt.NDArray[np.intp], far: float, moving: Floats) -> float:
        """Pass over these rows until it is time to look at all; how far the worst was at last."""
        there = self._all()
        chosen = order
        few = len(order) <= LARGEST_PART * self.stored.n_rows
        if self.stored.is_gram and few:
            hinges = replace(self.hinges, low=self.hinges.low[order], high=self.hinges.high[order])
            there = _Ground(GramPart(self.stored, order), hinges, self.ascent.dual[order])
            moving, order = moving[order], np.arange(len(order))
        # On a Gram matrix that is near its diagonal exact steps arrive sooner: after 28 passes at a
        # narrow kernel over 2,500 census rows, lengthened ones after 38.
        relaxation = 1.0 if self.stored.is_gram else RELAXATION
        began, first = self.passes, far
        while len(order) and self.passes - began < self.patience and not self.stopped:
            order, worst = self._pass(there, order, far, moving, self.hinges.alpha, relaxation)
            far = worst if worst > 0 else np.inf
            if worst < SOLVED * first < np.inf:
                break
        # Lengthened steps leave scores scattered about the hinges; the last pass takes them there.
        if relaxation > 1.0 and not self.stopped:
            self._pass(there, order, np.inf, moving, self.hinges.alpha, 1.0)
        if there.dual is not self.ascent.dual:
            self.ascent.dual[chosen] = there.dual
        return far

    def _measure(self, proven: Callable[[DualPoint, float], float]) -> tuple[Floats, Floats]:
        """Model and bound of the dual point as it is; the best of each is kept."""
        hinges, ascent = self.hinges, self.ascent
        sides = hinges.sides(ascent.dual)
        features = self.stored.features(sides)
        coef = (features[1] - features[0]) / hinges.alpha
        if self.stored.is_gram:  # which is read once for all that is asked of it
            images = self.stored.images(sides)
            scores = (images[1] - images[0]) / hinges.alpha
            squared_norm = float(coef @ scores)
            point = DualPoint(features, np.sum(sides, axis=1), inner=sides @ images.T)
        else:
            scores = self.stored.scores(coef)
            squared_norm = float(coef @ coef)
            point = DualPoint(features, np.sum(sides, axis=1))
        self.passes += 1.0
        intercept = self.held_at
        if intercept is None:
            intercept = hinges.best_intercept(scores, ascent.intercept)
        model = _Model(coef, intercept, scores, squared_norm)
        for candidate in (model, self._improved(model)):
            self._keep(candidate)
        # At coef = 0 the cheaper of the two intercepts costs the lighter side.
        lower = proven(point, min(self.upper - hinges.constant, hinges.lighter_side))
        if lower > self.lower:
            self.lower = lower
            self.slope = float(point.totals[0] - point.totals[1])
        return coef, scores

    def _improved(self, model: _Model) -> _Model:
        """The best mixture of a model and the best one so far, at its best scale.

        Where ceilings are far above what is needed of them, as in nearly separable data, hinges
        that are missed by a little cost much, and the model of a dual point is far worse than its
        bound.
        """
        hinges, best = self.hinges, self.best
        inner = float(model.coef @ (best.scores if self.stored.is_gram else best.coef))
        way = best.scores - model.scores + (best.intercept - model.intercept)
        linear = hinges.alpha * (inner - model.squared_norm)
        quadratic = hinges.alpha * (model.squared_norm - 2 * inner + best.squared_norm)
        step = kernels.best_step(
            model.scores + model.intercept, way, hinges.low, hinges.high, linear, quadratic, TRIES
        )
        rest = 1 - step
        cross = rest * rest * model.squared_norm + 2 * rest * step * inner
        model = _Model(
            rest * model.coef + step * best.coef,
            rest * model.intercept + step * best.intercept,
            rest * model.scores + step * best.scores,
            cross + step * step * best.squared_norm,
        )
        scored = model.scores + model.intercept
        weight = hinges.alpha * model.squared_norm
        step = kernels.best_step(
            scored, scored if self.held_at is None else model.scores, hinges.low, hinges.high,
            weight, weight, TRIES,
        )  # fmt: skip
        scale = 1 + step
        scores = scale * model.scores
        intercept = self.held_at
        if intercept is None:
            intercept = hinges.best_intercept(scores, scale * model.intercept)
        return _Model(scale * model.coef, intercept, scores, scale * scale * model.squared_norm)

    def _keep(self, model: _Model) -> None:
        """Remember a model that is better than the best so far."""
        reach = self.hinges.charge(model.scores + model.intercept)
        reach += 0.5 * self.hinges.alpha * model.squared_norm
        if self.hinges.constant + reach < self.upper:
            self.upper = self.hinges.constant + reach
            self.best = model


@dataclass(frozen=True)
class SDCA:
    """Minimise Psi by stochastic dual coordinate ascent, the bias free and unregularised.

    The problem is the one of this module's docstring. Each visit of a row ascends the dual over
    its variable alone; rows are visited in a random order, those that are far from moving less
    often. Most steps go beyond the maximum (successive overrelaxation, as Mangasarian and Musicant
    1999). The model is the best on the line from that of the dual point to the best one before, at
    its best scale. A free intercept is the multiplier of ``sum xi = 0``: it follows every visit as
    if it were regularised around a centre, and the centre follows it whenever all rows are looked
    at (a proximal point method), where also the exact intercept for the current scores is found, a
    weighted quantile. On real data at a relative gap of 1e-3 it takes 0.2 to 0.6 times as long as
    `BiasCuttingPlane`, which needs the minimum over coef at one intercept after another
    (``python -m benchmarks.ascent --bias``).

    Rows with a Gram matrix are visited in the same way, each at the price of n products.

    Parameters
    ----------
    max_epochs : float, default 5000
        Most passes over the rows, looks at all of them for the gap included.
    patience : float, default 8
        Most passes between two looks at all rows; passes over a part of the rows count as that
        part.
    seed : int, default 0
        Of the order of visits: the same seed makes the same answer.
    """

    max_epochs: float = 5000
    patience: float = 8.0
    seed: int = 0

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
    """Keeps the dual variables from one question about the same rows to the next."""

    def __init__(self, settings: SDCA) -> None:
        self.settings = settings
        self.ascent: Ascent | None = None

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Start from the last answer, its dual variables moved into their new boxes."""
        if self.ascent is None or self.ascent.stored.rows is not problem.rows:
            self.ascent = Ascent(problem.rows, self.settings)
        found = self.ascent.solve(problem, multipliers, accuracy, stop)
        return answer_at(
            problem, multipliers, found.coef, found.intercept, found.lower, found.passes
        )
