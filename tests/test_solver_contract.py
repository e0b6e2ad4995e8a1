"""The one contract of all solvers, oracles and choosers, against cvxpy with Clarabel."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from building import convex_problem
from ratebound.kernel_functions import Kernel
from ratebound.ramp import ConvexProblem
from ratebound.solvers import (
    SDCA,
    AlternatingDirections,
    AugmentedLagrangian,
    BiasCuttingPlane,
    CenterOfMass,
    CuttingPlane,
    GrowingRank,
    Inner,
    InteriorPoint,
    Level,
    Liblinear,
    Libsvm,
    Maximization,
)
from ratebound.solvers.base import Solution, Solver, Status
from ratebound.solvers.choosers import CutChooser
from ratebound.solvers.oracles import SVMOptimizer
from reference.convex import ConvexReference, solve_convex
from reference.instances import Instance, random_instance
from test_kernel import (
    GAMMA,
    THIRTY_GOALS,
    elastic_value,
    kernel_instance,
    kernel_problem,
    naive_rbf,
)

TOLERANCE = 1e-3

ORACLES: dict[str, SVMOptimizer] = {
    "sdca": SDCA(),
    "inner": Inner(),
    "liblinear": Liblinear(ascent=SDCA()),
    "libsvm": Libsvm(),
    "bias by mass": BiasCuttingPlane(),
    "bias by minimum": BiasCuttingPlane(chooser="minimization"),
}
CHOOSERS: dict[str, CutChooser] = {
    "level": Level(),
    "maximization": Maximization(),
    "center of mass": CenterOfMass(walk=100),
}
SOLVERS: dict[str, Solver] = {
    "interior point": InteriorPoint(),
    "augmented lagrangian": AugmentedLagrangian(),
    "alternating directions": AlternatingDirections(),
    **{
        f"{oracle}, {chooser}": CuttingPlane(ORACLES[oracle], CHOOSERS[chooser])
        for oracle, chooser in product(ORACLES, CHOOSERS)
    },
}


# ---- the problems --------------------------------------------------------------------------------


def tame(seed: int, index: int) -> Instance:
    """A problem of the generator that coordinate ascent need not be slow on."""
    instance = random_instance(seed, index)
    scale = float(np.mean(np.sum(instance.X**2, axis=1))) or 1.0
    alpha = max(instance.alpha, 1e-2 * scale * instance.total_cost / len(instance.X))
    return replace(instance, alpha=alpha, multiplier_bound=min(instance.multiplier_bound, 10.0))


def with_many_goals() -> Instance:
    """Thirty random rates bounded at once, some of them beyond what any model can do."""
    instance = replace(tame(7, 1), kinds=frozenset({"thirty goals"}))
    rng = np.random.default_rng(3)
    cells = len(instance.cost)
    table = rng.normal(size=(30, cells))
    weight = np.bincount(instance.cell, weights=instance.weight, minlength=cells)
    table /= np.sum(np.abs(table) * weight, axis=1, keepdims=True)
    negative = np.maximum(-table, 0.0) @ weight
    offset = negative - rng.uniform(0.3, 0.7, size=30)
    return replace(instance, table=table, offset=offset)


def without_goals(instance: Instance) -> Instance:
    return replace(instance, table=np.zeros((0, len(instance.cost))), offset=np.zeros(0))


PROBLEMS: dict[str, Instance] = {
    **{f"random {index}": tame(23, index) for index in (0, 3, 10, 13, 19, 28)},
    "no intercept": replace(tame(23, 4), fit_intercept=False),
    "no goals": replace(
        tame(23, 5), table=np.zeros((0, len(tame(23, 5).cost))), offset=np.zeros(0)
    ),
    "thirty goals": with_many_goals(),
}


@cache
def referee(name: str) -> ConvexReference:
    return solve_convex(PROBLEMS[name])


def suits(solver: Solver, fit_intercept: bool) -> bool:
    """LIBSVM always has an intercept."""
    return fit_intercept or not (
        isinstance(solver, CuttingPlane) and isinstance(solver.oracle, Libsvm)
    )


QUICK = ("random 10", "random 19", "no intercept", "no goals")


def is_slow(solver: str, name: str) -> bool:
    """Every solver sees the quick problems in each run of the tests, and one of each kind all."""
    every = ("interior point", "inner, level", "sdca, level")
    return name not in QUICK and not (solver in every and name != "random 3")


def cases() -> list[Any]:
    return [
        pytest.param(solver, name, marks=[pytest.mark.slow] if is_slow(solver, name) else [])
        for solver, name in product(SOLVERS, PROBLEMS)
        if suits(SOLVERS[solver], PROBLEMS[name].fit_intercept)
        # the sampled centre of mass is beyond reason here; below it is stopped early
        and not (name == "thirty goals" and "mass" in solver.partition(", ")[2])
    ]


def assert_bounds(solution: Solution, problem: ConvexProblem, name: str) -> None:
    """lower <= what cvxpy knows of the optimum <= upper, and upper is the model's own value."""
    reference, instance = referee(name), PROBLEMS[name]
    rounding = 1e-7 * instance.relative_to(reference.optimum_upper)
    assert solution.lower <= reference.optimum_upper + rounding
    assert solution.upper >= reference.optimum_lower - rounding
    hinges = problem.rows.hinge_sums(solution.coef, solution.intercept)
    assert solution.upper == pytest.approx(problem.value(solution.coef, hinges), rel=1e-12)
    worst = float(np.max(problem.violations(hinges), initial=-np.inf))
    assert solution.violation == pytest.approx(worst, rel=1e-9, abs=1e-12)
    assert (solution.multipliers >= 0).all()
    assert (solution.multipliers <= problem.multiplier_bound).all()
    assert solution.gap == pytest.approx(
        problem.relative(solution.upper - solution.lower, solution.upper)
    )
    if not problem.fit_intercept:
        assert solution.intercept == 0.0


