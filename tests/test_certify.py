"""Generalization bounds, labels to buy and comparisons, against definitions and simulation."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from ratebound import (
    Goals,
    RateBoundSVC,
    compare,
    error_rate,
    labels_needed,
    paper_bound,
    positive_rate,
    recall,
    score_gap,
)
from ratebound.certify import (
    Facts,
    FunctionClass,
    clopper_pearson,
    coefficient_sum,
    combination_bound,
    function_class,
    rademacher_bound,
    rate_bound,
)
from reference.naive import ramp


def binomial(successes: int, trials: int, share: float) -> float:
    return math.comb(trials, successes) * share**successes * (1 - share) ** (trials - successes)


class TestFunctionClass:
    def test_coefficients(self):
        costs, constraints = [[0.5, 1.0], [0.0, 2.0]], [[[1.0, 0.0], [0.0, 3.0]], [[0, 0], [0, 4]]]
        expected = 0.5 + 1.0 + 2.0 + 10 * (1.0 + 3.0 + 4.0)
        flat = np.reshape(constraints, (2, 4))
        assert coefficient_sum(costs, flat, 10) == expected
        assert coefficient_sum(costs, csr_array(flat), 10) == expected
        assert coefficient_sum(costs, np.empty((0, 4)), math.inf) == 3.5

    @pytest.mark.parametrize("seed", range(4))
    def test_holds_the_solutions(self, seed):
        """Minimisers with multipliers at V, of hinges at any anchor; of all b the smallest."""
        rng = np.random.default_rng(seed)
        n, price, alpha = 12, 3.0, 20.0
        X = rng.normal(size=(n, 2))
        sign = rng.choice([-1.0, 1.0], size=n)
        live = rng.random(n) < 0.8
        w, b = cp.Variable(2), cp.Variable()
        hinges = cp.pos(0.5 + cp.multiply(sign, X @ w - b))[live]
        cost, coefficient = rng.random((2, n)) / n
        value = cost[live] @ hinges + price * cp.pos(coefficient[live] @ hinges)
        value += alpha / 2 * cp.sum_squares(w)
        problem = cp.Problem(cp.Minimize(value))
        optimum = problem.solve(solver=cp.CLARABEL)
        cp.Problem(cp.Minimize(cp.abs(b)), [value <= optimum + 1e-7]).solve(solver=cp.CLARABEL)
        total = coefficient_sum(cost, coefficient, price)
        largest = np.linalg.norm(X, axis=1).max()
        functions = function_class(total, largest_norm=largest, alpha=alpha)
        assert np.linalg.norm(w.value) <= functions.norm + 1e-3
        assert abs(b.value) <= functions.bias + 1e-3

    def test_is_attained(self):
        """Rows at ±1 on their own sides, a large alpha: every hinge pulls with all its cost."""
        X, y = np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])
        clf = RateBoundSVC(alpha=8.0, tol=1e-8, threshold="zero").fit(X, y)
        functions = function_class(1.0, largest_norm=1.0, alpha=8.0)
        assert functions == FunctionClass(0.125, 0.625, 1.0)
        assert clf.coef_[0] == pytest.approx(functions.norm, abs=1e-6)

    def test_holds_a_fit(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
        clf = RateBoundSVC(Goals(subject_to=[recall() >= 0.9]), alpha=0.5, threshold="zero")
        functions = paper_bound(clf.fit(X, y)).paper_class
        assert np.linalg.norm(clf.coef_) <= functions.norm
        assert abs(clf.intercept_) <= functions.bias


class TestRademacher:
    @pytest.mark.parametrize("seed", range(3))
    def test_bounds_all_signs(self, seed):
        """The supremum over the class has a closed form; its mean is taken over all 2^n signs."""
        rng = np.random.default_rng(seed)
        n = 10
        X = rng.normal(size=(n, 3))
        functions = FunctionClass(0.7, 0.4, np.linalg.norm(X, axis=1).max())
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
        suprema = 0.7 * np.linalg.norm(signs @ X, axis=1) + 0.4 * np.abs(signs.sum(axis=1))
        exact = suprema.mean() / n
        bound = rademacher_bound(functions, n)
        assert exact <= bound
        assert bound < 2.5 * exact

    def test_is_attained_without_bias(self):
        """Orthonormal rows: ||sum of signed rows|| is sqrt(n) whatever the signs."""
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
        exact = (0.7 * np.linalg.norm(signs @ np.eye(8), axis=1)).mean() / 8
        assert rademacher_bound(FunctionClass(0.7, 0.0, 1.0), 8) == pytest.approx(exact)

    def test_is_the_lemma_as_printed(self):
        n, X, B, alpha = 50, 3.0, 7.0, 0.2
        printed = 1 / (2 * math.sqrt(n)) + 2 * X**2 / (alpha * math.sqrt(n)) * B
        functions = function_class(B, largest_norm=X, alpha=alpha)
        assert rademacher_bound(functions, n) == pytest.approx(printed)


class TestRateBound:
    def test_is_the_theorem_as_printed(self):
        n, X, B, alpha, k, delta = 50, 3.0, 7.0, 0.2, 4, 0.01
        E = 1 + 4 * X**2 / alpha * B + math.sqrt(8 * math.log(4 * k / delta))
        functions = function_class(B, largest_norm=X, alpha=alpha)
        bound = rate_bound(functions, n, datasets=k, delta=delta)
        assert bound == pytest.approx(E / math.sqrt(n))

    def test_holds_in_simulation(self):
        """The largest deviation over a net of the class, in samples of a known distribution."""
        rng = np.random.default_rng(0)
        angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
        points = np.column_stack([np.cos(angles), np.sin(angles)])
        functions = FunctionClass(1.0, 0.5, 1.0)
        directions = rng.normal(size=(200, 2))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        coefs = np.concatenate([r * directions for r in (0.3, 1.0)])
        scores = np.concatenate([points @ coefs.T - b for b in (-0.5, 0.0, 0.5)], axis=1)
        decided = np.vectorize(ramp)(scores)
        n, delta = 2000, 0.1
        bound = rate_bound(functions, n, datasets=1, delta=delta)
        assert bound < 0.25  # so that it says something
        missed = 0
        for _ in range(200):
            share = rng.multinomial(n, np.full(60, 1 / 60)) / n
            deviation = np.abs(share @ decided - decided.mean(axis=0)).max()
            assert deviation > 0.001
            missed += deviation > bound
        assert missed <= 200 * delta

    def test_combinations(self):
        positive, negative, bounds = [1.0, 0.0], [0.5, 2.0], [0.1, 0.2]
        assert combination_bound(positive, negative, bounds) == pytest.approx(1.5 * 0.1 + 2 * 0.2)


class TestPaperBound:
    def fitted(self, **options: Any) -> tuple[RateBoundSVC, Any, Any, Any]:
        rng = np.random.default_rng(1)
        X = rng.normal(size=(300, 3))
        y = (X[:, 0] + rng.normal(size=300) > 0.5).astype(int)
        weight = rng.choice([1.0, 3.0], size=300)
        goals = Goals(error_rate(), [recall() >= 0.7, positive_rate() <= 0.9])
        clf = RateBoundSVC(goals, alpha=0.05, multiplier_bound=4.0, **options)
        return clf.fit(X, y, sample_weight=weight), X, y, weight

    def test_reads_the_symbols_from_a_fit(self):
        """B by hand: the error rate's shares sum to 1, recall's s-(D+) has 1, and so has s+(D)."""
        clf, X, y, weight = self.fitted()
        bound = paper_bound(clf, delta=0.02)
        B = 1 + 4.0 * (1 + 1)
        largest = np.linalg.norm(X, axis=1).max()
        E = 1 + 4 * largest**2 * B / 0.05 + math.sqrt(8 * math.log(4 * 2 / 0.02))
        assert bound.coefficients == pytest.approx(B)
        lines = {line.name: line for line in bound.lines}
        by_label = {}
        for label in (0, 1):
            w = weight[y == label]
            size = w.sum() ** 2 / (w**2).sum()
            by_label[label] = E / math.sqrt(size)
            line = lines[f"train: label {'+' if label else '-'}"]
            assert line.size == pytest.approx(size)
            assert line.paper == pytest.approx(by_label[label])
        share = weight[y == 1].sum() / weight.sum()
        objective = share * by_label[1] + (1 - share) * by_label[0]
        assert lines["objective"].paper == pytest.approx(objective)
        assert lines["recall() >= 0.7"].paper == pytest.approx(by_label[1])
        assert lines["positive_rate() <= 0.9"].paper == pytest.approx(objective)

    def test_says_that_it_is_vacuous(self):
        clf, *_ = self.fitted()
        bound = paper_bound(clf)
        assert bound.vacuous
        assert "vacuous: the bound is" in str(bound)
        assert "from alpha = " in str(bound)

    def test_alpha_needed_is_where_it_says_something(self):
        facts = self.facts(sizes=np.array([1e4, 2e4]))
        needed = paper_bound(facts).alpha_needed
        for factor, vacuous in ((0.99, True), (1.01, False)):
            bound = paper_bound(self.facts(sizes=facts.sizes, alpha=factor * needed))
            worst = max(line.paper for line in bound.lines if line.kind == "dataset")
            assert (worst >= 1) is vacuous

    def test_the_norm_of_the_fit_says_more(self):
        clf, *_ = self.fitted()
        assert all(line.at_norm < line.paper for line in paper_bound(clf).lines)

    @pytest.mark.parametrize(("norm", "grid"), [(0.2, 0), (2.0, 4)])
    def test_at_norm_is_its_formula(self, norm, grid):
        """2 R_n of the norm's class and McDiarmid for 2k + 1 + m events, for norms 1.2^grid."""
        constraints = csr_array(np.array([[0.0, 0.3, 0.7, 0.0]]))
        facts = self.facts(coef_norm=norm, constraints=constraints, goals=("a goal",))
        assert norm <= 1.2**grid and (grid == 0 or norm > 1.2 ** (grid - 1))
        delta = 0.05 / ((grid + 1) * (grid + 2))
        reach = 1.2**grid + (0.5 + 1.2**grid)
        deviation = 2 * reach + math.sqrt(math.log((2 * 2 + 1 + 1) / delta) / 2)
        first, second, objective, goal = paper_bound(facts, delta=0.05).lines
        assert first.at_norm == pytest.approx(deviation / math.sqrt(100))
        assert second.at_norm == pytest.approx(deviation / math.sqrt(400))
        spread = math.sqrt(0.5**2 / 100 + 0.5**2 / 400)
        assert objective.at_norm == pytest.approx(deviation * spread)
        spread = math.sqrt(0.7**2 / 100 + 0.3**2 / 400)
        assert goal.at_norm == pytest.approx(deviation * spread)
        assert goal.span == pytest.approx(1.0)

    def test_at_norm_holds_in_simulation(self):
        """Rates of the fit itself on new rows, over draws of training rows."""
        rng = np.random.default_rng(2)
        angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        points = np.column_stack([np.cos(angles), np.sin(angles)])
        labels = (points[:, 0] > 0.2).astype(int)
        for _ in range(5):
            rows = rng.integers(40, size=3000)
            clf = RateBoundSVC(alpha=0.1, threshold="zero").fit(points[rows], labels[rows])
            probability = clf.positive_probability(points)
            for line, label in zip(paper_bound(clf).lines[:2], (0, 1), strict=True):
                trained = probability[rows][labels[rows] == label].mean()
                new = probability[labels == label].mean()
                assert abs(trained - new) <= line.at_norm < 0.3

    def test_a_kernel_has_its_own_norms(self):
        """Of an RBF kernel every row has norm 1, and ||w||^2 is a quadratic form in its values."""
        rng = np.random.default_rng(4)
        X = rng.normal(size=(60, 2))
        clf = RateBoundSVC(kernel="rbf", gamma=0.5, alpha=0.1).fit(X, (X[:, 0] > 0).astype(int))
        apart = clf.support_vectors_[:, None, :] - clf.support_vectors_[None, :, :]
        values = np.exp(-0.5 * (apart**2).sum(axis=2))
        norm = math.sqrt(clf.dual_coef_[0] @ values @ clf.dual_coef_[0])
        bound = paper_bound(clf)
        assert bound.facts.largest_norm == pytest.approx(1.0)
        assert bound.facts.coef_norm == pytest.approx(norm)
        assert norm <= bound.paper_class.norm

    def facts(self, **changes: Any) -> Facts:
        values: dict[str, Any] = {
            "names": ("positives", "negatives"),
            "sizes": np.array([100.0, 400.0]),
            "costs": np.array([[0.0, 0.5], [0.5, 0.0]]),
            "constraints": csr_array((0, 4)),
            "goals": (),
            "largest_norm": 1.0,
            "alpha": 0.1,
            "multiplier_bound": 0.0,
            "coef_norm": 0.2,
        }
        return Facts(**{**values, **changes})

    def test_plain_forms(self):
        bound = paper_bound(self.facts())
        assert json.loads(json.dumps(bound.to_dict()))["vacuous"] is True
        clf, *_ = self.fitted()
        assert str(paper_bound(pickle.loads(pickle.dumps(clf)))) == str(paper_bound(clf))

    @pytest.mark.parametrize(
        ("changes", "remedy"),
        [
            ({"sizes": np.array([1.0])}, "sizes has shape"),
            ({"sizes": np.array([0.0, 1.0])}, "leave out empty datasets"),
            ({"costs": np.array([[0.0, -0.5], [0.5, 0.0]])}, "write -a s⁺ as a s⁻ - a"),
            ({"alpha": 0.0}, "alpha must be positive"),
        ],
    )
    def test_facts_are_checked(self, changes, remedy):
        with pytest.raises(ValueError, match=remedy):
            self.facts(**changes)

    def test_what_has_no_bound(self):
        with pytest.raises(TypeError, match="call fit first"):
            paper_bound(RateBoundSVC())
        with pytest.raises(ValueError, match="delta=1 must lie strictly between 0 and 1"):
            paper_bound(self.facts(), delta=1)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        clf = RateBoundSVC(Goals(subject_to=[score_gap(by="a") <= 1]), alpha=0.1)
        clf.fit(X, (X[:, 0] > 0).astype(int), columns={"a": np.arange(60) % 2})
        with pytest.raises(ValueError, match="about rates, and score_gap"):
            paper_bound(clf)


