"""Score gaps: Zafar et al.'s covariance goals, against cvxpy and against loops over rows."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from building import compiled
from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    between,
    error_rate,
    false_positive_rate,
    parse_goal,
    positive_rate,
    recall,
    score_gap,
)
from ratebound.majorize import Majorization
from ratebound.problem import RateProblem
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows.gaps import with_gap_rows
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.base import Start
from ratebound.solvers.interior_point import InteriorPoint

FORMS = ("linear", "hinge", "ramp")
ALPHA = 0.01


class Data(NamedTuple):
    X: Any
    y: Any
    group: Any
    weight: Any


def data(groups: int = 2, n: int = 150, d: int = 4, seed: int = 0) -> Data:
    """Rows whose first feature differs by group and predicts the label."""
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=n)
    X = rng.normal(size=(n, d))
    X[:, 0] += group
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 0.5 * groups).astype(int)
    return Data(X, y, np.array(list("abcd"))[group], rng.choice([0.5, 1.0, 2.0], size=n))


def mean_difference(data: Data, scores: Any, a: str, b: str) -> float:
    """Mean score of group a less that of b, in a loop over rows."""
    sums = {a: 0.0, b: 0.0}
    weights = {a: 0.0, b: 0.0}
    for group, weight, score in zip(data.group, data.weight, scores, strict=True):
        if group in sums:
            sums[group] += weight * score
            weights[group] += weight
    return sums[a] / weights[a] - sums[b] / weights[b]


def mean_rows(data: Data) -> dict[str, Any]:
    """x̄ of every group."""
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    return {
        str(g): np.average(X[data.group == g], axis=0, weights=data.weight[data.group == g])
        for g in np.unique(data.group)
    }


def problem_of(
    goals: Goals, data: Data, *, price: float = 10.0, fit_intercept: bool = True
) -> tuple[RateProblem, RampProblem]:
    """The goals on the data, as training sees them."""
    rates = compiled(
        goals, data.X, data.y, sample_weight=data.weight, columns={"group": data.group}
    )
    blocks = [(block.X, block.weight, block.cell) for block in rates.blocks]
    rows = with_gap_rows(MemoryRows(blocks, len(rates.cost), threads=1), rates.score_gaps, blocks)
    ramp = RampProblem.from_rates(
        rows, rates.cost, rates.cost_constant, rates.table, rates.offset,
        alpha=ALPHA, multiplier_bound=price, fit_intercept=fit_intercept,
    )  # fmt: skip
    return rates, ramp


def convex(goals: Goals, data: Data, **options: Any) -> ConvexProblem:
    _, ramp = problem_of(goals, data, **options)
    return ramp.convex_at(np.zeros(data.X.shape[1]), 0.0)


def referee(
    data: Data, c: float, *, price: float | None = None, fit_intercept: bool = True
) -> tuple[float, Any]:
    """The bound of the error rate at anchor zero with |<w, x̄_a - x̄_b>| <= c, by cvxpy.

    The constraint itself, or at a price of a unit of its violation.
    """
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    sign = np.where(data.y > 0, -1.0, 1.0)
    hinges = cp.pos(0.5 + cp.multiply(sign, X @ w + b))
    value = data.weight @ hinges / data.weight.sum() + ALPHA / 2 * cp.sum_squares(w)
    constraints = [] if fit_intercept else [b == 0]
    means = list(mean_rows(data).values())
    for i, first in enumerate(means):
        for second in means[:i]:
            gap = cp.abs((first - second) @ w)
            if price is None:
                constraints.append(gap <= c)
            else:
                value += price * cp.pos(gap - c)
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value), w.value


class TestLanguage:
    @pytest.mark.parametrize("form", FORMS)
    def test_text_and_copies(self, form):
        goal = score_gap(by=["sex", "age band"], on="audit", where={"a": [1, 2]}, form=form) <= 0.1
        for again in (parse_goal(str(goal)), pickle.loads(pickle.dumps(goal)), copy.deepcopy(goal)):
            assert again == goal
            assert hash(again) == hash(goal)
        assert goal.columns == {("audit", "a"), ("audit", "sex"), ("audit", "age band")}
        assert goal.datasets == {"audit"}
        assert not goal.reads_labels
        assert not goal.reads_baseline

    def test_printed(self):
        goal = score_gap(by="sex", form="ramp", allow_empty=True) <= 2
        assert str(goal) == "score_gap(form=ramp, by=sex, allow_empty=True) <= 2"
        assert str(score_gap(by="sex")) == "score_gap(by=sex)"

    def test_different_things_differ(self):
        some = [score_gap(by="sex"), score_gap(by="sex", form="hinge"), score_gap(by="age")]
        some += [score_gap(by="sex", on="audit"), positive_rate(by="sex").gap()]
        assert len(set(some)) == len(some)

    @pytest.mark.parametrize(
        ("operation", "remedy"),
        [
            (lambda: score_gap(), r"name their column"),
            (lambda: score_gap(by="sex", form="cubic"), r"'linear', 'hinge', 'ramp'"),
            (lambda: score_gap(by="sex") >= 0.1, r"score_gap\(by=sex\) <= 0.1"),
            (lambda: score_gap(by="sex") <= -0.1, r"at least 0"),
            (lambda: score_gap(by="sex", form="ramp") <= 0, r"above 0"),
            (lambda: score_gap(by="sex") <= positive_rate(), r"compare each with a number"),
            (lambda: score_gap(by="sex") + 1, r"compare it with a number"),
            (lambda: -score_gap(by="sex"), r"compare it with a number"),
            (lambda: score_gap(by="sex").gap(), r"without \.gap\(\)"),
            (lambda: between(score_gap(by="sex"), 0, 1), r"between takes a rate"),
            (lambda: Goals(score_gap(by="sex")), r"minimize takes a rate"),
            (lambda: parse_goal("score_gap(by=sex).max() <= 1"), r"without \.max\(\)"),
        ],
    )
    def test_misuse(self, operation, remedy):
        with pytest.raises((TypeError, ValueError), match=remedy):
            operation()

    def test_one_group_compares_with_nothing(self):
        one = data(groups=1)
        with pytest.raises(ValueError, match="one only: a"):
            problem_of(Goals(subject_to=[score_gap(by="group") <= 1]), one)

    def test_empty_groups_are_dropped_on_demand(self):
        some = data(groups=3)
        young = np.where(some.group == "b", "no", "yes")
        columns = {"group": some.group, "young": young}
        goal = score_gap(by="group", where={"young": "yes"}) <= 0.1
        with pytest.raises(ValueError, match="allow_empty=True"):
            compiled(Goals(subject_to=[goal]), some.X, some.y, columns=columns)
        goal = score_gap(by="group", where={"young": "yes"}, allow_empty=True) <= 0.1
        with pytest.warns(UserWarning, match="dropped groups without rows to measure: b"):
            rates = compiled(Goals(subject_to=[goal]), some.X, some.y, columns=columns)
        assert rates.goals[0].groups == ("a - c",)


class TestConvexProblem:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("groups", [2, 3])
    @pytest.mark.parametrize("c", [0.3, 0.02])
    def test_is_the_linear_constraint(self, form, groups, c):
        some = data(groups)
        goals = Goals(subject_to=[score_gap(by="group", form=form) <= c])
        optimum, w = referee(some, c)
        solution = InteriorPoint().solve(convex(goals, some), 1e-7)
        assert solution.lower <= optimum + 1e-9
        assert solution.upper >= optimum - 1e-9
        assert solution.upper - solution.lower <= 1e-7
        np.testing.assert_allclose(solution.coef, w, atol=1e-3)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_is_elastic_at_its_price(self, form, fit_intercept):
        some, price = data(3), 0.02
        goals = Goals(subject_to=[score_gap(by="group", form=form) <= 0.02])
        optimum, _ = referee(some, 0.02, price=price, fit_intercept=fit_intercept)
        hard, _ = referee(some, 0.02, fit_intercept=fit_intercept)
        assert optimum < hard - 1e-3  # so this price is one at which the goal is not met
        problem = convex(goals, some, price=price, fit_intercept=fit_intercept)
        solution = InteriorPoint().solve(problem, 1e-7)
        assert solution.lower - 1e-9 <= optimum <= solution.upper + 1e-9
        assert solution.upper - solution.lower <= 1e-7

    def test_no_gap_at_all(self):
        some = data()
        optimum, _ = referee(some, 0.0)
        goals = Goals(subject_to=[score_gap(by="group") <= 0])
        solution = InteriorPoint().solve(convex(goals, some), 1e-6)
        assert solution.lower - 1e-9 <= optimum <= solution.upper + 1e-9

    def test_csr_rows_and_few_rows(self):
        for some in (data(n=150, d=4), data(n=20, d=40)):
            goals = Goals(subject_to=[score_gap(by="group") <= 0.1])
            optimum, _ = referee(some, 0.1)
            for X in (some.X, sp.csr_array(some.X)):
                solution = InteriorPoint().solve(convex(goals, some._replace(X=X)), 1e-6)
                assert solution.lower - 1e-9 <= optimum <= solution.upper + 1e-9
                assert solution.upper - solution.lower <= 1e-6

    @pytest.mark.parametrize("steps", [0, 1, 3, 6])
    def test_bounds_hold_wherever_it_stops(self, steps):
        some = data(3)
        goals = Goals(subject_to=[score_gap(by="group") <= 0.02])
        optimum, _ = referee(some, 0.02, price=10.0)
        solution = InteriorPoint(max_iter=steps).solve(convex(goals, some), 1e-9)
        assert solution.lower - 1e-9 <= optimum <= solution.upper + 1e-9

    def test_price_is_a_difference_of_optima(self):
        some, step = data(), 1e-3
        solution = InteriorPoint().solve(
            convex(Goals(subject_to=[score_gap(by="group") <= 0.05]), some), 1e-8
        )
        slope = (referee(some, 0.05 - step)[0] - referee(some, 0.05 + step)[0]) / (2 * step)
        assert slope > 0.05
        assert math.isclose(float(solution.multipliers.sum()), slope, rel_tol=1e-3)

    def test_beside_a_rate(self):
        """With a goal on a rate: the rate's rows see the bias, the gap's do not."""
        some = data()
        goals = Goals(false_positive_rate(), [recall() >= 0.7, score_gap(by="group") <= 0.1])
        w, b = cp.Variable(4), cp.Variable()
        scores, weight, positive = some.X @ w + b, some.weight, some.y > 0
        objective = weight[~positive] @ cp.pos(0.5 + scores[~positive]) / weight[~positive].sum()
        missed = weight[positive] @ cp.pos(0.5 - scores[positive]) / weight[positive].sum()
        means = mean_rows(some)
        problem = cp.Problem(
            cp.Minimize(objective + ALPHA / 2 * cp.sum_squares(w)),
            [missed <= 0.3, cp.abs((means["a"] - means["b"]) @ w) <= 0.1],
        )
        problem.solve(solver=cp.CLARABEL)
        solution = InteriorPoint().solve(convex(goals, some), 1e-6)
        assert solution.lower - 1e-7 <= problem.value <= solution.upper + 1e-7

    def test_beside_an_objective_of_one_sign(self):
        """Nothing but the gap's rows charges negative scores; deciding all negatively is free."""
        goals = Goals(positive_rate(), [score_gap(by="group") <= 0.1])
        solution = InteriorPoint().solve(convex(goals, data()), 1e-6)
        assert solution.lower <= 0.0 <= solution.upper <= 1e-9
        assert solution.gap <= 1e-6
        assert solution.violation <= 0

    def test_oracles_of_single_rows_are_refused(self):
        problem = convex(Goals(subject_to=[score_gap(by="group") <= 0.1]), data())
        with pytest.raises(RuntimeError, match='solver="interior-point"'):
            problem.rows.matrix()


