"""The rows of a fit in the geometry of its kernel, and the function that a model is on new rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ratebound.kernel_functions import Kernel
from ratebound.problem import RowBlock
from ratebound.rows.base import Rows
from ratebound.rows.kernel import KernelRows
from ratebound.rows.memory import MemoryRows
from ratebound.rows.merge import distinct_rows, merge_rows

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

BLOCK_BYTES = 2**24  # of kernel values computed at a time for a prediction
SYMMETRY_BLOCK = 1024


@dataclass(frozen=True)
class Expansion:
    """The function ``x -> sum_k factors[k] k(x, support_k)``.

    Attributes
    ----------
    kernel : Kernel
    support : (s,), numbers of the support rows among all rows of the fit
    vectors : (s, d) the rows themselves; None for a precomputed kernel
    factors : (s,)
    """

    kernel: Kernel
    support: Index
    vectors: Any
    factors: Floats

    def scores(self, X: Any) -> Floats:
        """Values at the rows of X (of their kernel with all training rows, where precomputed)."""
        scores = np.zeros(X.shape[0])
        size = max(1, BLOCK_BYTES // (8 * max(1, len(self.support))))
        for first in range(0, X.shape[0], size):
            part = X[first : first + size]
            if self.vectors is None:
                values = part[:, self.support]
            else:
                values = self.kernel.between(part, self.vectors)
            scores[first : first + size] = values @ self.factors
        return scores


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit, and where they come from.

    Attributes
    ----------
    rows : Rows, `KernelRows` unless the kernel is linear
    number : (n,), the number of every row among the rows of all blocks, one block after the other
    """

    rows: Rows
    number: Index

    def expansion(self, coef: Floats) -> Expansion | None:
        """The function that a combination of the rows is; None where coef is on the columns."""
        if not isinstance(self.rows, KernelRows):
            return None
        used = np.flatnonzero(coef)
        precomputed = self.rows.kernel.kind == "precomputed"
        vectors = None if precomputed else self.rows.kernel_matrix.X[used]
        return Expansion(self.rows.kernel, self.number[used], vectors, coef[used])

    def scorer(self, coef: Floats) -> Callable[[Any], Floats]:
        """The scores of a model, without its intercept, as a function of rows."""
        expansion = self.expansion(coef)
        if expansion is not None:
            return expansion.scores
        return lambda X: np.asarray(X @ coef, dtype=np.float64)


def fit_rows(kernel: Kernel, blocks: Sequence[RowBlock], n_cells: int) -> FitRows:
    """The rows that take part, equal ones merged; all rows of a precomputed kernel's matrix."""
    if kernel.kind == "linear":
        read = [block for block in blocks if np.any(block.cell >= 0)]
        merged = [merge_rows(block.X, block.weight, block.cell) for block in read]
        return FitRows(MemoryRows(merged, n_cells), np.zeros(0, dtype=np.intp))
    if kernel.kind == "precomputed":
        block = blocks[0]
        n = block.X.shape[0]
        if block.X.shape[1] != n:
            raise ValueError(
                f"X of a precomputed kernel must be a square matrix, the kernel between all rows; "
                f"it has shape {block.X.shape}"
            )
        X = cast(Any, block.X).toarray() if scipy.sparse.issparse(block.X) else block.X
        if not _is_symmetric(X):
            raise ValueError('X of kernel="precomputed" is not symmetric: X[i, j] != X[j, i]')
        rows = KernelRows([(X, block.weight, block.cell)], n_cells, kernel)
        return FitRows(rows, np.arange(n))
    kept, numbers, offset = [], [], 0
    for block in blocks:
        used = (block.cell >= 0) & (block.weight > 0)
        distinct = distinct_rows(block.X, block.weight, block.cell)
        if distinct is not None:
            first, weight = distinct
            kept.append((block.X[first], weight, block.cell[first]))
        else:
            first = np.flatnonzero(used)
            X = block.X if used.all() else block.X[first]
            kept.append((X, block.weight[first], block.cell[first]))
        numbers.append(offset + first)
        offset += block.X.shape[0]
    return FitRows(KernelRows(kept, n_cells, kernel), np.concatenate(numbers))


def _is_symmetric(X: Any) -> bool:
    """Whether X is its own transpose up to the rounding of single precision."""
    scale = 1e-6 * float(np.max(np.abs(np.diagonal(X)), initial=0.0))
    cuts = [slice(i, i + SYMMETRY_BLOCK) for i in range(0, len(X), SYMMETRY_BLOCK)]
    return all(
        float(np.max(np.abs(X[cuts[i], cut] - X[cut, cuts[i]].T))) <= scale
        for i in range(len(cuts))
        for cut in cuts[i:]
    )
