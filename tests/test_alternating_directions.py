"""Alternating directions: copies where charge and pull balance, an exact model, true bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.datasets import make_classification

from building import convex_problem, ramp_problem
from ratebound import Goals, RateBoundSVC, error_rate, positive_rate, recall, score_gap
from ratebound.majorize import Majorization
from ratebound.ramp import RampProblem
from ratebound.rows import split as split_module
from ratebound.rows.memory import MemoryRows
from ratebound.rows.products import products_of_rows
from ratebound.solvers import AlternatingDirections, InteriorPoint
from ratebound.solvers.base import Start, Status
from ratebound.solvers.choice import choose_solver
from reference.instances import random_instance

TOLERANCE = 1e-4


def long_rows(n: int = 60, d: int = 400, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of words, some frequent and many rare, with noisy labels."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < rng.random(d) ** 6).astype(float)
    y = X @ rng.normal(size=d) + rng.normal(size=n) > 0
    return sp.csr_array(X), y.astype(np.int32)


def problem_of(
    X: Any, y: np.ndarray, alpha: float = 1e-2, most: float = 0.95, price: float = 10.0
) -> RampProblem:
    """Fewest errors with recall at least 0.9 and fewer decisions than there are positives."""
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    rows = MemoryRows([(X, weight, y)], 2)
    total, positives = rows.cell_weight.sum(), rows.cell_weight[1]
    table = sp.csr_array(np.array([[0.0, -1.0 / positives], [1.0 / total, 1.0 / total]]))
    return RampProblem.from_rates(
        rows, np.array([1.0, -1.0]) / total, 1.0, table,
        np.array([0.9, -most * positives / total]),
        alpha=alpha, multiplier_bound=price, fit_intercept=True,
    )  # fmt: skip


def anchored(problem: RampProblem) -> Any:
    return problem.convex_at(np.zeros(problem.rows.n_features), 0.0)


# ---- the rows' part --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_sparse_and_dense_rows(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, (17, 40)) * (rng.random((17, 40)) < 0.3)
    cell = np.where(np.arange(17) % 5 == 0, -1, 0)
    used = np.flatnonzero(cell >= 0)
    expected = np.tril(dense[used] @ dense[used].T)
    for X in (dense.astype(float), sp.csr_array(dense.astype(float))):
        halves = [(X[:9], np.ones(9), cell[:9]), (X[9:], np.ones(8), cell[9:])]
        found = products_of_rows(MemoryRows(halves, 1), used, dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.tril(found), expected)


def started(problem: Any, share: float = 5.0) -> Any:
    terms = problem.rows.split_terms()
    rng = np.random.default_rng(3)
    terms.begin(rng.normal(size=problem.rows.n_features), 0.1, afresh=True)
    terms.stiffen(share, problem.alpha)
    terms.dual = rng.normal(size=len(terms.used)) * 0.1 * terms.stiffness
    return terms


def test_copies_are_where_charge_and_pull_balance() -> None:
    problem = anchored(problem_of(*long_rows()))
    problem.rows.live[::7] = 1
    problem.rows.live[3::11] = 2
    terms = started(problem)
    terms.fit(1.0, True)
    ceiling = problem.ceiling(np.array([0.3, 0.7]))
    found = terms.split(ceiling)
    total = 0.0
    for i in range(len(terms.used)):
        high = terms.weight[i] * ceiling[0, terms.cell[i]] * bool(terms.live[i] & 1)
        low = terms.weight[i] * ceiling[1, terms.cell[i]] * bool(terms.live[i] & 2)

        def cost(z: float, i: int = i, high: float = high, low: float = low) -> float:
            pull = 0.5 * terms.stiffness[i] * (z - terms._targets[i]) ** 2
            return high * max(0.5 + z, 0.0) + low * max(0.5 - z, 0.0) + pull

        target = terms._targets[i]
        reach = (high + low) / terms.stiffness[i] + 1e-6
        lowest = scipy.optimize.minimize_scalar(
            cost, bounds=(target - reach, target + reach), method="bounded", options={"xatol": 1e-9}
        )
        assert cost(terms._places[i]) <= lowest.fun + 1e-12
        total += cost(terms._places[i])
    assert found.value == pytest.approx(total, rel=1e-12)


def test_bends_are_how_hinge_sums_fall_with_their_ceilings() -> None:
    problem = anchored(problem_of(*long_rows()))
    terms = started(problem)
    terms.fit(1.0, True)
    ceiling = np.array([[1.0, 0.3], [0.2, 0.8]])
    terms.stiffness[:] = 5.0 * ceiling.max()
    terms._targets = np.random.default_rng(0).uniform(-2.0, 2.0, len(terms.copy))
    lowest, middle, highest = terms.split(ceiling).bends
    assert middle.sum() > 0
    assert lowest.sum() > 0
    assert highest.sum() > 0
    for side in range(2):
        for cell in range(2):
            away = np.zeros((2, 2))
            away[side, cell] = 1e-7 * ceiling[side, cell]
            up, down = terms.split(ceiling + away).hinges, terms.split(ceiling - away).hinges
            slope = (up - down)[:, cell] / (2 * away[side, cell])
            own = (highest, lowest)[side][cell] + middle[cell]
            assert slope[side] == pytest.approx(-own, rel=1e-4)
            assert slope[1 - side] == pytest.approx(middle[cell], rel=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_fitted_model_solves_the_least_squares_problem(fit_intercept: bool) -> None:
    problem = anchored(problem_of(*long_rows()))
    terms = started(problem)
    for _ in range(5):  # the same targets each time: nothing has moved
        terms.fit(1.0, fit_intercept)
        coef = terms.model()
    X = problem.rows.matrix().X.toarray()
    targets = terms.copy - terms.dual / terms.stiffness
    border = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    ridge = problem.alpha * np.eye(border.shape[1])
    ridge[X.shape[1] :] = 0.0
    normal = ridge + border.T @ (terms.stiffness[:, np.newaxis] * border)
    expected = np.linalg.solve(normal, border.T @ (terms.stiffness * targets))
    np.testing.assert_allclose(coef, expected[: X.shape[1]], atol=1e-10)
    intercept = expected[X.shape[1]] if fit_intercept else 0.0
    assert terms.intercept == pytest.approx(intercept)
    # what is told of the scores beforehand is what they are
    np.testing.assert_allclose(X @ coef + terms.intercept, terms.scores, atol=1e-12)
    terms.fit(1.0, fit_intercept)
    np.testing.assert_allclose(X @ coef + terms.intercept, terms.scores, atol=1e-9)


def test_a_matrix_beyond_single_precision_is_made_softer() -> None:
    alike = np.tile(np.random.default_rng(0).normal(size=50), (40, 1))
    problem = anchored(problem_of(alike, (np.arange(40) % 3 > 0).astype(np.int32)))
    terms = problem.rows.split_terms()
    terms.stiffen(1e9, problem.alpha)
    assert terms.share < 1e9
    assert np.isfinite(terms._constant).all()


def test_too_many_rows_and_too_long_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = long_rows()
    long = anchored(problem_of(X * 1e30, y))
    with pytest.raises(ValueError, match="scale its columns"), np.errstate(over="ignore"):
        AlternatingDirections().solve(long, TOLERANCE)
    monkeypatch.setattr(split_module, "MOST_ROWS", 59)
    with pytest.raises(ValueError, match="60 rows are more than 59"):
        AlternatingDirections().solve(anchored(problem_of(X, y)), TOLERANCE)


# ---- the solver ------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-4, 1e-6])
def test_it_agrees_with_the_interior_point(alpha: float, tolerance: float) -> None:
    X, y = long_rows()
    found = AlternatingDirections().solve(anchored(problem_of(X, y, alpha)), tolerance)
    other = InteriorPoint().solve(anchored(problem_of(X, y, alpha)), 1e-7)
    assert found.status is Status.OPTIMAL
    assert found.lower <= other.upper
    assert found.upper >= other.lower
    assert found.upper - other.lower <= (tolerance + 1e-7) * max(found.upper, 2e-3)


def test_dense_and_sparse_rows_give_the_same_answer() -> None:
    X, y = long_rows()
    one = AlternatingDirections().solve(anchored(problem_of(X, y)), TOLERANCE)
    other = AlternatingDirections().solve(anchored(problem_of(X.toarray(), y)), TOLERANCE)
    assert one.upper == pytest.approx(other.upper, rel=2 * TOLERANCE)


def test_the_same_call_gives_the_same_answer() -> None:
    X, y = long_rows()
    one, other = (
        AlternatingDirections().solve(anchored(problem_of(X, y)), TOLERANCE) for _ in range(2)
    )
    np.testing.assert_array_equal(one.coef, other.coef)
    assert (one.upper, one.lower, one.iterations) == (other.upper, other.lower, other.iterations)


def test_a_near_start_without_an_earlier_solve_is_where_it_says() -> None:
    X, y = long_rows()
    first = AlternatingDirections().solve(anchored(problem_of(X, y)), TOLERANCE)
    near = Start(first.coef, first.intercept, first.multipliers, first.barrier)
    problem = anchored(problem_of(X, y))
    AlternatingDirections(0).solve(problem, TOLERANCE, near)
    expected = X @ first.coef + first.intercept
    np.testing.assert_allclose(problem.rows.split_terms().copy, expected)


def test_a_near_start_finds_what_was_left() -> None:
    problem = anchored(problem_of(*long_rows()))
    first = AlternatingDirections().solve(problem, TOLERANCE)
    near = Start(first.coef, first.intercept, first.multipliers, first.barrier)
    assert AlternatingDirections().solve(problem, TOLERANCE, near).iterations == 0
    far = Start(first.coef, first.intercept, first.multipliers)
    assert AlternatingDirections().solve(problem, TOLERANCE, far).iterations > 0


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 8, 9, 30])
def test_bounds_hold_at_whatever_step_it_is_stopped(steps: int) -> None:
    X, y = long_rows()
    problem = anchored(problem_of(X, y))
    found = AlternatingDirections(steps).solve(problem, 1e-12)
    other = InteriorPoint().solve(anchored(problem_of(X, y)), 1e-7)
    assert found.lower <= other.upper
    assert found.upper >= other.lower
    assert found.upper == pytest.approx(
        problem.value(found.coef, problem.rows.hinge_sums(found.coef, found.intercept))
    )


@pytest.mark.slow
@pytest.mark.parametrize("index", range(1, 120, 3))
def test_bounds_hold_on_whatever_the_generator_makes(index: int) -> None:
    instance = random_instance(43, index)
    instance = replace(instance, multiplier_bound=min(instance.multiplier_bound, 1e3))
    found = AlternatingDirections(400).solve(convex_problem(instance, sparse=index % 2 == 0), 1e-4)
    other = InteriorPoint().solve(convex_problem(instance), 1e-6)
    rounding = 1e-7 * instance.relative_to(other.upper)
    assert found.lower <= other.upper + rounding
    assert found.upper >= other.lower - rounding


def test_majorization_ends_where_that_of_the_interior_point_ends() -> None:
    X, y = long_rows(120, 300)
    ends = [
        Majorization(solver, 1e-4).run(problem_of(X, y))
        for solver in (AlternatingDirections(), InteriorPoint())
    ]
    assert all(end.converged for end in ends)
    assert max(end.violation for end in ends) <= 1e-4
    assert ends[0].objective <= 1.02 * ends[1].objective


@pytest.mark.parametrize("price", [1e1, 1e3, 1e6])
def test_goals_beyond_reach_take_multipliers_to_their_price(price: float) -> None:
    problem = anchored(problem_of(*long_rows(120, 300), most=0.5, price=price))
    found = AlternatingDirections(300).solve(problem, TOLERANCE)
    assert found.status is Status.OPTIMAL
    assert found.violation > 0.05
    assert found.multipliers.max() == pytest.approx(price)


def test_rows_of_nothing_and_one_row() -> None:
    y = np.array([0, 1, 1, 0, 1], dtype=np.int32)
    for X in (np.zeros((5, 8)), sp.csr_array((5, 8))):
        found = AlternatingDirections().solve(anchored(problem_of(X, y)), TOLERANCE)
        other = InteriorPoint().solve(anchored(problem_of(np.zeros((5, 8)), y)), TOLERANCE)
        assert found.gap <= TOLERANCE
        assert found.upper == pytest.approx(other.upper, rel=2 * TOLERANCE)
    instance = random_instance(5, 0)
    one = replace(instance, X=instance.X[:1], weight=instance.weight[:1], cell=instance.cell[:1])
    found = AlternatingDirections(50).solve(
        ramp_problem(one).convex_at(one.anchor_coef, one.anchor_intercept), 1e-3
    )
    assert found.lower <= found.upper


# ---- choosing it -----------------------------------------------------------------------------


def test_few_long_rows_choose_it_and_many_goals_do_not() -> None:
    X, y = long_rows(600, 900)
    problem = problem_of(X, y)
    solver, why = choose_solver("auto", problem)
    assert solver == AlternatingDirections()
    assert why.startswith("alternating-directions: of 600 rows x 900 columns")
    many = replace(
        problem,
        constraints=sp.csr_array(sp.vstack([problem.constraints] * 40)),
        bound=np.tile(problem.bound, 40),
    )
    assert not isinstance(choose_solver("auto", many)[0], AlternatingDirections)
    few = problem_of(*long_rows(100, 900))
    assert isinstance(choose_solver("auto", few)[0], InteriorPoint)


def test_by_name_in_the_estimator() -> None:
    X, y = make_classification(80, n_features=120, random_state=0)
    goals = Goals(error_rate(), [recall() >= 0.8, positive_rate() <= 0.55])
    fitted = RateBoundSVC(goals, solver="alternating-directions").fit(X, y)
    assert fitted.report_.met
    assert fitted.status_.solver.startswith("alternating-directions: asked for")
    with pytest.raises(ValueError, match="is for rows in memory"):
        RateBoundSVC(goals, solver="alternating-directions", kernel="rbf").fit(X, y)
    gap = Goals(error_rate(), [score_gap(by="group") <= 0.1])
    people = {"group": np.where(np.arange(80) % 2, "a", "b")}
    with pytest.raises(RuntimeError, match="interior-point"):
        RateBoundSVC(gap, solver="alternating-directions").fit(X, y, columns=people)
