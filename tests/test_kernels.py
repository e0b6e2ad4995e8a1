"""The compiled loops against loops over rows, and against the equations that they solve.

Everything here is small: the file also runs with NUMBA_DISABLE_JIT=1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ratebound import kernels
from reference import naive

Floats = NDArray[np.float64]
SEEDS = range(6)
EPS = float(np.finfo(np.float64).eps)

# ------------------------------------------------------------------------ the central path


def central_pair(u: float, ceiling: float, barrier: float) -> tuple[Decimal, Decimal]:
    """Hinge and slack to 300 digits: h > max(0, u) with T h (h - u) = mu (2 h - u)."""
    with localcontext() as context:
        context.prec = 700
        T, mu, exact = Decimal(ceiling), Decimal(barrier), Decimal(u)
        root = (T * T * exact * exact + 4 * mu * mu).sqrt()
        hinge = (T * exact + 2 * mu + root) / (2 * T)
        return hinge, hinge - exact


POSITIVE = st.floats(-14.0, 6.0).map(lambda exponent: 10.0**exponent)
ANY_SCORE = (
    st.floats(-3.0, 3.0)
    | st.floats(-1e8, 1e8)
    | st.sampled_from([0.0, 0.5, 1e-300, -1e-300, 1e-9, -1e-9, 1e12, -1e12])
)


@settings(max_examples=150)
@given(u=ANY_SCORE, ceiling=POSITIVE, barrier=POSITIVE)
def test_central_hinge_loses_no_digits(u: float, ceiling: float, barrier: float) -> None:
    hinge, slack = kernels.central_hinge(u, ceiling, barrier)
    exact_hinge, exact_slack = central_pair(u, ceiling, barrier)
    assert abs(Decimal(float(hinge)) / exact_hinge - 1) < 8 * EPS
    assert abs(Decimal(float(slack)) / exact_slack - 1) < 8 * EPS


def test_central_hinge_tends_to_the_hinge() -> None:
    for u in (-2.0, -1e-3, 1e-3, 2.0):
        hinge, slack = kernels.central_hinge(u, 1.0, 1e-14)
        assert hinge == pytest.approx(max(0.0, u), abs=1e-10)
        assert slack == pytest.approx(max(0.0, -u), abs=1e-10)
    assert kernels.central_hinge(0.0, 2.0, 0.5) == pytest.approx((0.5, 0.5))


# --------------------------------------------------------------------------- terms of rows

ABSENT = -7.0  # what is written where a kernel must not write
N, CELLS = 14, 4
FIRST, LAST = 2, 12  # the rows that the kernels are asked for; the others are someone else's


@dataclass
class Terms:
    """Rows with the interior-point state of their terms, as the kernels hold it."""

    scores: Floats
    weights: Floats
    cells: NDArray[np.int32]
    live: NDArray[np.uint8]
    ceiling: Floats
    score_step: Floats
    ceiling_step: Floats
    target: float
    first_order: Floats
    second_order: Floats
    hinge: Floats = field(default_factory=lambda: np.empty(0))
    slack: Floats = field(default_factory=lambda: np.empty(0))
    dual: Floats = field(default_factory=lambda: np.empty(0))
    codual: Floats = field(default_factory=lambda: np.empty(0))
    hinge_step: Floats = field(default_factory=lambda: np.empty(0))
    dual_step: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def state(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.hinge, self.slack, self.dual, self.codual

    def present(self, first: int = FIRST, last: int = LAST) -> Iterator[tuple[int, int]]:
        """(side, row) of the terms that take part."""
        for i in range(first, last):
            for side in range(2):
                if self.live[i] & (1 << side) and self.ceiling[side, self.cells[i]] > 0.0:
                    yield side, i

    def taking_part(self) -> NDArray[np.bool_]:
        mask = np.zeros((2, len(self.scores)), dtype=bool)
        for side, i in self.present():
            mask[side, i] = True
        return mask


def random_terms(seed: int, n: int = N) -> Terms:
    """Random interior terms: hinge - slack = 1/2 ± z and dual + codual = ceiling, off centre."""
    rng = np.random.default_rng([seed, 11])
    cells = rng.integers(0, CELLS, size=n).astype(np.int32)
    cells[rng.random(n) < 0.2] = -1
    live = np.where(cells >= 0, rng.integers(0, 4, size=n), 0).astype(np.uint8)
    live[3], cells[3] = 3, 0  # one row with both sides, one that takes no part
    live[4], cells[4] = 0, -1
    ceiling = rng.uniform(0.2, 3.0, size=(2, CELLS))
    ceiling[seed % 2, 2] = 0.0
    scores = rng.normal(size=n)
    terms = Terms(
        scores=scores,
        weights=rng.uniform(0.3, 2.0, size=n),
        cells=cells,
        live=live,
        ceiling=ceiling,
        score_step=rng.normal(size=n),
        ceiling_step=rng.normal(scale=0.3, size=(2, CELLS)) * (ceiling > 0.0),
        target=0.05,
        first_order=rng.normal(scale=0.02, size=(2, n)),
        second_order=rng.normal(scale=0.02, size=(2, n)),
    )
    terms.hinge, terms.slack, terms.dual, terms.codual, terms.hinge_step, terms.dual_step = (
        np.full((2, n), ABSENT) for _ in range(6)
    )
    for side, i in terms.present(0, n):
        u = 0.5 + (scores[i] if side == 0 else -scores[i])
        terms.slack[side, i] = max(0.0, -u) + rng.exponential(0.3) + 1e-3
        terms.hinge[side, i] = u + terms.slack[side, i]
        terms.dual[side, i] = rng.uniform(0.02, 0.98) * ceiling[side, cells[i]]
        terms.codual[side, i] = ceiling[side, cells[i]] - terms.dual[side, i]
    return terms


@pytest.fixture(params=SEEDS)
def terms(request: pytest.FixtureRequest) -> Terms:
    return random_terms(request.param)


def repeated(terms: Terms) -> tuple[Terms, Terms]:
    """The terms with all weights doubled, and with every row written twice."""
    doubled = replace(terms, weights=2.0 * terms.weights)
    by_row = {
        name: np.repeat(value, 2, axis=-1)
        for name, value in vars(terms).items()
        if name not in ("ceiling", "ceiling_step", "target")
    }
    return doubled, replace(terms, **by_row)


def u_of(terms: Terms, side: int, i: int) -> float:
    return 0.5 + float(terms.scores[i] if side == 0 else -terms.scores[i])


# ------------------------------------------------------------------------ kernels, called


def curvature_of(terms: Terms, first: int, last: int) -> tuple[Floats, Floats, Floats]:
    curvature = np.full(len(terms.scores), ABSENT)
    factors = np.full((2, len(terms.scores)), ABSENT)
    inverse = np.zeros((2, CELLS))
    kernels.term_curvature(
        terms.weights, terms.cells, terms.live, terms.ceiling, first, last,
        *terms.state, curvature, factors, inverse,
    )  # fmt: skip
    return curvature, factors, inverse


def target_of(terms: Terms, first: int, last: int) -> tuple[Floats, Floats]:
    out = np.full(len(terms.scores), ABSENT)
    hinges = np.zeros((2, CELLS))
    kernels.newton_target(
        terms.weights, terms.cells, terms.live, terms.ceiling, terms.target, first, last,
        *terms.state, terms.first_order, terms.second_order, out, hinges,
    )  # fmt: skip
    return out, hinges


def step_of(terms: Terms, first: int, last: int, levels: int = 16) -> tuple[Floats, Floats]:
    """Write the steps of the terms; blocked weights and (linear, quadratic, steepest)."""
    blocked, sums = np.zeros(levels), np.zeros(3)
    kernels.newton_step(
        terms.score_step, terms.weights, terms.cells, terms.live, terms.ceiling,
        terms.ceiling_step, terms.target, first, last, *terms.state,
        terms.first_order, terms.second_order, terms.hinge_step, terms.dual_step, blocked, sums,
    )  # fmt: skip
    return blocked, sums


def advance(terms: Terms, step: float, kept: float, first: int, last: int) -> float:
    sums = np.zeros(1)
    kernels.advance_state(
        step, kept, terms.score_step, terms.weights, terms.cells, terms.live, terms.ceiling,
        terms.ceiling_step, first, last, terms.scores, *terms.state, terms.hinge_step,
        terms.dual_step, terms.first_order, terms.second_order, sums,
    )  # fmt: skip
    return float(sums[0])


def steps_in_full(terms: Terms, side: int, i: int) -> tuple[float, float, float, float]:
    """Steps of hinge, slack, dual and codual, the second and fourth from the definitions."""
    dh, dp = float(terms.hinge_step[side, i]), float(terms.dual_step[side, i])
    signed = float(terms.score_step[i] if side == 0 else -terms.score_step[i])
    return dh, dh - signed, dp, float(terms.ceiling_step[side, terms.cells[i]]) - dp


# --------------------------------------------------------------------- anchors and hinges


def anchor_rows() -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Scores about and exactly on the corners of the ramp, weights and cells."""
    scores = np.array([-2.0, -0.5, -0.5000001, -0.3, 0.0, 0.4999, 0.5, 0.500001, 3.0, 0.1, 0.7])
    weights = np.linspace(0.5, 1.5, len(scores))
    cells = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, -1, -1], dtype=np.int32)
    return scores, weights, cells


