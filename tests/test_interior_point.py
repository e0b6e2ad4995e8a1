"""The interior point against known optima, cvxpy with Clarabel, and its own certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from building import (
    compiled,
    convex_problem,
    instance_of_rates,
    ramp_problem,
    ramp_problem_of_rates,
    solve,
)
from ratebound.goals import Goals
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rates import (
    Constraint,
    Rate,
    accuracy,
    between,
    churn,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
)
from ratebound.solvers.base import Solution, Start, Status
from ratebound.solvers.interior_point import InteriorPoint
from reference.convex import ConvexReference, solve_convex
from reference.instances import Instance, random_instance

Floats = NDArray[np.float64]

# ------------------------------------------------------------------- what is true of each


def assert_certified(solution: Solution, problem: ConvexProblem) -> None:
    """What a solution says of itself is so, without any reference."""
    hinges = problem.rows.hinge_sums(solution.coef, solution.intercept)
    violations = problem.violations(hinges)
    assert solution.upper == pytest.approx(problem.value(solution.coef, hinges), rel=1e-12)
    assert solution.violation == pytest.approx(
        np.max(violations, initial=-np.inf), rel=1e-9, abs=1e-12
    )
    assert (solution.multipliers >= 0.0).all()
    assert (solution.multipliers <= problem.multiplier_bound).all()
    width = solution.upper - solution.lower
    rounding = 1e-13 * max(abs(solution.upper), abs(solution.lower), problem.total_cost)
    assert width >= -rounding
    assert solution.gap == pytest.approx(problem.relative(width, solution.upper))
    # Complementary slackness: these shares of the gap are nonnegative and add up to at most it.
    room, excess = np.maximum(-violations, 0.0), np.maximum(violations, 0.0)
    slackness = solution.multipliers @ room
    slackness += (problem.multiplier_bound - solution.multipliers) @ excess
    assert slackness <= width + rounding + 1e-12 * problem.multiplier_bound * excess.sum()
    if not problem.fit_intercept:
        assert solution.intercept == 0.0


def assert_brackets(solution: Solution, reference: ConvexReference, instance: Instance) -> None:
    tolerance = 1e-7 * instance.relative_to(reference.optimum_upper)
    assert solution.lower <= reference.optimum_upper + tolerance
    assert solution.upper >= reference.optimum_lower - tolerance


def assert_solved(instance: Instance, tolerance: float = 1e-6, **options: Any) -> Solution:
    """Solve to the tolerance, check the certificate and the optimum; the solution."""
    solution = solve(instance, tolerance, **options)
    assert solution.status is Status.OPTIMAL, (solution.status, solution.gap)
    assert solution.gap <= tolerance
    assert_certified(solution, convex_problem(instance))
    assert_brackets(solution, solve_convex(instance), instance)
    return solution


def same(one: Solution, other: Solution, tolerance: float = 1e-7) -> None:
    """The same answer, by the same path, to rounding."""
    assert one.status is other.status
    assert one.iterations == other.iterations
    assert one.upper == pytest.approx(other.upper, rel=tolerance)
    assert one.lower == pytest.approx(other.lower, rel=tolerance)
    size = np.abs(other.coef).max(initial=1e-3)
    np.testing.assert_allclose(one.coef, other.coef, rtol=tolerance, atol=tolerance * size)
    assert one.intercept == pytest.approx(other.intercept, rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(one.multipliers, other.multipliers, rtol=tolerance, atol=tolerance)


# --------------------------------------------------------------------- (a) Adult, known optima


@dataclass(frozen=True)
class Adult:
    """The census rows of `a9a`, with the sex of everyone."""

    X: Any
    y: Floats
    columns: dict[str, Any]

    def convex(self, goals: Goals) -> ConvexProblem:
        """The convex problem at the anchor zero, alpha = 1/n."""
        rates = compiled(goals, self.X, self.y, columns=self.columns)
        problem = ramp_problem_of_rates(rates, alpha=1 / len(self.y), multiplier_bound=10.0)
        return problem.convex_at(np.zeros(self.X.shape[1]), 0.0)


@pytest.fixture(scope="session")
def adult(data_file: Callable[[str], Path]) -> Adult:
    X, y = load_svmlight_file(str(data_file("a9a.train.libsvm.gz")), n_features=123)
    male = X[:, 72].toarray().ravel() > 0
    assert male.sum() == 21790
    return Adult(X, y, {"sex": np.where(male, "male", "female")})


MALE, FEMALE = (positive_rate(where={"sex": sex}) for sex in ("male", "female"))

KNOWN: dict[str, tuple[Rate, list[Constraint], float, list[float]]] = {
    "no goal": (error_rate(), [], 0.1754898, []),
    "ratio 0.5": (error_rate(), [MALE <= FEMALE / 0.5], 0.2031466, [0.04802]),
    "ratio 0.8": (error_rate(), [MALE <= FEMALE / 0.8], 0.2089237, [0.08348]),
    "ratio 1": (error_rate(), [MALE <= FEMALE], 0.2125157, [0.10876]),
    "80% rule": (
        error_rate(),
        [positive_rate(by="sex").ratio() >= 0.8],
        0.2132210,
        [0.11724, 0.06119],
    ),
    "coverage": (error_rate(), [positive_rate() <= 0.1], 0.1979160, [0.36687]),
    "recall": (false_positive_rate(), [recall() >= 0.9], 0.3374556, [1.76375]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_optima_of_adult(adult: Adult, name: str) -> None:
    minimize, subject_to, optimum, multipliers = KNOWN[name]
    problem = adult.convex(Goals(minimize, subject_to))
    solution = InteriorPoint().solve(problem, 1e-6)
    assert solution.status is Status.OPTIMAL
    assert solution.upper == pytest.approx(optimum, rel=0, abs=1e-6)
    assert solution.lower == pytest.approx(optimum, rel=0, abs=1e-6)
    # The order of the pairs of a ratio is the compiler's: larger first, as printed above.
    ours = np.sort(solution.multipliers)[::-1]
    np.testing.assert_allclose(ours, multipliers, rtol=0, atol=1e-4)
    assert_certified(solution, problem)


def test_multipliers_of_the_80_percent_rule_belong_to_their_pairs(adult: Adult) -> None:
    """0.11724 for 0.8 male <= female, 0.06119 for 0.8 female <= male."""
    pairs = {"male": 0.8 * MALE <= FEMALE, "female": 0.8 * FEMALE <= MALE}
    problem = adult.convex(Goals(error_rate(), [pairs["female"], pairs["male"]]))
    solution = InteriorPoint().solve(problem, 1e-6)
    np.testing.assert_allclose(solution.multipliers, [0.06119, 0.11724], rtol=0, atol=1e-4)


# ------------------------------------------------------------------------- (b) prices


def assert_prices(problem: RampProblem, number: int, amount: float, closeness: float) -> None:
    """The multiplier of a constraint is what a unit of its bound is worth.

    By convexity exactly between what tightening costs and what loosening saves; as these come
    together with the amount, a derivative.
    """
    zero = np.zeros(problem.rows.n_features)
    change = np.zeros(len(problem.bound))
    change[number] = amount

    def at(amounts: Floats) -> Solution:
        return InteriorPoint().solve(problem.tightened(amounts).convex_at(zero, 0.0), 1e-8)

    here, tighter, looser = at(0.0 * change), at(change), at(-change)
    value = here.multipliers[number] * amount
    assert here.lower - looser.upper <= value + 1e-13
    assert value <= tighter.upper - here.lower + 1e-13
    difference = 0.5 * (tighter.upper - looser.lower) / amount
    assert here.multipliers[number] == pytest.approx(difference, rel=closeness)
    assert here.multipliers[number] > 1e-3


def noisy_rows(seed: int, n: int, d: int) -> tuple[Floats, NDArray[np.int64], dict[str, Any]]:
    """Two noisy classes and a group that matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    group = rng.integers(0, 2, size=n)
    X[:, 0] += group
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.5, 1, -1)
    return X, y, {"group": np.where(group == 1, "a", "b")}


