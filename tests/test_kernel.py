"""Kernels: bounds against the true kernel, expansions, and the estimator's habits with them."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from building import convex_problem
from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    churn,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
    stack,
)
from ratebound.kernel_functions import Kernel
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows.base import DualPoint
from ratebound.rows.kernel import KernelRows
from ratebound.solvers.base import Solution, Solver, Status
from ratebound.solvers.choice import choose_solver
from ratebound.solvers.cutting_plane import CuttingPlane
from ratebound.solvers.growing_rank import GrowingRank
from ratebound.solvers.hinges import Hinges
from ratebound.solvers.off_the_shelf import Libsvm
from ratebound.solvers.oracles import remembering
from ratebound.solvers.sdca import SDCA, Ascent
from ratebound.solvers.stored_rows import GramPart, StoredRows
from reference.convex import solve_convex
from reference.instances import Instance, random_instance

Floats = NDArray[np.float64]


# --- referees: kernels as loops, and their feature space by eigenvectors --------------------------


def naive_rbf(A: Any, B: Any, gamma: float) -> Floats:
    return np.array(
        [
            [math.exp(-gamma * sum((s - t) ** 2 for s, t in zip(a, b, strict=True))) for b in B]
            for a in A
        ]
    )


def naive_poly(A: Any, B: Any, gamma: float, degree: int, coef0: float) -> Floats:
    return np.array(
        [
            [(gamma * sum(s * t for s, t in zip(a, b, strict=True)) + coef0) ** degree for b in B]
            for a in A
        ]
    )


def features_of(gram: Floats) -> Floats:
    """Rows whose inner products are a kernel's values."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


GAMMA = 0.3
THIRTY_GOALS = 1


def with_goals(instance: Instance, count: int) -> Instance:
    """The same rows with as many random rates bounded at once."""
    rng = np.random.default_rng(3)
    cells = len(instance.cost)
    table = rng.normal(size=(count, cells))
    weight = np.bincount(instance.cell, weights=instance.weight, minlength=cells)
    table /= np.sum(np.abs(table) * weight, axis=1, keepdims=True)
    negative = np.maximum(-table, 0.0) @ weight
    return replace(instance, table=table, offset=negative - rng.uniform(0.3, 0.7, size=count))


def kernel_instance(index: int, seed: int = 11) -> tuple[Instance, Floats]:
    """A referee's instance whose rows are the features of an RBF kernel, and its original rows."""
    instance = random_instance(seed, index)
    if index == THIRTY_GOALS:
        instance = with_goals(instance, 30)
    raw = instance.X[:, :4]
    X = features_of(naive_rbf(raw, raw, GAMMA))
    factors = np.random.default_rng(index).normal(size=len(raw)) / len(raw)
    anchor = X.T @ factors
    return replace(instance, X=X, anchor_coef=anchor), raw


def kernel_problem(
    instance: Instance, raw: Floats, kernel: Kernel, *, first_rank: int = 3
) -> ConvexProblem:
    cells = len(instance.cost)
    rows = KernelRows(
        [(raw, instance.weight, instance.cell)], cells, kernel, first_rank=first_rank, threads=1
    )
    problem = RampProblem.from_rates(
        rows,
        instance.cost,
        instance.cost_constant,
        sp.csr_array(instance.table.reshape(-1, cells)),
        instance.offset,
        alpha=instance.alpha,
        multiplier_bound=instance.multiplier_bound,
        fit_intercept=instance.fit_intercept,
    )
    coef = np.linalg.lstsq(instance.X.T, instance.anchor_coef, rcond=None)[0]
    return problem.convex_at(coef, instance.anchor_intercept)