@pytest.mark.parametrize(("solver", "name"), cases())
def test_bounds_hold_and_close(solver: str, name: str) -> None:
    problem = convex_problem(PROBLEMS[name], sparse=len(solver) % 2 == 0)
    solution = SOLVERS[solver].solve(problem, TOLERANCE)
    assert_bounds(solution, problem, name)
    assert solution.status is Status.OPTIMAL, (solution.status, solution.gap)
    assert solution.gap <= TOLERANCE
    # so the model is that good by the referee's own account
    reference, instance = referee(name), PROBLEMS[name]
    excess = solution.upper - reference.optimum_lower
    assert excess <= (TOLERANCE + 1e-6) * instance.relative_to(solution.upper)


@pytest.mark.parametrize("solver", SOLVERS)
def test_bounds_hold_wherever_it_is_stopped(solver: str) -> None:
    many = "random 19" if solver.endswith("center of mass") else "thirty goals"
    for name in ("random 10", many):
        if not suits(SOLVERS[solver], PROBLEMS[name].fit_intercept):
            continue
        for calls in (1, 4):
            problem = convex_problem(PROBLEMS[name])
            left = iter(range(calls))
            solution = SOLVERS[solver].solve(
                problem, 1e-9, stop=lambda left=left: next(left, None) is None
            )
            assert_bounds(solution, problem, name)
            assert solution.status in (Status.INTERRUPTED, Status.STALLED, Status.OPTIMAL)


# ---- the same contract under a kernel ------------------------------------------------------------

KERNEL_SOLVERS: dict[str, Solver] = {
    "growing rank": GrowingRank(),
    **{name: CuttingPlane(ORACLES[name]) for name in ORACLES if name not in ("liblinear", "inner")},
    "inner, growing rank": CuttingPlane(Inner(GrowingRank())),
}
LINEAR_ONLY: dict[str, tuple[Solver, str]] = {
    "interior point": (InteriorPoint(), r"wrap it, as in GrowingRank\(InteriorPoint\(\)\)"),
    "augmented lagrangian": (AugmentedLagrangian(), r"take GrowingRank\(\)"),
    "liblinear": (CuttingPlane(Liblinear()), r"take the oracle Libsvm\(\) or SDCA\(\)"),
}


