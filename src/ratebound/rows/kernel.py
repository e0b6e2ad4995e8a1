"""Rows whose inner products are a kernel's: models are combinations of rows, coef = one number
a row.

With ``w = sum a_i phi(x_i)`` scores are ``K a`` and ``||w||^2 = a' K a``. K is never held, unless
it is given or an oracle asks for it (`KernelRows.matrix`): products with it are made from blocks of
its columns, and only of those whose factor is not 0. The scores of models made from a `Factor` are
known without them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse

from ratebound.kernel_functions import Kernel, dense, is_small
from ratebound.rows.base import DualPoint, Floats, RowMatrix
from ratebound.rows.factor import FIRST_RANK, Factor, FactorRows
from ratebound.rows.memory import MemoryRows
from ratebound.rows.proximal import MemoryProximalTerms

BLOCK_ROWS = 512
COLUMN_BLOCK = 4096  # columns of a block of K
KNOWN_MODELS = 16  # whose scores are kept

Cells = npt.NDArray[np.int32]
Index = npt.NDArray[np.intp]


class KernelMatrix:
    """The kernel matrix of some rows, in blocks.

    Parameters
    ----------
    kernel : Kernel
    X : (n, d) array or CSR matrix; of a precomputed kernel the (n, n) matrix itself
    threads : int
        Blocks computed at a time; a callable kernel is called from one thread.
    """

    def __init__(self, kernel: Kernel, X: Any, threads: int = 1) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self.kernel = kernel
        self.X = X
        self.n_rows = int(X.shape[0])
        self.gram: Any = X if kernel.kind == "precomputed" else None
        self.diagonal: Floats = np.asarray(
            np.diagonal(X) if self.gram is not None else kernel.diagonal(X), dtype=np.float64
        )
        self.scale = float(np.max(np.abs(self.diagonal), initial=0.0))
        kernel.refuse_indefinite(float(np.min(self.diagonal, initial=0.0)), self.scale)

    def columns(self, chosen: Index) -> Floats:
        """K[:, chosen]."""
        if self.gram is not None:
            return np.asarray(self.gram[:, chosen], dtype=np.float64)
        right = self.X[chosen]
        out = np.empty((self.n_rows, len(chosen)))

        def work(rows: slice) -> None:
            out[rows] = self.kernel.between(self.X[rows], right)

        self._map(work)
        return out

    def product(self, vector: Floats) -> Floats:
        """K @ vector, from the columns where the vector is not 0."""
        if self.gram is not None:
            return np.asarray(self.gram @ vector, dtype=np.float64)
        out = np.zeros(self.n_rows)
        used = np.flatnonzero(vector)
        for first in range(0, len(used), COLUMN_BLOCK):
            chosen = used[first : first + COLUMN_BLOCK]
            self._add_product(chosen, vector[chosen], out)
        return out

    def _add_product(self, chosen: Index, factors: Floats, out: Floats) -> None:
        right = self.X[chosen]

        def work(rows: slice) -> None:
            out[rows] += self.kernel.between(self.X[rows], right) @ factors

        self._map(work)

    def hold(self) -> Any:
        """The whole matrix, which is kept from now on."""
        if self.gram is None:
            gram = np.empty((self.n_rows, self.n_rows))
            X = dense(self.X) if is_small(self.X) else self.X

            def work(rows: slice) -> None:
                """A block of rows from the diagonal on, and by symmetry one of columns."""
                values = self.kernel.between(X[rows], X[rows.start :])
                gram[rows, rows.start :] = values
                gram[rows.start :, rows] = values.T

            self._map(work)
            self.gram = gram
        return self.gram

    def _map(self, work: Callable[[slice], None]) -> None:
        """Do the work on all rows, in blocks; each writes its own rows, in any order."""
        blocks = [slice(i, i + BLOCK_ROWS) for i in range(0, self.n_rows, BLOCK_ROWS)]
        if len(blocks) == 1 or self.threads == 1 or self.kernel.function is not None:
            for block in blocks:
                work(block)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        list(self._pool.map(work, blocks))


class KernelRows(MemoryRows):
    """Rows of one or several matrices in the geometry of a kernel.

    Parameters
    ----------
    blocks : sequence of (X, weight, cell)
        As for `MemoryRows`; several are stacked. A precomputed kernel takes one, its matrix.
    n_cells : int
    kernel : Kernel
    first_rank : int
        Of the factor, before it grows.
    threads : int, optional
    """

    def __init__(
        self,
        blocks: Sequence[tuple[Any, npt.NDArray[Any], npt.NDArray[Any]]],
        n_cells: int,
        kernel: Kernel,
        *,
        first_rank: int = FIRST_RANK,
        threads: int | None = None,
    ) -> None:
        X, weight, cell = _stacked(blocks)
        self.kernel = kernel
        self.kernel_matrix = KernelMatrix(kernel, X, threads or joblib.cpu_count())
        super().__init__([(X, weight, cell)], n_cells, threads=threads)
        self.n_features = self.n_rows
        weight = np.where(self.cell >= 0, self.weight, 0.0)
        self.factor = Factor(self.kernel_matrix, weight, first_rank)
        self._known: OrderedDict[bytes, tuple[Floats, float]] = OrderedDict()
        self._reduced: FactorRows | None = None
        self.left_out = np.inf  # what the factor left of the last problem, relative

    def _largest_norm(self) -> float:
        used = self.kernel_matrix.diagonal[self.cell >= 0]
        return float(np.sqrt(np.max(used, initial=0.0)))

    # ---- models ------------------------------------------------------------------------------

    def remember(self, coef: Floats, scores: Floats, squared_norm: float) -> None:
        """Keep what is known of a model, so that no product with the kernel is needed."""
        self.kernel.refuse_indefinite(squared_norm, self.kernel_matrix.scale * float(coef @ coef))
        self._known[coef.tobytes()] = scores, max(squared_norm, 0.0)
        if len(self._known) > KNOWN_MODELS:
            self._known.popitem(last=False)

    def _model(self, coef: Floats) -> tuple[Floats, float]:
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        key = coef.tobytes()
        if key not in self._known:
            scores = self.product(coef)
            self.remember(coef, scores, float(coef @ scores))
        self._known.move_to_end(key)
        return self._known[key]

    def product(self, vector: Floats) -> Floats:
        """K @ vector; the factor knows the columns of its pivots."""
        chosen = self.factor.pivots
        if self.kernel_matrix.gram is not None or not np.any(vector[chosen]):
            return self.kernel_matrix.product(vector)
        rest = vector.copy()
        rest[chosen] = 0.0
        values = self.factor.values
        return self.kernel_matrix.product(rest) + values @ (values[chosen].T @ vector[chosen])

    def squared_norm(self, coef: Floats) -> float:
        """||w||^2 = a' K a."""
        return self._model(coef)[1]

    def _compute_scores(self, coef: Floats, intercept: float, scores: Floats) -> Floats:
        np.add(self._model(coef)[0], intercept, out=scores)
        return scores

    def matrix(self) -> RowMatrix:
        """The whole kernel matrix, rows x rows: for oracles that need all of it."""
        return RowMatrix(self.kernel_matrix.hold(), self.weight, self.cell, self.live, is_gram=True)

    # ---- the interior point works on a factor ------------------------------------------------

    def compact(self) -> KernelRows:
        """These rows: their factor is for who watches what it leaves out (`GrowingRank`)."""
        return self

    def reduced(self) -> FactorRows:
        """The rows in the coordinates of the present factor, at the present anchor."""
        if self._reduced is None or self._reduced.rank != self.factor.rank:
            self._reduced = FactorRows(self, self.factor)
        return self._reduced

    def lift_reduced(self, coordinates: Floats) -> Floats:
        """The combination of rows with these coordinates in the factor; its scores are known."""
        coef = self.factor.combination(coordinates)
        self.remember(coef, self.factor.values @ coordinates, float(coordinates @ coordinates))
        return coef

    def lower_reduced(self, coef: Floats) -> Floats:
        """Coordinates in the factor of the part of a combination that lies in its span."""
        return self.factor.coordinates(coef)

    def begin(self, coef: Floats, intercept: float, ceiling: Floats, barrier: float) -> None:
        """Kernel rows have no columns for Newton's system."""
        raise RuntimeError(
            "the interior point does not run on kernel rows themselves: wrap it, as in "
            "GrowingRank(InteriorPoint())"
        )

    def proximal(self) -> MemoryProximalTerms:
        """Nor have they any for the products of an augmented Lagrangian."""
        raise RuntimeError(
            "the augmented Lagrangian does not run on rows of a kernel: take GrowingRank() or "
            "CuttingPlane(SDCA())"
        )

    @property
    def has_duals(self) -> bool:
        """There is a dual point always: nothing where no interior point has solved a problem."""
        return True

    def dual_point(self, ceiling: Floats) -> DualPoint:
        """The dual point of the last interior-point solve, one number a row and side."""
        if self._reduced is None:
            return DualPoint(np.zeros((2, self.n_rows)), np.zeros(2))
        return DualPoint(*self._reduced.dual_terms(ceiling))


def _stacked(
    blocks: Sequence[tuple[Any, npt.NDArray[Any], npt.NDArray[Any]]],
) -> tuple[Any, Floats, Cells]:
    weight = np.concatenate([np.asarray(w, dtype=np.float64) for _, w, _ in blocks])
    cell = np.concatenate([np.asarray(c, dtype=np.int32) for _, _, c in blocks])
    matrices = [X for X, _, _ in blocks]
    if any(scipy.sparse.issparse(X) for X in matrices):
        matrices = [scipy.sparse.csr_array(X) for X in matrices]
        X = matrices[0] if len(matrices) == 1 else scipy.sparse.vstack(matrices, format="csr")
        return X, weight, cell
    return (matrices[0] if len(matrices) == 1 else np.vstack(matrices)), weight, cell
