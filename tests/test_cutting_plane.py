"""Algorithm 2: its erratum, its silent oracles, what it tells, and its way into a fit."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from building import convex_problem
from ratebound import Goals, RateBoundSVC, churn, positive_rate, recall
from ratebound.solvers import (
    SDCA,
    CenterOfMass,
    CuttingPlane,
    Inner,
    InteriorPoint,
    Liblinear,
    Libsvm,
    Maximization,
)
from ratebound.solvers.base import Start, Status
from ratebound.solvers.cutting_plane import Progress
from reference.convex import solve_convex
from test_solver_contract import PROBLEMS


@pytest.mark.parametrize("name", ["random 3", "random 13", "thirty goals"])
def test_a_single_cut_is_no_answer(name: str) -> None:
    """The erratum: with U - L closed, the cut's elastic value is far above the combination's."""
    problem = convex_problem(PROBLEMS[name])
    optimum = solve_convex(PROBLEMS[name]).optimum
    scale = PROBLEMS[name].relative_to(optimum)
    mixed = CuttingPlane(Inner()).solve(problem, 1e-4)
    single = CuttingPlane(Inner(), answer="cut").solve(problem, 1e-4)
    assert mixed.upper - optimum <= 1.1e-4 * scale
    assert single.upper - optimum > 1e-3 * scale
    assert single.lower <= optimum + 1e-7 * scale  # what it says of itself is still true
    assert single.gap > 1e-3


@pytest.mark.parametrize("name", ["random 3", "random 13", "thirty goals"])
def test_an_oracle_without_bounds_stops_where_cuts_no_longer_help(name: str) -> None:
    problem = convex_problem(PROBLEMS[name])
    solution = CuttingPlane(Liblinear(bound="none"), max_iter=60).solve(problem, 1e-3)
    reference = solve_convex(PROBLEMS[name])
    assert solution.lower == -np.inf
    assert solution.status is Status.STALLED
    assert solution.upper >= reference.optimum_lower - 1e-9
    assert np.isfinite(solution.multipliers).all()


@pytest.mark.parametrize("chooser", [Maximization(), CenterOfMass()])
def test_progress_tells_the_bounds_of_every_step(chooser: Any) -> None:
    problem = convex_problem(PROBLEMS["random 19"])
    seen: list[Progress] = []
    solution = CuttingPlane(SDCA(), chooser, trace=seen.append).solve(problem, 1e-4)
    assert len(seen) == solution.iterations == seen[-1].cuts
    optimum = solve_convex(PROBLEMS["random 19"])
    for before, after in itertools.pairwise(seen):
        assert after.lower >= before.lower and after.upper <= before.upper
        assert after.program <= before.program + 1e-9  # U_t never rises
        assert after.passes > before.passes and after.lines > before.lines
    for step in seen:
        assert step.lower <= optimum.optimum_upper + 1e-8
        assert step.program >= optimum.optimum_lower - 1e-8
        assert step.accuracy > 0


def test_a_good_start_saves_cuts() -> None:
    problem = convex_problem(PROBLEMS["random 13"])
    cold = CuttingPlane(Inner()).solve(problem, 1e-4)
    start = Start(cold.coef, cold.intercept, cold.multipliers)
    warm = CuttingPlane(Inner()).solve(problem, 1e-4, start)
    assert warm.status is Status.OPTIMAL
    assert warm.iterations < cold.iterations


# ---- in a fit ------------------------------------------------------------------------------------

GOALS = Goals(minimize=positive_rate(), subject_to=[recall() >= 0.9, churn() <= 0.2])


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_classification(300, n_features=5, flip_y=0.1, random_state=0)
    deployed = (X[:, 0] + X[:, 1] > 0).astype(int)
    return X, y, deployed


@pytest.mark.parametrize(
    "solver",
    ["cutting-plane", CuttingPlane(Inner()), CuttingPlane(Libsvm()), InteriorPoint(60)],
    ids=["name", "inner", "libsvm", "interior point"],
)
def test_a_fit_is_as_good_with_any_solver(solver: Any, data: Any) -> None:
    X, y, deployed = data
    wanted = RateBoundSVC(GOALS, threshold="zero", tol=1e-3).fit(X, y, baseline=deployed)
    fitted = clone(RateBoundSVC(GOALS, solver=solver, threshold="zero", tol=1e-3))
    fitted.fit(X, y, baseline=deployed)
    assert fitted.status_.converged
    assert all(step.gap <= 0.1 for step in fitted.history_)
    assert fitted.history_[-1].gap <= 1e-3
    # majorization's paths may part, but not by much here
    assert fitted.history_[-1].objective == pytest.approx(wanted.history_[-1].objective, rel=0.02)
    named = solver if isinstance(solver, str) else type(solver).__name__
    assert fitted.status_.solver.startswith(named)
    assert fitted.get_params()["solver"] == solver
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).coef_, fitted.coef_)


def test_auto_says_why() -> None:
    X, y = make_classification(60, n_features=3, n_informative=2, n_redundant=0, random_state=0)
    assert RateBoundSVC().fit(X, y).status_.solver == (
        "interior-point: of 60 rows x 3 columns, X'DX is small enough to be factorised"
    )


def test_a_fit_leaves_the_settings_as_they_were(data: Any) -> None:
    X, y, deployed = data
    solver = CuttingPlane(SDCA())
    RateBoundSVC(GOALS, solver=solver, threshold="zero", tol=1e-2).fit(X, y, baseline=deployed)
    assert solver == CuttingPlane(SDCA())


@pytest.mark.parametrize("wrong", ["simplex", SDCA(), 3])
def test_what_is_no_solver_is_named(wrong: Any, data: Any) -> None:
    X, y, _ = data
    with pytest.raises(ValueError, match="'solver'"):
        RateBoundSVC(solver=wrong).fit(X, y)