@pytest.mark.parametrize("form", ["linear", "hinge"])
def test_linear_forms_are_the_constraint_at_any_anchor(form):
    some, c = data(), 0.05
    means = mean_rows(some)
    direction = (means["b"] - means["a"]) / ((means["b"] - means["a"]) @ (means["b"] - means["a"]))
    _, ramp = problem_of(Goals(subject_to=[score_gap(by="group", form=form) <= c]), some)
    for anchor in (-4.0, 0.0, 4.0):
        bound = ramp.convex_at(anchor * direction, 0.3)
        for gap in (-3.0, -0.01, 0.0, 0.2, 3.0):
            violation = bound.violations(bound.rows.hinge_sums(gap * direction, -0.2)).max()
            assert math.isclose(max(violation, 0.0), max(abs(gap) - c, 0.0), abs_tol=1e-12)


class TestRampForm:
    def test_is_majorized(self):
        """Beyond d = 2c the ramp is flat and its bound constant, as at a rate's rows."""
        some, c = data(), 0.05
        means = mean_rows(some)
        direction = means["b"] - means["a"]
        rates, ramp = problem_of(Goals(subject_to=[score_gap(by="group", form="ramp") <= c]), some)
        for gap, value in [(0.5 * c, 0.5 * c), (-c, c), (2 * c, 2 * c), (5 * c, 2 * c)]:
            coef = gap * direction / (direction @ direction)
            violation = ramp.violations(ramp.rows.ramp_sums(coef, 0.3)).max()
            assert math.isclose(violation, value - c, abs_tol=1e-12)
            bound = ramp.convex_at(coef, 0.3)
            hinges = bound.rows.hinge_sums(coef, 0.3)
            assert math.isclose(bound.violations(hinges).max(), value - c, abs_tol=1e-12)
            # what is reported does not saturate
            P = ramp.rows.decision_sums(coef, 0.3)
            assert math.isclose(rates.goals[0].value(P), abs(gap), abs_tol=1e-12)

    def test_the_penalised_objective_never_rises(self):
        _, ramp = problem_of(Goals(subject_to=[score_gap(by="group", form="ramp") <= 0.05]), data())
        start = Start(np.array([2.0, 0.0, 0.0, 0.0]), 0.0, np.zeros(2))
        fit = Majorization(InteriorPoint(), 1e-5, adapt_price=False).run(ramp, start)
        penalised = [step.penalised for step in fit.history]
        assert all(b <= a + 1e-12 for a, b in itertools.pairwise(penalised))