def elastic_value(problem: ConvexProblem, gram: Floats, found: Solution) -> float:
    """The elastic objective of a solution, from the full kernel matrix."""
    rows = problem.rows
    assert isinstance(rows, KernelRows)
    scores = gram @ found.coef + found.intercept
    hinges = np.zeros((2, rows.n_cells))
    for i, score in enumerate(scores):
        for side in range(2):
            if rows.cell[i] >= 0 and rows.live[i] & (1 + side):
                hinge = max(0.0, 0.5 + (score if side == 0 else -score))
                hinges[side, rows.cell[i]] += rows.weight[i] * hinge
    excess = np.maximum(problem.constraints @ hinges.ravel() - problem.bound, 0.0).sum()
    norm = float(found.coef @ gram @ found.coef)
    return float(
        np.sum(problem.cost * hinges)
        + problem.constant
        + 0.5 * problem.alpha * norm
        + problem.multiplier_bound * excess
    )


# --- convex problems: lower <= cvxpy <= upper, whatever the factor leaves out ---------------------


@pytest.mark.parametrize("index", range(9))
def test_the_bounds_on_a_growing_factor_hold_the_optimum_of_the_true_kernel(index: int) -> None:
    instance, raw = kernel_instance(index)
    reference = solve_convex(instance, wanted_width=1e-8)
    problem = kernel_problem(instance, raw, Kernel("rbf", gamma=GAMMA))
    found = GrowingRank().solve(problem, 1e-5)
    rounding = 1e-9 * instance.relative_to(reference.optimum_upper)
    assert found.lower <= reference.optimum_upper + rounding
    assert reference.optimum_lower <= found.upper + rounding
    assert found.gap <= 1e-5 and found.status is Status.OPTIMAL
    value = elastic_value(problem, naive_rbf(raw, raw, GAMMA), found)
    assert value == pytest.approx(found.upper, rel=1e-7, abs=rounding)


@pytest.mark.parametrize("index", [2, 5])
@pytest.mark.parametrize("oracle", [Libsvm(), SDCA()], ids=["libsvm", "sdca"])
def test_the_cutting_plane_on_the_kernel_matrix_agrees_with_the_factor(
    index: int, oracle: Any
) -> None:
    instance, raw = kernel_instance(index)
    instance = replace(instance, fit_intercept=True, alpha=max(instance.alpha, 1e-2))
    problem = kernel_problem(instance, raw, Kernel("rbf", gamma=GAMMA))
    solvers: list[Solver] = [GrowingRank(), CuttingPlane(oracle)]
    one, other = (solver.solve(problem, 1e-4) for solver in solvers)
    reference = solve_convex(instance, wanted_width=1e-8)
    rounding = 1e-9 * instance.relative_to(reference.optimum_upper)
    for found in (one, other):
        assert found.lower <= reference.optimum_upper + rounding
        assert reference.optimum_lower <= found.upper + rounding
        assert found.gap <= 1e-4
    assert one.lower <= other.upper + rounding and other.lower <= one.upper + rounding


def narrow_problem(n: int, goals: int = 1) -> ConvexProblem:
    """Labelled rows under a kernel that falls off quickly, and some random rates bounded."""
    X, y, _ = blobs(n)
    instance = error_instance(np.eye(n), y)
    cell = 2 * y + (X[:, 2] > 0)
    table = np.random.default_rng(4).normal(size=(goals, 4))
    table /= np.sum(np.abs(table) * np.bincount(cell), axis=1, keepdims=True)
    offset = np.maximum(-table, 0.0) @ np.bincount(cell).astype(float) - 0.3
    instance = replace(
        instance, cell=cell, cost=np.repeat(instance.cost, 2), table=table, offset=offset,
        multiplier_bound=10.0, anchor_coef=np.zeros(n),
    )  # fmt: skip
    return kernel_problem(instance, X, Kernel("rbf", gamma=20.0), first_rank=40)