def test_choose_sides_is_the_majorizer() -> None:
    anchors, weights, cells = anchor_rows()
    live = np.full(len(anchors), 9, dtype=np.uint8)
    dead = np.zeros((2, 3))
    kernels.choose_sides(anchors, weights, cells, 1, len(anchors), live, dead)
    assert live[0] == 9  # not asked for
    expected = np.zeros((2, 3))
    for i in range(1, len(anchors)):
        if cells[i] < 0:
            assert live[i] == 0
            continue
        for score in (-1.3, -0.2, 0.0, 0.4, 1.7):
            positive = max(0.0, 0.5 + score) if live[i] & 1 else 1.0
            negative = max(0.0, 0.5 - score) if live[i] & 2 else 1.0
            assert positive == naive.positive_bound(score, anchors[i])
            assert negative == naive.negative_bound(score, anchors[i])
        for side in range(2):
            expected[side, cells[i]] += 0.0 if live[i] & (1 << side) else weights[i]
    np.testing.assert_allclose(dead, expected, rtol=1e-15)
    assert (dead > 0).sum() > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_hinge_sums_are_sums_of_hinges(seed: int) -> None:
    terms = random_terms(seed)
    out = np.full((2, CELLS), 0.25)  # added to what is there
    kernels.hinge_sums(terms.scores, terms.weights, terms.cells, terms.live, FIRST, LAST, out)
    expected = np.full((2, CELLS), 0.25)
    for i in range(FIRST, LAST):
        for side in range(2):
            if terms.live[i] & (1 << side):
                hinge = max(0.0, u_of(terms, side, i))
                expected[side, terms.cells[i]] += terms.weights[i] * hinge
    np.testing.assert_allclose(out, expected, rtol=1e-14)


