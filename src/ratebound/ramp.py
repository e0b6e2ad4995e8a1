"""The ramp problem, and its convex upper bounds at an anchor (Problems 2 and 3 of the paper).

With the ramp ``σ(z) = min(1, max(0, 1/2 + z))``, rates of the classifier that decides positively
with
probability ``σ(z)`` are continuous, and the goals become::

    minimise    sum c+ σ(z) + c- σ(-z) + alpha/2 ||coef||^2
    subject to  sum a+ σ(z) + a- σ(-z) <= bound      for every constraint

with nonnegative numbers a cell (a signed table entry charges the side that its sign says, and
leaves a constant). At an anchor's scores z', ``σ(z) <= max(0, 1/2 + z)`` where ``z' <= 1/2`` and
``σ(z) <= 1`` elsewhere, mirrored for ``σ(-z)``: both bounds are tight at z', so a model that lowers
the convex problem lowers the ramp problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

if TYPE_CHECKING:
    from ratebound.rows.base import DualPoint, Floats, Rows


ROUNDING = 1e-15  # share of a sum of dual variables below which an excess is rounding


def ramp(scores: Floats) -> Floats:
    """Probability of a positive decision, min(1, max(0, 1/2 + z)) (Equation 2 of the paper)."""
    return np.clip(0.5 + scores, 0.0, 1.0)


@dataclass(frozen=True)
class ConvexProblem:
    """One convex upper bound on the ramp problem, tight at its anchor (Problem 3 of the paper).

    With hinge sums ``H[side, cell]`` of weight * max(0, 1/2 ± z) over the terms that the anchor
    left live, and scores ``z = <coef, x> + intercept``::

        minimise over coef, intercept:   <cost, H> + constant + alpha/2 ||coef||^2
                               + multiplier_bound * sum_j max(0, (constraints @ H - bound)_j)

    Its optimum is the *elastic* one, which is the constrained one where the violations vanish.

    Attributes
    ----------
    rows : Rows, with the anchor's live sides set
    cost : (2, cells) nonnegative
    constraints : csr_array (m, 2 * cells), nonnegative, columns in the order of ``cost.ravel()``
    bound : (m,)
    constant : float, the objective's share of the sides that the anchor made constant
    alpha : float
    multiplier_bound : float, price of a unit of violation
    fit_intercept : bool
    total_cost : float, the sum of all costs, live or not: the scale below which no gap is measured
    """

    rows: Rows
    cost: Floats
    constraints: scipy.sparse.csr_array
    bound: Floats
    constant: float
    alpha: float
    multiplier_bound: float
    fit_intercept: bool
    total_cost: float

    def ceiling(self, multipliers: Floats) -> Floats:
        """The largest dual variable of every (side, cell) per unit of weight."""
        return np.asarray(self.cost + (self.constraints.T @ multipliers).reshape(self.cost.shape))

    def violations(self, hinges: Floats) -> Floats:
        """Constraint values less their bounds; positive where violated."""
        return np.asarray(self.constraints @ hinges.ravel() - self.bound)

    def value(self, coef: Floats, hinges: Floats) -> float:
        """Elastic objective of a model with these hinge sums."""
        excess = np.maximum(self.violations(hinges), 0.0).sum()
        return float(
            np.sum(self.cost * hinges)
            + self.constant
            + 0.5 * self.alpha * self.rows.squared_norm(coef)
            + self.multiplier_bound * excess
        )

    def dual_bound(self, multipliers: Floats, point: DualPoint, upper: float) -> float:
        """A number no larger than the optimum, from any multipliers in [0, V] and any dual point.

        The dual point must lie between 0 and ``ceiling(multipliers)``. Without a regularised bias
        its two signs must balance: once with the heavier sign scaled down, once unscaled, what is
        left of the imbalance is charged at the largest |intercept| that an optimum can need; the
        better of the two is returned.
        """
        fixed = self.constant - float(self.bound @ multipliers)
        candidates = []
        for scale in self._balances(point.totals):
            totals = scale * point.totals
            bound = (
                0.5 * float(totals.sum() + point.unbiased_total)
                - point.squared_norm(self.rows, scale) / (2 * self.alpha)
                + fixed
            )
            if self.fit_intercept:
                reach = 0.5 + self.rows.largest_norm * np.sqrt(2 * max(upper, 0.0) / self.alpha)
                bound -= reach * abs(float(totals[0] - totals[1]))
            candidates.append(bound)
        return max(candidates)

    def _balances(self, totals: Floats) -> list[Floats]:
        unscaled = np.ones(2)
        heavier = int(np.argmax(totals))
        excess = totals[heavier] - totals[1 - heavier]
        if not self.fit_intercept or excess <= ROUNDING * totals[heavier]:
            return [unscaled]
        balanced = unscaled.copy()
        balanced[heavier] = totals[1 - heavier] / totals[heavier]
        return [balanced, unscaled]

    def conflict_radius(self, multipliers: Floats, point: DualPoint) -> float:
        """The largest R for which these variables prove that no ||coef|| <= R meets the bounds.

        The dual point must lie between 0 and the multipliers' share of the ceiling (costs left
        out). By Farkas: ``1/2 sum(p) - bound @ v - R ||X' s p|| - (1/2 + R max||x||) |sum(s p)| >
        0`` leaves no model of that size. 0 where nothing is proven, infinite where no model of any
        size will do; it says nothing of other anchors.
        """
        largest = 0.0
        for scale in self._balances(point.totals):
            totals = scale * point.totals
            imbalance = abs(float(totals[0] - totals[1])) if self.fit_intercept else 0.0
            room = 0.5 * float(totals.sum() + point.unbiased_total) - 0.5 * imbalance
            room -= float(self.bound @ multipliers)
            slope = np.sqrt(point.squared_norm(self.rows, scale))
            slope += self.rows.largest_norm * imbalance
            if room > 1e-12 * float(np.abs(self.bound) @ multipliers):
                with np.errstate(divide="ignore", over="ignore"):
                    largest = max(largest, float(np.divide(room, slope)))
        return largest

    def relative(self, amount: float, upper: float) -> float:
        """An amount of objective as a share of the objective, or of a thousandth of all costs."""
        return amount / max(upper, 1e-3 * self.total_cost, np.finfo(float).tiny)


@dataclass(frozen=True)
class RampProblem:
    """The penalised ramp problem over rows.

    Attributes
    ----------
    rows : Rows
    cost : (2, cells), nonnegative cost of σ(z) and of σ(-z) per unit of weight
    constraints : csr_array (m, 2 * cells), nonnegative
    bound : (m,)
    alpha : float
    multiplier_bound : float, price of a unit of violation
    fit_intercept : bool
    constant : float, what the nonnegative form leaves out of the user's objective
    """

    rows: Rows
    cost: Floats
    constraints: scipy.sparse.csr_array
    bound: Floats
    alpha: float
    multiplier_bound: float
    fit_intercept: bool
    constant: float = 0.0

    @classmethod
    def from_rates(
        cls,
        rows: Rows,
        cost: Floats,
        cost_constant: float,
        table: scipy.sparse.csr_array,
        offset: Floats,
        *,
        alpha: float,
        multiplier_bound: float,
        fit_intercept: bool,
    ) -> RampProblem:
        """From signed coefficients on the positive weight of cells, ``table @ P + offset <= 0``."""
        weight = rows.cell_weight
        positive = table.maximum(0)
        negative = (-table).maximum(0)
        return cls(
            rows,
            np.array([np.maximum(cost, 0.0), np.maximum(-cost, 0.0)]),
            scipy.sparse.csr_array(scipy.sparse.hstack([positive, negative], format="csr")),
            np.asarray(negative @ weight - offset),
            alpha,
            multiplier_bound,
            fit_intercept,
            cost_constant - float(np.maximum(-cost, 0.0) @ weight),
        )

    @property
    def total_cost(self) -> float:
        """The objective if every side of every row were charged in full."""
        return float(np.sum(self.cost @ self.rows.cell_weight))

    @property
    def objective_range(self) -> float:
        """How far apart the best and the worst objective can be."""
        return float(np.max(self.cost, axis=0) @ self.rows.cell_weight)

    def priced(self, multiplier_bound: float) -> RampProblem:
        """The same problem at another price of violation."""
        return replace(self, multiplier_bound=multiplier_bound)

    def tightened(self, amounts: Floats) -> RampProblem:
        """The same problem with every bound lowered by its amount."""
        return replace(self, bound=self.bound - amounts)

    def sides(self, positives: Floats) -> Floats:
        """Ramp sums of both sides, (2, cells), from those of positive decisions."""
        return np.array([positives, self.rows.cell_weight - positives])

    def objective(self, coef: Floats, positives: Floats) -> float:
        """Ramp objective with regulariser, in the nonnegative form."""
        charge = float(np.sum(self.cost * self.sides(positives)))
        return charge + 0.5 * self.alpha * self.rows.squared_norm(coef)

    def violations(self, positives: Floats) -> Floats:
        """Ramp values of the constraints less their bounds."""
        return np.asarray(self.constraints @ self.sides(positives).ravel() - self.bound)

    def penalised(self, coef: Floats, positives: Floats) -> float:
        """Objective plus the price of all violation: what majorization never raises."""
        excess = np.maximum(self.violations(positives), 0.0).sum()
        return self.objective(coef, positives) + self.multiplier_bound * float(excess)

    def convex_at(self, coef: Floats, intercept: float) -> ConvexProblem:
        """The convex upper bound that is tight at this model."""
        dead = self.rows.set_anchor(coef, intercept)
        return ConvexProblem(
            self.rows,
            self.cost,
            self.constraints,
            self.bound - self.constraints @ dead.ravel(),
            float(np.sum(self.cost * dead)),
            self.alpha,
            self.multiplier_bound,
            self.fit_intercept,
            self.total_cost,
        )
