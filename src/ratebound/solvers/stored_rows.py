"""The rows of an ascent in memory: a dense matrix, a CSR one, or the inner products of the rows."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ratebound import kernels
from ratebound.rows.base import Floats, Rows
from ratebound.rows.memory import Sparse, _read_only, _storage
from ratebound.solvers.hinges import Hinges

BLOCK_BYTES = 2**24  # of a dense X turned to double precision at a time


class StoredRows:
    """The matrix of rows in memory with what coordinate ascent asks of it, dense, CSR or Gram."""

    def __init__(self, rows: Rows) -> None:
        matrix = rows.matrix()
        self.matrix = matrix
        self.rows = rows
        self.is_gram = matrix.is_gram
        self.n_rows = len(matrix.weight)
        self.n_coef = rows.n_features
        self.X: Any = _read_only(np.asarray(matrix.X)) if matrix.is_gram else _storage(matrix.X)
        self.squared_norms = np.zeros(self.n_rows)
        self.part: npt.NDArray[np.float32] = np.zeros(0, dtype=np.float32)  # for `GramPart`
        if isinstance(self.X, Sparse):
            kernels.csr_squared_norms(self.X.indptr, self.X.data, self.squared_norms)
        elif self.is_gram:
            self.squared_norms[:] = np.diagonal(self.X)
        else:
            for block in self._blocks():
                part = self.X[block].astype(np.float64, copy=False)
                self.squared_norms[block] = np.einsum("ij,ij->i", part, part)

    def _blocks(self) -> list[slice]:
        rows = max(1, BLOCK_BYTES // (8 * max(1, self.X.shape[1])))
        return [slice(first, first + rows) for first in range(0, self.n_rows, rows)]

    def scores(self, coef: Floats) -> Floats:
        """<coef, x> of every row."""
        scores = np.empty(self.n_rows)
        if isinstance(self.X, Sparse):
            kernels.csr_scores(*self.X, coef, 0.0, 0, self.n_rows, 0, scores)
        else:
            for block in self._blocks():
                np.dot(self.X[block], coef, out=scores[block])
        return scores

    def images(self, vectors: Floats) -> Floats:
        """Products of a Gram matrix with two vectors, (2, n), reading it once."""
        out = np.empty((2, self.n_rows))
        kernels.gram_products(self.X, vectors[0], vectors[1], out)
        return out

    def features(self, sides: Floats) -> Floats:
        """Sums of the rows with these factors, (2, n) -> (2, d)."""
        if self.is_gram:
            return sides
        total = np.zeros((len(sides), self.n_coef))
        if isinstance(self.X, Sparse):
            kernels.csr_transpose(*self.X, sides, 0, self.n_rows, 0, total)
        else:
            for block in self._blocks():
                total += sides[:, block] @ self.X[block]
        return total

    def ascend(
        self,
        order: npt.NDArray[np.intp],
        hinges: Hinges,
        alpha: float,
        bias_step: float,
        relaxation: float,
        far: float,
        dual: Floats,
        moving: Floats,
        intercept: float,
    ) -> tuple[float, int, float]:
        """One pass over `order`; `moving` is coef, or for a Gram matrix the scores."""
        rest = (
            order, hinges.low, hinges.high, self.squared_norms, alpha, bias_step, relaxation, far,
        )  # fmt: skip
        if isinstance(self.X, Sparse):
            moved = kernels.csr_ascent(*self.X, *rest, dual, moving, intercept)
        elif self.is_gram:
            moved = kernels.gram_ascent(self.X, *rest, dual, moving, intercept)
        else:
            moved = kernels.dense_ascent(self.X, *rest, dual, moving, intercept)
        return cast(tuple[float, int, float], moved)


class GramPart:
    """Some rows of a Gram matrix among themselves, which a pass then reads instead of whole rows.

    In single precision, for half the memory to read: only what scores change by is summed with it,
    and all scores are computed anew whenever all rows are looked at.
    """

    def __init__(self, stored: StoredRows, chosen: npt.NDArray[np.intp]) -> None:
        size = len(chosen)
        if len(stored.part) < size * size:  # fresh memory takes longer than filling it
            stored.part = np.empty(size * size, dtype=np.float32)
        self.gram = stored.part[: size * size].reshape(size, size)
        kernels.gram_part(stored.X, chosen, self.gram)
        self.squared_norms = stored.squared_norms[chosen]

    def ascend(
        self,
        order: npt.NDArray[np.intp],
        hinges: Hinges,
        alpha: float,
        bias_step: float,
        relaxation: float,
        far: float,
        dual: Floats,
        moving: Floats,
        intercept: float,
    ) -> tuple[float, int, float]:
        """As `StoredRows.ascend`, everything a number a chosen row."""
        moved = kernels.gram_ascent(
            self.gram, order, hinges.low, hinges.high, self.squared_norms, alpha, bias_step,
            relaxation, far, dual, moving, intercept,
        )  # fmt: skip
        return cast(tuple[float, int, float], moved)
