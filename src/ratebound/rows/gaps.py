"""Rows with score gaps beside them: a few rows that carry no bias, under any other rows.

The score of such a row is ``z = <coef, x>`` (:mod:`ratebound.score_gaps`), so every message reaches
them with the intercept, or its step, left out, and their sums join those of the other rows except
where a sum is about the bias. Rows of the linear forms are anchored at zero, where both sides of
the hinge are live, and their P is not clipped: for them the convex bound is the constraint itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ratebound.rows.base import (
    Curvature,
    DualPoint,
    Floats,
    ProximalTerms,
    RowMatrix,
    Rows,
    ScoredRows,
    Smooth,
    SplitTerms,
    StepLengths,
    Target,
)
from ratebound.rows.memory import MemoryRows
from ratebound.score_gaps import GapCells


def with_gap_rows(
    rows: Rows,
    gaps: Sequence[GapCells],
    blocks: Sequence[tuple[Any, Floats, npt.NDArray[np.int32]]],
) -> Rows:
    """Return the rows, and beside them those of score gaps where there are any.

    Parameters
    ----------
    rows : Rows
    gaps : sequence of GapCells
    blocks : sequence of (X, weight, cell)
        Where the means are taken: as the cells were made, before equal rows were merged.
    """
    if not gaps:
        return rows
    linear, ramps = (
        [gap for gap in gaps if gap.saturates is saturates] for saturates in (False, True)
    )
    return RowsWithGaps(rows, _gap_rows(rows, linear, blocks), _gap_rows(rows, ramps, blocks))


def _gap_rows(
    rows: Rows,
    gaps: Sequence[GapCells],
    blocks: Sequence[tuple[Any, Floats, npt.NDArray[np.int32]]],
) -> MemoryRows:
    X = np.vstack([np.empty((0, rows.n_features)), *(gap.directions(blocks) for gap in gaps)])
    count = [len(gap.pairs) for gap in gaps]
    weight = np.repeat([gap.weight for gap in gaps], count)
    cell = np.concatenate([np.empty(0), *(np.r_[gap.cells] for gap in gaps)]).astype(np.int32)
    return MemoryRows([(X, weight, cell)], rows.n_cells, threads=1)


class RowsWithGaps:
    """Rows of data, and rows without a bias of the linear forms and of the ramp form.

    Parameters
    ----------
    rows : Rows
    linear, ramps : MemoryRows
        Each in cells of its own; either may hold none.
    """

    def __init__(self, rows: Rows, linear: MemoryRows, ramps: MemoryRows) -> None:
        self.rows, self.linear, self.ramps = rows, linear, ramps
        self.gaps = tuple(gaps for gaps in (linear, ramps) if gaps.n_rows)
        self.n_rows, self.entries = rows.n_rows, rows.entries
        self.n_features, self.n_cells = rows.n_features, rows.n_cells
        self.largest_norm = rows.largest_norm
        self.cell_weight = self._total("cell_weight")
        self.live_weight = self._total("live_weight")

    def _total(self, name: str) -> Floats:
        parts = [getattr(part, name) for part in (self.rows, *self.gaps)]
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    def compact(self) -> Rows:
        """These rows: the few without a bias are held on the columns of X."""
        return self

    def lift(self, coef: Floats) -> Floats:
        """Coefficients on the columns of X."""
        return self.rows.lift(coef)

    def lower(self, coef: Floats) -> Floats:
        """The rows' own coordinates of coefficients on the columns of X."""
        return self.rows.lower(coef)

    def squared_norm(self, coef: Floats) -> float:
        """||coef||^2."""
        return self.rows.squared_norm(coef)

    def matrix(self) -> RowMatrix:
        """Raise: a matrix of rows that all carry the bias would not be these rows."""
        raise RuntimeError(
            "score_gap() needs rows without a bias, which solvers that read the rows one by one "
            'do not have: use solver="interior-point"'
        )

    def proximal(self) -> ProximalTerms:
        """Raise: rows without a bias have no proximal terms."""
        raise RuntimeError(
            "score_gap() needs rows without a bias, which the augmented Lagrangian does not have: "
            'use solver="interior-point"'
        )

    def split_terms(self) -> SplitTerms:
        """Raise: rows without a bias have no copies of their scores."""
        raise RuntimeError(
            "score_gap() needs rows without a bias, which alternating directions do not have: use "
            'solver="interior-point"'
        )

    @property
    def has_duals(self) -> bool:
        """Whether `begin` has put the terms on the central path."""
        return self.rows.has_duals

    # ---- the model's rates and hinges ------------------------------------------------------------

    def set_anchor(self, coef: Floats, intercept: float) -> Floats:
        """Choose the live sides at this anchor; weight of the dead ones, (2, cells)."""
        dead = self.rows.set_anchor(coef, intercept)
        dead = dead + self.linear.set_anchor(np.zeros_like(coef), 0.0)
        dead = dead + self.ramps.set_anchor(coef, 0.0)
        self.live_weight = self._total("live_weight")
        return dead

    def choose_sides(self) -> Floats:
        """The same at the scores as they stand; linear forms keep both sides."""
        dead = self.rows.choose_sides() + self.ramps.choose_sides()
        self.live_weight = self._total("live_weight")
        return np.asarray(dead)

    def ramp_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sum per cell of weight * ramp(z), or of weight * (1/2 + z) in the linear forms."""
        sums = self.rows.ramp_sums(coef, intercept) + _unclipped_sums(self.linear, coef)
        return sums + self.ramps.ramp_sums(coef, 0.0)

    def decision_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sum per cell of weight * [z > 0], or of weight * (1/2 + z) for all score gaps."""
        return self.rows.decision_sums(coef, intercept) + self._fixed(coef)

    def _fixed(self, coef: Floats) -> Floats:
        return _unclipped_sums(self.linear, coef) + _unclipped_sums(self.ramps, coef)

    def scored(self, coef: Floats, intercept: float) -> ScoredRows:
        """Scores of the rows of data, and what no cut of them changes."""
        return self.rows.scored(coef, intercept)._replace(fixed=self._fixed(coef))

    def hinge_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sums (2, cells) of weight * hinge over the live terms."""
        sums = self.rows.hinge_sums(coef, intercept)
        for gaps in self.gaps:
            sums = sums + gaps.hinge_sums(coef, 0.0)
        return sums

    # ---- the state of the interior-point method --------------------------------------------------

    def begin(self, coef: Floats, intercept: float, ceiling: Floats, barrier: float) -> None:
        """Put the state of every term on the central path of its score."""
        self.rows.begin(coef, intercept, ceiling, barrier)
        for gaps in self.gaps:
            gaps.begin(coef, 0.0, ceiling, barrier)

    def curvature(self, ceiling: Floats, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums; the bias's own are those of the rows of data."""
        total = self.rows.curvature(ceiling, wanted)
        for gaps in self.gaps:
            total = _with_curvature(total, gaps.curvature(ceiling, wanted))
        return total

    def curvature_product(self, vector: Floats) -> Floats:
        """X' D X and its border by the bias, times a vector (d + 1,), for the last D measured."""
        total = self.rows.curvature_product(vector)
        without_bias = np.append(vector[:-1], 0.0)
        for gaps in self.gaps:
            total[:-1] += gaps.curvature_product(without_bias)[:-1]
        return total

    # ---- the homotopy ----------------------------------------------------------------------------

    def smooth(self, ceiling: Floats, barrier: float, step: float = 0.0) -> Smooth:
        """Sums over terms on the path of the anchor's scores, or of scores along their step."""
        total = self.rows.smooth(ceiling, barrier, step)
        for gaps in self.gaps:
            more = gaps.smooth(ceiling, barrier, step)
            total = Smooth(
                total.hinges + more.hinges, total.inverse + more.inverse, total.slope + more.slope
            )
        return total

    def smooth_gradient(self) -> tuple[Floats, float]:
        """Sums of sign * dual * (x, 1); the bias's own are those of the rows of data."""
        features, bias = self.rows.smooth_gradient()
        for gaps in self.gaps:
            features = features + gaps.smooth_gradient()[0]
        return features, bias

    def smooth_curvature(self, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums at the point that `smooth` was last asked about."""
        total = self.rows.smooth_curvature(wanted)
        for gaps in self.gaps:
            total = _with_curvature(total, gaps.smooth_curvature(wanted))
        return total

    def smooth_direction(self, coef: Floats, intercept: float) -> None:
        """Compute the step of the scores that belongs to this step of the model."""
        self.rows.smooth_direction(coef, intercept)
        for gaps in self.gaps:
            gaps.smooth_direction(coef, 0.0)

    def smooth_move(self, step: float) -> None:
        """Move the scores along their step."""
        for part in (self.rows, *self.gaps):
            part.smooth_move(step)

    # ---- right-hand sides and steps of the interior point ----------------------------------------

    def target(self, ceiling: Floats, target: float) -> Target:
        """Right-hand side for complementarity products equal to target."""
        total = self.rows.target(ceiling, target)
        for gaps in self.gaps:
            total = _joined(total, gaps.target(ceiling, target))
        return total

    def direction(
        self,
        coef: Floats,
        intercept: float,
        ceiling: Floats,
        ceiling_step: Floats,
        target: float,
    ) -> StepLengths:
        """Store the direction of every term that belongs to this step of the model."""
        total = self.rows.direction(coef, intercept, ceiling, ceiling_step, target)
        for gaps in self.gaps:
            more = gaps.direction(coef, 0.0, ceiling, ceiling_step, target)
            total = StepLengths(
                max(total.steepest, more.steepest),
                total.blocked + more.blocked,
                total.linear + more.linear,
                total.quadratic + more.quadratic,
            )
        return total

    def correct(self, ceiling: Floats, ceiling_step: Floats) -> None:
        """Take the second-order terms of the stored direction into the next target."""
        for part in (self.rows, *self.gaps):
            part.correct(ceiling, ceiling_step)

    def advance(self, step: float, kept: float, ceiling: Floats, ceiling_step: Floats) -> float:
        """Move the terms along the stored direction; their complementarity there."""
        parts = (self.rows, *self.gaps)
        return sum(part.advance(step, kept, ceiling, ceiling_step) for part in parts)

    def dual_point(self, ceiling: Floats) -> DualPoint:
        """Sums of the current dual point, those of the rows without a bias apart."""
        point = self.rows.dual_point(ceiling)
        for gaps in self.gaps:
            more = gaps.dual_point(ceiling)
            point = replace(
                point,
                unbiased_features=point.unbiased_features + more.features[0] - more.features[1],
                unbiased_total=point.unbiased_total + float(more.totals.sum()),
            )
        return point


def _joined(total: Target, gaps: Target) -> Target:
    """Both sums, without what rows that carry no bias would say of it."""
    return Target(total.features + gaps.features, total.bias, total.hinges + gaps.hinges)


def _with_curvature(total: Curvature, gaps: Curvature) -> Curvature:
    """Both sums, without what rows that carry no bias would say of it."""
    gram = None
    if total.gram is not None and gaps.gram is not None:
        gram = total.gram + gaps.gram
    return replace(
        total,
        gram=gram,
        diagonal=total.diagonal + gaps.diagonal,
        cross=total.cross + gaps.cross,
        inverse=total.inverse + gaps.inverse,
    )


def _unclipped_sums(gaps: MemoryRows, coef: Floats) -> Floats:
    score, weight, cell, _ = gaps.scored(coef, 0.0)
    sums = np.bincount(cell, weights=weight * (0.5 + score), minlength=gaps.n_cells)
    return sums.astype(np.float64)
