"""The homotopy: its closed forms, its path, where it ends, and what happens where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from building import compiled, ramp_problem, ramp_problem_of_rates
from ratebound import (
    Goals,
    RateBoundSVC,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
)
from ratebound.homotopy import LAST_BARRIER, Homotopy, Tracked
from ratebound.majorize import Majorization
from ratebound.ramp import RampProblem
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.interior_point import InteriorPoint
from reference import naive
from reference.convex import solve_convex
from reference.instances import Instance, random_instance

Floats = NDArray[np.float64]

PLAIN = Majorization(InteriorPoint(), tol=1e-4, max_iter=30)
ALONG = replace(PLAIN, homotopy=Homotopy())


def two_classes(seed: int, n: int = 200, d: int = 4) -> Instance:
    """Errors of two noisy classes with recall at least 0.8; recall is ½ where one starts."""
    rng = np.random.default_rng([seed, 11])
    X = rng.normal(size=(n, d))
    positive = X @ rng.normal(size=d) + 0.7 * rng.normal(size=n) > 0.5
    return Instance(
        X=X,
        weight=np.ones(n),
        cell=positive.astype(np.intp),
        cost=np.array([1.0, -1.0]) / n,
        cost_constant=float(positive.mean()),
        table=np.array([[0.0, -1.0 / positive.sum()]]),
        offset=np.array([0.8]),
        alpha=1.0 / n,
        multiplier_bound=10.0,
        anchor_coef=np.zeros(d),
        anchor_intercept=0.0,
        fit_intercept=True,
    )


# ---- closed forms ----------------------------------------------------------------------------


def exact_terms(score: float, side: int, ceiling: float, barrier: float) -> list[Decimal]:
    """Hinge, dual, and the derivatives of dual by u, and of hinge by u and by -T, in 200 digits.

    The hinge is the root of T h (h - u) = μ (2h - u) above max(0, u), the dual μ / (h - u); the
    derivatives are those of the implicit function.
    """
    with localcontext() as context:
        context.prec = 400
        T, mu = Decimal(ceiling), Decimal(barrier)
        u = Decimal("0.5") + (Decimal(score) if side == 0 else -Decimal(score))
        half = (T * u + 2 * mu) / (2 * T)
        h = half + (half * half - mu * u / T).sqrt()
        r = h - u
        pull, push = mu / (r * r), mu / (h * h)
        return [h, mu / r, pull * push / (pull + push), pull / (pull + push), 1 / (pull + push)]


@settings(max_examples=60)
@given(
    st.floats(-30, 30) | st.floats(-1e6, 1e6),
    st.floats(-4, 4).map(lambda e: 10.0**e),
    st.floats(-8, 1).map(lambda e: 10.0**e),
    st.sampled_from([0, 1]),
)
def test_sums_are_the_closed_forms(score: float, top: float, barrier: float, side: int) -> None:
    rows = MemoryRows([(np.array([[1.0]]), np.array([2.0]), np.array([0]))], 1, threads=1)
    rows.set_anchor(np.zeros(1), 0.0)
    rows.scores[:] = score
    ceiling = np.zeros((2, 1))
    ceiling[side] = top
    sums = rows.smooth(ceiling, barrier)
    hinge, dual, bend, share, inverse = exact_terms(score, side, top, barrier)
    sign = 1 if side == 0 else -1
    gradient, bias = rows.smooth_gradient()
    wanted = ceiling > 0
    curvature = rows.smooth_curvature(wanted)
    for found, exact in (
        (sums.hinges[side, 0], 2 * hinge),
        (sums.inverse[side, 0], 2 * inverse),
        (gradient[0], 2 * sign * dual),
        (bias, 2 * sign * dual),
        (curvature.bias, 2 * bend),
        (curvature.cross[0, 0], 2 * sign * share),
    ):
        assert abs(Decimal(float(found)) / exact - 1) < Decimal("1e-13")
    assert sums.hinges[1 - side, 0] == 0.0


def some_rows(seed: int, *, sparse: bool, threads: int = 1, n: int = 60) -> MemoryRows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)
    cell = rng.integers(-1, 3, n)
    return MemoryRows(
        [(sp.csr_array(X) if sparse else X, rng.integers(1, 4, n).astype(float), cell)],
        3,
        threads=threads,
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_the_sums(seed: int, sparse: bool) -> None:
    """Gradient, slope, curvature and their cross sums against central differences."""
    rng = np.random.default_rng([seed, 5])
    rows = some_rows(seed, sparse=sparse)
    coef, intercept = 0.5 * rng.normal(size=3), 0.2
    step, bias_step = rng.normal(size=3), 0.7
    ceiling = rng.uniform(0.5, 2.0, size=(2, 3))
    barrier, width = 0.05, 1e-5
    wanted = np.ones((2, 3), dtype=bool)

    rows.set_anchor(coef, intercept)
    sums = rows.smooth(ceiling, barrier)
    features, bias = rows.smooth_gradient()
    curvature = rows.smooth_curvature(wanted)
    assert curvature.gram is not None
    rows.smooth_direction(step, bias_step)
    assert rows.smooth(ceiling, barrier).slope == pytest.approx(
        features @ step + bias * bias_step, rel=1e-10
    )
    ahead, behind = (rows.smooth(ceiling, barrier, s) for s in (width, -width))
    along = (ahead.slope - behind.slope) / (2 * width)
    vector = np.append(step, bias_step)
    whole = np.block(
        [
            [curvature.gram, curvature.border[:, None]],
            [curvature.border[None, :], np.array([[curvature.bias]])],
        ]
    )
    assert along == pytest.approx(vector @ whole @ vector, rel=1e-6)
    by_step = (ahead.hinges - behind.hinges) / (2 * width)
    cross = curvature.cross.reshape(2, 3, 3) @ step + curvature.cross_bias * bias_step
    np.testing.assert_allclose(by_step, cross, rtol=1e-6, atol=1e-8)
    for side, cell in np.ndindex(2, 3):
        bump = np.zeros((2, 3))
        bump[side, cell] = width
        up, down = rows.smooth(ceiling + bump, barrier), rows.smooth(ceiling - bump, barrier)
        by_ceiling = (up.hinges - down.hinges)[side, cell] / (2 * width)
        assert by_ceiling == pytest.approx(-sums.inverse[side, cell], rel=1e-6)


def test_moving_is_computing_scores_anew() -> None:
    rows = some_rows(0, sparse=True)
    coef, step = np.array([0.3, -0.2, 0.5]), np.array([2.0, 1.0, -1.0])
    rows.set_anchor(coef, 0.1)
    rows.smooth(np.ones((2, 3)), 0.1)
    rows.smooth_direction(step, 0.4)
    rows.smooth_move(0.5)
    dead = rows.choose_sides()
    np.testing.assert_allclose(dead, some_rows(0, sparse=True).set_anchor(coef + 0.5 * step, 0.3))


# ---- where it ends ---------------------------------------------------------------------------


def follow(problem: RampProblem) -> Tracked:
    tracked = Homotopy().run(problem)
    assert tracked.start is not None, tracked.stalled
    return tracked


@pytest.mark.parametrize("seed", range(4))
def test_it_ends_where_the_certified_problem_starts_centrally(seed: int) -> None:
    """There, before any iteration, bounds are certified to a tenth, and few iterations follow."""
    instance = two_classes(seed, n=2000)
    problem = ramp_problem(instance)
    start = follow(problem).start
    assert start is not None and start.barrier is not None
    assert LAST_BARRIER / 2 < start.barrier <= LAST_BARRIER
    convex = problem.convex_at(start.coef, start.intercept)
    solution = InteriorPoint(max_iter=0).solve(convex, 1e-12, start)
    assert solution.lower >= 0.9 * solution.upper
    assert InteriorPoint(max_iter=0).solve(convex, 1e-12).lower < 0.5 * solution.upper
    cold = InteriorPoint().solve(convex, 1e-4)
    warm = InteriorPoint().solve(convex, 1e-4, replace(start, barrier=1e-2))
    assert 2 * warm.iterations <= cold.iterations


@pytest.mark.parametrize("seed", range(6))
def test_majorization_from_there_is_as_good_as_from_zero(seed: int) -> None:
    instance = two_classes(seed)
    plain, along = (m.run(ramp_problem(instance)) for m in (PLAIN, ALONG))
    assert plain.converged and along.converged
    assert along.violation <= 1e-4
    assert along.objective <= 1.01 * plain.objective
    # and the referee's best of the last convex bound is no better than where it ended
    there = replace(
        instance,
        anchor_coef=along.coef,
        anchor_intercept=along.intercept,
        multiplier_bound=along.problem.multiplier_bound,
    )
    value = naive.ramp_value(there, along.coef.tolist(), along.intercept)
    assert solve_convex(there).optimum_lower >= value - 1e-3 * instance.relative_to(value)


@pytest.mark.parametrize("alpha", [1e-8, 1e-5, 1e-2, 1.0, 1e2])
def test_any_regulariser(alpha: float) -> None:
    instance = replace(two_classes(7), alpha=alpha)
    plain, along = (m.run(ramp_problem(instance)) for m in (PLAIN, ALONG))
    assert along.violation <= max(1e-4, plain.violation)
    # with a flat landscape the two may end in different valleys: neither is much deeper
    assert along.objective <= 1.05 * plain.objective


def test_columns_of_any_scale() -> None:
    instance = two_classes(3)
    scaled = replace(instance, X=instance.X * np.array([1e4, 1.0, 1e-3, 30.0]))
    tracked = follow(ramp_problem(scaled))
    fit = ALONG.run(ramp_problem(scaled))
    assert fit.converged and fit.violation <= 1e-4
    assert tracked.steps < 100


def groups_within(count: int) -> RampProblem:
    """Errors, with the positive rates of so many groups, which differ, within 0.05."""
    rng = np.random.default_rng(0)
    n = 3000
    X = rng.normal(size=(n, 4))
    group = rng.integers(0, count, n)
    X[:, 0] += 1.8 * group / count
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 1).astype(int)
    goals = Goals(error_rate(), [positive_rate(by="g").gap() <= 0.05])
    rates = compiled(goals, X, y, columns={"g": group})
    assert rates.table.shape[0] == count * (count - 1)
    return ramp_problem_of_rates(rates, alpha=1.0 / n, multiplier_bound=10.0)


@pytest.mark.parametrize("count", [4, 12, 24])
def test_families_of_pairs(count: int) -> None:
    problem = groups_within(count)
    assert follow(problem).steps < 150
    plain, along = PLAIN.run(problem), ALONG.run(problem)
    assert along.violation <= max(1e-4, plain.violation)
    assert along.objective <= 1.01 * plain.objective


def test_more_constraints_than_it_follows() -> None:
    tracked = Homotopy().run(groups_within(40))
    assert tracked.start is None and "1560 constraints" in tracked.stalled


# ---- invariances -----------------------------------------------------------------------------


def test_weights_mean_repetition() -> None:
    instance = two_classes(2, n=120)
    times = np.random.default_rng(0).integers(1, 4, 120)
    heavy = replace(instance, weight=times.astype(float))
    repeated = replace(
        instance,
        X=np.repeat(instance.X, times, axis=0),
        cell=np.repeat(instance.cell, times),
        weight=np.ones(times.sum()),
    )
    one, other = follow(ramp_problem(heavy)), follow(ramp_problem(repeated))
    assert one.start is not None and other.start is not None
    assert (one.steps, one.passes) == (other.steps, other.passes)
    np.testing.assert_allclose(one.start.coef, other.start.coef, rtol=1e-6)
    np.testing.assert_allclose(one.start.multipliers, other.start.multipliers, rtol=1e-6)


@pytest.mark.parametrize("name", ["ratio", "three goals"])
def test_rounding_does_not_grow_along_the_path(name: str, data_file: Callable[[str], Path]) -> None:
    """Sums over real rows in another order differ by rounding, which a path of steps multiplies."""
    data_file("a9a.train.libsvm.gz")
    from ratebound.datasets import load

    adult = load("adult")
    subject_to = {
        "ratio": [positive_rate(by="sex").ratio() >= 0.8],
        "three goals": [
            recall() >= 0.6,
            positive_rate() <= 0.25,
            false_positive_rate(by="sex").gap() <= 0.02,
        ],
    }[name]
    order = np.random.default_rng(0).permutation(len(adult.y))
    fits = [
        RateBoundSVC(Goals(error_rate(), subject_to), threshold="zero").fit(
            adult.X[rows], adult.y[rows], columns=adult.columns[rows]
        )
        for rows in (np.arange(len(adult.y)), order)
    ]
    one, other = (fit.history_[0].homotopy for fit in fits)
    assert one == other
    np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_threads_change_nothing(sparse: bool) -> None:
    instance = two_classes(0, n=30_000, d=3)  # several chunks
    starts = [follow(ramp_problem(instance, sparse=sparse, threads=t)).start for t in (1, 2, 3)]
    for start in starts[1:]:
        assert start is not None and starts[0] is not None
        np.testing.assert_array_equal(start.coef, starts[0].coef)
        assert start.intercept == starts[0].intercept
        np.testing.assert_array_equal(start.multipliers, starts[0].multipliers)


def test_fewer_rows_than_columns() -> None:
    instance = two_classes(4, n=40, d=90)
    fit = ALONG.run(ramp_problem(instance))
    assert "stalled" not in fit.history[0].homotopy
    assert fit.converged and fit.violation <= 1e-4


# ---- where there is no path ------------------------------------------------------------------


def test_where_it_stalls_majorization_starts_from_zero() -> None:
    instance = two_classes(1)
    stalled = replace(PLAIN, homotopy=Homotopy(max_iter=2)).run(ramp_problem(instance))
    plain = PLAIN.run(ramp_problem(instance))
    assert "stalled: not at its end after 2 Newton steps" in stalled.history[0].homotopy
    np.testing.assert_array_equal(stalled.coef, plain.coef)
    assert len(stalled.history) == len(plain.history)


def test_terms_of_one_sign_have_no_path() -> None:
    instance = two_classes(1)
    one_sided = replace(
        instance,
        cost=np.abs(instance.cost),
        table=np.zeros((0, 2)),
        offset=np.zeros(0),
    )
    tracked = Homotopy().run(ramp_problem(one_sided))
    assert tracked.start is None and tracked.stalled == "all terms are of one sign"
    assert ALONG.run(ramp_problem(one_sided)).objective <= 1e-9


def test_where_alpha_lets_no_score_differ() -> None:
    """All rows are decided alike: the best error is the share of the smaller class."""
    instance = replace(two_classes(1), alpha=1e3, table=np.zeros((0, 2)), offset=np.zeros(0))
    problem = ramp_problem(instance)
    share = instance.cell.mean()
    best = min(share, 1 - share)
    assert ALONG.run(problem).objective + problem.constant == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("index", [15, 51, 61])
def test_a_path_to_one_decision_for_all_is_given_up(index: int) -> None:
    """Once all live terms are of one sign the bias would leave for infinity."""
    problem = ramp_problem(random_instance(7, index))
    tracked = Homotopy().run(problem)
    assert tracked.start is None and "one decision for all rows" in tracked.stalled
    assert tracked.steps < 100
    along, plain = ALONG.run(problem), PLAIN.run(problem)
    np.testing.assert_array_equal(along.coef, plain.coef)


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_on_hard_problems_too_the_penalised_objective_never_rises(index: int) -> None:
    instance = random_instance(7, index)
    fit = replace(ALONG, max_iter=5).run(ramp_problem(instance, sparse=True))
    by_price: dict[tuple[int, float], list[float]] = {}
    for step in fit.history:
        assert step.lower <= step.upper + 1e-12 * abs(step.upper)
        by_price.setdefault((step.attempt, step.multiplier_bound), []).append(step.penalised)
    for values in by_price.values():
        assert (np.diff(values) <= 1e-12 * np.abs(values[1:])).all()


def test_a_stop_ends_it_where_it_stands() -> None:
    problem = ramp_problem(two_classes(0))
    tracked = Homotopy().run(problem, lambda: True)
    assert tracked.steps == 1 and tracked.start is not None


# ---- the estimator ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "goals",
    [
        Goals(error_rate(), [recall() >= 0.8, positive_rate() <= 0.6]),
        Goals(false_positive_rate(), [recall() >= 0.9]),
        Goals(positive_rate(), [recall() >= 0.9]),
    ],
    ids=["two goals", "one-sided objective", "one-sided objective, unlabelled"],
)
def test_the_estimator_meets_its_goals_from_there(goals: Goals) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=600) > 0).astype(int)
    svc = RateBoundSVC(goals, start="homotopy").fit(X, y)
    plain = RateBoundSVC(goals, start="zero").fit(X, y)
    assert svc.report_.met
    assert "Newton steps of the homotopy" in svc.history_[0].homotopy
    assert "stalled" not in svc.history_[0].homotopy
    assert svc.history_[-1].objective <= 1.01 * plain.history_[-1].objective


def test_the_estimator_says_where_it_started() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    one_sided = RateBoundSVC(Goals(positive_rate()), threshold="zero").fit(X, y)
    assert "stalled: all terms are of one sign" in one_sided.status_.start
    assert RateBoundSVC().fit(X, y).status_.start.endswith("Newton steps of the homotopy")
    assert RateBoundSVC(start="zero").fit(X, y).status_.start == "zero"
    assert RateBoundSVC(kernel="rbf").fit(X, y).status_.start == "zero"