class TestLabelsNeeded:
    def test_the_papers_examples(self):
        """5 % all wins: a dozen or so labels; 30 % against 25 %: near 1,000."""
        assert 6 <= labels_needed(wins=0.05).labels <= 14
        assert 900 <= labels_needed(wins=0.30, losses=0.25).labels <= 1100

    @pytest.mark.parametrize("two_sided", [True, False])
    @pytest.mark.parametrize(("wins", "losses"), [(0.05, 0.0), (0.1, 0.03), (0.2, 0.1)])
    def test_smallest_number_with_the_power(self, wins, losses, two_sided):
        needed = labels_needed(wins=wins, losses=losses, two_sided=two_sided)
        level = 0.05 / (2 if two_sided else 1)

        def power(trials: int) -> tuple[float, int]:
            critical = next(
                c for c in range(trials + 2) if stats.binom.sf(c - 1, trials, 0.5) <= level
            )
            return float(stats.binom.sf(critical - 1, trials, wins / (wins + losses))), critical

        n = needed.disagreements
        assert power(n)[1] == needed.wins_needed
        assert all(power(m)[0] >= 0.8 for m in range(n, n + 60))
        assert power(n - 1)[0] < 0.8
        churn = wins + losses
        assert stats.binom.sf(n - 1, needed.rows, churn) >= 0.95
        assert stats.binom.sf(n - 1, needed.rows - 1, churn) < 0.95

    def test_in_simulation(self):
        needed = labels_needed(wins=0.12, losses=0.05, power=0.9)
        rng = np.random.default_rng(0)
        wins = rng.binomial(needed.disagreements, 0.12 / 0.17, size=4000)
        pvalue = {w: stats.binomtest(w, needed.disagreements).pvalue for w in set(wins.tolist())}
        shown = np.array([pvalue[w] <= 0.05 for w in wins.tolist()])
        shown &= wins > needed.disagreements / 2
        assert shown.mean() >= 0.9 - 3 * math.sqrt(0.09 / 4000)
        equal = rng.binomial(needed.disagreements, 0.5, size=4000)
        assert (equal >= needed.wins_needed).mean() <= 0.025 + 3 * math.sqrt(0.025 / 4000)

    def test_says_it(self):
        needed = labels_needed(wins=0.05)
        assert f"{needed.disagreements} labelled disagreements" in str(needed)
        assert needed.to_dict()["churn"] == 0.05

    @pytest.mark.parametrize(
        ("arguments", "remedy"),
        [
            ({"wins": 0.1, "losses": 0.1}, "must exceed losses"),
            ({"wins": 0.0}, "wins above 0"),
            ({"wins": 0.8, "losses": 0.3}, "together at most 1"),
            ({"wins": 0.1, "power": 1.0}, "power=1.0 must lie strictly"),
            ({"wins": 0.3, "losses": 0.3 - 1e-6}, "compare models that differ more"),
        ],
    )
    def test_misuse(self, arguments, remedy):
        with pytest.raises(ValueError, match=remedy):
            labels_needed(**arguments)


