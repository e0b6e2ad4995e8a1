"""A growing factor of a kernel matrix: rows in the coordinates of some functions in its space.

The functions are orthonormal; they span chosen rows (pivots) and chosen combinations of rows. With
F their values at all rows, a model in their span with coordinates u has the scores ``F u`` and the
norm ``||u||``, exactly: what a factor leaves out, ``K - F F'`` (positive semidefinite), only shows
in the norm of dual combinations of rows outside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ratebound.rows.base import Floats
from ratebound.rows.memory import MemoryRows

if TYPE_CHECKING:
    from ratebound.rows.kernel import KernelMatrix, KernelRows

FIRST_RANK = 384
BATCH = 128  # pivots looked at together where nothing but their residuals is known
DIVERSE = 0.05  # share of a batch's largest pivot that a pivot must have to be worth a column
RESOLUTION = 1e-10  # share of the largest k(x, x) below which a residual counts as 0

Index = npt.NDArray[np.intp]


class Factor:
    """Pivoted Cholesky factor of a kernel matrix, whose columns may be combinations of rows too.

    Parameters
    ----------
    matrix : KernelMatrix
    weight : (n,), 0 for rows that take no part
    first_rank : int
        Rows with the largest weighted residuals are taken up to this rank at first.

    Attributes
    ----------
    values : (n, rank) F, values of the orthonormal functions at the rows
    residual : (n,) diagonal of K - F F'
    pivots : (p,) rows in the span
    """

    def __init__(self, matrix: KernelMatrix, weight: Floats, first_rank: int) -> None:
        self.matrix = matrix
        self.weight = weight
        n = matrix.n_rows
        self.values: Floats = np.zeros((n, 0))
        self.residual: Floats = np.maximum(matrix.diagonal, 0.0)
        self.pivots: Index = np.zeros(0, dtype=np.intp)
        self._triangle: Floats = np.zeros((0, 0))  # inner products of what spans with F's functions
        self._generators: list[int | Floats] = []  # what spans: rows by number, combinations
        self._negligible = RESOLUTION * matrix.scale
        while self.rank < min(first_rank, n):
            order = np.argsort(-self.residual * weight, kind="stable")
            if not self.add_rows(order[: min(BATCH, first_rank - self.rank)]):
                break

    @property
    def rank(self) -> int:
        """How many functions there are."""
        return int(self.values.shape[1])

    @property
    def share_left(self) -> float:
        """Share of the weighted trace of K that is not in F F'."""
        whole = float(self.weight @ np.maximum(self.matrix.diagonal, 0.0))
        return float(self.weight @ self.residual) / whole if whole > 0 else 0.0

    def add_rows(self, candidates: Index) -> int:
        """Take those of the candidates into the span that the span and the others leave apart.

        Returns
        -------
        int
            How many were taken.
        """
        candidates = candidates[self.weight[candidates] > 0.0]
        candidates = candidates[self.residual[candidates] > self._negligible]
        if not len(candidates):
            return 0
        kernel, scale = self.matrix.kernel, self.matrix.scale
        columns = self.matrix.columns(candidates)
        block = columns[candidates]
        if np.max(np.abs(block - block.T)) > 1e-6 * scale:
            raise ValueError(f"kernel {kernel.name} is not symmetric: k(a, b) differs from k(b, a)")
        columns -= self.values @ self.values[candidates].T
        block = columns[candidates]
        kernel.refuse_indefinite(float(np.linalg.eigvalsh(0.5 * (block + block.T))[0]), scale)
        found, order, rank, _ = scipy.linalg.lapack.dpstrf(block, lower=1)
        pivots = np.diagonal(found)[:rank] ** 2
        enough = max(DIVERSE * float(pivots[0]), self._negligible)
        kept = int(np.argmin(np.append(pivots, 0.0) >= enough))
        local = order[:kept] - 1
        leading = np.tril(found[:kept, :kept])
        new = scipy.linalg.solve_triangular(leading, columns[:, local].T, lower=True).T
        rows = candidates[local]
        self._extend(new, np.hstack([self.values[rows], leading]), [int(row) for row in rows])
        self.pivots = np.append(self.pivots, rows)
        self.residual[rows] = 0.0
        return kept

    def add_combination(self, coef: Floats, product: Floats) -> bool:
        """Take a combination of rows into the span; product is K @ coef."""
        inside = self.values.T @ coef
        outside = product - self.values @ inside
        squared = float(coef @ outside)
        if squared <= self._negligible * max(float(coef @ coef), 1e-300):
            return False
        norm = np.sqrt(squared)
        self._extend((outside / norm)[:, None], np.append(inside, norm)[None], [coef])
        return True

    def _extend(self, new: Floats, triangle: Floats, generators: list[int | Floats]) -> None:
        left = self.residual - np.einsum("ij,ij->i", new, new)
        self.matrix.kernel.refuse_indefinite(float(left.min()), self.matrix.scale)
        self.residual = np.maximum(left, 0.0)
        rank, total = self.rank, self.rank + new.shape[1]
        self.values = np.hstack([self.values, new])
        larger = np.zeros((total, total))
        larger[:rank, :rank] = self._triangle
        larger[rank:] = triangle
        self._triangle = larger
        self._generators += generators

    def combination(self, coordinates: Floats) -> Floats:
        """The combination of rows that has these coordinates."""
        factors = scipy.linalg.solve_triangular(
            self._triangle, coordinates[: self.rank], lower=True, trans="T", check_finite=False
        )
        coef = np.zeros(self.matrix.n_rows)
        for factor, generator in zip(factors, self._generators, strict=True):
            if isinstance(generator, int):
                coef[generator] += factor
            else:
                coef += factor * generator
        return coef

    def coordinates(self, coef: Floats) -> Floats:
        """Coordinates of the part of a combination of rows that lies in the span."""
        return np.asarray(self.values.T @ coef)


class FactorRows(MemoryRows):
    """The rows of `parent` as rows of a factor; anchor and cells are the parent's."""

    def __init__(self, parent: KernelRows, factor: Factor) -> None:
        self.parent = parent
        self.rank = factor.rank
        values = factor.values if self.rank else np.zeros((parent.n_rows, 1))
        super().__init__(
            [(values, parent.weight, parent.cell)], parent.n_cells, threads=parent.threads
        )
        self.live = parent.live
        self.largest_norm = parent.largest_norm

    @property
    def live_weight(self) -> Floats:
        """Weight of the terms that the parent's anchor left live."""
        return self.parent.live_weight

    @live_weight.setter
    def live_weight(self, weight: Floats) -> None:
        """Anchors are set on the parent."""

    def compact(self) -> FactorRows:
        """These rows: there are no coordinates with fewer columns."""
        return self

    def dual_terms(self, ceiling: Floats) -> tuple[Floats, Floats]:
        """The current dual point, one number a row and side, and its totals; zeros before a step.

        It is clipped to [0, ceiling].
        """
        if self._state is None:
            return np.zeros((2, self.n_rows)), np.zeros(2)
        return self._dual_terms(ceiling)
