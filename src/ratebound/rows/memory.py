"""Rows held in memory, dense or CSR, in one or several blocks: the `Rows` protocol over NumPy
arrays.

Blocks (one per X) are cut into chunks of a fixed size that does not depend on the number of
threads; threads take chunks, and their sums are added in the order of the chunks, so the answer is
the same for any number of threads. Products with a dense X go through BLAS, with a CSR X through
the compiled loops; what happens to a row's state is one code for both. X itself is never copied.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar, cast

import joblib
import numpy as np
import numpy.typing as npt
import scipy.linalg.blas
import scipy.sparse

from ratebound import kernels
from ratebound.rows.base import (
    Curvature,
    DualPoint,
    Floats,
    RowMatrix,
    ScoredRows,
    Smooth,
    StepLengths,
    Target,
)
from ratebound.rows.bent import BentRows
from ratebound.rows.proximal import MemoryProximalTerms
from ratebound.rows.split import MemorySplitTerms

CHUNK_ROWS = 8192
GRAM_BYTES = 2**26  # what the partial sums of X'DX may take together
GRAM_BUFFER = 2**19  # entries of X scaled at a time for a dense X'DX
LARGEST_GRAM = 2048  # features up to which X'DX is formed; above, it is only multiplied with
LARGEST_SPAN = 4500  # rows up to which they are put into coordinates of their span
STEP_LEVELS = 64  # step lengths k / STEP_LEVELS at which the blocked terms are counted
WORTH_THREADS = 2**18  # entries of X and state of rows below which threads cost more than they save
ROW_STATE = 16  # entries of X that the work on a row's state is worth
NEGLIGIBLE = 1e-13  # curvature of a row, relative to the largest, below which X'DX leaves it out

Result = TypeVar("Result")


class Chunk(NamedTuple):
    """Rows first..last-1 of a block whose first row is number `offset` of all rows."""

    X: Any
    first: int
    last: int
    offset: int

    @property
    def span(self) -> slice:
        """Where its rows stand among all rows."""
        return slice(self.offset + self.first, self.offset + self.last)


class Sparse(NamedTuple):
    """The three arrays of a CSR matrix, read-only so that each dtype is compiled once."""

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    data: npt.NDArray[Any]


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _storage(X: Any) -> Any:
    """X as a read-only dense array or `Sparse`, without a copy where its form allows."""
    if scipy.sparse.issparse(X):
        X = cast(Any, X)
        matrix: Any = X.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        index = np.int64 if matrix.indices.dtype != np.int32 else np.int32
        return Sparse(
            _read_only(matrix.indptr.astype(np.int64, copy=False)),
            _read_only(matrix.indices.astype(index, copy=False)),
            _read_only(matrix.data),
        )
    return _read_only(np.asarray(X))


def _entries(X: Any) -> int:
    """How many numbers X stores."""
    return int(cast(Any, X).nnz if scipy.sparse.issparse(X) else X.shape[0] * X.shape[1])


def _as_matrix(X: Any, features: int) -> Any:
    """What `_storage` made, as NumPy or SciPy know it, sharing memory."""
    if not isinstance(X, Sparse):
        return X
    shape = (len(X.indptr) - 1, features)
    return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=shape)


class MemoryRows:
    """Rows of one or several matrices with a weight and a cell each.

    Parameters
    ----------
    blocks : sequence of (X, weight, cell)
        X dense or sparse (n, d); weight (n,) >= 0; cell (n,), -1 for rows that take no part.
    n_cells : int
    threads : int, optional
        Default: the cores this process may use, one where there is little to do.
    """

    def __init__(
        self,
        blocks: Sequence[tuple[Any, npt.NDArray[Any], npt.NDArray[Any]]],
        n_cells: int,
        *,
        threads: int | None = None,
    ) -> None:
        self.n_cells = n_cells
        self.n_features = int(blocks[0][0].shape[1])
        self.weight: Floats = np.concatenate(
            [np.asarray(w, dtype=np.float64) for _, w, _ in blocks]
        )
        cells = np.concatenate([np.asarray(c, dtype=np.int32) for _, _, c in blocks])
        self.cell = np.where(self.weight > 0, cells, np.int32(-1))
        self.n_rows = len(self.cell)
        self.entries = sum(_entries(X) for X, _, _ in blocks)
        self.chunks: list[Chunk] = []
        offset = 0
        for X, _, _ in blocks:
            stored = _storage(X)
            rows = int(X.shape[0])
            pieces = max(1, -(-rows // CHUNK_ROWS))
            cuts = np.linspace(0, rows, pieces + 1).astype(int)
            self.chunks += [
                Chunk(stored, int(a), int(b), offset) for a, b in itertools.pairwise(cuts)
            ]
            offset += rows
        work = ROW_STATE * self.n_rows + self.entries
        self.threads = threads or (1 if work < WORTH_THREADS else joblib.cpu_count())
        self._pool: ThreadPoolExecutor | None = None
        used = self.cell >= 0
        self.n_used = int(used.sum())
        self.cell_weight: Floats = np.bincount(
            self.cell[used], weights=self.weight[used], minlength=n_cells
        ).astype(np.float64)
        self.live = np.zeros(self.n_rows, dtype=np.uint8)
        self.live_weight: Floats = np.zeros((2, n_cells))
        self.scores: Floats = np.zeros(self.n_rows)
        self.largest_norm = self._largest_norm()
        self._state: Floats | None = None  # (8, 2, n): what a solver keeps a term
        self._begun = False
        self._smoothed: Floats | None = None
        self._compact: MemoryRows | None = None
        self._proximal: MemoryProximalTerms | None = None
        self._split: MemorySplitTerms | None = None

    def compact(self) -> MemoryRows:
        """Rows in coordinates of their span where there are fewer rows than columns."""
        if self.n_used >= min(self.n_features, LARGEST_SPAN + 1):
            return self
        if self._compact is None:
            from ratebound.rows.span import SpanRows

            self._compact = SpanRows(self)
        return self._compact

    def lift(self, coef: Floats) -> Floats:
        """Coefficients on the columns of X: these are they."""
        return coef.copy()

    def lower(self, coef: Floats) -> Floats:
        """Coefficients on the columns of X are already these rows' coordinates."""
        return np.array(coef, dtype=np.float64)

    def squared_norm(self, coef: Floats) -> float:
        """||coef||^2."""
        return float(coef @ coef)

    def matrix(self) -> RowMatrix:
        """Return the rows of all blocks as one matrix: X itself where there is one block."""
        blocks = {(chunk.offset, id(chunk.X)): chunk.X for chunk in self.chunks}
        matrices = [_as_matrix(X, self.n_features) for X in blocks.values()]
        if len(matrices) == 1:
            X = matrices[0]
        elif any(scipy.sparse.issparse(matrix) for matrix in matrices):
            X = scipy.sparse.vstack(matrices, format="csr")
        else:
            X = np.vstack(matrices)
        return RowMatrix(X, self.weight, self.cell, self.live)

    # ---- running over chunks -------------------------------------------------------------------

    def _map(self, function: Callable[[Chunk], Result]) -> list[Result]:
        """Return function of every chunk, in order; every thread takes a run of chunks."""
        if len(self.chunks) == 1 or self.threads == 1:
            return [function(chunk) for chunk in self.chunks]
        bounds = [len(self.chunks) * k // self.threads for k in range(self.threads + 1)]

        def work(first: int, last: int) -> list[Result]:
            return [function(chunk) for chunk in self.chunks[first:last]]

        # the calling thread takes a run too: handing one over costs as much as a short pass
        others = [self._executor().submit(work, a, b) for a, b in itertools.pairwise(bounds[1:])]
        results = work(0, bounds[1])
        for other in others:
            results += other.result()
        return results

    def in_threads(self, function: Callable[[int], Result], pieces: range) -> list[Result]:
        """Return function of every number, in order."""
        if len(pieces) == 1 or self.threads == 1:
            return [function(piece) for piece in pieces]
        return list(self._executor().map(function, pieces))

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        return self._pool

    def _largest_norm(self) -> float:
        largest = 0.0
        for chunk in self.chunks:
            used = self.cell[chunk.span] >= 0
            if isinstance(chunk.X, Sparse):
                begin, end = chunk.X.indptr[chunk.first], chunk.X.indptr[chunk.last]
                counts = np.diff(chunk.X.indptr[chunk.first : chunk.last + 1])
                owner = np.repeat(np.arange(len(counts)), counts)
                values = chunk.X.data[begin:end].astype(np.float64)
                squares: Any = np.bincount(owner, weights=values * values, minlength=len(counts))
            else:
                part = chunk.X[chunk.first : chunk.last]
                squares = np.einsum("ij,ij->i", part, part, dtype=np.float64)
            if used.any():
                largest = max(largest, float(squares[used].max()))
        return float(np.sqrt(largest))

    def _compute_scores(self, coef: Floats, intercept: float, scores: Floats) -> Floats:
        coef = np.ascontiguousarray(coef, dtype=np.float64)

        def work(chunk: Chunk) -> None:
            if isinstance(chunk.X, Sparse):
                kernels.csr_scores(
                    *chunk.X, coef, intercept, chunk.first, chunk.last, chunk.offset, scores
                )
            else:
                np.dot(chunk.X[chunk.first : chunk.last], coef, out=scores[chunk.span])
                scores[chunk.span] += intercept

        self._map(work)
        return scores

    def _transpose(self, vectors: Floats) -> Floats:
        """Return vectors @ X for a few vectors over rows, (k, n) -> (k, d)."""

        def work(chunk: Chunk) -> Floats:
            if isinstance(chunk.X, Sparse):
                out = np.zeros((len(vectors), self.n_features))
                kernels.csr_transpose(*chunk.X, vectors, chunk.first, chunk.last, chunk.offset, out)
                return out
            # np.dot lets other threads run meanwhile, which @ does not
            X = chunk.X[chunk.first : chunk.last]
            return np.array([np.dot(vector[chunk.span], X) for vector in vectors])

        return np.asarray(np.sum(self._map(work), axis=0))

    # ---- the model's rates and hinges ------------------------------------------------------------

    def set_anchor(self, coef: Floats, intercept: float) -> Floats:
        """Choose the live sides at this anchor; weight of the dead ones, (2, cells)."""
        self._compute_scores(coef, intercept, self.scores)
        return self.choose_sides()

    def choose_sides(self) -> Floats:
        """The same at the scores as they stand."""

        def work(chunk: Chunk) -> Floats:
            dead = np.zeros((2, self.n_cells))
            span = chunk.span
            kernels.choose_sides(
                self.scores, self.weight, self.cell, span.start, span.stop, self.live, dead
            )
            return dead

        dead: Floats = np.sum(self._map(work), axis=0)
        self.live_weight = self.cell_weight - dead
        # what rounding leaves of a cell without live rows is not weight
        self.live_weight[self.live_weight < 1e-12 * self.cell_weight] = 0.0
        return dead

    def scored(self, coef: Floats, intercept: float) -> ScoredRows:
        """Scores of the rows that take part."""
        scores = self._compute_scores(coef, intercept, np.empty(self.n_rows))
        used = self.cell >= 0
        return ScoredRows(scores[used], self.weight[used], self.cell[used])

    def _sum_by_cell(self, values: Floats) -> Floats:
        used = self.cell >= 0
        return np.bincount(
            self.cell[used], weights=(self.weight * values)[used], minlength=self.n_cells
        ).astype(np.float64)

    def ramp_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sum per cell of weight * ramp(z)."""
        scores = self._compute_scores(coef, intercept, np.empty(self.n_rows))
        return self._sum_by_cell(np.clip(0.5 + scores, 0.0, 1.0))

    def decision_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sum per cell of weight * [z > 0]."""
        scores = self._compute_scores(coef, intercept, np.empty(self.n_rows))
        return self._sum_by_cell((scores > 0).astype(np.float64))

    def hinge_sums(self, coef: Floats, intercept: float) -> Floats:
        """Sums (2, cells) of weight * hinge over the live terms."""
        scores = self._compute_scores(coef, intercept, self.scores)

        def work(chunk: Chunk) -> Floats:
            out = np.zeros((2, self.n_cells))
            span = chunk.span
            kernels.hinge_sums(
                scores, self.weight, self.cell, self.live, span.start, span.stop, out
            )
            return out

        return np.asarray(np.sum(self._map(work), axis=0), dtype=np.float64)

    def proximal(self) -> MemoryProximalTerms:
        """Return the terms as proximal hinges: the same object, with its centres, every time."""
        if self._proximal is None:
            self._proximal = MemoryProximalTerms(self)
        return self._proximal

    def split_terms(self) -> MemorySplitTerms:
        """Return the terms with copies of their scores: the same object every time."""
        if self._split is None:
            self._split = MemorySplitTerms(self)
        return self._split

    # ---- the state of the interior-point method ----------------------------------------------

    def begin(self, coef: Floats, intercept: float, ceiling: Floats, barrier: float) -> None:
        """Put the state of every term on the central path of its score."""
        if self._state is None:
            self._state = self._allocate()
        self._begun = True
        hinge, slack, dual, codual, *_, first_order, second_order = self._state
        first_order[:] = 0.0
        second_order[:] = 0.0
        scores = self._compute_scores(coef, intercept, self.scores)
        self._map(
            lambda chunk: kernels.central_state(
                scores, self.cell, self.live, ceiling, barrier,
                chunk.span.start, chunk.span.stop, hinge, slack, dual, codual,
            )
        )  # fmt: skip

    def _allocate(self) -> Floats:
        self._score_step = np.zeros(self.n_rows)
        return np.ones((8, 2, self.n_rows))

    @property
    def has_duals(self) -> bool:
        """Whether `begin` has put the terms on the central path."""
        return self._begun

    @property
    def _terms(self) -> Floats:
        if self._state is None or not self._begun:
            raise RuntimeError("begin() comes before a step of the interior-point method")
        return self._state

    def curvature(self, ceiling: Floats, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums; ``cross`` has one row per wanted (side, cell), in C order."""
        hinge, slack, dual, codual, factors, *_ = self._terms
        curvature = np.zeros(self.n_rows)

        def measure(chunk: Chunk) -> Floats:
            inverse = np.zeros((2, self.n_cells))
            kernels.term_curvature(
                self.weight, self.cell, self.live, ceiling, chunk.span.start, chunk.span.stop,
                hinge, slack, dual, codual, curvature, factors, inverse,
            )  # fmt: skip
            return inverse

        inverse: Floats = np.sum(self._map(measure), axis=0)
        return self._second_order(curvature, factors, self._by_side(factors), inverse, wanted)

    def _by_side(self, factors: Floats) -> Floats:
        """Sum (2, cells) of a number a term."""
        used = self.cell >= 0
        sums = [
            np.bincount(self.cell[used], weights=side[used], minlength=self.n_cells)
            for side in factors
        ]
        return np.array(sums)

    def _second_order(
        self,
        curvature: Floats,
        factors: Floats,
        cross_bias: Floats,
        inverse: Floats,
        wanted: npt.NDArray[np.bool_],
        largest_gram: int = 0,
    ) -> Curvature:
        bias = float(curvature.sum())
        gram = None
        if self.n_features <= (largest_gram or LARGEST_GRAM):
            gram, border = self._gram(curvature)
            diagonal = np.diagonal(gram)
        else:
            self._bent = BentRows(self, curvature)
            diagonal, border = self._bent.diagonal, self._bent.border
        slots = np.where(wanted, np.cumsum(wanted).reshape(wanted.shape) - 1, -1)
        return Curvature(
            gram, diagonal, border, bias, self._by_cell(factors, slots),
            cross_bias, inverse,
        )  # fmt: skip

    # ---- the smooth hinge ------------------------------------------------------------------------

    def smooth(self, ceiling: Floats, barrier: float, step: float = 0.0) -> Smooth:
        """Sums over terms on the path of the anchor's scores, or of scores along their step."""
        if self._state is None:
            self._state = self._allocate()
        smoothed = self._smoothed = self._state[6:].reshape(4, self.n_rows)

        def work(chunk: Chunk) -> Floats:
            sums = np.zeros(4 * self.n_cells + 1)
            by_cell = sums[1:].reshape(2, 2, self.n_cells)
            kernels.smooth_terms(
                self.scores, self._score_step, step, self.weight, self.cell, self.live, ceiling,
                barrier, chunk.span.start, chunk.span.stop, smoothed[0], smoothed[1], smoothed[2:],
                by_cell[0], by_cell[1], sums[:1],
            )  # fmt: skip
            return sums

        sums = np.asarray(np.sum(self._map(work), axis=0), dtype=np.float64)
        hinges, self._inverse = sums[1:].reshape(2, 2, self.n_cells)
        return Smooth(hinges, self._inverse, float(sums[0]))

    def smooth_gradient(self) -> tuple[Floats, float]:
        """Sums of sign * dual * (x, 1) at the point that `smooth` was last asked about."""
        gradient = self._smooth[:1]
        return self._transpose(gradient)[0], float(gradient.sum())

    def smooth_curvature(self, wanted: npt.NDArray[np.bool_]) -> Curvature:
        """Second-order sums at the point that `smooth` was last asked about."""
        curvature, factors = self._smooth[1], self._smooth[2:]
        cross_bias = self._by_side(factors)
        return self._second_order(curvature, factors, cross_bias, self._inverse, wanted)

    def smooth_direction(self, coef: Floats, intercept: float) -> None:
        """Compute the step of the scores that belongs to this step of the model."""
        self._compute_scores(coef, intercept, self._score_step)

    def smooth_move(self, step: float) -> None:
        """Move the scores along their step."""
        self.scores += step * self._score_step

    @property
    def _smooth(self) -> Floats:
        if self._smoothed is None:
            raise RuntimeError("smooth() comes before its gradient and its curvature")
        return self._smoothed

    def curvature_product(self, vector: Floats) -> Floats:
        """X' D X and its border by the bias, times a vector (d + 1,), for the last D measured.

        Rows whose curvature is negligible are counted in the diagonal only.
        """
        return self._bent.product(vector)

    def _gram(self, curvature: Floats) -> tuple[Floats, Floats]:
        """X' diag(curvature) X and X' curvature."""
        features = self.n_features
        # The number of partial sums depends on sizes alone, not on threads: same sums, same
        # rounding.
        groups = int(max(1, min(len(self.chunks), 4, GRAM_BYTES // (8 * features * features))))
        bounds = np.linspace(0, len(self.chunks), groups + 1).astype(int)
        negligible = NEGLIGIBLE * float(curvature.max(initial=0.0))

        def work(group: int) -> tuple[Floats, Floats]:
            total = np.zeros((features, features))
            border = np.zeros(features)
            for chunk in self.chunks[bounds[group] : bounds[group + 1]]:
                if isinstance(chunk.X, Sparse):
                    kernels.csr_gram(
                        *chunk.X, curvature, negligible,
                        chunk.first, chunk.last, chunk.offset, total, border,
                    )  # fmt: skip
                else:
                    _dense_gram(chunk, curvature, negligible, total, border)
            return total, border

        if groups > 1 and self.threads > 1:
            parts = list(self._executor().map(work, range(groups)))
        else:
            parts = [work(group) for group in range(groups)]
        total = parts[0][0]
        border = parts[0][1]
        for other, more in parts[1:]:
            total += other
            border += more
        diagonal = np.diagonal(total).copy()
        total += total.T.copy()
        np.fill_diagonal(total, diagonal)
        return total, border

    def _by_cell(self, factors: Floats, slots: npt.NDArray[np.int64]) -> Floats:
        """Sum of factor * x over the terms of every (side, cell) that has a slot."""
        count = int(slots.max(initial=-1)) + 1
        if count == 0:
            return np.zeros((0, self.n_features))

        groups = int(max(1, min(len(self.chunks), 4, GRAM_BYTES // (8 * count * self.n_features))))
        bounds = np.linspace(0, len(self.chunks), groups + 1).astype(int)

        def work(group: int) -> Floats:
            out = np.zeros((count, self.n_features))
            for chunk in self.chunks[bounds[group] : bounds[group + 1]]:
                rest = (factors, self.cell, slots, chunk.first, chunk.last, chunk.offset, out)
                if isinstance(chunk.X, Sparse):
                    kernels.csr_by_cell(*chunk.X, *rest)
                else:
                    kernels.dense_by_cell(chunk.X, *rest)
            return out

        return np.asarray(np.sum(self.in_threads(work, range(groups)), axis=0), dtype=np.float64)

    def target(self, ceiling: Floats, target: float) -> Target:
        """Right-hand side for complementarity products equal to target."""
        hinge, slack, dual, codual, _, _, first_order, second_order = self._terms
        out = np.zeros((1, self.n_rows))

        def work(chunk: Chunk) -> Floats:
            hinges = np.zeros((2, self.n_cells))
            kernels.newton_target(
                self.weight, self.cell, self.live, ceiling, target,
                chunk.span.start, chunk.span.stop, hinge, slack, dual, codual,
                first_order, second_order, out[0], hinges,
            )  # fmt: skip
            return hinges

        hinges = np.asarray(np.sum(self._map(work), axis=0), dtype=np.float64)
        return Target(self._transpose(out)[0], float(out.sum()), hinges)

    def direction(
        self,
        coef: Floats,
        intercept: float,
        ceiling: Floats,
        ceiling_step: Floats,
        target: float,
    ) -> StepLengths:
        """Store the direction of every term that belongs to this step of the model."""
        hinge, slack, dual, codual, hinge_step, dual_step, first_order, second_order = self._terms
        score_step = self._compute_scores(coef, intercept, self._score_step)

        def work(chunk: Chunk) -> Floats:
            sums = np.zeros(STEP_LEVELS + 3)
            kernels.newton_step(
                score_step, self.weight, self.cell, self.live, ceiling, ceiling_step, target,
                chunk.span.start, chunk.span.stop, hinge, slack, dual, codual,
                first_order, second_order, hinge_step, dual_step,
                sums[:STEP_LEVELS], sums[STEP_LEVELS:],
            )  # fmt: skip
            return sums

        parts = np.array(self._map(work))
        sums = parts.sum(axis=0)
        blocked = np.cumsum(sums[:STEP_LEVELS])
        return StepLengths(
            float(parts[:, -1].max()),
            blocked,
            float(sums[STEP_LEVELS]),
            float(sums[STEP_LEVELS + 1]),
        )

    def correct(self, ceiling: Floats, ceiling_step: Floats) -> None:
        """Take the second-order terms of the stored direction into the next target."""
        *_, hinge_step, dual_step, first_order, second_order = self._terms
        self._map(
            lambda chunk: kernels.second_order_terms(
                self._score_step, self.cell, self.live, ceiling, ceiling_step,
                chunk.span.start, chunk.span.stop, hinge_step, dual_step,
                first_order, second_order,
            )
        )  # fmt: skip

    def advance(self, step: float, kept: float, ceiling: Floats, ceiling_step: Floats) -> float:
        """Move the terms along the stored direction; their complementarity there.

        Terms that would keep less than a share ``kept`` of a variable are held at that share.
        """
        hinge, slack, dual, codual, hinge_step, dual_step, first_order, second_order = self._terms

        def work(chunk: Chunk) -> float:
            sums = np.zeros(1)
            kernels.advance_state(
                step, kept, self._score_step, self.weight, self.cell, self.live, ceiling,
                ceiling_step, chunk.span.start, chunk.span.stop, self.scores, hinge, slack, dual,
                codual, hinge_step, dual_step, first_order, second_order, sums,
            )  # fmt: skip
            return float(sums[0])

        return float(np.sum(self._map(work)))

    def dual_point(self, ceiling: Floats) -> DualPoint:
        """Sums of the current dual point, clipped to [0, ceiling]."""
        point, totals = self._dual_terms(ceiling)
        return DualPoint(self._transpose(point), totals)

    def _dual_terms(self, ceiling: Floats) -> tuple[Floats, Floats]:
        _, _, dual, *_ = self._terms
        point = np.zeros((2, self.n_rows))

        def work(chunk: Chunk) -> Floats:
            totals = np.zeros(2)
            kernels.dual_terms(
                self.weight, self.cell, self.live, ceiling, chunk.span.start, chunk.span.stop,
                dual, point, totals,
            )  # fmt: skip
            return totals

        totals = np.asarray(np.sum(self._map(work), axis=0), dtype=np.float64)
        return point, totals


def _dense_gram(
    chunk: Chunk, curvature: Floats, negligible: float, total: Floats, border: Floats
) -> None:
    """Add the upper triangle of a dense chunk's X' D X, a buffer of scaled rows at a time."""
    rows = max(16, GRAM_BUFFER // max(1, chunk.X.shape[1]))
    product = np.empty_like(total)
    for first in range(chunk.first, chunk.last, rows):
        last = min(first + rows, chunk.last)
        weights = curvature[chunk.offset + first : chunk.offset + last]
        kept = weights > negligible
        if not kept.any():
            continue
        part = chunk.X[first:last]
        if not kept.all():
            part, weights = part[kept], weights[kept]
        scaled = np.asarray(part * np.sqrt(weights)[:, None], dtype=np.float64)
        border += np.dot(weights, part)
        # NumPy sees that both factors are one matrix (dsyrk), and lets other threads run meanwhile,
        # which SciPy's wrappers of BLAS do not
        total += np.triu(np.dot(scaled.T, scaled, out=product))