@pytest.mark.parametrize("goal", ["recall", "coverage", "pair"])
def test_multipliers_are_prices(goal: str) -> None:
    X, y, columns = noisy_rows(0, 600, 4)
    of = {g: positive_rate(where={"group": g}) for g in "ab"}
    goals = {
        "recall": recall() >= 0.8,
        "coverage": positive_rate() <= 0.3,
        "pair": of["a"] <= of["b"] + 0.05,
    }
    rates = compiled(Goals(error_rate(), [goals[goal]]), X, y, columns=columns)
    problem = ramp_problem_of_rates(rates, alpha=1e-2, multiplier_bound=20.0)
    assert_prices(problem, 0, 2e-3, closeness=0.02)


def test_multipliers_are_prices_on_adult(adult: Adult) -> None:
    goals = Goals(false_positive_rate(), [recall() >= 0.9, positive_rate() <= 0.5])
    rates = compiled(goals, adult.X, adult.y, columns=adult.columns)
    problem = ramp_problem_of_rates(rates, alpha=1 / len(adult.y), multiplier_bound=10.0)
    assert_prices(problem, 0, 2e-3, closeness=0.02)


# ----------------------------------------------------------------- (c) random problems


def check_random_instances(indices: range) -> None:
    wrong: list[str] = []
    wide: list[str] = []
    for index in indices:
        instance = random_instance(0, index)
        reference = solve_convex(instance)
        problem = convex_problem(instance, sparse=index % 2 == 1)
        what = f"{index} {sorted(instance.kinds)}"
        for max_iter in (1, 3, 10, 100):
            solution = InteriorPoint(max_iter).solve(problem, 1e-6)
            try:
                assert_brackets(solution, reference, instance)
                assert_certified(solution, problem)
                assert solution.iterations <= max_iter
            except AssertionError as error:
                wrong.append(f"{what}, {max_iter} iterations: {error}")
        if solution.gap > 1e-6:
            wide.append(f"{what}: gap {solution.gap:.1e}, {solution.status}")
    assert not wrong, "\n".join(wrong)
    assert len(wide) <= 0.01 * len(indices), "\n".join(wide)


