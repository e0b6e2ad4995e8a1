"""What every place that holds rows offers: sums of size features and cells, never rows.

A solver speaks to rows in messages of the size of a model (coefficients, an intercept, a table of
ceilings) and hears sums of the same size. Threads, an accelerator or a file are then other
implementations of this protocol under the same algorithms. Sides are numbered 0 (the charge
``max(0, 1/2 + z)`` on positive scores) and 1 (``max(0, 1/2 - z)``); scores are
``z = X @ coef + intercept``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curvature:
    """Second-order sums at the current state of the terms; D is the curvature of a row's score.

    Attributes
    ----------
    gram : (d, d) X' D X, or None where it is too large to be formed
    diagonal : (d,) its diagonal
    border : (d,) X' D 1, the bias's column
    bias : 1' D 1
    cross : (2, cells, d) or fewer slots, the columns through which a ceiling's step acts on coef
    cross_bias : (2, cells), the same for the bias
    inverse : (2, cells), the curvature of the ceilings themselves
    """

    gram: Floats | None
    diagonal: Floats
    border: Floats
    bias: float
    cross: Floats
    cross_bias: Floats
    inverse: Floats


@dataclass(frozen=True)
class DualPoint:
    """Sums over a dual point p, clipped to its box, one entry a side: X' p, sum of p.

    Rows without a bias take no part in the balance of the two sides, so their sums stand apart.
    """

    features: Floats  # (2, d)
    totals: Floats  # (2,)
    unbiased_features: Floats | float = 0.0  # (d,), side 0 less side 1
    unbiased_total: float = 0.0
    inner: Floats | None = None  # (2, 2), inner products of the features where they are known

    def squared_norm(self, rows: Rows, scale: Floats) -> float:
        """Squared norm of the combination that it makes of the rows, its sides times a scale."""
        if self.inner is not None:
            signed = scale * np.array([1.0, -1.0])
            return max(float(signed @ self.inner @ signed), 0.0)
        direction = scale[0] * self.features[0] - scale[1] * self.features[1]
        return rows.squared_norm(direction + self.unbiased_features)

    def scaled(self, factor: float) -> DualPoint:
        """The sums over factor * p."""
        return DualPoint(
            factor * self.features,
            factor * self.totals,
            factor * self.unbiased_features,
            factor * self.unbiased_total,
        )


@dataclass(frozen=True)
class Target:
    """Right-hand side of Newton's system: sums over duals and hinges after their constant step."""

    features: Floats  # (d,)
    bias: float
    hinges: Floats  # (2, cells)


@dataclass(frozen=True)
class Smooth:
    """Sums over terms that lie exactly on the central path of their scores.

    Attributes
    ----------
    hinges : (2, cells)
    inverse : (2, cells), -d hinges / d ceiling
    slope : float, derivative of the terms' sum along the step of the scores
    """

    hinges: Floats
    inverse: Floats
    slope: float


@dataclass(frozen=True)
class Slopes:
    """First-order sums over proximal hinges.

    Attributes
    ----------
    features : (d,) sum of weight * ceiling * share * sign * x
    shares : (2, cells) sum of weight * share, over all terms of a (side, cell)
    hinges : (2, cells) sum of weight * exact hinge
    """

    features: Floats
    shares: Floats
    hinges: Floats


@dataclass(frozen=True)
class StepLengths:
    """How far a direction goes, and complementarity along it: now + linear*s + quadratic*s^2."""

    steepest: float  # 1 / (longest step that keeps all terms inside), 0 where it is longer than 1
    blocked: Floats  # (levels,) weight of the terms that a step of (k + 1) / levels pushes out
    linear: float
    quadratic: float


@dataclass(frozen=True)
class RowMatrix:
    """The rows themselves, for what cannot do with sums.

    Attributes
    ----------
    X : (n, d) array or CSR matrix; where `is_gram`, the (n, n) array of inner products of the rows
    weight : (n,)
    cell : (n,) int32, -1 for rows that take no part
    live : (n,) uint8, bit 1 where side 0 is live at the anchor, bit 2 where side 1 is
    is_gram : bool
        Coefficients are then one number a row: the model is the combination of rows with them.
    """

    X: Any
    weight: Floats
    cell: npt.NDArray[np.int32]
    live: npt.NDArray[np.uint8]
    is_gram: bool = False


