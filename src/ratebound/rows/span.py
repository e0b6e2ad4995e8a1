"""Rows in coordinates of their own span: fewer columns where there are fewer rows than columns.

An optimal model is a combination of rows, coef = X' a, so with K = X X' = L L' (pivoted Cholesky,
rank r) it is enough to know u = L' a: scores are L u and ||coef|| = ||u||. The solver then works on
the (n, r) matrix L. Hinges, norms and dual sums of the certificate are taken from the rows
themselves, so rounding in the factor can slow a solve down but not falsify its bounds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ratebound.rows.base import Curvature, DualPoint, Floats
from ratebound.rows.memory import MemoryRows
from ratebound.rows.products import products_of_rows


class SpanRows(MemoryRows):
    """The rows of `parent` in coordinates of their span; anchor and cells are the parent's."""

    def __init__(self, parent: MemoryRows) -> None:
        self.parent = parent
        used = np.flatnonzero(parent.cell >= 0)
        products = products_of_rows(parent, used, np.float64)
        # the transpose is Fortran-ordered: LAPACK works in its place, and its factor is upper
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(products.T, lower=0, overwrite_a=1)
        factor = np.triu(factor).T[:, :rank]
        order = pivots - 1
        coordinates = np.zeros((parent.n_rows, max(rank, 1)))
        coordinates[used[order], :rank] = factor
        super().__init__(
            [(coordinates, parent.weight, parent.cell)], parent.n_cells, threads=parent.threads
        )
        self.live = parent.live
        self._leading = factor[:rank]
        self._pivot_rows = used[order[:rank]]

    @property
    def live_weight(self) -> Floats:
        """Weight of the terms that the parent's anchor left live."""
        return self.parent.live_weight

    @live_weight.setter
    def live_weight(self, weight: Floats) -> None:
        """Anchors are set on the parent."""

    def lift(self, coef: Floats) -> Floats:
        """Coefficients on the columns of X with the scores that these coordinates have."""
        combination = np.zeros((1, self.n_rows))
        if len(self._leading):
            combination[0, self._pivot_rows] = scipy.linalg.solve_triangular(
                self._leading, coef, trans="T", lower=True
            )
        return np.asarray(self.parent._transpose(combination)[0])

    def lower(self, coef: Floats) -> Floats:
        """Coordinates whose scores are those of these coefficients on the columns of X."""
        if not len(self._leading):
            return np.zeros(self.n_features)
        scores = self.parent._compute_scores(coef, 0.0, np.empty(self.n_rows))
        return np.asarray(
            scipy.linalg.solve_triangular(self._leading, scores[self._pivot_rows], lower=True)
        )

    def _second_order(
        self,
        curvature: Floats,
        factors: Floats,
        cross_bias: Floats,
        inverse: Floats,
        wanted: npt.NDArray[np.bool_],
        largest_gram: int = 0,
    ) -> Curvature:
        """These coordinates are as full as their X'DX, so that it is formed whatever its size."""
        return super()._second_order(
            curvature, factors, cross_bias, inverse, wanted, max(largest_gram, self.n_features)
        )

    def hinge_sums(self, coef: Floats, intercept: float) -> Floats:
        """Hinge sums of the model on the rows themselves."""
        super().hinge_sums(coef, intercept)  # keeps the scores of the current state
        return self.parent.hinge_sums(self.lift(coef), intercept)

    def dual_point(self, ceiling: Floats) -> DualPoint:
        """Sums of the current dual point over the rows themselves."""
        point, totals = self._dual_terms(ceiling)
        return DualPoint(self.parent._transpose(point), totals)
