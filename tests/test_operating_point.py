"""The search over cuts against trying every cut with loops; repair on problems built for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import compiled, ramp_problem_of_rates
from ratebound.goals import Goals
from ratebound.majorize import Majorization
from ratebound.operating_point import best_cut, repair
from ratebound.problem import RateProblem
from ratebound.rates import (
    Constraint,
    Rate,
    cost,
    error_rate,
    false_positive_rate,
    negative_rate,
    positive_rate,
    precision,
    recall,
)
from ratebound.rows.base import ScoredRows
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.interior_point import InteriorPoint
from reference import enumeration

GOALS: dict[str, list[Constraint]] = {
    "none": [],
    "recall": [recall() >= 0.7],
    "precision": [precision() >= 0.8],
    "gap": [positive_rate(by="group").gap() <= 0.2],
    "ratio": [positive_rate(by="group").ratio() >= 0.6, recall() >= 0.5],
    "lowest": [recall(by="group").min() >= 0.5, false_positive_rate() <= 0.4],
    "out of reach": [recall() >= 0.95, positive_rate() <= 0.2],
}


def small(seed: int, n: int, ties: bool) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Scores, labels and groups; every label occurs in every group."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n).round(1 if ties else 6)
    y = np.where(scores + rng.normal(size=n) > 0.0, 1, 0)
    group = rng.choice(["a", "b", "c"], size=n)
    y[:6] = [0, 1, 0, 1, 0, 1]
    group[:6] = ["a", "a", "b", "b", "c", "c"]
    return scores, y, {"group": group}


def scored(rates: RateProblem, scores: np.ndarray) -> ScoredRows:
    [block] = rates.blocks
    used = block.cell >= 0
    return ScoredRows(scores[used], block.weight[used], block.cell[used])


PRICE = 1e7  # so high that nothing counts before violation
EMPTY = 1e6  # a violation worse than any: of a cut that meets a goal by saying nothing


def naive_cut(rates: RateProblem, scores: np.ndarray, goals: list[Constraint]) -> enumeration.Cut:
    [block] = rates.blocks

    def positives(decisions: enumeration.Decisions) -> np.ndarray:
        P = np.zeros(len(rates.cell_weight))
        for i, decided in enumerate(decisions):
            if decided and block.cell[i] >= 0:
                P[block.cell[i]] += block.weight[i]
        return P

    table = rates.table.toarray()
    text = " ".join(map(str, goals))
    two_sided = bool(np.any(scores > 0) and np.any(scores <= 0))

    def violation(decisions: enumeration.Decisions) -> float:
        decided = [d for i, d in enumerate(decisions) if block.cell[i] >= 0]
        compared = "gap()" in text or "ratio()" in text
        none, every = not any(decided), all(decided)
        if two_sided and ((compared and (none or every)) or ("precision" in text and none)):
            return EMPTY
        return max((table @ positives(decisions) + rates.offset).tolist(), default=-1.0)

    return enumeration.best_cut(
        scores.tolist(),
        lambda decisions: float(rates.cost @ positives(decisions)) + rates.cost_constant,
        violation,
    )


@pytest.mark.parametrize("goals", GOALS)
@given(seed=st.integers(0, 1000), n=st.integers(6, 30), ties=st.booleans())
def test_the_best_cut_is_that_of_trying_them_all(goals: str, seed: int, n: int, ties: bool) -> None:
    scores, y, columns = small(seed, n, ties)
    weight = np.random.default_rng(seed).integers(1, 4, size=n).astype(float)
    rates = compiled(
        Goals(cost(fp=1.0, fn=2.0), GOALS[goals]),
        scores[:, None],
        y,
        columns=columns,
        sample_weight=weight,
    )
    ours = best_cut(rates, scored(rates, scores), PRICE)
    naive = naive_cut(rates, scores, GOALS[goals])
    assert ours.threshold == pytest.approx(naive.threshold, rel=1e-12, abs=1e-12)
    assert ours.objective == pytest.approx(naive.objective, rel=1e-9)
    assert max(0.0, ours.violation) == pytest.approx(naive.violation, abs=1e-12)
    assert ours.met == (naive.violation <= 1e-9)


def test_equal_groups_are_not_had_by_deciding_all_rows_alike() -> None:
    """Of 3 and 2 rows, only none or all have equal shares: the nearest miss is better than that."""
    scores = np.array([3.0, 2.0, 1.0, -1.0, -2.0])
    group = np.array(["a", "b", "a", "a", "b"])
    rates = compiled(
        Goals(error_rate(), [positive_rate(by="group").ratio() >= 1.0]),
        scores[:, None],
        np.array([1, 1, 1, 0, 0]),
        columns={"group": group},
    )
    cut = best_cut(rates, scored(rates, scores), PRICE)
    assert not cut.met
    assert cut.threshold == pytest.approx(0.0)
    # scores that are all on one side of zero say the same of everybody, and so may the cut
    assert best_cut(rates, scored(rates, scores - 4.0), PRICE).met


def test_a_miss_is_weighed_by_its_price() -> None:
    """Two positive decisions miss recall by 4/15, four miss coverage by 17/30 at fewer errors."""
    scores = np.array([3.0, 2.0, 1.0, -1.0, -2.0, -3.0])
    y = np.array([0, 1, 1, 1, 0, 0])
    goals = Goals(error_rate(), [recall() >= 0.6, positive_rate() <= 0.1])
    rates = compiled(goals, scores[:, None], y)
    cheap, dear = (best_cut(rates, scored(rates, scores), price) for price in (0.1, PRICE))
    assert (cheap.threshold, cheap.objective) == (-1.5, pytest.approx(1 / 6))
    assert cheap.violation == pytest.approx(17 / 30)
    assert cheap.penalised == pytest.approx(1 / 6 + 0.1 * 17 / 30)
    assert (dear.threshold, dear.objective) == (1.5, pytest.approx(1 / 2))
    assert dear.violation == pytest.approx(4 / 15)


def test_the_cut_nearest_zero_wins_a_tie() -> None:
    scores = np.array([-3.0, -1.0, 0.5, 2.0])
    rates = compiled(Goals(cost(fp=1.0, fn=1.0)), scores[:, None], np.array([0, 0, 1, 1]))
    assert best_cut(rates, scored(rates, scores), PRICE).threshold == pytest.approx(-0.25)
    # rows without label cost nothing: every cut between -1 and 2 is as good
    shifted = best_cut(rates, scored(rates, scores + 5.0), PRICE)
    assert shifted.threshold == pytest.approx(4.75)


@pytest.mark.parametrize("offset", [-3e10, 3e10])
@pytest.mark.parametrize(("minimize", "decided"), [(positive_rate(), 0.0), (negative_rate(), 1.0)])
def test_scores_of_any_size_leave_both_ends(offset: float, minimize: Rate, decided: float) -> None:
    """Far from zero all scores are one, and yet all rows can be decided either way."""
    X = np.linspace(-1.0, 1.0, 8)[:, None]
    y = np.arange(8) % 2
    rates = compiled(Goals(minimize), X, y)
    rows = MemoryRows([(b.X, b.weight, b.cell) for b in rates.blocks], len(rates.cost))
    cut = best_cut(rates, rows.scored(np.ones(1), offset), PRICE)
    positives = rows.decision_sums(np.ones(1), offset - cut.threshold)
    assert cut.objective == 0.0
    assert positives.sum() / rates.cell_weight.sum() == decided


def test_scores_that_differ_by_rounding_are_one() -> None:
    scores = np.array([1.0, 1.0 + 1e-15, 2.0, 0.0])
    y = np.array([0, 1, 1, 0])
    rates = compiled(Goals(), scores[:, None], y)
    cut = best_cut(rates, scored(rates, scores), PRICE)
    assert cut.objective == pytest.approx(0.25)
    assert cut.threshold in (pytest.approx(0.5), pytest.approx(1.5))


def classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += group
    y = np.where(X @ [1.0, 0.5, -0.5, 0.2] + rng.normal(size=n) > 0.6, 1, 0)
    return X, y, {"group": np.where(group == 1, "a", "b")}


@pytest.mark.parametrize(
    "subject_to",
    [
        [recall() >= 0.8],
        [positive_rate(by="group").gap() <= 0.02],
        [recall() >= 0.65, positive_rate() <= 0.45, recall(by="group").gap() <= 0.1],
    ],
    ids=["recall", "parity", "four"],
)
@pytest.mark.parametrize("seed", range(3))
def test_repair_meets_every_goal_strictly(subject_to: list[Constraint], seed: int) -> None:
    X, y, columns = classes(500, seed)
    rates = compiled(Goals(error_rate(), subject_to), X, y, columns=columns)
    problem = ramp_problem_of_rates(rates, alpha=2e-3, multiplier_bound=10.0)
    majorization = Majorization(InteriorPoint())
    fit = majorization.run(problem)
    done = repair(rates, problem, majorization, fit)
    assert done.cut.met
    positive = X @ done.fit.coef + done.fit.intercept > done.cut.threshold
    for goal in rates.goals:
        value = goal.value(rates.positives([positive.astype(float)]))
        sign = 1.0 if goal.sense == "<=" else -1.0
        assert sign * (value - goal.bound) <= 1e-9
    assert done.cut.objective == pytest.approx(np.mean(positive != (y == 1)))


def test_repair_returns_the_least_violated_where_nothing_will_do() -> None:
    X, y, columns = classes(300, 5)
    goals = Goals(error_rate(), [recall() >= 0.99, positive_rate() <= 0.1])
    rates = compiled(goals, X, y, columns=columns)
    problem = ramp_problem_of_rates(rates, alpha=2e-3, multiplier_bound=10.0)
    majorization = Majorization(InteriorPoint(), max_iter=5)
    fit = majorization.run(problem)
    done = repair(rates, problem, majorization, fit, max_rounds=2)
    assert not done.cut.met
    at_first = best_cut(rates, problem.rows.scored(fit.coef, fit.intercept), PRICE)
    assert done.cut.violation <= at_first.violation