class TestFit:
    @pytest.mark.parametrize("start", ["zero", "homotopy"])
    @pytest.mark.parametrize("form", FORMS)
    def test_meets_the_goal_by_its_scores(self, form, start):
        some, c = data(3), 0.1
        goals = Goals(subject_to=[score_gap(by="group", form=form) <= c, recall() >= 0.5])
        clf = RateBoundSVC(goals, alpha=ALPHA, start=start)
        clf.fit(some.X, some.y, sample_weight=some.weight, columns={"group": some.group})
        scores = clf.decision_function(some.X)
        pairs = {"a - b": ("a", "b"), "a - c": ("a", "c"), "b - c": ("b", "c")}
        gaps = {name: abs(mean_difference(some, scores, *pair)) for name, pair in pairs.items()}
        line = clf.report_.goals[0]
        assert line.met
        assert max(gaps.values()) <= c + 1e-9
        assert max(gaps.values()) > 0.9 * c
        assert math.isclose(line.strict, max(gaps.values()), abs_tol=1e-12)
        assert line.expected == line.strict
        assert line.price > 0
        assert line.groups == pytest.approx(gaps, abs=1e-12)

    def test_the_threshold_does_not_matter(self):
        some = data()
        goals = Goals(positive_rate(), [score_gap(by="group") <= 0.1, recall() >= 0.9])
        clf = RateBoundSVC(goals, alpha=ALPHA)
        clf.fit(some.X, some.y, sample_weight=some.weight, columns={"group": some.group})
        assert clf.status_.goals_met
        assert clf.threshold_shift_ != 0
        by_coef = abs(mean_difference(some, some.X @ clf.coef_, "a", "b"))
        assert math.isclose(clf.report_.goals[0].strict, by_coef, abs_tol=1e-12)

    def test_another_dataset_and_conditions(self):
        some, other = data(seed=1), data(seed=2)
        old = np.random.default_rng(3).random(len(other.y)) < 0.5
        goals = Goals(subject_to=[score_gap(by="group", on="audit", where={"old": True}) <= 0.05])
        audit = Dataset(
            other.X, sample_weight=other.weight, columns={"group": other.group, "old": old}
        )
        clf = RateBoundSVC(goals, alpha=ALPHA).fit(some.X, some.y, datasets={"audit": audit})
        part = Data(other.X[old], other.y[old], other.group[old], other.weight[old])
        gap = abs(mean_difference(part, clf.decision_function(part.X), "a", "b"))
        assert clf.report_.met
        assert math.isclose(clf.report_.goals[0].strict, gap, abs_tol=1e-12)

    def test_positive_label_first(self):
        some = data()
        goals = Goals(subject_to=[score_gap(by="group") <= 0.1], pos_label=0)
        clf = RateBoundSVC(goals, alpha=ALPHA)
        clf.fit(some.X, some.y, columns={"group": some.group})
        scores = clf.decision_function(some.X)
        gap = abs(mean_difference(some._replace(weight=np.ones(150)), scores, "a", "b"))
        assert math.isclose(clf.report_.goals[0].strict, gap, abs_tol=1e-12)

    def test_one_decision_for_all_is_noted(self):
        some = data()
        goals = Goals(positive_rate(), [score_gap(by="group") <= 0.1])
        clf = RateBoundSVC(goals, alpha=ALPHA)
        clf.fit(some.X, some.y, columns={"group": some.group})
        assert set(clf.predict(some.X)) == {0}
        assert "every training row is decided negatively" in str(clf.report_)

    def test_what_cannot_hold_it_says_so(self):
        some = data()
        goals = Goals(subject_to=[score_gap(by="group") <= 0.1])
        given = {"X": some.X, "y": some.y, "columns": {"group": some.group}}
        with pytest.raises(ValueError, match='kernel="linear"'):
            RateBoundSVC(goals, kernel="rbf").fit(**given)
        with pytest.raises(RuntimeError, match='solver="interior-point"'):
            RateBoundSVC(goals, solver="cutting-plane").fit(**given)

    def test_without_the_goal_the_gap_is_larger(self):
        some = data()
        clf = RateBoundSVC(alpha=ALPHA).fit(some.X, some.y)
        gap = abs(mean_difference(some, clf.decision_function(some.X), "a", "b"))
        assert gap > 0.3