def test_random_problems() -> None:
    check_random_instances(range(150))


@pytest.mark.slow
@pytest.mark.parametrize("hundreds", range(0, 20, 5))
def test_many_random_problems(hundreds: int) -> None:
    check_random_instances(range(100 * hundreds, 100 * hundreds + 500))


# ------------------------------------------------------------------------- (e) hard cases


def made_instance(seed: int, n: int = 60, d: int = 5, **changes: Any) -> Instance:
    """Four cells: two labels in two groups. Minimise errors, with recall and parity goals."""
    rng = np.random.default_rng([seed, 7])
    X = rng.normal(size=(n, d))
    positive = X @ rng.normal(size=d) + rng.normal(size=n) > 0.3
    cell = (2 * positive + rng.integers(0, 2, size=n)).astype(np.intp)
    weights = np.maximum(np.bincount(cell, minlength=4), 1)
    positives = weights[2] + weights[3]
    table = np.array(
        [
            [0.0, 0.0, -1 / positives, -1 / positives],
            [1 / (weights[0] + weights[2]), -1 / (weights[1] + weights[3])] * 2,
        ]
    )
    cost = np.array([1.0, 1.0, -1.0, -1.0]) / n
    instance = Instance(
        X=X,
        weight=np.ones(n),
        cell=cell,
        cost=cost,
        cost_constant=positives / n,
        table=table,
        offset=np.array([0.7, -0.1]),
        alpha=1e-2,
        multiplier_bound=10.0,
        anchor_coef=np.zeros(d),
        anchor_intercept=0.0,
        fit_intercept=True,
    )
    return replace(instance, **changes)


@pytest.mark.parametrize("exponent", range(-8, 3))
@pytest.mark.parametrize("wide", [False, True])
def test_alpha_from_1e_minus_8_to_1e2(exponent: int, wide: bool) -> None:
    instance = made_instance(1, n=20 if wide else 60, d=30 if wide else 5)
    assert_solved(replace(instance, alpha=10.0**exponent))


