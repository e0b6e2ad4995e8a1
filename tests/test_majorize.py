"""Algorithm 1: descent, prices of violation, conflicts, limits; against loops and cvxpy."""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from building import ramp_problem
from ratebound.majorize import LARGEST_PRICE, Majorization, Majorized, Step
from ratebound.solvers.interior_point import InteriorPoint
from reference import naive
from reference.convex import hinge_terms, solve_convex
from reference.instances import Instance, random_instance

Floats = NDArray[np.float64]

SETTINGS = Majorization(InteriorPoint(), tol=1e-4, max_iter=30)


def two_classes(seed: int, n: int = 80, d: int = 3) -> Instance:
    """Errors of two noisy classes, with recall at least 0.8; recall is ½ where one starts."""
    rng = np.random.default_rng([seed, 3])
    X = rng.normal(size=(n, d))
    positive = X @ rng.normal(size=d) + 0.7 * rng.normal(size=n) > 0.5
    share = positive.mean()
    return Instance(
        X=X,
        weight=np.ones(n),
        cell=positive.astype(np.intp),
        cost=np.array([1.0, -1.0]) / n,
        cost_constant=float(share),
        table=np.array([[0.0, -1.0 / positive.sum()]]),
        offset=np.array([0.8]),
        alpha=1e-2,
        multiplier_bound=10.0,
        anchor_coef=np.zeros(d),
        anchor_intercept=0.0,
        fit_intercept=True,
    )


def run(instance: Instance, majorization: Majorization = SETTINGS, **options: object) -> Majorized:
    return majorization.run(ramp_problem(instance), **options)  # type: ignore[arg-type]


def assert_says_the_truth(fit: Majorized, instance: Instance) -> None:
    """What the result says of its model is what loops over the rows say."""
    priced = replace(instance, multiplier_bound=fit.problem.multiplier_bound)
    sides = naive.ramp_sides(priced, fit.coef.tolist(), fit.intercept)
    missed = max(naive.violations(priced, *sides), default=-math.inf)
    assert fit.violation == pytest.approx(missed, rel=1e-9, abs=1e-12)
    penalised = naive.ramp_value(priced, fit.coef.tolist(), fit.intercept)
    ours = fit.objective + fit.problem.multiplier_bound * sum(
        max(0.0, missed) for missed in naive.violations(priced, *sides)
    )
    assert ours == pytest.approx(penalised, rel=1e-9)


@given(st.integers(0, 10_000))
def test_the_penalised_objective_never_rises(index: int) -> None:
    instance = random_instance(1, index)
    at_zero = replace(instance, anchor_coef=0.0 * instance.anchor_coef, anchor_intercept=0.0)
    fit = run(at_zero, Majorization(InteriorPoint(), max_iter=8))
    assert_says_the_truth(fit, at_zero)
    by_price: dict[tuple[int, float], list[float]] = {}
    for step in fit.history:
        assert step.lower <= step.upper + 1e-12 * abs(step.upper)
        by_price.setdefault((step.attempt, step.multiplier_bound), []).append(step.penalised)
    for values in by_price.values():
        assert (np.diff(values) <= 1e-12 * np.abs(values[1:])).all()
    zero = [0.0] * instance.X.shape[1]
    start = naive.ramp_value(at_zero, zero, 0.0) + ramp_problem(at_zero).constant
    if fit.history[0].multiplier_bound == instance.multiplier_bound:
        assert fit.history[0].penalised <= start + 1e-9 * abs(start)


@pytest.mark.parametrize("seed", range(4))
def test_where_it_ends_the_bound_offers_nothing_better(seed: int) -> None:
    """At the last anchor the convex problem, solved by cvxpy, lowers the value by tol at most."""
    instance = two_classes(seed)
    fit = run(instance)
    assert fit.converged and fit.violation <= 1e-4
    there = replace(
        instance,
        anchor_coef=fit.coef,
        anchor_intercept=fit.intercept,
        multiplier_bound=fit.problem.multiplier_bound,
    )
    value = naive.ramp_value(there, fit.coef.tolist(), fit.intercept)
    assert solve_convex(there).optimum_lower >= value - 1e-3 * instance.relative_to(value)
    assert fit.solution.gap <= 1e-4


def test_a_goal_that_zero_misses_is_met_in_the_end() -> None:
    instance = two_classes(0)
    assert max(naive.violations(instance, *naive.ramp_sides(instance, [0.0] * 3, 0.0))) > 0.2
    assert run(instance).violation <= 1e-4


