"""The augmented Lagrangian and what it asks of rows: loops, cvxpy with Clarabel, certificates."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from building import convex_problem, ramp_problem
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows import memory
from ratebound.rows.bent import BentRows
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.augmented_lagrangian import AugmentedLagrangian
from ratebound.solvers.base import Solution, Start, Status
from ratebound.solvers.choice import choose_solver
from ratebound.solvers.interior_point import InteriorPoint
from ratebound.solvers.newton import newton_system
from reference.convex import ConvexReference, solve_convex
from reference.instances import Instance, random_instance

Floats = NDArray[np.float64]


@pytest.fixture
def never_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    """X'DX is formed for no number of columns."""
    monkeypatch.setattr(memory, "LARGEST_GRAM", 0)
    monkeypatch.setattr("ratebound.rows.proximal.SPARSE_GRAM", 1)


def one_hot(seed: int, n: int = 200, sizes: tuple[int, ...] = (40, 25, 9, 4)) -> Instance:
    """Rows of one-hot categories, with cells as of labelled rows in two periods and of traffic.

    Minimise the errors of the labelled; recall in the second period and little churn of traffic.
    """
    rng = np.random.default_rng([seed, 11])
    X = np.hstack([np.eye(size)[(size * rng.random(n) ** 2).astype(np.int64)] for size in sizes])
    positive = X @ rng.normal(size=X.shape[1]) + 0.5 * rng.normal(size=n) > 0.4
    # cells: 0, 1 labels of the first period, 2, 3 of the second, 4, 5 deployed decisions
    period = rng.integers(0, 3, size=n)
    cell = (2 * period + positive).astype(np.intp)
    labelled = period < 2
    counts = np.bincount(cell, minlength=6).astype(float)
    table = np.zeros((2, 6))
    table[0, 3] = -1.0 / counts[3]
    table[1, 4], table[1, 5] = 1.0 / (counts[4] + counts[5]), -1.0 / (counts[4] + counts[5])
    cost = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0]) / labelled.sum()
    return Instance(
        X=X,
        weight=rng.integers(1, 3, size=n).astype(float),
        cell=cell,
        cost=cost,
        cost_constant=float(positive[labelled].sum()) / float(labelled.sum()),
        table=table,
        offset=np.array([0.7, counts[5] / (counts[4] + counts[5]) - 0.15]),
        alpha=1e-2,
        multiplier_bound=10.0,
        anchor_coef=np.zeros(X.shape[1]),
        anchor_intercept=0.0,
        fit_intercept=True,
    )


def assert_certified(solution: Solution, problem: ConvexProblem) -> None:
    """The bounds say what they claim of this model."""
    hinges = problem.rows.hinge_sums(solution.coef, solution.intercept)
    assert solution.upper == pytest.approx(problem.value(solution.coef, hinges), rel=1e-12)
    assert solution.lower <= solution.upper
    assert solution.gap == pytest.approx(
        problem.relative(solution.upper - solution.lower, solution.upper)
    )
    assert (solution.multipliers >= 0).all()
    assert (solution.multipliers <= problem.multiplier_bound).all()


def assert_brackets(
    solution: Solution, instance: Instance, reference: ConvexReference | None = None
) -> None:
    reference = reference or solve_convex(instance)
    rounding = 1e-7 * instance.relative_to(reference.optimum_upper)
    assert solution.lower <= reference.optimum_upper + rounding
    assert solution.upper >= reference.optimum_lower - rounding


# ---- what rows are asked -------------------------------------------------------------------------