@pytest.mark.parametrize("kind", ["constant", "zero", "duplicate", "large", "small"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2])
def test_awkward_columns(kind: str, alpha: float) -> None:
    instance = made_instance(2, alpha=alpha)
    X = np.column_stack([instance.X, instance.X])
    X[:, 5:] = {
        "constant": np.full((60, 5), -3.0),
        "zero": np.zeros((60, 5)),
        "duplicate": instance.X,
        "large": 1e4 * X[::-1, 5:],
        "small": 1e-6 * X[::-1, 5:],
    }[kind]
    solution = assert_solved(replace(instance, X=X, anchor_coef=np.zeros(10)))
    if kind == "zero":
        assert (solution.coef[5:] == 0.0).all()
    if kind == "duplicate":
        np.testing.assert_allclose(solution.coef[5:], solution.coef[:5], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_all_zero_rows(share: float) -> None:
    instance = made_instance(3)
    X = instance.X.copy()
    X[: int(share * len(X))] = 0.0
    solution = assert_solved(replace(instance, X=X))
    if share == 1.0:
        np.testing.assert_array_equal(solution.coef, 0.0)


@pytest.mark.parametrize("n", [1, 2, 5, 29])
@pytest.mark.parametrize("sparse", [False, True])
def test_fewer_rows_than_columns(n: int, sparse: bool) -> None:
    rng = np.random.default_rng(n)
    instance = made_instance(4, n=n, d=30)
    assert_solved(replace(instance, X=instance.X * (rng.random((n, 30)) < 0.5)), sparse=sparse)


def one_sided(**changes: Any) -> Instance:
    """Only positive decisions cost."""
    instance = made_instance(5)
    goals = {"table": np.zeros((0, 4)), "offset": np.zeros(0)}
    return replace(instance, cost=np.abs(instance.cost), **{**goals, **changes})


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_terms_of_one_sign_have_no_central_path(sign: float) -> None:
    """Calling everything one thing costs nothing; of these models the one nearest the data."""
    instance = one_sided()
    solution = assert_solved(replace(instance, cost=sign * instance.cost))
    assert solution.upper == solution.lower == 0.0
    assert solution.intercept == -0.5 * sign
    np.testing.assert_array_equal(solution.coef, 0.0)


def test_terms_of_one_sign_without_intercept() -> None:
    solution = assert_solved(one_sided(fit_intercept=False))
    assert solution.upper > 0.01
    # The same where nothing can be moved at all: every hinge is 1/2.
    still = one_sided(fit_intercept=False, X=np.zeros((60, 5)))
    assert assert_solved(still).upper == pytest.approx(0.5 * still.total_cost)


@pytest.mark.parametrize("bound", [0.3, 0.0, -0.2])
def test_terms_of_one_sign_with_goals_of_that_sign(bound: float) -> None:
    """Even what cannot be met at all, at its price."""
    weights = np.bincount(made_instance(5).cell, minlength=4)
    table = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]) / weights.sum()
    instance = one_sided(table=table, offset=np.array([-bound, -0.5]))
    solution = assert_solved(instance)
    assert solution.upper == pytest.approx(10.0 * max(0.0, -bound), abs=1e-9)
    assert solution.multipliers[0] == (10.0 if bound < 0.0 else 0.0)
    assert solution.violation == pytest.approx(-min(bound, 0.5), abs=1e-9)


def test_a_goal_brings_the_other_sign() -> None:
    """Costs of one sign only, and a goal that wants positive decisions."""
    assert_solved(one_sided(table=made_instance(5).table, offset=np.array([0.7, -0.1])))


def test_nothing_to_minimise_but_violation() -> None:
    missed = made_instance(6, cost=np.zeros(4), offset=np.array([0.95, 0.3]))
    assert assert_solved(missed).violation > 0.1
    # Where the goals can be met too the optimum is 0, and no gap is small beside that.
    met = solve(replace(missed, offset=np.array([0.95, -0.05])))
    assert -1e-9 <= met.lower <= 0.0 <= met.upper <= 1e-9
    assert met.violation <= 1e-9


def test_nothing_at_all() -> None:
    instance = made_instance(6, cost=np.zeros(4), table=np.zeros((0, 4)), offset=np.zeros(0))
    solution = solve(instance)
    assert solution.upper == solution.lower == solution.gap == 0.0


@pytest.mark.parametrize("multiplier_bound", [1.0, 100.0])
@pytest.mark.parametrize("goal", ["accuracy", "churn", "gap", "both sides"])
def test_goals_without_interior(goal: str, multiplier_bound: float) -> None:
    """Only the elastic form has a central path."""
    X, y, columns = noisy_rows(1, 120, 3)
    golden = np.zeros(120)
    golden[:8] = 1.0
    columns["golden"] = np.where(golden > 0, "yes", "no")
    deployed = np.where(X[:, 1] > 0, 1, -1)
    goals = {
        "accuracy": [accuracy(where={"golden": "yes"}) >= 1.0],
        "churn": [churn() <= 0.0],
        "gap": [positive_rate(by="group").gap() <= 0.0],
        "both sides": [*between(positive_rate(), 0.4, 0.4)],
    }
    rates = compiled(Goals(error_rate(), goals[goal]), X, y, columns=columns, baseline=deployed)
    assert_solved(instance_of_rates(rates, alpha=1e-2, multiplier_bound=multiplier_bound))