def test_the_price_of_violation_grows_until_the_goal_is_met() -> None:
    cheap = replace(two_classes(1), multiplier_bound=1e-3)
    fit = run(cheap)
    assert fit.violation <= 1e-4
    assert fit.problem.multiplier_bound > 1e-3
    fixed = run(cheap, replace(SETTINGS, adapt_price=False))
    assert fixed.problem.multiplier_bound == 1e-3
    assert fixed.violation > 1e-2


def conflicting(seed: int) -> Instance:
    """Recall at least 0.9 and coverage at most 0.1, with half the rows positive and alike."""
    instance = two_classes(seed)
    share = np.bincount(instance.cell) / len(instance.cell)
    table = np.vstack([instance.table, share / np.bincount(instance.cell)])
    X = 0.01 * instance.X
    return replace(instance, X=X, table=table, offset=np.array([0.9, -0.1]))


def test_goals_in_conflict_end_at_the_largest_price_with_a_proof() -> None:
    instance = conflicting(2)
    fit = run(instance, replace(SETTINGS, max_iter=60))
    assert fit.violation > 0.1
    assert fit.problem.multiplier_bound == LARGEST_PRICE
    assert fit.conflict_radius > 0.0
    # cvxpy agrees: no model of that norm meets the last convex bound (its anchor is the last but
    # one model, so the bound is that of the stored problem's rows)
    live = ramp_problem(instance).convex_at(fit.coef, fit.intercept)
    assert live.bound.shape == (2,)
    there = replace(instance, anchor_coef=fit.coef, anchor_intercept=fit.intercept)
    assert least_violation(there, 0.99 * fit.conflict_radius) > 0.0


def least_violation(instance: Instance, radius: float) -> float:
    """The smallest of the largest violations over ||coef|| <= radius, by cvxpy."""
    terms = hinge_terms(instance)
    coef, intercept, most = cp.Variable(instance.X.shape[1]), cp.Variable(), cp.Variable()
    hinges = cp.pos(0.5 + terms.signed_rows @ coef + terms.sign * intercept)
    problem = cp.Problem(
        cp.Minimize(most),
        [terms.coefficients @ hinges - terms.bounds <= most, cp.norm(coef) <= radius],
    )
    problem.solve(solver=cp.CLARABEL)
    return float(most.value)


def test_the_callback_sees_every_step_and_may_stop() -> None:
    seen: list[Step] = []

    def stop_at_two(step: Step) -> bool:
        seen.append(step)
        return len(seen) == 2

    fit = run(two_classes(0), on_step=stop_at_two)
    assert [step.iteration for step in seen] == [1, 2]
    assert fit.history == tuple(seen)
    assert not fit.converged and "callback" in fit.why


def test_a_time_limit_keeps_the_best_model_so_far() -> None:
    fit = run(two_classes(0), deadline=0.0)
    assert not fit.converged and "time limit" in fit.why
    assert_says_the_truth(fit, two_classes(0))
    assert len(fit.history) == 1


def test_steps_at_most() -> None:
    fit = run(two_classes(0), replace(SETTINGS, max_iter=1))
    assert len(fit.history) == 1
    assert "max_iter=1" in fit.why
    assert not fit.converged


def test_a_restart_at_the_end_stays_there() -> None:
    instance = two_classes(3)
    first = run(instance)
    again = SETTINGS.run(first.problem, first.restart())
    assert again.objective <= first.objective + 1e-9
    assert again.objective == pytest.approx(first.objective, rel=2e-3)
    assert len(again.history) <= 3


def test_repetition_is_weight() -> None:
    instance = two_classes(4, n=60)
    times = np.random.default_rng(1).integers(0, 3, size=60)
    weighted = replace(instance, weight=times.astype(np.float64))
    rows = np.repeat(np.arange(60), times)
    repeated = replace(
        instance, X=instance.X[rows], weight=np.ones(len(rows)), cell=instance.cell[rows]
    )
    one, other = run(weighted), run(repeated)
    assert len(one.history) == len(other.history)
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-5, atol=1e-7)
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


def test_the_better_fit_is_the_feasible_one_and_then_the_lower() -> None:
    good = run(two_classes(0))
    missed = replace(good, violation=0.1, objective=0.0)
    worse = replace(good, objective=good.objective + 1.0)
    more = replace(missed, violation=0.2)
    assert good.better_than(missed, 1e-4) and not missed.better_than(good, 1e-4)
    assert good.better_than(worse, 1e-4) and not worse.better_than(good, 1e-4)
    assert missed.better_than(more, 1e-4)


def test_what_a_step_prints() -> None:
    text = str(run(two_classes(0)).history[0])
    assert text.startswith("step   1  objective 0.")
    assert "goals met" in text and "gap" in text