def dense_terms(instance: Instance, width: float, coef: Floats, intercept: float) -> Any:
    """Proximal hinges around centres of 1/2, their shares and exact hinges, (2, n) each."""
    scores = instance.X @ coef + intercept
    u = np.array([0.5 + scores, 0.5 - scores])
    share = np.clip(0.5 + u / width, 0.0, 1.0)
    return share * u - 0.5 * width * (share - 0.5) ** 2, share, np.maximum(u, 0.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_proximal_sums_are_those_of_loops(sparse: bool, never_formed: None) -> None:
    instance = one_hot(0)
    rows = ramp_problem(instance, sparse=sparse).convex_at(instance.anchor_coef, 0.0).rows
    rng = np.random.default_rng(1)
    coef, step, width = rng.normal(size=78), rng.normal(size=78), 0.8
    ceiling = rng.uniform(0.5, 2.0, size=(2, 6))
    terms = rows.proximal()
    terms.begin(coef, 0.3, afresh=True)
    terms.direction(step, -0.2)
    smooth, slopes = terms.along(0.7, width)
    hinge, share, _ = dense_terms(instance, width, coef + 0.7 * step, 0.3 - 0.7 * 0.2)
    change = instance.X @ step - 0.2
    for side, sign in enumerate((1.0, -1.0)):
        for cell in range(6):
            here = instance.cell == cell
            weight = instance.weight[here]
            assert smooth[side, cell] == pytest.approx(weight @ hinge[side, here], rel=1e-12)
            expected = weight @ (sign * share[side, here] * change[here])
            assert slopes[side, cell] == pytest.approx(expected, rel=1e-10, abs=1e-12)
    terms.move(0.7)
    first = terms.gradient(ceiling, width)
    hinge, share, exact = dense_terms(instance, width, coef + 0.7 * step, 0.3 - 0.7 * 0.2)
    charged = ceiling[:, instance.cell] * instance.weight
    slope = charged[0] * share[0] - charged[1] * share[1]
    np.testing.assert_allclose(first.features, instance.X.T @ slope, rtol=1e-10, atol=1e-10)
    bend = np.sum(charged / width * ((share > 0) & (share < 1)), axis=0)
    second = terms.curvature(np.ones((2, 6), dtype=bool))
    assert second.bias == pytest.approx(bend.sum())
    np.testing.assert_allclose(second.diagonal, (instance.X**2).T @ bend, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(second.border, instance.X.T @ bend, rtol=1e-10, atol=1e-10)
    point = terms.dual_point(ceiling, width)
    np.testing.assert_allclose(point.features, (charged * share) @ instance.X, atol=1e-10)
    np.testing.assert_allclose(point.totals, (charged * share).sum(axis=1))
    for cell in range(6):
        here = instance.cell == cell
        sums = instance.weight[here] @ exact[:, here].T
        np.testing.assert_allclose(first.hinges[:, cell], sums, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("bent", [3, 60, 200])
def test_products_with_few_or_many_bent_rows(dtype: type, index: type, bent: int) -> None:
    rng = np.random.default_rng(bent)
    X = sp.random_array((200, 30), density=0.2, rng=rng, format="csr", dtype=dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rows = MemoryRows([(X, np.ones(200), np.zeros(200))], 1)
    curvature = np.zeros(200)
    curvature[rng.permutation(200)[:bent]] = rng.uniform(0.1, 1.0, size=bent)
    vector = rng.normal(size=31)
    full = np.column_stack([X.toarray().astype(np.float64), np.ones(200)])
    expected = full.T @ (curvature * (full @ vector))
    found = BentRows(rows, curvature)
    np.testing.assert_allclose(found.product(vector), expected, rtol=1e-10, atol=1e-10)
    square = full.T @ (curvature[:, np.newaxis] * full)
    np.testing.assert_allclose(found.diagonal, np.diag(square)[:-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.border, square[:-1, -1], rtol=1e-10, atol=1e-12)


def test_gathered_rows_of_a_dense_block_and_a_sparse_one() -> None:
    rng = np.random.default_rng(3)
    parts = [rng.normal(size=(50, 8)), rng.normal(size=(70, 8)) * (rng.random((70, 8)) < 0.4)]
    blocks = [
        (X, np.ones(n), np.zeros(n)) for X, n in ((parts[0], 50), (sp.csr_array(parts[1]), 70))
    ]
    curvature = rng.random(120) * (rng.random(120) < 0.15)
    full = np.column_stack([np.vstack(parts), np.ones(120)])
    vector = rng.normal(size=9)
    found = BentRows(MemoryRows(blocks, 1), curvature).product(vector)
    np.testing.assert_allclose(found, full.T @ (curvature * (full @ vector)), atol=1e-12)


def test_rows_too_straight_for_products_count_in_the_diagonal() -> None:
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    rows = MemoryRows([(X, np.ones(2), np.zeros(2))], 1)
    product = BentRows(rows, np.array([1.0, 1e-6])).product(np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(product, [1.0 + 9e-6, 2.0, 1.0], rtol=1e-15)


# ---- Newton's system -----------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("interior", [True, False])
def test_the_iterated_system_solves_the_dense_one(
    fit_intercept: bool, interior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = one_hot(2, n=300)
    problem = ramp_problem(instance, sparse=True).convex_at(instance.anchor_coef, 0.0)
    rng = np.random.default_rng(0)
    coef, wanted = 0.3 * rng.normal(size=78), np.ones((2, 6), dtype=bool)
    ceiling = problem.ceiling(np.array([0.5, 0.5]))
    diagonal = np.array([0.02, 0.03])
    right = rng.normal(size=78 + fit_intercept), rng.normal(size=2)
    solved = []
    for largest in (78, 0):
        monkeypatch.setattr(memory, "LARGEST_GRAM", largest)
        if interior:
            problem.rows.begin(coef, 0.1, ceiling, 1e-3)
            sums = problem.rows.curvature(ceiling, wanted)
        else:
            problem.rows.set_anchor(coef, 0.1)
            problem.rows.smooth(ceiling, 1e-3)
            sums = problem.rows.smooth_curvature(wanted)
        assert (sums.gram is None) == (largest == 0)
        system = newton_system(
            problem.rows, sums, 1e-2, problem.constraints, wanted, diagonal, fit_intercept, 1e-8
        )
        solved.append(system.solve(*right))
        if largest:
            gram, inverse = sums.gram, sums.inverse.ravel()
            cross, border = sums.cross, sums
    # the matrix of the step, written out
    assert gram is not None
    table = problem.constraints.toarray()
    size = 78 + fit_intercept
    matrix = np.zeros((size + 2, size + 2))
    matrix[:78, :78] = gram + 1e-2 * np.eye(78)
    matrix[size:, :78] = table @ cross
    if fit_intercept:
        matrix[78, :78] = border.border
        matrix[78, 78] = border.bias
        matrix[size:, 78] = table @ border.cross_bias.ravel()
    lower = np.tril(matrix)
    matrix = lower + np.tril(lower, -1).T
    matrix[size:, size:] = -(table * inverse) @ table.T - np.diag(diagonal)
    expected = np.linalg.solve(matrix, np.concatenate(right))
    for model, multipliers in solved:
        found = np.concatenate([model, multipliers])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


# ---- the solver ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sparse", [False, True])
def test_one_hot_rows_against_cvxpy(seed: int, sparse: bool, never_formed: None) -> None:
    instance = one_hot(seed)
    problem = convex_problem(instance, sparse=sparse)
    solution = AugmentedLagrangian().solve(problem, 1e-5)
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-5
    assert_certified(solution, problem)
    assert_brackets(solution, instance)


def test_both_solvers_agree_on_multipliers(never_formed: None) -> None:
    problem = convex_problem(one_hot(0), sparse=True)
    ours = AugmentedLagrangian().solve(problem, 1e-6)
    theirs = InteriorPoint().solve(problem, 1e-6)
    assert ours.status is Status.OPTIMAL
    assert ours.upper == pytest.approx(theirs.upper, rel=2e-6)
    assert theirs.multipliers.max() > 1e-2
    np.testing.assert_allclose(ours.multipliers, theirs.multipliers, rtol=0, atol=2e-3)


def test_random_problems_wherever_it_stops() -> None:
    wide = []
    for index in range(40):
        instance = random_instance(0, index)
        problem = convex_problem(instance, sparse=index % 2 == 1)
        reference = solve_convex(instance)
        for max_iter in (0, 1, 6, 500):
            solution = AugmentedLagrangian(max_iter).solve(problem, 1e-3)
            assert_certified(solution, problem)
            assert_brackets(solution, instance, reference)
            assert solution.iterations <= max_iter
        if solution.gap > 1e-3:
            wide.append((index, solution.gap))
    assert not wide


def test_a_stop_is_obeyed_with_a_certificate(never_formed: None) -> None:
    instance = one_hot(1)
    problem = convex_problem(instance, sparse=True)
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls == 4

    solution = AugmentedLagrangian().solve(problem, 1e-9, None, stop)
    assert solution.status is Status.INTERRUPTED
    assert calls == 4
    assert_certified(solution, problem)
    assert_brackets(solution, instance)


def rows_in(instance: Instance, cuts: list[int], threads: int, dtype: type) -> RampProblem:
    """The problem with its rows in several blocks."""
    X = sp.csr_array(instance.X.astype(dtype))
    bounds = [0, *cuts, len(instance.weight)]
    parts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    blocks = [(X[part], instance.weight[part], instance.cell[part]) for part in parts]
    problem = ramp_problem(instance, sparse=True)
    return replace(problem, rows=MemoryRows(blocks, len(instance.cost), threads=threads))


@pytest.mark.parametrize(
    ("cuts", "threads", "dtype"), [([], 3, np.float64), ([70, 71], 2, np.float32)]
)
def test_threads_blocks_and_precision_change_nothing(
    cuts: list[int], threads: int, dtype: type, never_formed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One-hot rows are exact in single precision; chunks of 16 rows make threads work."""
    instance = one_hot(3)
    zero = np.zeros(78)
    plain = AugmentedLagrangian().solve(
        ramp_problem(instance, sparse=True).convex_at(zero, 0.0), 1e-4
    )
    monkeypatch.setattr(memory, "CHUNK_ROWS", 16)
    other = AugmentedLagrangian().solve(
        rows_in(instance, cuts, threads, dtype).convex_at(zero, 0.0), 1e-4
    )
    assert other.upper == pytest.approx(plain.upper, rel=1e-6)
    np.testing.assert_allclose(other.coef, plain.coef, rtol=0, atol=1e-3)
    single = AugmentedLagrangian().solve(
        rows_in(instance, cuts, 1, dtype).convex_at(zero, 0.0), 1e-4
    )
    np.testing.assert_array_equal(single.coef, other.coef)
    assert single.lower == other.lower


def test_a_warm_start_at_the_next_anchor_is_shorter(never_formed: None) -> None:
    problem = ramp_problem(one_hot(0, n=600), sparse=True)
    solver = AugmentedLagrangian()
    first = solver.solve(problem.convex_at(np.zeros(78), 0.0), 1e-4)
    moved = problem.convex_at(first.coef, first.intercept)
    cold = solver.solve(moved, 1e-4)
    solver.solve(problem.convex_at(np.zeros(78), 0.0), 1e-4)
    moved = problem.convex_at(first.coef, first.intercept)
    start = Start(first.coef, first.intercept, first.multipliers, 0.1)
    warm = solver.solve(moved, 1e-4, start)
    assert warm.status is Status.OPTIMAL
    assert warm.upper == pytest.approx(cold.upper, rel=2e-4)
    assert warm.iterations < cold.iterations


# ---- which solver --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "sparse", "name"),
    [
        ((5000, 20), False, "interior-point"),
        ((50, 5000), False, "interior-point"),
        ((5000, 4000), True, "augmented-lagrangian"),
    ],
)
def test_auto_says_which_and_why(shape: tuple[int, int], sparse: bool, name: str) -> None:
    n, d = shape
    X: Any = sp.csr_array(shape) if sparse else np.zeros(shape)
    instance = one_hot(0, n=60)
    problem = ramp_problem(instance)
    rows = MemoryRows([(X, np.ones(n), np.zeros(n))], 6)
    solver, why = choose_solver("auto", replace(problem, rows=rows))
    assert why.startswith(name + ": ")
    assert f"{n:,} rows x {d:,} columns" in why
    kinds = {"interior-point": InteriorPoint, "augmented-lagrangian": AugmentedLagrangian}
    assert isinstance(solver, kinds[name])


def test_auto_leaves_few_long_rows_to_alternating_directions() -> None:
    """A row whose dual variable moves its own score far needs many of the cheap steps."""
    short = sp.csr_array(sp.eye_array(1100, 1200))
    named = []
    for X in (short, 100.0 * short):
        rows = MemoryRows([(X, np.ones(1100), np.zeros(1100))], 6)
        problem = replace(ramp_problem(one_hot(0, n=60)), rows=rows)
        named.append(choose_solver("auto", problem)[1].partition(":")[0])
    assert named == ["augmented-lagrangian", "alternating-directions"]
