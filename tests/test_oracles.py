"""Coordinate ascent, Algorithm 3 and the off-the-shelf oracles, one question at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from building import convex_problem
from ratebound.ramp import ConvexProblem
from ratebound.solvers import SDCA, BiasCuttingPlane, Inner, Liblinear, Libsvm
from ratebound.solvers.bias import Epigraph
from ratebound.solvers.hinges import Hinges
from ratebound.solvers.oracles import SVMOptimizer, remembering
from ratebound.solvers.sdca import Ascent
from reference.convex import solve_convex
from reference.instances import Instance
from test_solver_contract import PROBLEMS

Floats = NDArray[np.float64]

ORACLES: dict[str, SVMOptimizer] = {
    "sdca": SDCA(),
    "inner": Inner(),
    "bias by mass": BiasCuttingPlane(),
    "bias by minimum": BiasCuttingPlane(chooser="minimization"),
    "liblinear": Liblinear(),
    "libsvm": Libsvm(),
}


def held(instance: Instance, multipliers: Floats) -> tuple[Instance, float]:
    """The problem without goals that the multipliers leave, and its constant, for the referee.

    A cell's two ceilings become two cells, each with the rows of the other repeated.
    """
    bound = -instance.offset + np.maximum(-instance.table[:, instance.cell], 0.0) @ instance.weight
    positive = np.maximum(instance.cost, 0) + multipliers @ np.maximum(instance.table, 0)
    negative = np.maximum(-instance.cost, 0) + multipliers @ np.maximum(-instance.table, 0)
    cells = len(instance.cost)
    twice = replace(
        instance,
        X=np.vstack([instance.X, instance.X]),
        weight=np.tile(instance.weight, 2),
        cell=np.concatenate([instance.cell, instance.cell + cells]),
        cost=np.concatenate([positive, -negative]),
        table=np.zeros((0, 2 * cells)),
        offset=np.zeros(0),
    )
    return twice, -float(bound @ multipliers)


def multipliers_for(problem: ConvexProblem, seed: int) -> Floats:
    return np.random.default_rng(seed).uniform(0.0, 0.5, size=len(problem.bound))


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", ["random 10", "random 19", "no intercept", "no goals"])
def test_bounds_hold_and_close_at_fixed_multipliers(oracle: str, name: str) -> None:
    instance = PROBLEMS[name]
    if oracle == "libsvm" and not instance.fit_intercept:
        pytest.skip("LIBSVM always has an intercept")
    problem = convex_problem(instance, sparse=True)
    multipliers = multipliers_for(problem, 1)
    twice, constant = held(instance, multipliers)
    reference = solve_convex(twice)
    accuracy = 1e-4 * problem.total_cost
    answer = ORACLES[oracle].minimize(problem, multipliers, accuracy)
    assert answer.upper - answer.lower <= accuracy
    assert answer.lower <= reference.optimum_upper + constant + 1e-8
    assert answer.upper >= reference.optimum_lower + constant - 1e-8
    # the cut is Psi at the model, linear in the multipliers
    hinges = problem.rows.hinge_sums(answer.coef, answer.intercept)
    base = float(np.sum(problem.cost * hinges)) + problem.constant
    base += 0.5 * problem.alpha * float(answer.coef @ answer.coef)
    assert answer.base == pytest.approx(base)
    np.testing.assert_allclose(answer.violations, problem.violations(hinges))
    assert answer.upper == pytest.approx(answer.base + float(answer.violations @ multipliers))


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_memory_changes_nothing_but_the_work(oracle: str) -> None:
    problem = convex_problem(PROBLEMS["random 10"])
    session = remembering(ORACLES[oracle])
    accuracy = 1e-4 * problem.total_cost
    for seed in range(4):
        multipliers = multipliers_for(problem, seed)
        warm = session.minimize(problem, multipliers, accuracy)
        cold = ORACLES[oracle].minimize(problem, multipliers, accuracy)
        assert warm.upper - warm.lower <= accuracy
        assert max(warm.lower, cold.lower) <= min(warm.upper, cold.upper) + 1e-12


@pytest.mark.parametrize("oracle", ORACLES)
def test_one_sign_only_is_a_closed_form(oracle: str) -> None:
    instance = replace(
        PROBLEMS["no goals"], cost=np.abs(PROBLEMS["no goals"].cost), fit_intercept=True
    )
    problem = convex_problem(instance)
    answer = ORACLES[oracle].minimize(problem, np.zeros(0), 1e-6)
    assert answer.upper - answer.lower <= 1e-6
    assert answer.upper == pytest.approx(problem.constant, abs=1e-6)


def test_liblinear_says_what_it_cannot_know() -> None:
    problem = convex_problem(PROBLEMS["random 10"])
    multipliers = multipliers_for(problem, 0)
    best = Inner().minimize(problem, multipliers, 1e-7)
    silent = Liblinear(bound="none").minimize(problem, multipliers, 1e-4)
    scored = Liblinear(bound="scores").minimize(problem, multipliers, 1e-4)
    assert silent.lower == -np.inf
    assert -np.inf < scored.lower <= best.upper
    assert best.lower <= min(silent.upper, scored.upper)


def test_libsvm_names_what_to_do_without_an_intercept() -> None:
    problem = convex_problem(PROBLEMS["no intercept"])
    with pytest.raises(ValueError, match=r"SDCA\(\) or Liblinear\(\)"):
        Libsvm().minimize(problem, np.zeros(len(problem.bound)), 1e-3)


@pytest.mark.parametrize(
    "wrong", [lambda: Liblinear(bound="some"), lambda: BiasCuttingPlane(chooser="bisection")]
)
def test_a_wrong_setting_is_named(wrong: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"'some'|'bisection'"):
        wrong()


# ---- the two-sided hinge -------------------------------------------------------------------------


def hinges_of(high: list[float], low: list[float]) -> Hinges:
    return Hinges(-np.array(low), np.array(high), 1.0, 0.0)


@given(st.floats(0, 3), st.floats(0, 3), st.floats(0, 1))
def test_sides_of_the_dual_give_the_conjugate(above: float, below: float, share: float) -> None:
    """-l*(xi) = 1/2 (p0 + p1), against the supremum of xi z - l(z) over a grid with its kinks."""
    xi = -below + share * (above + below)
    z = np.concatenate([np.linspace(-4, 4, 801), [-0.5, 0.5]])
    loss = above * np.maximum(0.5 + z, 0) + below * np.maximum(0.5 - z, 0)
    sides = hinges_of([above], [below]).sides(np.array([xi]))
    assert sides[0, 0] - sides[1, 0] == pytest.approx(xi, abs=1e-12)
    assert -1e-12 <= sides[0, 0] <= above + 1e-12 and -1e-12 <= sides[1, 0] <= below + 1e-12
    assert -0.5 * sides.sum() == pytest.approx(np.max(xi * z - loss), abs=1e-9)


@given(st.integers(1, 30), st.integers(0, 10_000), st.floats(-20, 20))
def test_best_intercept_is_the_best_breakpoint(n: int, seed: int, near: float) -> None:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=n) * rng.choice([0.1, 1.0, 30.0]), 1)
    high = rng.exponential(size=n) * (rng.random(n) < 0.7)
    low = rng.exponential(size=n) * (rng.random(n) < 0.7)
    high[0] += 0.1
    low[-1] += 0.1
    hinges = Hinges(-low, high, 1.0, 0.0)
    found = hinges.best_intercept(scores, near)
    points = np.sort(np.concatenate([-0.5 - scores, 0.5 - scores]))
    best = min(
        sum(
            float(high[i]) * max(0.0, 0.5 + scores[i] + b)
            + float(low[i]) * max(0.0, 0.5 - scores[i] - b)
            for i in range(n)
        )
        for b in points
    )
    assert hinges.charge(scores + found) == pytest.approx(best, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("form", ["dense", "csr", "float32"])
def test_ascent_at_a_held_intercept_is_bounded_by_a_grid_over_one_coefficient(form: str) -> None:
    instance = PROBLEMS["no goals"]
    instance = replace(instance, X=instance.X[:, :1].copy(), anchor_coef=np.zeros(1))
    problem = convex_problem(instance, sparse=form == "csr")
    if form == "float32":
        problem = convex_problem(replace(instance, X=instance.X.astype(np.float32)))
    ascent = Ascent(problem.rows, SDCA())
    hinges = ascent.hinges_of(problem, np.zeros(0))
    for b in (-0.4, 0.0, 1.3):
        found = ascent.solve(problem, np.zeros(0), 1e-9, held_at=b)
        x = instance.X[:, 0]
        grid = np.linspace(found.coef[0] - 1, found.coef[0] + 1, 20_001)
        z = grid[:, None] * x + b
        values = np.maximum(0.5 + z, 0) @ hinges.high - np.maximum(0.5 - z, 0) @ hinges.low
        values += 0.5 * problem.alpha * grid**2 + hinges.constant
        assert found.lower <= np.min(values) + 1e-9
        assert found.upper == pytest.approx(np.min(values), abs=1e-5)
        assert found.upper - found.lower <= 1e-8
        # the cut holds at other intercepts too
        other = b + 0.3
        z = z + 0.3
        values = np.maximum(0.5 + z, 0) @ hinges.high - np.maximum(0.5 - z, 0) @ hinges.low
        values += 0.5 * problem.alpha * grid**2 + hinges.constant
        assert found.lower + found.slope * (other - b) <= np.min(values) + 1e-9


# ---- the cutting plane over the bias -------------------------------------------------------------


@settings(max_examples=50)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_epigraph_against_a_fine_grid(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    slopes = np.round(rng.normal(size=count), 1)
    values = rng.normal(size=count)
    low, high = -rng.uniform(0.5, 3), rng.uniform(0.5, 3)
    grid = np.linspace(low, high, 400_001)
    h = np.max(values[:, None] + slopes[:, None] * grid, axis=0)
    known = Epigraph(values, slopes, low, high, float(np.min(h)) + rng.exponential())
    b, at = known.corners()
    np.testing.assert_allclose(np.interp(grid, b, at), h, atol=1e-9)
    step = (high - low) / 400_000
    assert known.lower() <= np.min(h) + 1e-12
    if np.min(slopes) <= 0 <= np.max(slopes) and low == -high:
        assert known.lower() == pytest.approx(np.min(h), abs=3 * step)
    nearest = np.max(values + slopes * known.minimizer())
    assert nearest == pytest.approx(np.min(h), abs=3 * step)
    depth = np.maximum(known.upper - h, 0.0)
    centre = known.centre_of_mass()
    assert centre is not None
    assert centre[0] == pytest.approx(np.sum(grid * depth) / np.sum(depth), abs=1e-3)
    below = 0.5 * np.sum(depth**2) / np.sum(depth)
    assert centre[1] == pytest.approx(known.upper - below, abs=1e-3)


@pytest.mark.parametrize("chooser", ["center-of-mass", "minimization"])
def test_bias_against_brute_force(chooser: Any) -> None:
    instance = PROBLEMS["random 10"]
    problem = convex_problem(instance)
    multipliers = multipliers_for(problem, 2)
    answer = BiasCuttingPlane(chooser=chooser).minimize(problem, multipliers, 1e-5)
    ascent = Ascent(problem.rows, SDCA())
    tried = [
        ascent.solve(problem, multipliers, 1e-6, held_at=b)
        for b in answer.intercept + np.linspace(-1.0, 1.0, 41)
    ]
    assert answer.lower <= min(found.upper for found in tried)
    assert answer.upper <= min(found.lower for found in tried) + 1e-5 + 1e-9


def test_gap_is_met_on_both_forms_and_with_weights() -> None:
    instance = PROBLEMS["random 19"]
    dense = SDCA().minimize(convex_problem(instance), np.zeros(2), 1e-6)
    sparse = SDCA().minimize(convex_problem(instance, sparse=True), np.zeros(2), 1e-6)
    assert dense.upper - dense.lower <= 1e-6
    assert sparse.upper == pytest.approx(dense.upper, abs=1e-6)
    assert sp.issparse(convex_problem(instance, sparse=True).rows.matrix().X)