def test_passes_over_a_part_of_a_gram_matrix_are_those_over_all_of_it() -> None:
    problem = narrow_problem(200)
    stored = StoredRows(problem.rows)
    hinges = Hinges.of(problem, np.array([0.3]), stored.matrix)
    rng = np.random.default_rng(0)
    dual = rng.uniform(hinges.low, hinges.high)
    coef = -dual / problem.alpha
    scores = stored.scores(coef)
    np.testing.assert_allclose(scores, np.asarray(stored.X) @ coef)
    images = stored.images(np.array([dual, coef]))
    np.testing.assert_allclose(images, np.array([dual, coef]) @ np.asarray(stored.X))
    chosen = np.flatnonzero(rng.uniform(size=200) < 0.4)
    part = GramPart(stored, chosen)
    some = replace(hinges, low=hinges.low[chosen], high=hinges.high[chosen])
    own, own_scores = dual[chosen], scores[chosen]
    step, far, alpha = 0.02, np.inf, problem.alpha
    order = rng.permutation(len(chosen))
    visited = chosen[order]
    here = part.ascend(order.copy(), some, alpha, step, 1.0, far, own, own_scores, 0.1)
    there = stored.ascend(visited.copy(), hinges, alpha, step, 1.0, far, dual, scores, 0.1)
    assert here[0] == pytest.approx(there[0], rel=1e-5)
    assert here[1] == there[1]
    np.testing.assert_allclose(own, dual[chosen], rtol=1e-4, atol=1e-7 * hinges.high.max())
    np.testing.assert_allclose(own_scores, scores[chosen], atol=1e-4)


def test_a_gram_matrix_keeps_what_ascent_has_found_when_the_boxes_change() -> None:
    """Of a narrow kernel, where each row moves itself most, nearly all of it: a few passes do."""
    problem = narrow_problem(300)
    accuracy = 1e-3 * problem.total_cost
    session = remembering(SDCA())
    passes = [
        session.minimize(problem, np.array([multiplier]), accuracy).passes
        for multiplier in (0.0, 0.2, 0.1, 0.15, 0.12, 0.13)
    ]
    assert max(passes[3:]) <= 0.7 * passes[0]


@pytest.mark.parametrize("rows", ["matrix", "dense", "csr"])
def test_the_best_model_of_an_ascent_stays_as_it_was_when_passes_go_on(rows: str) -> None:
    """The value that ascent stops at is that of the model that it returns."""
    X, y, _ = blobs(60)
    for alpha in (1e-1, 1e-2, 1e-3):
        instance = replace(error_instance(np.eye(60), y), alpha=alpha)
        if rows == "matrix":
            problem = kernel_problem(instance, X, Kernel("rbf", gamma=5.0))
        else:
            instance = replace(instance, X=X, anchor_coef=np.zeros(X.shape[1]))
            problem = convex_problem(instance, sparse=rows == "csr")
        for accuracy in (3e-1, 1e-1, 1e-2, 1e-3):
            ascent = Ascent(problem.rows, SDCA())
            found = ascent.solve(problem, np.zeros(0), accuracy * problem.total_cost)
            value = problem.value(found.coef, problem.rows.hinge_sums(found.coef, found.intercept))
            assert found.upper == pytest.approx(value, rel=1e-12)


def test_a_dual_bound_needs_no_more_than_inner_products() -> None:
    problem = narrow_problem(80)
    gram = naive_rbf(*2 * [blobs(80)[0]], gamma=20.0)
    multipliers = np.array([0.2])
    stored = StoredRows(problem.rows)
    hinges = Hinges.of(problem, multipliers, stored.matrix)
    sides = hinges.sides(np.random.default_rng(1).uniform(hinges.low, hinges.high))
    totals = sides.sum(axis=1)
    bare, known = DualPoint(sides, totals), DualPoint(sides, totals, inner=sides @ gram @ sides.T)
    expected = problem.dual_bound(multipliers, bare, 0.3)
    assert problem.dual_bound(multipliers, known, 0.3) == pytest.approx(expected, rel=1e-10)


def ramp_of(problem: ConvexProblem) -> RampProblem:
    return RampProblem(
        problem.rows, problem.cost, problem.constraints, problem.bound, problem.alpha, 10.0, True
    )