class ScoredRows(NamedTuple):
    """A number a row for the rows that take part in some rate; every entry (n,).

    `fixed` (cells,) is P of the cells that no cut of the scores changes, 0 for all others.
    """

    score: Floats
    weight: Floats
    cell: npt.NDArray[np.int32]
    fixed: Floats | None = None


class ProximalTerms(Protocol):
    """Hinges smoothed around a centre, with the scores and the centre that every term keeps.

    Of a term with ``u = 1/2 + sign * z`` the hinge is, for a width that all terms share::

        max over 0 <= share <= 1 of  share * u - width/2 (share - centre)^2

    which is at most ``max(0, u)`` and falls short of it by ``width/2`` at most; ``share`` times the
    ceiling is a dual variable in its box. Terms that an anchor leaves out keep their centre for the
    next. Centres are 1/2 at first.
    """

    def begin(self, coef: Floats, intercept: float, *, afresh: bool) -> None:
        """Put the rows at this model's scores, with the centres as they are or afresh at 1/2."""
        ...

    def direction(self, coef: Floats, intercept: float) -> None:
        """Point the rows' scores along this step of the model."""
        ...

    def along(self, step: float, width: float) -> tuple[Floats, Floats]:
        """Sums (2, cells) of the hinges a step along the direction, and their derivatives by it."""
        ...

    def move(self, step: float) -> None:
        """Move the scores along their direction."""
        ...

    def gradient(self, ceiling: Floats, width: float) -> Slopes:
        """First-order sums; `curvature` then tells the second order."""
        ...

    def curvature(self, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums where `gradient` was last measured."""
        ...

    def recentre(self, width: float) -> None:
        """Take the shares of the current scores as centres."""
        ...

    def dual_point(self, ceiling: Floats, width: float) -> DualPoint:
        """Sums of the dual point share * ceiling."""
        ...


@dataclass(frozen=True)
class Split:
    """Copies of the scores where charge and pull balance, see `SplitTerms`.

    Attributes
    ----------
    value : float, sum of charge(z) + stiffness/2 (z - target)^2
    hinges : (2, cells), hinge sums of the copies z
    bends : (3, cells), sums of weight^2 / stiffness of rows below both kinks, between, above both
    """

    value: float
    hinges: Floats
    bends: Floats


class SplitTerms(Protocol):
    """Rows with a copy of every score, which bears the charge, and a dual variable between the two.

    Copies and dual variables stay from one problem over these rows to the next.
    """

    intercept: float  # of the model last fitted
    stiffness: Floats  # of the pull between scores and copies

    def stiffen(self, share: float, alpha: float) -> None:
        """Take ``share * alpha / ||x||^2`` for the stiffness of every row."""
        ...

    def begin(self, coef: Floats, intercept: float, *, afresh: bool) -> None:
        """Put the model here; afresh, the copies at its scores with duals of 0."""
        ...

    def fit(self, relaxation: float, fit_intercept: bool) -> None:
        """Fit the model to the copies."""
        ...

    def split(self, ceiling: Floats) -> Split:
        """Where the copies go at these ceilings, and what that costs."""
        ...

    def move(self) -> tuple[float, float]:
        """Let them go there; how far scores and copies are apart, and how far these went."""
        ...

    def model(self) -> Floats:
        """Coefficients of the model last fitted."""
        ...

    def shifted(self, shift: float) -> tuple[Floats, Floats]:
        """Hinge sums (2, cells) with the intercept moved so far, and their slopes by it."""
        ...

    def dual_point(self, ceiling: Floats, fit_intercept: bool) -> DualPoint:
        """Sums of the dual variables, clipped to their boxes."""
        ...


class Rows(Protocol):
    """Rows of X with a weight and a cell each, and the state that a solver keeps per row."""

    n_rows: int
    n_features: int
    entries: int  # of X that are stored
    n_cells: int
    cell_weight: Floats
    live_weight: Floats  # (2, cells), weight of the terms that the anchor left live
    largest_norm: float  # the largest ||x|| of a row with a bias

    def compact(self) -> Rows:
        """The same rows in coordinates of their span where those are fewer; else these rows."""
        ...

    def lift(self, coef: Floats) -> Floats:
        """Coefficients on the columns of X from those of these rows' own coordinates."""
        ...

    def lower(self, coef: Floats) -> Floats:
        """These rows' own coordinates of coefficients on the columns of X."""
        ...

    def squared_norm(self, coef: Floats) -> float:
        """||coef||^2, in the geometry in which the model is regularised."""
        ...

    def matrix(self) -> RowMatrix:
        """The rows themselves; RuntimeError where they do not lie in memory."""
        ...

    def set_anchor(self, coef: Floats, intercept: float) -> Floats:
        """Choose the live sides at this anchor; weight of the dead ones, (2, cells)."""
        ...

    def choose_sides(self) -> Floats:
        """The same at the scores as they stand, which `smooth_move` may have moved."""
        ...

    def ramp_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sum per cell of weight * ramp(z): the expected weight of positive decisions."""
        ...

    def decision_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sum per cell of weight * [z > 0]."""
        ...

    def scored(self, coef: Floats, intercept: float) -> ScoredRows:
        """Scores of the rows that take part: for a search over cuts, not for solvers."""
        ...

    def hinge_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sums (2, cells) of weight * hinge over the live terms."""
        ...

    def proximal(self) -> ProximalTerms:
        """Return the terms as proximal hinges: the same object, with its centres, every time."""
        ...

    def split_terms(self) -> SplitTerms:
        """Return the terms with copies of their scores: the same object every time."""
        ...

    @property
    def has_duals(self) -> bool:
        """Whether `begin` has put the terms on the central path, so that there are dual points."""
        ...

    def begin(self, coef: Floats, intercept: float, ceiling: Floats, barrier: float) -> None:
        """Put the state of every term on the central path of its score."""
        ...

    def curvature(self, ceiling: Floats, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums; ``cross`` only for the (side, cell) that are wanted."""
        ...

    def curvature_product(self, vector: Floats) -> Floats:
        """X' D X and its border by the bias, times a vector (d + 1,), for the last D measured."""
        ...

    def smooth(self, ceiling: Floats, barrier: float, step: float = 0.0) -> Smooth:
        """Sums over terms on the path of their scores, these being those of the anchor.

        Or those of the anchor and ``step`` times the step that `smooth_direction` was told.
        """
        ...

    def smooth_gradient(self) -> tuple[Floats, float]:
        """Sums of sign * dual * (x, 1) at the point that `smooth` was last asked about."""
        ...

    def smooth_curvature(self, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums at the point that `smooth` was last asked about."""
        ...

    def smooth_direction(self, coef: Floats, intercept: float) -> None:
        """Compute the step of the scores that belongs to this step of the model."""
        ...

    def smooth_move(self, step: float) -> None:
        """Move the scores along their step."""
        ...

    def target(self, ceiling: Floats, target: float) -> Target:
        """Right-hand side for complementarity products equal to target."""
        ...

    def direction(
        self,
        coef: Floats,
        intercept: float,
        ceiling: Floats,
        ceiling_step: Floats,
        target: float,
    ) -> StepLengths:
        """Store the direction of every term that belongs to this step of the model."""
        ...

    def correct(self, ceiling: Floats, ceiling_step: Floats) -> None:
        """Take the second-order terms of the stored direction into the next target."""
        ...

    def advance(self, step: float, kept: float, ceiling: Floats, ceiling_step: Floats) -> float:
        """Move the terms along the stored direction; their complementarity there.

        Terms that would keep less than a share ``kept`` of a variable are held at that share.
        """
        ...

    def dual_point(self, ceiling: Floats) -> DualPoint:
        """Sums of the current dual point, clipped to [0, ceiling]."""
        ...