class TestClopperPearson:
    @pytest.mark.parametrize(("successes", "trials"), [(0, 7), (3, 7), (7, 7), (1, 40), (20, 40)])
    @pytest.mark.parametrize("confidence", [0.8, 0.95])
    def test_by_its_definition(self, successes, trials, confidence):
        error = (1 - confidence) / 2
        low, high = clopper_pearson(successes, trials, confidence)
        above = sum(binomial(s, trials, low) for s in range(successes, trials + 1))
        below = sum(binomial(s, trials, high) for s in range(successes + 1))
        assert low == 0 if successes == 0 else math.isclose(above, error, rel_tol=1e-9)
        assert high == 1 if successes == trials else math.isclose(below, error, rel_tol=1e-9)

    def test_covers(self):
        for share in (0.01, 0.3, 0.5, 0.97):
            covered = 0.0
            for successes in range(31):
                low, high = clopper_pearson(successes, 30, 0.9)
                if low <= share <= high:
                    covered += binomial(successes, 30, share)
            assert covered >= 0.9

    def test_edges(self):
        assert clopper_pearson(0, 0) == (0.0, 1.0)
        with pytest.raises(ValueError, match="between 0 and trials"):
            clopper_pearson(3, 2)


class TestCompare:
    @pytest.mark.parametrize("seed", range(5))
    def test_counts_and_tests(self, seed):
        rng = np.random.default_rng(seed)
        a, b, y = rng.integers(2, size=(3, 80))
        result = compare(a, b, y=y)
        wins = losses = 0
        for first, second, label in zip(a, b, y, strict=True):
            wins += first != second and second == label
            losses += first != second and first == label
        changed = wins + losses
        assert (result.wins, result.losses, result.ties) == (wins, losses, 80 - changed)
        assert result.churn == changed / 80
        assert result.win_share == wins / changed
        assert result.accuracy_difference == pytest.approx((b == y).mean() - (a == y).mean())
        assert result.p_two_sided == pytest.approx(stats.binomtest(wins, changed).pvalue)
        one_sided = stats.binomtest(wins, changed, alternative="greater").pvalue
        assert result.p_better == pytest.approx(one_sided)
        interval = stats.binomtest(changed, 80).proportion_ci(0.95, "exact")
        assert result.churn_interval == pytest.approx((interval.low, interval.high))

    def test_interval_of_the_difference_covers(self):
        rng = np.random.default_rng(0)
        wins, losses, covered = 0.15, 0.08, 0
        for _ in range(400):
            kind = rng.choice(3, size=120, p=[wins, losses, 1 - wins - losses])
            y = np.ones(120, dtype=int)
            result = compare((kind != 0).astype(int), (kind != 1).astype(int), y=y, confidence=0.9)
            low, high = result.accuracy_difference_interval
            covered += low <= wins - losses <= high
        assert covered >= 0.9 * 400

    def test_models_and_text_labels(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2))
        y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
        a, b = (RateBoundSVC(alpha=0.1).fit(X[:, [i]], y) for i in (0, 1))

        class First:
            def __init__(self, model: Any, column: int) -> None:
                self.model, self.column = model, column

            def predict(self, X: Any) -> Any:
                return self.model.predict(X[:, [self.column]])

        models = compare(First(a, 0), First(b, 1), X, y)
        arrays = compare(a.predict(X[:, [0]]), b.predict(X[:, [1]]), y=y)
        assert models == arrays
        assert models.ties + models.wins + models.losses == 80

    def test_labels_only_where_models_differ(self):
        result = compare([0, 1, 1], [1, 1, 0], y=[1, None, 1])
        assert (result.wins, result.losses, result.ties) == (1, 1, 1)
        assert result.accuracy_a is None
        assert result.verdict == "not decided"

    def test_no_disagreement(self):
        result = compare([0, 1], [0, 1], y=[0, 0])
        assert math.isnan(result.win_share)
        assert result.p_two_sided == 1.0
        assert "undefined (0/0)" in str(result)
        assert result.to_dict()["win_share"] is None
        assert result.to_frame().loc["churn", "value"] == 0.0

    @pytest.mark.parametrize(
        ("arguments", "remedy"),
        [
            (([0, 1], [1, 1]), "pass y"),
            (([0, 1], [1, 1], None, [None, 1]), "the first is row 0; label these rows"),
            (([0, None], [1, 1], None, [0, 1]), "predict every row"),
            (([0, 1, 1], [1, 1], None, [0, 1]), "rows differ in number"),
            (([0.1, 0.7], [1, 1], None, [0, 1]), "pass labels rather than scores"),
            (([], [], None, []), "there are no rows"),
            ((RateBoundSVC(), [1], None, [0]), "pass X"),
        ],
    )
    def test_misuse(self, arguments, remedy):
        with pytest.raises(ValueError, match=remedy):
            compare(*arguments)