def test_auto_takes_the_matrix_of_a_narrow_kernel_where_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, _ = blobs(200)
    smooth = kernel_problem(
        error_instance(np.eye(200), y), X, Kernel("rbf", gamma=0.05), first_rank=40
    )
    solver, why = choose_solver("auto", ramp_of(smooth))
    assert isinstance(solver, GrowingRank) and "of the kernel: 40 columns" in why
    solver, why = choose_solver("auto", ramp_of(narrow_problem(200)))
    assert isinstance(solver, CuttingPlane) and "on the kernel matrix (0.0003 GiB)" in why
    solver, why = choose_solver("auto", ramp_of(narrow_problem(200, goals=9)))
    assert isinstance(solver, GrowingRank) and "9 goals are many" in why
    monkeypatch.setattr("ratebound.solvers.choice.LARGEST_MATRIX", 2e-4)
    solver, why = choose_solver("auto", ramp_of(narrow_problem(200)))
    assert isinstance(solver, GrowingRank) and "the kernel matrix would take" in why
    solver, why = choose_solver("interior-point", ramp_of(narrow_problem(200)))
    assert isinstance(solver, GrowingRank) and why.endswith("asked for")


@pytest.mark.parametrize("calls", [0, 1, 3, 8, 20])
def test_wherever_it_is_stopped_the_bounds_hold(calls: int) -> None:
    instance, raw = kernel_instance(2)
    reference = solve_convex(instance, wanted_width=1e-8)
    left = iter(range(calls))
    problem = kernel_problem(instance, raw, Kernel("rbf", gamma=GAMMA))
    found = GrowingRank().solve(problem, 1e-9, stop=lambda: next(left, None) is None)
    rounding = 1e-9 * instance.relative_to(reference.optimum_upper)
    assert found.lower <= reference.optimum_upper + rounding
    assert reference.optimum_lower <= found.upper + rounding


def blobs(n: int, seed: int = 0) -> tuple[Floats, NDArray[np.int64], NDArray[np.str_]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.4 * rng.normal(size=n) > 0.8).astype(int)
    return X, y, np.where(X[:, 2] + 0.5 * y > 0, "a", "b")


def test_the_rank_grows_until_the_true_gap_is_small_and_only_then() -> None:
    X, y, _ = blobs(250)
    instance = error_instance(naive_rbf(X, X, 0.5), y)
    reference = solve_convex(instance, wanted_width=1e-7)
    ranks = []
    for tolerance in (0.3, 1e-2, 1e-5):
        problem = kernel_problem(instance, X, Kernel("rbf", gamma=0.5), first_rank=5)
        found = GrowingRank().solve(problem, tolerance)
        assert found.gap <= tolerance
        assert found.lower <= reference.optimum_upper + 1e-9
        assert reference.optimum_lower <= found.upper + 1e-9
        assert isinstance(problem.rows, KernelRows)
        ranks.append(problem.rows.factor.rank)
    assert ranks[0] < ranks[1] < ranks[2] < len(y)


# --- the estimator --------------------------------------------------------------------------------

REACHABLE = Goals(error_rate(), [recall() >= 0.9])
FAIR = Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.8])


@parametrize_with_checks([RateBoundSVC(REACHABLE, kernel="rbf")])
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_linear_kernel_is_the_linear_model() -> None:
    X, y, sex = blobs(200)

    def inner_products(A: Any, B: Any) -> Any:
        return A @ B.T

    same: dict[str, Any] = {"tol": 1e-6, "threshold": "zero", "start": "zero"}
    plain = RateBoundSVC(FAIR, **same).fit(X, y, columns={"sex": sex})
    kernel = RateBoundSVC(FAIR, **same, kernel=inner_products).fit(X, y, columns={"sex": sex})
    one, other = plain.history_[0], kernel.history_[0]
    assert one.lower <= other.upper + 1e-12 and other.lower <= one.upper + 1e-12
    assert kernel.decision_function(X) == pytest.approx(plain.decision_function(X), abs=0.02)
    assert kernel.history_[-1].objective == pytest.approx(plain.history_[-1].objective, rel=1e-3)