# ----------------------------------------------------------------------------- CSR loops


@dataclass(frozen=True)
class Block:
    """A block of rows 5..16 among 20: its CSR arrays and the same numbers as a dense X."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    X: Floats
    offset: int = 5
    total: int = 20
    first: int = 1
    last: int = 10

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.indptr, self.indices, self.data

    @property
    def part(self) -> Floats:
        return self.X[self.first : self.last]

    @property
    def span(self) -> slice:
        return slice(self.offset + self.first, self.offset + self.last)


@pytest.fixture(params=[(np.int32, np.float64), (np.int64, np.float32)], ids=["32/64", "64/32"])
def block(request: pytest.FixtureRequest) -> Block:
    index, dtype = request.param
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 6)) * (rng.random((12, 6)) < 0.5)
    X[3] = 0.0
    matrix = sp.csr_array(X.astype(dtype))
    parts = (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(index),
        matrix.data,
    )
    for part in parts:
        part.flags.writeable = False
    return Block(*parts, X=X.astype(dtype).astype(np.float64))


def test_csr_scores(block: Block) -> None:
    coef = np.random.default_rng(1).normal(size=6)
    scores = np.full(block.total, ABSENT)
    kernels.csr_scores(*block.arrays, coef, 0.25, block.first, block.last, block.offset, scores)
    expected = np.full(block.total, ABSENT)
    expected[block.span] = block.part @ coef + 0.25
    np.testing.assert_allclose(scores, expected, rtol=1e-13, atol=1e-15)


def test_csr_transpose(block: Block) -> None:
    vectors = np.random.default_rng(2).normal(size=(3, block.total))
    vectors[:, block.offset + 2] = 0.0
    vectors[1, block.offset + 5] = 0.0
    out = np.ones((3, 6))
    kernels.csr_transpose(*block.arrays, vectors, block.first, block.last, block.offset, out)
    expected = 1.0 + vectors[:, block.span] @ block.part
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


def test_csr_gram_fills_the_upper_triangle(block: Block) -> None:
    curvature = np.random.default_rng(3).uniform(0.1, 2.0, size=block.total)
    curvature[block.offset + 4] = 1e-3  # negligible
    out, border = np.ones((6, 6)), np.ones(6)
    kernels.csr_gram(
        *block.arrays, curvature, 1e-3, block.first, block.last, block.offset, out, border
    )
    kept = np.where(curvature > 1e-3, curvature, 0.0)[block.span]
    gram = block.part.T @ (kept[:, np.newaxis] * block.part)
    np.testing.assert_allclose(out, 1.0 + np.triu(gram), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(border, 1.0 + block.part.T @ kept, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dense", [False, True])
def test_sums_by_cell(block: Block, dense: bool) -> None:
    rng = np.random.default_rng(4)
    factors = rng.normal(size=(2, block.total))
    factors[0, block.offset + 3] = 0.0
    cells = rng.integers(-1, 3, size=block.total).astype(np.int32)
    slots = np.array([[0, -1, 1], [-1, 2, -1]])
    out = np.ones((3, 6))
    rest = (factors, cells, slots, block.first, block.last, block.offset, out)
    if dense:
        kernels.dense_by_cell(block.X, *rest)
    else:
        kernels.csr_by_cell(*block.arrays, *rest)
    expected = np.ones((3, 6))
    for i in range(block.first, block.last):
        for side in range(2):
            cell = cells[block.offset + i]
            if cell >= 0 and slots[side, cell] >= 0:
                expected[slots[side, cell]] += factors[side, block.offset + i] * block.X[i]
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


# ------------------------------------------------------------- the interior-point method


def test_central_state_is_central_and_belongs_to_its_terms(terms: Terms) -> None:
    barrier = 0.03
    for array in terms.state:
        array[:] = ABSENT
    kernels.central_state(
        terms.scores, terms.cells, terms.live, terms.ceiling, barrier, FIRST, LAST, *terms.state
    )
    mask = terms.taking_part()
    for array in terms.state:
        assert (array[~mask] == ABSENT).all()
        assert (array[mask] > 0.0).all()
    hinge, slack, dual, codual = terms.state
    np.testing.assert_allclose((dual * slack)[mask], barrier, rtol=1e-14)
    np.testing.assert_allclose((codual * hinge)[mask], barrier, rtol=1e-14)
    for side, i in terms.present():
        assert hinge[side, i] - slack[side, i] == pytest.approx(u_of(terms, side, i), abs=1e-14)
        top = terms.ceiling[side, terms.cells[i]]
        assert dual[side, i] + codual[side, i] == pytest.approx(top, rel=1e-13)


def test_newton_step_solves_the_linearised_equations(terms: Terms) -> None:
    step_of(terms, FIRST, LAST)
    mask = terms.taking_part()
    assert mask.any() and not mask.all()
    assert (terms.hinge_step[~mask] == ABSENT).all()
    assert (terms.dual_step[~mask] == ABSENT).all()
    for side, i in terms.present():
        h, r, p, q = (float(array[side, i]) for array in terms.state)
        dh, dr, dp, dq = steps_in_full(terms, side, i)
        first = p * r + p * dr + r * dp + terms.first_order[side, i]
        second = q * h + q * dh + h * dq + terms.second_order[side, i]
        assert first == pytest.approx(terms.target, rel=1e-11)
        assert second == pytest.approx(terms.target, rel=1e-11)


def test_what_newtons_system_is_made_of_adds_up_to_its_step(terms: Terms) -> None:
    """The duals and hinges after the step are those that the sums foretold.

    The model's row of the system is sum(weight sign (dual + step)), a constraint's row
    sum(weight (hinge + step)): constants from newton_target, slopes from term_curvature.
    """
    curvature, factors, inverse = curvature_of(terms, FIRST, LAST)
    out, hinges = target_of(terms, FIRST, LAST)
    step_of(terms, FIRST, LAST)
    outside = [*range(FIRST), *range(LAST, N)]
    for array in (curvature, out, factors[0], factors[1]):
        assert (array[outside] == ABSENT).all()
    mask = terms.taking_part()[:, FIRST:LAST]
    assert (factors[:, FIRST:LAST][~mask] == 0.0).all()

    duals = np.zeros(N)
    new_hinges = np.zeros((2, CELLS))
    for side, i in terms.present():
        sign = 1.0 if side == 0 else -1.0
        dh, _, dp, _ = steps_in_full(terms, side, i)
        duals[i] += sign * terms.weights[i] * (terms.dual[side, i] + dp)
        new_hinges[side, terms.cells[i]] += terms.weights[i] * (terms.hinge[side, i] + dh)
    foretold_hinges = hinges - inverse * terms.ceiling_step
    for i in range(FIRST, LAST):
        foretold = out[i] + curvature[i] * terms.score_step[i]
        if terms.cells[i] >= 0:
            foretold += factors[:, i] @ terms.ceiling_step[:, terms.cells[i]]
            foretold_hinges[:, terms.cells[i]] += factors[:, i] * terms.score_step[i]
        assert duals[i] == pytest.approx(foretold, rel=1e-11, abs=1e-13)
        assert curvature[i] >= 0.0
    np.testing.assert_allclose(new_hinges, foretold_hinges, rtol=1e-11, atol=1e-13)


def test_complementarity_along_the_step(terms: Terms) -> None:
    _, (linear, quadratic, _) = step_of(terms, FIRST, LAST)

    def products(length: float) -> float:
        total = 0.0
        for side, i in terms.present():
            values = [array[side, i] for array in terms.state]
            steps = steps_in_full(terms, side, i)
            h, r, p, q = (v + length * d for v, d in zip(values, steps, strict=True))
            total += terms.weights[i] * (p * r + q * h)
        return total

    for length in (0.3, 1.0):
        along = products(0.0) + length * linear + length**2 * quadratic
        assert along == pytest.approx(products(length), rel=1e-12)


def test_blocked_counts_the_terms_that_a_step_pushes_out(terms: Terms) -> None:
    levels = 16
    blocked, (_, _, steepest) = step_of(terms, FIRST, LAST, levels)
    longest = {}
    for side, i in terms.present():
        values = [float(array[side, i]) for array in terms.state]
        steps = steps_in_full(terms, side, i)
        longest[side, i] = min(
            (-v / d for v, d in zip(values, steps, strict=True) if d < 0.0), default=np.inf
        )
    assert any(length < 1.0 for length in longest.values())
    assert 1.0 / steepest == pytest.approx(min(longest.values()), rel=1e-12)
    for k in range(levels):
        reach = (k + 1) / levels
        pushed_out = sum(terms.weights[i] for (_, i), length in longest.items() if length < reach)
        assert blocked[: k + 1].sum() == pytest.approx(pushed_out, rel=1e-12, abs=1e-14)


def test_a_step_that_blocks_nothing_leaves_the_sums_alone(terms: Terms) -> None:
    centred = replace(
        terms,
        score_step=np.zeros(N),
        ceiling_step=np.zeros((2, CELLS)),
        first_order=np.zeros((2, N)),
        second_order=np.zeros((2, N)),
    )
    kernels.central_state(
        terms.scores, terms.cells, terms.live, terms.ceiling, terms.target, FIRST, LAST,
        *terms.state,
    )  # fmt: skip
    blocked, sums = step_of(centred, FIRST, LAST)
    assert not blocked.any()
    assert sums == pytest.approx([0.0, 0.0, 0.0], abs=1e-13)


def test_second_order_terms_are_products_of_steps(terms: Terms) -> None:
    step_of(terms, FIRST, LAST)
    before = terms.first_order.copy(), terms.second_order.copy()
    kernels.second_order_terms(
        terms.score_step, terms.cells, terms.live, terms.ceiling, terms.ceiling_step, FIRST, LAST,
        terms.hinge_step, terms.dual_step, terms.first_order, terms.second_order,
    )  # fmt: skip
    mask = terms.taking_part()
    for now, then in zip((terms.first_order, terms.second_order), before, strict=True):
        np.testing.assert_array_equal(now[~mask], then[~mask])
    for side, i in terms.present():
        dh, dr, dp, dq = steps_in_full(terms, side, i)
        assert terms.first_order[side, i] == pytest.approx(dp * dr, rel=1e-13)
        assert terms.second_order[side, i] == pytest.approx(dq * dh, rel=1e-13)


@pytest.mark.parametrize(("step", "kept"), [(0.05, 0.02), (0.7, 0.3), (1.0, 0.3)])
def test_advance_keeps_what_belongs_together(terms: Terms, step: float, kept: float) -> None:
    step_of(terms, FIRST, LAST)
    before = [array.copy() for array in terms.state]
    old_scores = terms.scores.copy()
    products = advance(terms, step, kept, FIRST, LAST)

    inside = np.zeros(N, dtype=bool)
    inside[FIRST:LAST] = True
    moved = old_scores + step * terms.score_step
    np.testing.assert_allclose(terms.scores, np.where(inside, moved, old_scores), rtol=1e-15)
    mask = terms.taking_part()
    for now, then in zip(terms.state, before, strict=True):
        np.testing.assert_array_equal(now[~mask], then[~mask])
    assert (terms.first_order[mask] == 0.0).all() and (terms.second_order[mask] == 0.0).all()

    total, held = 0.0, 0
    ceiling = terms.ceiling + step * terms.ceiling_step
    for side, i in terms.present():
        h, r, p, q = (float(array[side, i]) for array in terms.state)
        top = float(ceiling[side, terms.cells[i]])
        old = [float(array[side, i]) for array in before]
        free = [v + step * d for v, d in zip(old, steps_in_full(terms, side, i), strict=True)]
        least = [kept * v for v in old]
        assert min(h, r, p, q) > 0.0
        assert h - r == pytest.approx(u_of(terms, side, i), rel=0, abs=4 * EPS * (1 + h + r))
        assert p + q == pytest.approx(top, rel=4 * EPS)
        assert h >= least[0] * (1 - 4 * EPS) and r >= least[1] * (1 - 4 * EPS)
        assert p >= min(least[2], 0.5 * top) and q >= min(least[3], 0.5 * top)
        if free[0] >= least[0] and free[1] >= least[1]:
            assert (h, r) == pytest.approx(free[:2], rel=1e-14)
        else:  # the tighter of the two is held exactly, and no farther than that
            held += 1
            assert min(h / least[0], r / least[1]) == pytest.approx(1.0, rel=1e-13)
        if free[2] >= least[2] and free[3] >= least[3]:
            assert (p, q) == pytest.approx(free[2:], rel=1e-14)
        else:
            held += 1
        total += terms.weights[i] * (p * r + q * h)
    assert products == pytest.approx(total, rel=1e-13)
    assert held > 0 or step < 0.7


def test_advance_holds_a_dual_at_half_of_a_ceiling_that_falls_below_its_share() -> None:
    terms = random_terms(0)
    step_of(terms, FIRST, LAST)
    terms.ceiling_step = -0.9 * terms.ceiling
    terms.dual_step[:] = -0.95 * terms.dual
    advance(terms, 1.0, 0.3, FIRST, LAST)
    for side, i in terms.present():
        top = 0.1 * terms.ceiling[side, terms.cells[i]]
        p, q = terms.dual[side, i], terms.codual[side, i]
        assert p > 0.0 and q > 0.0
        assert p + q == pytest.approx(top, rel=1e-12)


def test_dual_terms_are_clipped_to_their_box(terms: Terms) -> None:
    terms.dual[:, FIRST:LAST] *= np.array([-1.0, 0.5, 1.0, 3.0, 50.0] * 2)
    out, totals = np.full((2, N), ABSENT), np.array([1.0, 2.0])
    kernels.dual_terms(
        terms.weights, terms.cells, terms.live, terms.ceiling, FIRST, LAST, terms.dual, out, totals
    )
    expected = np.full((2, N), ABSENT)
    expected[:, FIRST:LAST] = 0.0
    for side, i in terms.present():
        p = min(max(float(terms.dual[side, i]), 0.0), terms.ceiling[side, terms.cells[i]])
        expected[side, i] = terms.weights[i] * p
    np.testing.assert_allclose(out, expected, rtol=1e-15)
    sums = expected[:, FIRST:LAST].sum(axis=1)
    np.testing.assert_allclose(totals, np.array([1.0, 2.0]) + sums, rtol=1e-14)


def test_weight_two_is_the_row_twice(terms: Terms) -> None:
    doubled, twice = repeated(terms)
    rows, twice_rows = (FIRST, LAST), (2 * FIRST, 2 * LAST)

    _, _, inverse = curvature_of(doubled, *rows)
    np.testing.assert_allclose(inverse, curvature_of(twice, *twice_rows)[2], rtol=1e-13)
    _, hinges = target_of(doubled, *rows)
    np.testing.assert_allclose(hinges, target_of(twice, *twice_rows)[1], rtol=1e-13)
    blocked, sums = step_of(doubled, *rows)
    twice_blocked, twice_sums = step_of(twice, *twice_rows)
    np.testing.assert_allclose(blocked, twice_blocked, rtol=1e-13)
    np.testing.assert_allclose(sums, twice_sums, rtol=1e-12)
    np.testing.assert_array_equal(np.repeat(doubled.dual_step, 2, axis=1), twice.dual_step)
    products = advance(doubled, 0.5, 0.3, *rows)
    assert products == pytest.approx(advance(twice, 0.5, 0.3, *twice_rows), rel=1e-13)
    for one, two in zip(doubled.state, twice.state, strict=True):
        np.testing.assert_array_equal(np.repeat(one, 2, axis=1), two)


# ------------------------------------------------------------------------ coordinate ascent


def one_row_dual(dual: float, started: float, score: float, curvature: float, box: Floats) -> float:
    """What one variable adds to the dual, its score being `score` at `started`."""
    low, high = box
    conjugate = abs(dual - low - high) / 2 - (high - low) / 2
    return (dual - started) * score - curvature / 2 * (dual - started) ** 2 - conjugate


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dual_step_ascends_whether_exact_or_lengthened(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(200):
        box = np.array([-1.0, 1.0]) * random.exponential(size=2) * (random.random(2) < 0.7)
        started = float(random.uniform(*box))
        score, curvature = float(random.normal(scale=2)), float(random.exponential())
        exact, lengthened = (
            kernels.dual_step(started, score, curvature, *box, relaxation)
            for relaxation in (1.0, 1.7)
        )
        values = [
            one_row_dual(dual, started, score, curvature, box)
            for dual in (started, lengthened, exact, *np.linspace(*box, 50))
        ]
        assert box[0] <= lengthened <= box[1]
        assert abs(lengthened - started) >= abs(exact - started) * (1 - 8 * EPS)
        assert values[0] - 1e-14 <= values[1] <= values[2] + 1e-14
        assert max(values) <= values[2] + 1e-14


@pytest.mark.parametrize("seed", SEEDS)
def test_best_step_comes_close_to_the_best_of_a_grid(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, way = random.normal(size=(2, 40))
    high, low = random.exponential(size=40), -random.exponential(size=40)
    linear, quadratic = float(random.normal(scale=20)), float(random.exponential())

    def value(step: float) -> float:
        at = scores + step * way
        hinges = high * np.maximum(0.5 + at, 0.0) - low * np.maximum(0.5 - at, 0.0)
        return float(np.sum(hinges) + linear * step + quadratic * step * step / 2)

    grid = [value(step) for step in np.linspace(-1, 1, 2001)]
    step = kernels.best_step(scores, way, low, high, linear, quadratic, 8)
    assert -1 <= step <= 1
    assert value(step) - min(grid) <= 1e-2 * (max(grid) - min(grid))
