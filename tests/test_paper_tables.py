"""Every row of the paper's tables of metrics, by both classification rules, on a fit.

Strict values are those of `predict`, expected ones those of the randomized classifier; both are
compared with loops over rows (`reference.naive`, with the corrections that docs/paper.md lists).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from building import compiled, ramp_problem_of_rates
from ratebound import (
    Constraint,
    Goals,
    RateBoundSVC,
    accuracy,
    churn,
    cost,
    coverage,
    error_rate,
    f_score,
    loss_rate,
    negative_rate,
    positive_rate,
    precision,
    recall,
    specificity,
    win_change_ratio,
    win_loss_ratio,
    win_rate,
)
from reference import naive
from reference.naive import Decision, Row

N = 120
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + RNG.normal(size=N) > 0.3).astype(int)
BASELINE = (X[:, 0] + 0.8 * RNG.normal(size=N) > 0.3).astype(int)
GROUP = np.where(RNG.random(N) < 0.4, "A", "B")
WEIGHT = RNG.choice([0.5, 1.0, 3.0], size=N)
GIVEN: dict[str, Any] = {
    "sample_weight": WEIGHT,
    "baseline": BASELINE,
    "columns": {"group": GROUP},
}


@pytest.fixture(scope="module")
def fitted() -> RateBoundSVC:
    """A fit whose threshold is repaired, so that its two rules differ in more than clipping."""
    goals = Goals(error_rate(), [recall() >= 0.8, positive_rate(by="group").ratio() >= 0.7])
    clf = RateBoundSVC(goals, alpha=0.05).fit(X, Y, **GIVEN)
    assert clf.threshold_shift_ != 0
    return clf


def rows(scores: Any, group: str | None = None) -> list[Row]:
    """The rows as the referee sees them, all or those of a group."""
    return [
        Row(float(w), 2 * int(y) - 1, 2 * int(b) - 1, float(z))
        for w, y, b, z, g in zip(WEIGHT, Y, BASELINE, scores, GROUP, strict=True)
        if group is None or g == group
    ]


def share(count: Callable[[list[Row], Decision], float]) -> Callable[[list[Row], Decision], float]:
    """A count of the table as a share of all labelled rows."""
    return lambda rows, decide: count(rows, decide) / naive.labelled_weight(rows)


TABLE = {
    # metrics expressed in positive and negative rates
    "coverage": (coverage(), naive.positive_rate),
    "s-(D)": (negative_rate(), naive.negative_rate),
    "#TP": (cost(tp=1), share(naive.true_positives)),
    "#TN": (cost(tn=1), share(naive.true_negatives)),
    "#FP": (cost(fp=1), share(naive.false_positives)),
    "#FN": (cost(fn=1), share(naive.false_negatives)),
    "#errors, error rate": (error_rate(), naive.error_rate),
    "accuracy": (accuracy(), naive.accuracy),
    "recall": (recall(), naive.recall),
    "#changes, churn rate": (churn(), share(naive.changes)),
    "egregious positives": (recall(), naive.recall),
    "egregious negatives": (specificity(), naive.specificity),
    # ratio metrics
    "precision": (precision(), naive.precision),
    "F1": (f_score(), naive.f_score),
    "#wins": (win_rate(), share(naive.wins)),
    "#losses": (loss_rate(), share(naive.losses)),
    "win/loss ratio": (win_loss_ratio(), naive.win_loss_ratio),
    "win/change ratio": (win_change_ratio(), naive.win_change_ratio),
}


@pytest.mark.parametrize("metric", TABLE)
def test_metrics(fitted, metric):
    rate, reference = TABLE[metric]
    line = Goals(subject_to=[rate <= 1e6]).evaluate(fitted, X, Y, **GIVEN).goals[0]
    decided = rows(fitted.decision_function(X))
    trained = rows(X @ fitted.coef_ + fitted.intercept_ - fitted.threshold_shift_)
    assert line.strict == pytest.approx(reference(decided, naive.strict), abs=1e-12)
    assert line.expected == pytest.approx(reference(trained, naive.ramp), abs=1e-12)
    assert not math.isclose(line.strict, line.expected)


A, B = {"group": "A"}, {"group": "B"}
FAIRNESS: dict[str, tuple[Constraint, Callable[[list[Row], Decision], float]]] = {
    "fairness": (positive_rate(where=A) >= 0.9 * positive_rate(where=B), naive.positive_rate),
    "equal opportunity": (recall(where=A) >= 0.9 * recall(where=B), naive.recall),
}


@pytest.mark.parametrize("name", FAIRNESS)
def test_fairness_constraints(fitted, name):
    """s(A) >= k s(B) is one linear goal; what is reported is s(A) - k s(B), with 0 as its bound."""
    goal, reference = FAIRNESS[name]
    line = Goals(subject_to=[goal]).evaluate(fitted, X, Y, **GIVEN).goals[0]
    decided = fitted.decision_function(X)
    trained = X @ fitted.coef_ + fitted.intercept_ - fitted.threshold_shift_
    for scores, decide, value in [
        (decided, naive.strict, line.strict),
        (trained, naive.ramp, line.expected),
    ]:
        first, second = (reference(rows(scores, group), decide) for group in "AB")
        assert value == pytest.approx(first - 0.9 * second, abs=1e-12)
    assert line.bound == 0


def test_the_report_of_a_fit_has_both_rules(fitted):
    line = fitted.report_.goals[0]
    decided = rows(fitted.decision_function(X))
    trained = rows(X @ fitted.coef_ + fitted.intercept_ - fitted.threshold_shift_)
    assert line.strict == pytest.approx(naive.recall(decided, naive.strict), abs=1e-12)
    assert line.expected == pytest.approx(naive.recall(trained, naive.ramp), abs=1e-12)


def test_randomized_decisions_have_the_expected_rates(fitted):
    """The appendix's randomized rule, drawn: its mean rates are the ramp's."""
    probability = fitted.positive_probability(X)
    draws = np.mean([fitted.predict_randomized(X, random_state=i) for i in range(400)], axis=0)
    spread = np.sqrt(probability * (1 - probability) / 400)
    assert np.all(np.abs(draws - probability) <= 5 * spread + 1e-12)
    trained = X @ fitted.coef_ + fitted.intercept_ - fitted.threshold_shift_
    assert probability == pytest.approx([naive.ramp(z) for z in trained], abs=1e-12)


def test_precision_is_multiplied_through():
    """precision >= 0.9 is 0.1 |D+| s-(D+) + 0.9 |D-| s+(D-) <= 0.1 |D+|, up to one factor."""
    rates = compiled(Goals(subject_to=[precision() >= 0.9]), X, Y, sample_weight=WEIGHT)
    ramp = ramp_problem_of_rates(rates, alpha=0.1, multiplier_bound=1.0)
    row = ramp.constraints.toarray().reshape(2, -1)
    positive = ["label +" in name for name in rates.cell_names]
    weight = WEIGHT.sum()
    # per unit of a row's weight, over the weight of all rows
    np.testing.assert_allclose(row[0] * weight, np.where(positive, 0.0, 0.9), atol=1e-12)
    np.testing.assert_allclose(row[1] * weight, np.where(positive, 0.1, 0.0), atol=1e-12)
    assert ramp.bound[0] * weight == pytest.approx(0.1 * WEIGHT[Y == 1].sum())


def test_expected_precision_is_a_ratio_of_expectations(fitted):
    """Not the expectation of the ratio, as the appendix warns: the two differ on few rows."""
    probability = np.array([0.9, 0.5, 0.2])
    labels = np.array([1, 0, 1])
    goals = Goals(subject_to=[precision() >= 0.5])
    line = goals.evaluate(probabilities=probability, y=labels).goals[0]
    assert line.expected == pytest.approx(1.1 / 1.6)
    mean = total = 0.0
    for mask in range(1, 8):
        decided = np.array([mask >> i & 1 for i in range(3)])
        chance = float(np.prod(np.where(decided, probability, 1 - probability)))
        mean += chance * (decided @ labels) / decided.sum()
        total += chance
    assert abs(mean / total - line.expected) > 0.01