class TestEvaluate:
    some = data(3)
    goals = Goals(subject_to=[score_gap(by="group", on="train") <= 0.2])

    def given(self) -> dict[str, Any]:
        return {
            "y": self.some.y,
            "sample_weight": self.some.weight,
            "columns": {"group": self.some.group},
        }

    def test_scores(self):
        scores = self.some.X @ [1.0, -0.5, 0.2, 0.0] + 3.0
        report = self.goals.evaluate(scores=scores, **self.given())
        worst = max(abs(mean_difference(self.some, scores, *pair)) for pair in ("ab", "ac", "bc"))
        assert math.isclose(report.goals[0].strict, worst, abs_tol=1e-12)
        assert report.goals[0].expected is None
        assert not report.met
        assert "highest" in str(report)

    def test_a_model_with_scores(self):
        clf = RateBoundSVC(Goals(error_rate()), alpha=ALPHA).fit(self.some.X, self.some.y)
        report = self.goals.evaluate(clf, self.some.X, **self.given())
        scores = clf.decision_function(self.some.X)
        worst = max(abs(mean_difference(self.some, scores, *pair)) for pair in ("ab", "ac", "bc"))
        assert math.isclose(report.goals[0].strict, worst, abs_tol=1e-12)
        assert report.goals[0].expected == report.goals[0].strict

    def test_decisions_say_nothing_of_scores(self):
        class Decides:
            classes_ = np.array([0, 1])

            def predict(self, X: Any) -> Any:
                return np.zeros(len(X), dtype=int)

        for given in (
            {"predictions": self.some.y},
            {"probabilities": np.full(150, 0.5)},
            {"model": Decides(), "X": self.some.X},
        ):
            with pytest.raises(TypeError, match="pass scores= or a model that has decision_func"):
                self.goals.evaluate(**given, **self.given())