@pytest.mark.parametrize("index", [2, 5, THIRTY_GOALS])
@pytest.mark.parametrize("solver", KERNEL_SOLVERS)
def test_under_a_kernel_bounds_hold_and_close(solver: str, index: int) -> None:
    instance, raw = kernel_instance(index)
    instance = replace(instance, fit_intercept=True, alpha=max(instance.alpha, 1e-2))
    reference = solve_convex(instance)
    rounding = 1e-7 * instance.relative_to(reference.optimum_upper)
    for calls in (2, None):
        problem = kernel_problem(instance, raw, Kernel("rbf", gamma=GAMMA))
        left = iter(range(calls)) if calls else itertools.repeat(0)
        solution = KERNEL_SOLVERS[solver].solve(
            problem, TOLERANCE, stop=lambda left=left: next(left, None) is None
        )
        assert solution.lower <= reference.optimum_upper + rounding
        assert solution.upper >= reference.optimum_lower - rounding
        value = elastic_value(problem, naive_rbf(raw, raw, GAMMA), solution)
        assert value == pytest.approx(solution.upper, rel=1e-7, abs=rounding)
    assert solution.status is Status.OPTIMAL, (solution.status, solution.gap)
    assert solution.gap <= TOLERANCE


@pytest.mark.parametrize("solver", LINEAR_ONLY)
def test_what_has_no_kernels_names_what_has(solver: str) -> None:
    problem = kernel_problem(*kernel_instance(2), Kernel("rbf", gamma=GAMMA))
    linear, remedy = LINEAR_ONLY[solver]
    with pytest.raises((RuntimeError, ValueError), match=remedy):
        linear.solve(problem, TOLERANCE)


@pytest.mark.parametrize("oracle", ORACLES)
def test_dense_and_csr_rows_are_the_same_problem(oracle: str) -> None:
    solver = CuttingPlane(ORACLES[oracle])
    dense = solver.solve(convex_problem(PROBLEMS["random 10"]), TOLERANCE)
    sparse = solver.solve(convex_problem(PROBLEMS["random 10"], sparse=True), TOLERANCE)
    assert sparse.upper == pytest.approx(dense.upper, rel=2 * TOLERANCE)
    assert max(dense.lower, sparse.lower) <= min(dense.upper, sparse.upper)


@pytest.mark.parametrize("oracle", ORACLES)
def test_the_same_call_gives_the_same_answer(oracle: str) -> None:
    solver = CuttingPlane(ORACLES[oracle])
    one, other = (solver.solve(convex_problem(PROBLEMS["random 19"]), TOLERANCE) for _ in range(2))
    np.testing.assert_array_equal(one.coef, other.coef)
    assert (one.upper, one.lower, one.iterations) == (other.upper, other.lower, other.iterations)


# ---- the generator's worst: bounds hold where accuracy cannot be had -----------------------------


@pytest.mark.slow
@pytest.mark.parametrize("index", range(0, 81, 2))
def test_bounds_hold_on_whatever_the_generator_makes(index: int) -> None:
    instance = random_instance(41, index)
    reference = solve_convex(instance)
    rounding = 1e-7 * instance.relative_to(reference.optimum_upper)
    for name, oracle in ORACLES.items():
        problem = convex_problem(instance)
        if not suits(CuttingPlane(oracle), instance.fit_intercept):
            continue
        quick = replace(oracle, max_epochs=100) if isinstance(oracle, SDCA) else oracle
        if isinstance(oracle, BiasCuttingPlane):
            quick = replace(oracle, ascent=SDCA(max_epochs=100), max_iter=5)
        if isinstance(oracle, Libsvm):
            quick = replace(oracle, max_iter=10_000)
        solution = CuttingPlane(quick, max_iter=10).solve(problem, 1e-4)
        assert solution.lower <= reference.optimum_upper + rounding, name
        assert solution.upper >= reference.optimum_lower - rounding, name
