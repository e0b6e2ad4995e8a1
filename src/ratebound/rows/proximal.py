"""Proximal hinges of rows in memory: the `ProximalTerms` protocol over the chunks of `MemoryRows`.

What a term keeps is one number, the centre of its share; scores and their step are a number a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ratebound import kernels
from ratebound.rows.base import Curvature, DualPoint, Floats, Slopes

if TYPE_CHECKING:
    from ratebound.rows.memory import Chunk, MemoryRows

SPARSE_GRAM = 128  # columns up to which X'DX is formed for sparse X, where a product costs little


class MemoryProximalTerms:
    """The terms of these rows, each with a centre between 0 and 1, live or not."""

    def __init__(self, rows: MemoryRows) -> None:
        self.rows = rows
        self.centre: Floats = np.full((2, rows.n_rows), 0.5)
        self.scores = np.zeros(rows.n_rows)
        self.score_step = np.zeros(rows.n_rows)
        self._row_values = np.zeros((3, rows.n_rows))
        self._curvature = np.zeros(rows.n_rows)

    def begin(self, coef: Floats, intercept: float, *, afresh: bool) -> None:
        """Put the rows at this model's scores, with the centres as they are or afresh at 1/2."""
        if afresh:
            self.centre[:] = 0.5
        self.rows._compute_scores(coef, intercept, self.scores)

    def direction(self, coef: Floats, intercept: float) -> None:
        """Point the rows' scores along this step of the model."""
        self.rows._compute_scores(coef, intercept, self.score_step)

    def along(self, step: float, width: float) -> tuple[Floats, Floats]:
        """Sums (2, cells) of the hinges a step along the direction, and their derivatives by it."""
        rows = self.rows

        def work(chunk: Chunk) -> Floats:
            sums = np.zeros((2, 2, rows.n_cells))
            kernels.proximal_sums(
                self.scores, self.score_step, step, width, rows.weight, rows.cell, rows.live,
                self.centre, chunk.span.start, chunk.span.stop, sums[0], sums[1],
            )  # fmt: skip
            return sums

        hinges, slopes = np.sum(rows._map(work), axis=0)
        return hinges, slopes

    def move(self, step: float) -> None:
        """Move the scores along their direction."""
        self.scores += step * self.score_step

    def gradient(self, ceiling: Floats, width: float) -> Slopes:
        """First-order sums; `curvature` then tells the second order."""
        rows = self.rows
        slope, factors = self._row_values[:1], self._row_values[1:]

        def work(chunk: Chunk) -> Floats:
            sums = np.zeros((2, 2, rows.n_cells))
            kernels.proximal_terms(
                self.scores, width, rows.weight, rows.cell, rows.live, ceiling, self.centre,
                chunk.span.start, chunk.span.stop, slope[0], self._curvature, factors, sums,
            )  # fmt: skip
            return sums

        self._shares_sum, exact = np.sum(rows._map(work), axis=0)
        return Slopes(rows._transpose(slope)[0], self._shares_sum, exact)

    def curvature(self, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums where `gradient` was last measured."""
        cross_bias = self._shares_sum * np.array([[1.0], [-1.0]])
        nothing = np.zeros_like(cross_bias)
        factors = self._row_values[1:]
        sparse = not isinstance(self.rows.chunks[0].X, np.ndarray)
        return self.rows._second_order(
            self._curvature, factors, cross_bias, nothing, wanted, SPARSE_GRAM if sparse else 0
        )

    def _share(self, side: int, width: float) -> Floats:
        share = self.scores / width if side == 0 else self.scores / -width
        share += 0.5 / width
        share += self.centre[side]
        return np.clip(share, 0.0, 1.0, out=share)

    def recentre(self, width: float) -> None:
        """Take the shares of the current scores as centres."""
        for side in range(2):
            self.centre[side] = self._share(side, width)

    def dual_point(self, ceiling: Floats, width: float) -> DualPoint:
        """Sums of the dual point share * ceiling."""
        rows = self.rows
        cell = np.maximum(rows.cell, 0)
        features, totals = [], []
        for side in range(2):
            point = self._share(side, width)
            point *= rows.weight
            point *= ceiling[side, cell]
            point[(rows.live & (1 + side)) == 0] = 0.0
            features.append(rows._transpose(point[np.newaxis])[0])
            totals.append(float(np.sum(point)))
        return DualPoint(np.array(features), np.array(totals))