def groups(count: int, n: int, bound: float) -> tuple[Goals, Floats, Any, dict[str, Any]]:
    """Groups whose positive rates differ, and a goal that they may not differ by more."""
    rng = np.random.default_rng(count)
    group = np.arange(n) % count
    X = rng.normal(size=(n, 4)) + rng.normal(scale=0.5, size=(count, 4))[group]
    y = np.where(X[:, 0] + rng.normal(size=n) > 0.3, 1, -1)
    goals = Goals(error_rate(), [positive_rate(by="group").gap() <= bound])
    return goals, X, y, {"group": group.astype(str)}


@pytest.mark.parametrize("bound", [0.2, 0.02])
def test_a_lazily_entered_family_has_the_optimum_of_all_its_constraints(bound: float) -> None:
    goals, X, y, columns = groups(12, 360, bound)
    rates = compiled(goals, X, y, columns=columns)
    instance = instance_of_rates(rates, alpha=1e-2, multiplier_bound=5.0)
    assert len(instance.offset) == 132
    lazy = assert_solved(instance)
    assert (lazy.multipliers > 1e-6).any()
    # Whoever starts with a multiplier everywhere has them all in the system from the first step.
    everywhere = Start(np.zeros(4), 0.0, np.full(132, 1e-3))
    at_once = assert_solved(instance, start=everywhere)
    assert (at_once.multipliers > 0.0).all() and not (lazy.multipliers > 0.0).all()
    assert lazy.upper == pytest.approx(at_once.upper, rel=2e-6)


def test_a_hundred_groups() -> None:
    """9,900 ordered pairs, of which few ever enter."""
    goals, X, y, columns = groups(100, 4000, 0.3)
    rates = compiled(goals, X, y, columns=columns)
    assert rates.table.shape[0] == 9900
    problem = ramp_problem_of_rates(rates, alpha=1e-3, multiplier_bound=1.0)
    convex = problem.convex_at(np.zeros(4), 0.0)
    solution = InteriorPoint().solve(convex, 1e-5)
    assert solution.status is Status.OPTIMAL
    assert_certified(solution, convex)
    assert 0 < (solution.multipliers > 0).sum() < 1000


@pytest.mark.parametrize("multiplier_bound", [0.1, 10.0, 1e4])
def test_goals_in_conflict_are_missed_at_their_price(multiplier_bound: float) -> None:
    table = np.array([[1.0] * 4, [-1.0] * 4]) / 60
    instance = made_instance(
        7, table=table, offset=np.array([-0.1, 0.9]), multiplier_bound=multiplier_bound
    )
    solution = assert_solved(instance)
    assert solution.violation > 0.1
    assert np.isclose(solution.multipliers, multiplier_bound, rtol=1e-3).any()


# -------------------------------------------------------------------------- (f) properties


@pytest.mark.parametrize(("n", "d"), [(50, 4), (20, 30)])
def test_weights_mean_repetition(n: int, d: int) -> None:
    instance = made_instance(8, n=n, d=d)
    times = np.random.default_rng(0).integers(0, 4, size=n)
    weighted = replace(instance, weight=times.astype(np.float64))
    rows = np.repeat(np.arange(n), times)
    repeated = replace(
        instance, X=instance.X[rows], cell=instance.cell[rows], weight=np.ones(len(rows))
    )
    solution = assert_solved(weighted)
    same(solution, solve(repeated))
    # And duplicates merge: the same rows again, each time with a share of the weight.
    rows = np.concatenate([np.arange(n), np.arange(n)])
    shares = np.concatenate([0.25 * times, 0.75 * times])
    split = replace(instance, X=instance.X[rows], cell=instance.cell[rows], weight=shares)
    same(solution, solve(split))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n", "d"), [(60, 5), (20, 30)])
def test_order_of_rows_and_columns_does_not_matter(n: int, d: int, sparse: bool) -> None:
    instance = made_instance(9, n=n, d=d)
    solution = solve(instance, sparse=sparse)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(n), rng.permutation(d)
    by_rows = replace(instance, X=instance.X[rows], cell=instance.cell[rows])
    same(solution, solve(by_rows, sparse=sparse))
    by_columns = replace(instance, X=instance.X[:, columns])
    shuffled = solve(by_columns, sparse=sparse)
    same(solution, replace(shuffled, coef=shuffled.coef[np.argsort(columns)]))


def test_storage_does_not_matter() -> None:
    instance = made_instance(10)
    instance = replace(instance, X=instance.X.astype(np.float32).astype(np.float64))
    solution = solve(instance)
    same(solution, solve(instance, sparse=True))
    same(solution, solve(replace(instance, X=instance.X.astype(np.float32))))
    same(solution, solve(instance), tolerance=0.0)


