"""Products with X' D X where few rows bend: those rows, gathered.

D is the curvature of a row's score. Near a solution all but a few per cent of it is negligible, and
conjugate gradients ask for tens of products with the same D; so its rows are laid side by side
once, where they are few enough to be no copy of X to speak of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ratebound import kernels
from ratebound.rows.base import Floats

if TYPE_CHECKING:
    from ratebound.rows.memory import Chunk, MemoryRows

GATHERED = 0.25  # share of the rows up to which they are gathered
STRAIGHT = 1e-5  # curvature of a row, relative to the largest, that only the diagonal counts
GROUPS = 8  # partial sums of a product at most
GROUP_ENTRIES = 2**20  # entries of X for which a partial sum of its own pays


class BentRows:
    """X' D X with its border by the bias, for one D.

    Parameters
    ----------
    rows : MemoryRows
    curvature : (n,) nonnegative

    Attributes
    ----------
    diagonal : (d,) of X' D X
    border : (d,) X' D 1
    """

    def __init__(self, rows: MemoryRows, curvature: Floats) -> None:
        self.rows = rows
        most = float(curvature.max(initial=0.0))
        bent = curvature > STRAIGHT * most
        straight = np.where(bent, 0.0, curvature)
        left = float(straight.sum())
        self.curvature = curvature if left == 0.0 else np.where(bent, curvature, 0.0)
        self.pieces: list[Chunk] = rows.chunks
        if np.count_nonzero(bent) <= GATHERED * len(curvature):
            self.pieces = _gathered(rows, np.flatnonzero(bent))
            self.curvature = curvature[bent]
        entries = sum(_entries(piece) for piece in self.pieces)
        count = max(1, min(len(self.pieces), GROUPS, entries // GROUP_ENTRIES))
        self.groups = np.linspace(0, len(self.pieces), count + 1).astype(int)
        self.diagonal, self.border = self._diagonal()
        self.straight = np.zeros(rows.n_features + 1)
        if left > 0.0:
            more = BentRows.__new__(BentRows)
            more.rows, more.pieces, more.groups = rows, rows.chunks, np.array([0, len(rows.chunks)])
            more.curvature = straight
            diagonal, border = more._diagonal()
            self.straight = np.append(diagonal, left)
            self.diagonal, self.border = self.diagonal + diagonal, self.border + border

    def product(self, vector: Floats) -> Floats:
        """X' D X and its border, times a vector (d + 1,)."""

        def work(piece: Chunk, out: Floats) -> None:
            curvature = self.curvature
            if _is_sparse(piece):
                indptr, indices, data = piece.X
                kernels.csr_curvature_product(
                    indptr,
                    indices,
                    data,
                    curvature,
                    vector,
                    piece.first,
                    piece.last,
                    piece.offset,
                    out,
                )
            else:
                part = piece.X[piece.first : piece.last]
                scores = curvature[piece.span] * (part @ vector[:-1] + vector[-1])
                out[:-1] += scores @ part
                out[-1] += scores.sum()

        return self._sum(work, (len(vector),)) + self.straight * vector

    def _diagonal(self) -> tuple[Floats, Floats]:
        def work(piece: Chunk, out: Floats) -> None:
            if _is_sparse(piece):
                indptr, indices, data = piece.X
                kernels.csr_diagonal(
                    indptr,
                    indices,
                    data,
                    self.curvature,
                    piece.first,
                    piece.last,
                    piece.offset,
                    out,
                )
            else:
                part = piece.X[piece.first : piece.last]
                out[0] += np.einsum("i,ij,ij->j", self.curvature[piece.span], part, part)
                out[1] += self.curvature[piece.span] @ part

        diagonal, border = self._sum(work, (2, self.rows.n_features))
        return diagonal, border

    def _sum(self, function: Any, shape: tuple[int, ...]) -> Floats:
        """Sum over groups of pieces, whose number depends on sizes alone, not on threads."""

        def work(group: int) -> Floats:
            out = np.zeros(shape)
            for piece in self.pieces[self.groups[group] : self.groups[group + 1]]:
                function(piece, out)
            return out

        parts = self.rows.in_threads(work, range(len(self.groups) - 1))
        total: Floats = parts[0]
        for part in parts[1:]:
            total += part
        return total


def _is_sparse(piece: Chunk) -> bool:
    return not isinstance(piece.X, np.ndarray)


def _entries(piece: Chunk) -> int:
    if _is_sparse(piece):
        return int(piece.X.indptr[piece.last] - piece.X.indptr[piece.first])
    return (piece.last - piece.first) * int(piece.X.shape[1])


def _gathered(rows: MemoryRows, chosen: np.ndarray[Any, Any]) -> list[Chunk]:
    """The chosen rows as chunks of their own, numbered from 0."""
    from ratebound.rows.memory import Chunk, Sparse

    pieces: list[Chunk] = []
    for chunk in rows.chunks:
        span = chunk.span
        here = chosen[np.searchsorted(chosen, span.start) : np.searchsorted(chosen, span.stop)]
        here = here - chunk.offset
        before = pieces[-1].span.stop if pieces else 0
        if isinstance(chunk.X, Sparse):
            begin, end = chunk.X.indptr[here], chunk.X.indptr[here + 1]
            ends = np.cumsum(end - begin)
            places = np.arange(ends[-1] if len(ends) else 0)
            places += np.repeat(begin - np.append(0, ends[:-1]), end - begin) if len(ends) else 0
            part: Any = Sparse(
                *map(_frozen, (np.append(0, ends), chunk.X.indices[places], chunk.X.data[places]))
            )
        else:
            part = _frozen(chunk.X[here])
        pieces.append(Chunk(part, 0, len(here), before))
    return pieces


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array
