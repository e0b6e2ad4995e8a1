"""The ramp problem and its convex bounds against loops over rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from building import convex_problem, ramp_problem
from ratebound.ramp import RampProblem, ramp
from ratebound.rows.base import DualPoint
from ratebound.rows.memory import MemoryRows
from reference import naive
from reference.convex import hinge_terms, solve_convex
from reference.instances import Instance, bounds_of, random_instance

Floats = NDArray[np.float64]
INSTANCES = st.integers(0, 400).map(lambda index: random_instance(2, index))
SEEDS = st.integers(0, 2**16)
#: Of different kinds, small enough for a reference.
SOLVED = [random_instance(3, index) for index in (0, 1, 2, 4, 5, 9, 13, 18, 31, 40, 50, 63)]


def some_model(instance: Instance, seed: int) -> tuple[Floats, float]:
    """A model, at times the anchor, the zero model, or one far beyond the ramp."""
    rng = np.random.default_rng(seed)
    d = instance.X.shape[1]
    kind = seed % 5
    if kind == 0:
        return instance.anchor_coef, instance.anchor_intercept
    if kind == 1:
        return np.zeros(d), 0.0
    size = 10.0 ** rng.uniform(-3, 1)
    return rng.normal(scale=size, size=d), float(rng.normal()) * instance.fit_intercept


# ------------------------------------------------------------------------- the ramp problem


def test_ramp_is_the_probability_of_a_positive_decision() -> None:
    scores = np.array([-9.0, -0.5, -0.25, 0.0, 0.25, 0.5, 9.0])
    np.testing.assert_array_equal(ramp(scores), [naive.ramp(z) for z in scores])


@settings(max_examples=60)
@given(instance=INSTANCES, seed=SEEDS, sparse=st.booleans())
def test_penalised_value_is_that_of_loops_over_rows(
    instance: Instance, seed: int, sparse: bool
) -> None:
    coef, intercept = some_model(instance, seed)
    problem = ramp_problem(instance, sparse=sparse)
    positives = problem.rows.ramp_sums(coef, intercept)
    value = naive.ramp_value(instance, coef.tolist(), intercept)
    assert problem.penalised(coef, positives) == pytest.approx(value, rel=1e-11, abs=1e-11)
    sides = naive.ramp_sides(instance, coef.tolist(), intercept)
    missed = naive.violations(instance, *sides)
    np.testing.assert_allclose(problem.violations(positives), missed, rtol=1e-11, atol=1e-12)
    excess = sum(max(0.0, amount) for amount in missed)
    free = problem.objective(coef, positives) + instance.multiplier_bound * excess
    assert free == pytest.approx(value, rel=1e-11, abs=1e-11)
    assert problem.total_cost == pytest.approx(instance.total_cost, rel=1e-12)


@settings(max_examples=40)
@given(instance=INSTANCES, seed=SEEDS)
def test_the_nonnegative_form_is_the_signed_one(instance: Instance, seed: int) -> None:
    """Its objective plus its constant is cost @ P + cost_constant, its rows table @ P + offset."""
    positives = np.random.default_rng(seed).random(len(instance.cost))
    problem = ramp_problem(instance)
    positives *= problem.rows.cell_weight
    objective = problem.objective(np.zeros(instance.X.shape[1]), positives) + problem.constant
    signed = instance.cost @ positives + instance.cost_constant
    assert objective == pytest.approx(signed, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(
        problem.violations(positives), instance.table @ positives + instance.offset, atol=1e-12
    )
    assert (problem.cost >= 0).all() and (problem.constraints.toarray() >= 0).all()
    right = bounds_of(instance.table, instance.offset, instance.weight, instance.cell)
    np.testing.assert_allclose(problem.bound, right, rtol=1e-12, atol=1e-13)


def by_hand() -> RampProblem:
    """Two rows of weight 1 and 3, a cell each; a positive decision costs 2 in one, saves 1/2 in
    the other. P0 - P1 / 3 + 1/4 <= 0.
    """
    rows = MemoryRows([(np.array([[1.0], [2.0]]), np.array([1.0, 3.0]), np.array([0, 1]))], 2)
    return RampProblem.from_rates(
        rows,
        np.array([2.0, -0.5]),
        5.0,
        sp.csr_array(np.array([[1.0, -1.0 / 3.0]])),
        np.array([0.25]),
        alpha=0.1,
        multiplier_bound=7.0,
        fit_intercept=True,
    )


def test_signs_by_hand() -> None:
    problem = by_hand()
    np.testing.assert_array_equal(problem.cost, [[2.0, 0.0], [0.0, 0.5]])
    np.testing.assert_allclose(problem.constraints.toarray(), [[1.0, 0.0, 0.0, 1.0 / 3.0]])
    # ramp(z0) + 3 (1 - ramp(z1)) / 3 <= 1 - 1/4
    np.testing.assert_allclose(problem.bound, [0.75])
    assert problem.constant == pytest.approx(5.0 - 0.5 * 3.0)
    assert problem.total_cost == pytest.approx(2.0 + 1.5)
    assert problem.objective_range == pytest.approx(2.0 + 1.5)
    # Scores 0.25 and 0.5: ramp 0.75 and 1.
    positives = problem.rows.ramp_sums(np.array([0.25]), 0.0)
    np.testing.assert_allclose(positives, [0.75, 3.0])
    assert problem.objective(np.array([0.25]), positives) == pytest.approx(1.5 + 0.05 * 0.0625)
    np.testing.assert_allclose(problem.violations(positives), [0.0], atol=1e-15)
    # Scores 0.5 and 1: ramp 1 and 1; missed by 1/4.
    positives = problem.rows.ramp_sums(np.array([0.5]), 0.0)
    value = 2.0 + 0.05 * 0.25 + 7.0 * 0.25
    assert problem.penalised(np.array([0.5]), positives) == pytest.approx(value)


def test_repricing_and_tightening_change_only_that() -> None:
    problem = by_hand()
    coef = np.array([0.5])
    positives = problem.rows.ramp_sums(coef, 0.0)
    dear = problem.priced(70.0)
    assert dear.penalised(coef, positives) == pytest.approx(2.0125 + 70.0 * 0.25)
    tight = problem.tightened(np.array([0.1]))
    np.testing.assert_allclose(tight.violations(positives), problem.violations(positives) + 0.1)
    assert tight.objective(coef, positives) == problem.objective(coef, positives)
    np.testing.assert_allclose(problem.bound, [0.75])  # frozen


# --------------------------------------------------------------------------- convex bounds


@settings(max_examples=60)
@given(instance=INSTANCES, seed=SEEDS, sparse=st.booleans())
def test_convex_value_is_that_of_loops_over_rows(
    instance: Instance, seed: int, sparse: bool
) -> None:
    coef, intercept = some_model(instance, seed)
    problem = convex_problem(instance, sparse=sparse)
    hinges = problem.rows.hinge_sums(coef, intercept)
    value = naive.convex_value(instance, coef.tolist(), intercept)
    assert problem.value(coef, hinges) == pytest.approx(value, rel=1e-11, abs=1e-11)
    sides = naive.bound_sides(instance, coef.tolist(), intercept)
    np.testing.assert_allclose(
        problem.violations(hinges), naive.violations(instance, *sides), rtol=1e-10, atol=1e-11
    )
    assert problem.constant == pytest.approx(hinge_terms(instance).constant, abs=1e-12)


@settings(max_examples=60)
@given(instance=INSTANCES, seed=SEEDS, anchor_seed=SEEDS)
def test_the_bound_is_above_the_ramp_and_touches_it_at_the_anchor(
    instance: Instance, seed: int, anchor_seed: int
) -> None:
    problem = ramp_problem(instance)
    anchor = some_model(instance, anchor_seed)
    bound = problem.convex_at(*anchor)

    def both(coef: Floats, intercept: float) -> tuple[float, float, Floats, Floats]:
        positives = problem.rows.ramp_sums(coef, intercept)
        hinges = problem.rows.hinge_sums(coef, intercept)
        below, above = problem.penalised(coef, positives), bound.value(coef, hinges)
        return below, above, problem.violations(positives), bound.violations(hinges)

    below, above, missed, missed_above = both(*anchor)
    assert above == pytest.approx(below, rel=1e-10, abs=1e-11)
    np.testing.assert_allclose(missed_above, missed, rtol=1e-10, atol=1e-11)
    below, above, missed, missed_above = both(*some_model(instance, seed))
    assert above >= below - 1e-11 * (1 + abs(below))
    assert (missed_above >= missed - 1e-11).all()


def test_a_second_anchor_starts_afresh() -> None:
    instance = random_instance(2, 7)
    problem = ramp_problem(instance)
    problem.convex_at(*some_model(instance, 2))
    problem.convex_at(*some_model(instance, 3))
    again = problem.convex_at(instance.anchor_coef, instance.anchor_intercept)
    first = convex_problem(instance)
    assert again.constant == first.constant
    np.testing.assert_array_equal(again.bound, first.bound)
    np.testing.assert_array_equal(again.rows.live_weight, first.rows.live_weight)


# -------------------------------------------------------------------------------- bounds


def dual_point_of(instance: Instance, multipliers: Floats, share: Floats) -> DualPoint:
    """Sums over p = share * (c + A'v), straight from the referee's list of terms."""
    terms = hinge_terms(instance)
    p = share[: len(terms.cost)] * (terms.cost + terms.coefficients.T @ multipliers)
    up = _signs(instance) > 0
    rows = terms.signed_rows * _signs(instance)[:, np.newaxis]
    features = np.array([p[up] @ rows[up], p[~up] @ rows[~up]])
    return DualPoint(features, np.array([p[up].sum(), p[~up].sum()]))


def _signs(instance: Instance) -> Floats:
    """Signs of the referee's terms, which it writes as 0 without an intercept."""
    return hinge_terms(replace(instance, fit_intercept=True)).sign


@settings(max_examples=250)
@given(
    instance=st.sampled_from(SOLVED),
    seed=SEEDS,
    extreme=st.sampled_from(["no multipliers", "inside", "all at the price"]),
)
def test_any_multipliers_and_any_dual_point_bound_the_optimum(
    instance: Instance, seed: int, extreme: str
) -> None:
    rng = np.random.default_rng(seed)
    problem = convex_problem(instance)
    price = instance.multiplier_bound
    multipliers = price * rng.random(len(problem.bound)) ** rng.uniform(0.5, 8.0)
    if extreme != "inside":
        multipliers[:] = price if extreme == "all at the price" else 0.0
    share = rng.random(2 * len(instance.X)) * 10.0 ** rng.uniform(-4, 0)
    if seed % 3 == 0:
        share = np.round(share)
    point = dual_point_of(instance, multipliers, share)
    reference = REFERENCES[id(instance)]
    coef, intercept = some_model(instance, seed)
    upper = problem.value(coef, problem.rows.hinge_sums(coef, intercept))
    tolerance = 1e-9 * instance.relative_to(upper)
    lower = problem.dual_bound(multipliers, point, upper)
    assert upper >= reference.optimum_lower - tolerance
    assert lower <= reference.optimum_upper + tolerance


REFERENCES = {id(instance): solve_convex(instance) for instance in SOLVED}


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dual_bound_by_hand(fit_intercept: bool) -> None:
    """At p = (1, 1/2) on the hinges of rows 1 and 2: one side is scaled down, or its surplus is
    charged at B = 1/2 + 2 sqrt(2 * upper / alpha).
    """
    problem = replace(by_hand(), fit_intercept=fit_intercept).convex_at(np.zeros(1), 0.0)
    point = DualPoint(np.array([[1.0], [1.0]]), np.array([1.0, 0.5]))
    multipliers = np.array([0.5])
    fixed = -0.75 * 0.5
    unscaled = 0.5 * 1.5 - (1.0 - 1.0) ** 2 / 0.2 + fixed
    charge = (0.5 + 2.0 * np.sqrt(2 * 0.01 / 0.1)) * 0.5
    balanced = 0.5 * 1.0 - (0.5 - 1.0) ** 2 / 0.2 + fixed
    expected = max(unscaled - charge, balanced) if fit_intercept else unscaled
    assert problem.dual_bound(multipliers, point, 0.01) == pytest.approx(expected)
    assert problem.dual_bound(multipliers, point, 1e6) == pytest.approx(
        balanced if fit_intercept else unscaled
    )


def test_relative_is_a_share_of_the_objective_or_of_a_thousandth_of_all_costs() -> None:
    problem = by_hand().convex_at(np.zeros(1), 0.0)
    assert problem.relative(0.5, 2.0) == pytest.approx(0.25)
    assert problem.relative(0.5, 1e-9) == pytest.approx(0.5 / 3.5e-3)
