"""Sums over rows against loops over rows, however the rows are stored, cut and ordered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ratebound.rows import memory
from ratebound.rows.base import Rows
from ratebound.rows.memory import MemoryRows
from ratebound.rows.span import SpanRows
from reference import naive

Floats = NDArray[np.float64]
CELLS = 3


@dataclass(frozen=True)
class Case:
    """Rows, and messages that a solver might send to them."""

    X: Floats
    weight: Floats
    cell: NDArray[np.int32]
    anchor: tuple[Floats, float]
    coef: Floats
    intercept: float
    ceiling: Floats
    step: tuple[Floats, float, Floats]

    @property
    def triple(self) -> tuple[Floats, Floats, NDArray[np.int32]]:
        return self.X, self.weight, self.cell

    def taken(self, rows: Any) -> Case:
        """These of the rows, in this order."""
        return replace(self, X=self.X[rows], weight=self.weight[rows], cell=self.cell[rows])


def make_case(seed: int, n: int = 40, d: int = 5) -> Case:
    """Numbers that float32 holds exactly; some weights are 0 and some cells -1."""
    rng = np.random.default_rng([seed, 3])
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(np.float32)
    weight = rng.uniform(0.2, 2.0, size=n) * (rng.random(n) < 0.85)
    cell = rng.integers(-1, CELLS, size=n).astype(np.int32)
    return Case(
        X=X.astype(np.float64),
        weight=weight,
        cell=cell,
        anchor=(rng.normal(scale=0.3, size=d), 0.1),
        coef=rng.normal(scale=0.5, size=d),
        intercept=-0.2,
        ceiling=rng.uniform(0.3, 2.0, size=(2, CELLS)),
        step=(rng.normal(scale=0.3, size=d), 0.2, rng.normal(scale=0.1, size=(2, CELLS))),
    )


def all_sums(rows: Rows, case: Case) -> dict[str, Any]:
    """Everything that a solver hears in one step of the interior-point method."""
    wanted = np.array([[True, False, True], [False, True, True]])
    coef_step, intercept_step, ceiling_step = case.step
    sums: dict[str, Any] = {
        "cell weight": rows.cell_weight,
        "largest norm": rows.largest_norm,
        "dead": rows.set_anchor(*case.anchor),
        "live": rows.live_weight,
        "ramps": rows.ramp_sums(case.coef, case.intercept),
        "decisions": rows.decision_sums(case.coef, case.intercept),
        "hinges": rows.hinge_sums(case.coef, case.intercept),
    }
    rows.begin(case.coef, case.intercept, case.ceiling, 0.1)

    def listen(when: str) -> None:
        point = rows.dual_point(case.ceiling)
        curvature = rows.curvature(case.ceiling, wanted)
        target = rows.target(case.ceiling, 0.03)
        for what in (point, curvature, target):
            for name, value in vars(what).items():
                if value is not None:  # what only some rows know
                    sums[f"{name} of {type(what).__name__} {when}"] = value

    def move(when: str) -> None:
        lengths = rows.direction(coef_step, intercept_step, case.ceiling, ceiling_step, 0.03)
        for name, value in vars(lengths).items():
            sums[f"{name} {when}"] = value

    listen("at first")
    move("predicted")
    rows.correct(case.ceiling, ceiling_step)
    listen("corrected")
    move("corrected")
    sums["products"] = rows.advance(0.8, 0.3, case.ceiling, ceiling_step)
    case = replace(case, ceiling=case.ceiling + 0.8 * ceiling_step)
    listen("at last")
    return sums


def assert_same(ours: dict[str, Any], theirs: dict[str, Any], rtol: float = 1e-11) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], rtol=rtol, atol=rtol, err_msg=name)


# --------------------------------------------------------------------- against plain loops


def test_sums_are_those_of_loops_over_rows() -> None:
    case = make_case(0)
    sums = all_sums(MemoryRows([case.triple], CELLS), case)
    expected = {
        name: np.zeros((2, CELLS)) for name in ("dead", "live", "hinges", "ramps", "decisions")
    }
    for x, weight, cell in zip(case.X, case.weight, case.cell, strict=True):
        if cell < 0:
            continue
        anchor = float(x @ case.anchor[0]) + case.anchor[1]
        z = float(x @ case.coef) + case.intercept
        for side, s in enumerate((1.0, -1.0)):
            if s * anchor > 0.5:
                expected["dead"][side, cell] += weight
            else:
                bound = naive.positive_bound if side == 0 else naive.negative_bound
                expected["live"][side, cell] += weight
                expected["hinges"][side, cell] += weight * bound(z, anchor)
            expected["ramps"][side, cell] += weight * naive.ramp(s * z)
            expected["decisions"][side, cell] += weight * naive.strict(s * z)
    assert expected["dead"].any()
    for name in ("dead", "live", "hinges"):
        np.testing.assert_allclose(sums[name], expected[name], rtol=1e-12, atol=1e-13)
    for name in ("ramps", "decisions"):
        np.testing.assert_allclose(sums[name], expected[name][0], rtol=1e-12)
    used = (case.cell >= 0) & (case.weight > 0)
    assert sums["largest norm"] == pytest.approx(np.linalg.norm(case.X[used], axis=1).max())


def test_second_order_sums_are_products_with_the_rows() -> None:
    """X' D X and its borders from the rows' own curvature, by differences of the target.

    target() is what the duals become; its derivative along a step of the model is the system.
    """
    case = make_case(1)
    rows = MemoryRows([case.triple], CELLS)
    rows.set_anchor(*case.anchor)
    rows.begin(case.coef, case.intercept, case.ceiling, 0.1)
    curvature = rows.curvature(case.ceiling, np.ones((2, CELLS), dtype=bool))
    np.testing.assert_array_equal(curvature.gram, curvature.gram.T)

    # On the central path the dual is a function of (coef, intercept, ceiling): differentiate it.
    def sums(coef: Floats, intercept: float, ceiling: Floats) -> Floats:
        rows.begin(coef, intercept, ceiling, 0.1)
        target = rows.target(ceiling, 0.1)
        return np.concatenate([target.features, [target.bias], target.hinges.ravel()])

    def slope(coef: Floats, intercept: float, ceiling: Floats, h: float = 1e-5) -> Floats:
        after = sums(
            case.coef + h * coef, case.intercept + h * intercept, case.ceiling + h * ceiling
        )
        before = sums(
            case.coef - h * coef, case.intercept - h * intercept, case.ceiling - h * ceiling
        )
        return (after - before) / (2 * h)

    d = len(case.coef)
    no_coef, no_ceiling = np.zeros(d), np.zeros((2, CELLS))
    cross = np.column_stack([curvature.cross, curvature.cross_bias.ravel()])
    for k in range(d):
        along = slope(np.eye(d)[k], 0.0, no_ceiling)
        system = [*curvature.gram[k], curvature.border[k], *cross[:, k]]
        np.testing.assert_allclose(along, system, rtol=1e-7, atol=1e-8)
    along = slope(no_coef, 1.0, no_ceiling)
    np.testing.assert_allclose(
        along, [*curvature.border, curvature.bias, *cross[:, -1]], rtol=1e-7, atol=1e-8
    )
    for slot in range(2 * CELLS):
        one = np.zeros(2 * CELLS)
        one[slot] = 1.0
        along = slope(no_coef, 0.0, one.reshape(2, CELLS))
        inverse = np.zeros(2 * CELLS)
        inverse[slot] = -curvature.inverse.ravel()[slot]
        np.testing.assert_allclose(along, [*cross[slot], *inverse], rtol=1e-7, atol=1e-8)


# --------------------------------------------------------------------------- storage of X

STORAGES: dict[str, Callable[[Floats], Any]] = {
    "dense, float32": lambda X: X.astype(np.float32),
    "dense, columns first": np.asfortranarray,
    "dense, every second row of more": lambda X: np.repeat(X, 2, axis=0)[::2],
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "CSR, float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "CSR, 64-bit indices": lambda X: _wide(sp.csr_array(X)),
    "CSC": sp.csc_array,
    "CSC, float32": lambda X: sp.csc_array(X.astype(np.float32)),
    "COO": sp.coo_array,
    "CSR, unsorted": lambda X: _unsorted(X),
    "CSR, duplicates": lambda X: _duplicated(X),
}


def _wide(matrix: Any) -> Any:
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    return matrix


def _unsorted(X: Floats) -> Any:
    """Every row's entries in falling order of their columns."""
    matrix = sp.csr_array(X)
    order = np.concatenate(
        [np.arange(b - 1, a - 1, -1) for a, b in itertools.pairwise(matrix.indptr)]
    ).astype(np.intp)
    arrays = matrix.data[order], matrix.indices[order], matrix.indptr
    return sp.csr_array(arrays, shape=X.shape)