@pytest.mark.parametrize("form", ["dense", "csr", "float32"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_scores_are_the_naive_expansion(kernel: str, form: str) -> None:
    X, y, _ = blobs(120)
    new, _, _ = blobs(30, seed=1)
    given = {"dense": np.asarray, "csr": sp.csr_array, "float32": np.float32}[form]
    clf = RateBoundSVC(REACHABLE, kernel=kernel, gamma=0.5, degree=2, coef0=1.0)
    clf.fit(given(X), y)
    vectors = clf.support_vectors_
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    assert np.array_equal(
        vectors, given(X).toarray()[clf.support_] if form == "csr" else given(X)[clf.support_]
    )
    seen = np.float64(np.float32(new) if form == "float32" else new)
    vectors = np.float64(vectors)
    values = (
        naive_rbf(seen, vectors, 0.5) if kernel == "rbf" else naive_poly(seen, vectors, 0.5, 2, 1.0)
    )
    expected = values @ clf.dual_coef_[0] + clf.intercept_
    scale = np.abs(clf.dual_coef_).sum() * np.abs(values).max()
    assert clf.decision_function(given(new)) == pytest.approx(expected, abs=1e-9 * scale)
    assert np.array_equal(
        clf.predict(given(new)), (clf.decision_function(given(new)) > 0).astype(int)
    )
    assert clf.n_features_in_ == 3
    with pytest.raises(AttributeError, match=r"coef_ with kernel=\"linear\" only"):
        _ = clf.coef_


def error_instance(gram: Floats, y: NDArray[np.int64]) -> Instance:
    """The error rate alone at the anchor 0."""
    X = features_of(gram)
    return Instance(
        X=X, weight=np.ones(len(y)), cell=y.astype(np.intp), cost=np.array([1.0, -1.0]) / len(y),
        cost_constant=float(np.mean(y)), table=np.zeros((0, 2)), offset=np.zeros(0),
        alpha=1.0 / len(y), multiplier_bound=1.0, anchor_coef=np.zeros(X.shape[1]),
        anchor_intercept=0.0, fit_intercept=True,
    )  # fmt: skip


def test_without_goals_it_is_the_support_vector_machine() -> None:
    """At the anchor 0 the convex problem is an SVM with C = 2 / (n alpha), at twice the scores."""
    X, y, _ = blobs(150)
    instance = error_instance(naive_rbf(X, X, 0.7), y)
    problem = kernel_problem(instance, X, Kernel("rbf", gamma=0.7), first_rank=10)
    found = GrowingRank().solve(problem, 1e-6)
    svc = SVC(C=2.0, gamma=0.7, tol=1e-8).fit(X, y)
    scores = svc.decision_function(X)
    factors = np.ravel(svc.dual_coef_)
    norm = factors @ naive_rbf(X[svc.support_], X[svc.support_], 0.7) @ factors
    hinges = np.maximum(0.0, 1.0 - (2 * y - 1) * scores)
    value = 0.5 * np.mean(hinges) + norm / (8 * len(y))
    assert found.gap <= 1e-6
    assert found.lower <= value * (1 + 1e-9) and value <= found.upper * (1 + 1e-9)


def test_gamma_follows_scikit_learn() -> None:
    X, y, _ = blobs(90)
    X = X * [1.0, 2.0, 0.5]
    for gamma, number in (("scale", 1 / (3 * X.var())), ("auto", 1 / 3)):
        named = RateBoundSVC(kernel="rbf", gamma=gamma).fit(X, y)
        given = RateBoundSVC(kernel="rbf", gamma=number).fit(X, y)
        assert named.decision_function(X) == pytest.approx(given.decision_function(X), abs=1e-6)
    sparse = RateBoundSVC(kernel="rbf").fit(sp.csr_array(X), y)
    dense = RateBoundSVC(kernel="rbf").fit(X, y)
    assert sparse.decision_function(X) == pytest.approx(dense.decision_function(X), abs=1e-6)


def test_both_ways_agree_within_their_gaps() -> None:
    X, y, sex = blobs(160)
    first = []
    for solver in ("interior-point", "cutting-plane"):
        clf = RateBoundSVC(FAIR, kernel="rbf", gamma=0.5, solver=solver, tol=1e-3)
        first.append(clf.fit(X, y, columns={"sex": sex}).history_[0])
        assert clf.report_.met
        assert clf.status_.solver.startswith(solver)
    assert first[0].lower <= first[1].upper and first[1].lower <= first[0].upper


def test_a_precomputed_kernel_is_the_same_model() -> None:
    X, y, sex = blobs(150)
    new, _, _ = blobs(40, seed=5)
    rbf = RateBoundSVC(FAIR, kernel="rbf", gamma=0.5).fit(X, y, columns={"sex": sex})
    given = RateBoundSVC(FAIR, kernel="precomputed")
    given.fit(naive_rbf(X, X, 0.5), y, columns={"sex": sex})
    assert given.support_vectors_.size == 0 and len(given.support_) == given.dual_coef_.shape[1]
    expected = rbf.decision_function(new)
    assert given.decision_function(naive_rbf(new, X, 0.5)) == pytest.approx(expected, abs=1e-6)
    assert given.report_.objective_strict == rbf.report_.objective_strict


def test_datasets_meet_in_the_kernel_and_stacked_rows_do_too() -> None:
    X, y, _ = blobs(100)
    traffic, _, _ = blobs(80, seed=3)
    baseline = (traffic[:, 1] > 0).astype(int)
    goals = Goals(error_rate(), [churn(on="traffic") <= 0.3])
    apart = RateBoundSVC(goals, kernel="rbf", gamma=0.5)
    apart.fit(X, y, datasets={"traffic": Dataset(traffic, baseline=baseline)})
    assert apart.report_.met
    together = np.vstack([X, traffic])
    assert np.array_equal(apart.support_vectors_, together[apart.support_])
    changed = np.mean(apart.predict(traffic) != baseline)
    assert apart.report_.goals[0].strict == pytest.approx(changed)

    stacked = stack(
        train=Dataset(X, y), traffic=Dataset(traffic, np.zeros(80, int), baseline=baseline)
    )
    fitted = RateBoundSVC(goals, kernel="precomputed").fit(
        naive_rbf(stacked.X, stacked.X, 0.5), stacked.y, sample_weight=stacked.sample_weight,
        baseline=stacked.baseline, columns=stacked.columns, datasets="dataset",
    )  # fmt: skip
    scores = fitted.decision_function(naive_rbf(X, stacked.X, 0.5))
    assert scores == pytest.approx(apart.decision_function(X), abs=2e-2)
    assert fitted.report_.met


def test_weights_are_repetition() -> None:
    X, y, _ = blobs(80)
    weight = np.random.default_rng(0).integers(0, 4, size=80)
    weighted = RateBoundSVC(kernel="rbf").fit(X, y, sample_weight=weight)
    repeated = RateBoundSVC(kernel="rbf").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-6)


def test_the_other_positive_label_mirrors_the_model() -> None:
    X, y, _ = blobs(120)
    one = RateBoundSVC(Goals(error_rate()), kernel="rbf", gamma=0.5).fit(X, y)
    other = RateBoundSVC(Goals(error_rate(), pos_label=0), kernel="rbf", gamma=0.5).fit(X, y)
    assert np.mean(one.predict(X) == other.predict(X)) > 0.97
    assert other.positive_probability(X) == pytest.approx(1 - one.positive_probability(X), abs=0.05)


def test_copies_decide_alike() -> None:
    X, y, _ = blobs(80)
    clf = RateBoundSVC(REACHABLE, kernel="rbf").fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.decision_function(X), clf.decision_function(X))
    fresh = clone(clf).fit(X, y)
    assert np.array_equal(fresh.decision_function(X), clf.decision_function(X))
    back = clf.set_params(kernel="linear").fit(X, y)
    assert back.coef_.shape == (3,) and not hasattr(back, "dual_coef_")