def test_units_of_costs_do_not_matter() -> None:
    """Everything in cents: the same model, multipliers and optimum a hundredfold."""
    instance = made_instance(11)
    cents = replace(
        instance,
        cost=100 * instance.cost,
        alpha=100 * instance.alpha,
        multiplier_bound=100 * instance.multiplier_bound,
    )
    solution, other = solve(instance), solve(cents)
    scaled = replace(
        other,
        upper=other.upper / 100,
        lower=other.lower / 100,
        multipliers=other.multipliers / 100,
    )
    same(solution, scaled)


@pytest.mark.parametrize("sparse", [False, True])
def test_threads_do_not_change_a_bit(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    instance = made_instance(12, n=20_000, d=3)
    instance = replace(instance, X=instance.X * (rng.random(instance.X.shape) < 0.5))
    solutions = []
    for threads in (1, 2):
        problem = ramp_problem(instance, sparse=sparse, threads=threads)
        convex = problem.convex_at(np.zeros(3), 0.0)
        solutions.append(InteriorPoint().solve(convex, 1e-6))
    same(*solutions, tolerance=0.0)


# --------------------------------------------------------- (g) stopping and starting


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_stop_interrupts_and_the_bounds_hold(calls: int) -> None:
    instance = made_instance(13)
    counted = 0

    def stop() -> bool:
        nonlocal counted
        counted += 1
        return counted >= calls

    solution = solve(instance, stop=stop)
    assert counted == calls
    assert solution.status is Status.INTERRUPTED
    assert solution.iterations < calls + 1
    assert solution.gap > 1e-6
    assert_certified(solution, convex_problem(instance))
    assert_brackets(solution, solve_convex(instance), instance)


def test_the_iteration_limit_is_a_status() -> None:
    solution = solve(made_instance(13), max_iter=3)
    assert solution.status is Status.ITERATIONS
    assert solution.iterations == 3
    assert solve(made_instance(13), max_iter=0).iterations == 0


def test_bounds_improve_with_every_iteration() -> None:
    solutions = [solve(made_instance(14), max_iter=k) for k in range(25)]
    uppers, lowers = [s.upper for s in solutions], [s.lower for s in solutions]
    assert (np.diff(uppers) <= 0.0).all() and (np.diff(lowers) >= 0.0).all()


@pytest.mark.parametrize(("n", "d"), [(200, 5), (20, 30)])
def test_a_warm_start_is_no_slower_and_ends_at_the_same_optimum(n: int, d: int) -> None:
    instance = made_instance(15, n=n, d=d)
    cold = assert_solved(instance)
    early = solve(instance, 1e-2)
    start = Start(early.coef, early.intercept, early.multipliers, early.barrier)
    nudged = replace(instance, offset=instance.offset + 1e-3)
    for problem in (instance, nudged):
        warm = assert_solved(problem, start=start)
        assert warm.iterations <= cold.iterations
    at_optimum = Start(cold.coef, cold.intercept, cold.multipliers, cold.barrier)
    again = assert_solved(instance, start=at_optimum)
    assert again.upper <= cold.upper * (1 + 1e-6)


@pytest.mark.parametrize("barrier", [None, 10.0, 1e-3, 1e-9])
@pytest.mark.parametrize("kind", ["far out", "wrong signs", "multipliers out of range"])
def test_any_start_will_do(kind: str, barrier: float | None) -> None:
    instance = made_instance(16)
    solution = solve(instance)
    start = {
        "far out": Start(1e3 * solution.coef, -300.0, solution.multipliers, barrier),
        "wrong signs": Start(-solution.coef, 0.3, np.array([0.0, 10.0]), barrier),
        "multipliers out of range": Start(np.zeros(5), 0.0, np.array([-5.0, 1e6]), barrier),
    }[kind]
    for max_iter in (1, 4, 200):
        found = solve(instance, max_iter=max_iter, start=start)
        assert_certified(found, convex_problem(instance))
        assert_brackets(found, solve_convex(instance), instance)
    assert found.gap <= 1e-6


def test_an_intercept_in_the_start_is_dropped_where_there_is_none() -> None:
    instance = made_instance(17, fit_intercept=False)
    start = Start(np.ones(5), 3.0, np.zeros(2))
    assert assert_solved(instance, start=start).intercept == 0.0