def _duplicated(X: Floats) -> Any:
    """Every entry written as a quarter and three quarters of it."""
    matrix = sp.csr_array(X)
    data = (matrix.data[:, np.newaxis] * np.array([0.25, 0.75])).ravel()
    arrays = data, np.repeat(matrix.indices, 2), 2 * matrix.indptr
    return sp.csr_array(arrays, shape=X.shape)


@pytest.mark.parametrize("storage", STORAGES)
def test_storage_does_not_matter(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CHUNK_ROWS", 15)
    case = make_case(2)
    stored = STORAGES[storage](case.X)
    expected = all_sums(MemoryRows([case.triple], CELLS), case)
    assert_same(all_sums(MemoryRows([(stored, case.weight, case.cell)], CELLS), case), expected)


@pytest.mark.parametrize("storage", ["CSR, unsorted", "CSR, duplicates"])
def test_matrices_are_not_tidied_in_place(storage: str) -> None:
    case = make_case(3)
    matrix = STORAGES[storage](case.X)
    before = matrix.copy()
    all_sums(MemoryRows([(matrix, case.weight, case.cell)], CELLS), case)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(matrix, name), getattr(before, name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_x_is_not_copied(dtype: Any) -> None:
    case = make_case(4)
    X = case.X.astype(dtype)
    (chunk,) = MemoryRows([(X, case.weight, case.cell)], CELLS).chunks
    assert np.shares_memory(chunk.X, X)
    matrix = sp.csr_array(X)
    (chunk,) = MemoryRows([(matrix, case.weight, case.cell)], CELLS).chunks
    assert np.shares_memory(chunk.X.data, matrix.data)
    assert np.shares_memory(chunk.X.indices, matrix.indices)


@pytest.mark.parametrize("sparse", [False, True])
def test_read_only_inputs_are_read_and_left_alone(sparse: bool) -> None:
    case = make_case(5)
    X: Any = sp.csr_array(case.X) if sparse else case.X.copy()
    arrays = [X.data, X.indices, X.indptr] if sparse else [X]
    arrays += [case.weight, case.cell]
    before = [array.copy() for array in arrays]
    writeable = all_sums(MemoryRows([(X, case.weight, case.cell)], CELLS), case)
    assert all(array.flags.writeable for array in arrays)  # ours to write, still
    for array in arrays:
        array.flags.writeable = False
    read_only = all_sums(MemoryRows([(X, case.weight, case.cell)], CELLS), case)
    assert_same(read_only, writeable, rtol=0.0)
    for array, then in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, then)


# ----------------------------------------------------------------- blocks, chunks, threads


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("partial_sums", ["all", "one at a time"])
def test_threads_do_not_change_a_bit(
    sparse: bool, partial_sums: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CHUNK_ROWS", 7)
    if partial_sums == "one at a time":
        monkeypatch.setattr(memory, "GRAM_BYTES", 64)
    case = make_case(6, n=100)
    X: Any = sp.csr_array(case.X) if sparse else case.X
    expected = all_sums(MemoryRows([case.triple], CELLS, threads=1), case)
    one, two, four = (
        all_sums(MemoryRows([(X, case.weight, case.cell)], CELLS, threads=threads), case)
        for threads in (1, 2, 4)
    )
    assert_same(two, one, rtol=0.0)
    assert_same(four, one, rtol=0.0)
    assert_same(one, expected)


def test_gram_of_a_buffer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(7, n=100)
    expected = all_sums(MemoryRows([case.triple], CELLS), case)
    monkeypatch.setattr(memory, "GRAM_BUFFER", 16 * case.X.shape[1])
    assert_same(all_sums(MemoryRows([case.triple], CELLS), case), expected)


@settings(max_examples=40)
@given(
    order=st.permutations(range(30)),
    cuts=st.lists(st.integers(0, 30), max_size=3).map(sorted),
    sparse=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_order_and_blocks_do_not_matter(
    order: Sequence[int], cuts: list[int], sparse: list[bool]
) -> None:
    case = make_case(8, n=30)
    expected = all_sums(MemoryRows([case.triple], CELLS), case)
    edges = [0, *cuts, 30]
    blocks = []
    for i, (first, last) in enumerate(itertools.pairwise(edges)):
        part = case.taken(list(order[first:last]))
        blocks.append((sp.csr_array(part.X) if sparse[i] else part.X, part.weight, part.cell))
    assert_same(all_sums(MemoryRows(blocks, CELLS), case), expected)


# ---------------------------------------------------------------------- weights and cells


def test_rows_of_weight_zero_or_no_cell_are_not_there() -> None:
    case = make_case(9)
    gone = (case.weight == 0) | (case.cell < 0)
    assert gone.any()
    expected = all_sums(MemoryRows([case.taken(~gone).triple], CELLS), case)
    loud = case.X.copy()
    loud[gone] = 1e6
    for X in (loud, sp.csr_array(loud)):
        assert_same(all_sums(MemoryRows([(X, case.weight, case.cell)], CELLS), case), expected)


def test_weights_are_repetitions() -> None:
    case = make_case(10)
    times = np.random.default_rng(0).integers(0, 4, size=len(case.X))
    weighted = replace(case, weight=times.astype(np.float64))
    repeated = replace(case, weight=np.ones_like(case.weight)).taken(
        np.repeat(np.arange(len(times)), times)
    )
    assert_same(
        all_sums(MemoryRows([weighted.triple], CELLS), case),
        all_sums(MemoryRows([repeated.triple], CELLS), case),
    )


def test_an_anchor_far_out_leaves_no_weight_alive() -> None:
    case = make_case(11)
    rows = MemoryRows([case.triple], CELLS)
    for intercept, dead_side in ((1e3, 0), (-1e3, 1)):
        dead = rows.set_anchor(np.zeros(5), intercept)
        np.testing.assert_allclose(dead[dead_side], rows.cell_weight, rtol=1e-13)
        assert (rows.live_weight[dead_side] == 0.0).all()
        assert (dead[1 - dead_side] == 0.0).all()
        assert (rows.hinge_sums(np.zeros(5), 0.2)[dead_side] == 0.0).all()


def test_steps_before_a_beginning_say_so() -> None:
    case = make_case(12)
    with pytest.raises(RuntimeError, match="begin"):
        MemoryRows([case.triple], CELLS).target(case.ceiling, 0.1)


def test_as_many_rows_as_columns_are_their_own_coordinates() -> None:
    case = make_case(13)
    rows = MemoryRows([case.triple], CELLS)
    assert rows.compact() is rows
    np.testing.assert_array_equal(rows.lift(case.coef), case.coef)
    np.testing.assert_array_equal(rows.lower(case.coef), case.coef)


# -------------------------------------------------------- fewer rows than columns: the span


def wide_case(kind: str) -> Case:
    case = make_case(14, n=12, d=20)
    rng = np.random.default_rng(1)
    X = case.X.copy()
    if kind == "duplicates":
        X[6:9] = X[0:3]
    elif kind == "rank deficient":
        X = (rng.integers(-3, 4, size=(12, 3)) @ rng.integers(-3, 4, size=(3, 20))).astype(float)
    elif kind == "nearly rank deficient":
        X = rng.integers(-3, 4, size=(12, 3)) @ rng.integers(-3, 4, size=(3, 20))
        X = X + 1e-9 * rng.normal(size=X.shape)
    elif kind == "zero rows":
        X[::3] = 0.0
    elif kind == "all zero":
        X[:] = 0.0
    elif kind == "scales":
        X = X * 10.0 ** rng.uniform(-3, 3, size=20)
    return replace(case, X=X, weight=case.weight + (case.weight > 0))


KINDS = [
    "full rank",
    "duplicates",
    "rank deficient",
    "nearly rank deficient",
    "zero rows",
    "all zero",
    "scales",
]


def span_of(rows: MemoryRows) -> SpanRows:
    compact = rows.compact()
    assert isinstance(compact, SpanRows)
    assert rows.compact() is compact  # made once
    return compact


@pytest.mark.parametrize("kind", KINDS)
def test_span_has_the_scores_and_norms_of_its_models(kind: str) -> None:
    case = wide_case(kind)
    rows = MemoryRows([case.triple], CELLS)
    span = span_of(rows)
    used = (case.cell >= 0) & (case.weight > 0)
    rank = np.linalg.matrix_rank(case.X[used], tol=1e-7 * np.abs(case.X).max())
    assert span.n_features == max(rank, 1)
    (chunk,) = span.chunks

    coordinates = np.random.default_rng(2).normal(size=span.n_features)
    lifted = span.lift(coordinates)
    assert lifted.shape == (20,)
    if rank:
        scale = np.abs(case.X).max() * np.linalg.norm(lifted)
        scores = chunk.X[used] @ coordinates
        np.testing.assert_allclose(case.X[used] @ lifted, scores, atol=1e-9 * scale)
        assert np.linalg.norm(lifted) == pytest.approx(np.linalg.norm(coordinates), rel=1e-7)
        np.testing.assert_allclose(span.lower(lifted), coordinates, atol=1e-7)
    # What no row sees of a model is lost, its scores are not.
    lowered = span.lower(case.coef)
    np.testing.assert_allclose(
        case.X[used] @ span.lift(lowered), case.X[used] @ case.coef, rtol=1e-7, atol=1e-7
    )
    assert np.linalg.norm(lowered) <= np.linalg.norm(case.coef) * (1 + 1e-7)


@pytest.mark.parametrize("storage", ["dense", "CSR", "dense, float32", "blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_span_sums_are_the_sums_over_the_rows_themselves(kind: str, storage: str) -> None:
    case = wide_case(kind)
    blocks = {
        "dense": [case.triple],
        "dense, float32": [(case.X.astype(np.float32), case.weight, case.cell)],
        "CSR": [(sp.csr_array(case.X), case.weight, case.cell)],
        "blocks": [
            (sp.csr_array(case.X[:5]), case.weight[:5], case.cell[:5]),
            (case.X[5:], case.weight[5:], case.cell[5:]),
        ],
    }[storage]
    if storage == "dense, float32":
        case = replace(case, X=blocks[0][0].astype(np.float64))
    rows = MemoryRows(blocks, CELLS)
    dead = rows.set_anchor(*case.anchor)
    span = span_of(rows)
    assert dead.any() or kind == "all zero"
    np.testing.assert_array_equal(span.live_weight, rows.live_weight)

    plain = MemoryRows([case.triple], CELLS)
    plain.set_anchor(*case.anchor)
    coordinates = span.lower(case.coef)
    coef = span.lift(coordinates)
    np.testing.assert_allclose(
        span.hinge_sums(coordinates, case.intercept),
        plain.hinge_sums(coef, case.intercept),
        rtol=1e-10,
    )
    span.begin(coordinates, case.intercept, case.ceiling, 0.1)
    plain.begin(coef, case.intercept, case.ceiling, 0.1)
    ours, theirs = span.dual_point(case.ceiling), plain.dual_point(case.ceiling)
    assert ours.features.shape == (2, 20)
    size = np.abs(case.X).max()
    np.testing.assert_allclose(ours.features, theirs.features, rtol=1e-7, atol=1e-7 * size)
    np.testing.assert_allclose(ours.totals, theirs.totals, rtol=1e-7)

    # A new anchor is the parent's, and the span follows.
    rows.set_anchor(np.zeros(20), 0.0)
    np.testing.assert_array_equal(span.live_weight, rows.live_weight)
    plain.set_anchor(np.zeros(20), 0.0)
    np.testing.assert_allclose(
        span.hinge_sums(coordinates, 0.3), plain.hinge_sums(coef, 0.3), rtol=1e-10
    )