def bell(A: Any, B: Any) -> Any:
    return naive_rbf(A, B, 0.5)


def test_a_search_slices_a_precomputed_kernel_on_both_axes() -> None:
    X, y, _ = blobs(120)
    gram = naive_rbf(X, X, 0.5)
    goals = Goals(error_rate(), [false_positive_rate() <= 0.4])
    search = GridSearchCV(RateBoundSVC(goals, kernel="precomputed"), {"alpha": [1e-3, 1e-1]}, cv=3)
    search.fit(gram, y)
    direct = cross_val_score(RateBoundSVC(goals, kernel="rbf", gamma=0.5, alpha=1e-1), X, y, cv=3)
    sliced = cross_val_score(RateBoundSVC(goals, kernel="precomputed", alpha=1e-1), gram, y, cv=3)
    assert sliced == pytest.approx(direct)
    called = cross_val_score(RateBoundSVC(goals, kernel=bell, alpha=1e-1), X, y, cv=3)
    assert called == pytest.approx(direct)
    assert search.predict(gram).shape == (120,)


# --- what is refused ------------------------------------------------------------------------------


def tanh_of_products(A: Any, B: Any) -> Any:
    return np.tanh(A @ B.T - 1.0)


def lopsided(A: Any, B: Any) -> Any:
    return np.exp(-np.abs(A[:, :1] - B[:, 0])) + 0.1 * (A[:, :1] - B[:, 0])


def one_value(A: Any, B: Any) -> Any:
    return np.ones(len(A))


@pytest.mark.parametrize("solver", ["interior-point", "cutting-plane"])
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (tanh_of_products, r"tanh_of_products is not positive semidefinite.* pivot"),
        (lopsided, r"lopsided is not symmetric"),
        (one_value, r"one_value returned shape \(\d+,\)"),
        ("sigmoid", r"\"sigmoid\" is not offered: it is not positive semidefinite"),
        ("gaussian", r"kernel must be one of 'linear', 'rbf'.* got 'gaussian'"),
    ],
)
def test_a_kernel_that_will_not_do_is_named(kernel: Any, message: str, solver: str) -> None:
    X, y, _ = blobs(60)
    with pytest.raises(ValueError, match=message):
        RateBoundSVC(kernel=kernel, solver=solver).fit(X, y)


def test_an_indefinite_matrix_is_refused_and_one_with_rounding_is_not() -> None:
    X, y, _ = blobs(60)
    gram = naive_rbf(X, X, 0.5)
    values, vectors = np.linalg.eigh(gram)
    values[0] = -0.3
    with pytest.raises(ValueError, match=r"\"precomputed\" is not positive semidefinite"):
        RateBoundSVC(kernel="precomputed").fit((vectors * values) @ vectors.T, y)
    noise = np.random.default_rng(0).normal(size=gram.shape)
    rounded = gram + 1e-13 * (noise + noise.T)
    assert RateBoundSVC(kernel="precomputed").fit(rounded, y).status_.converged


def test_a_precomputed_kernel_is_square_symmetric_and_of_all_rows() -> None:
    X, y, _ = blobs(50)
    gram = naive_rbf(X, X, 0.5)
    with pytest.raises(ValueError, match="square matrix"):
        RateBoundSVC(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="not symmetric"):
        RateBoundSVC(kernel="precomputed").fit(np.triu(gram), y)
    goals = Goals(error_rate(), [recall(on="audit") >= 0.5])
    with pytest.raises(ValueError, match="stack"):
        RateBoundSVC(goals, kernel="precomputed").fit(gram, y, datasets={"audit": Dataset(gram, y)})
