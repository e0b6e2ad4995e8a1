"""Goals: what they hold and refuse, how any classifier does on them, and choosing among models."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from ratebound.data import Dataset, stack
from ratebound.goals import Goals, InfeasibleGoals
from ratebound.rates import (
    accuracy,
    between,
    churn,
    cost,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
    win_rate,
)
from ratebound.report import Report

Y = np.array([1, 1, 1, 0, 0, 0, 0, 0])
DECIDED = np.array([1, 1, 0, 1, 0, 0, 0, 0])
X = np.arange(16.0).reshape(8, 2)


def line(report: Report, i: int = 0) -> Any:
    return report.goals[i]


# --- what goals are -------------------------------------------------------------------------------


def test_goals_read_like_mathematics() -> None:
    goals = Goals(
        error_rate() + 0.5 * false_positive_rate(on="audit"),
        [(recall(on="audit") >= 0.9).named("sick people"), between(positive_rate(), 0.1, 0.3)],
        pos_label="yes",
    )
    assert str(goals).splitlines() == [
        "minimize error_rate() + 0.5 * false_positive_rate(on=audit)",
        'subject to "sick people": recall(on=audit) >= 0.9',
        "           positive_rate() >= 0.1",
        "           positive_rate() <= 0.3",
        "positive label 'yes'",
    ]
    assert repr(Goals(subject_to=[recall() >= 0.5])) == (
        "Goals(error_rate(), subject_to=[recall() >= 0.5])"
    )


def test_goals_are_values() -> None:
    goals = Goals(error_rate(), [recall() >= 0.9], pos_label=1)
    same = Goals(error_rate(), iter([recall() >= 0.9]), pos_label=np.int64(1))
    assert goals == same and hash(goals) == hash(same)
    assert goals != Goals(error_rate(), [recall() >= 0.8], pos_label=1)
    assert goals != Goals(error_rate(), [precision() >= 0.9], pos_label=1)
    assert goals != Goals(error_rate(), [recall() >= 0.9])
    assert goals != "goals"
    assert pickle.loads(pickle.dumps(goals)) == goals
    assert copy.deepcopy(goals) == goals
    assert clone(goals, safe=False) == goals
    with pytest.raises(AttributeError):
        goals.minimize = recall()  # type: ignore[misc]


def test_goals_without_arguments_minimise_errors() -> None:
    assert Goals() == Goals(error_rate(), ())
    assert Goals(subject_to=recall() >= 0.5) == Goals(subject_to=[recall() >= 0.5])


def test_goals_know_what_they_read() -> None:
    goals = Goals(error_rate(), [churn(on="traffic") <= 0.1, positive_rate(on="audit") >= 0.2])
    assert goals.datasets == {"train", "traffic", "audit"}
    assert goals.reads_labels == {"train"}
    assert goals.reads_baseline == {"traffic"}


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (precision(), "is a ratio and cannot be minimised"),
        (recall(by="sex"), "is a rate per group and cannot be minimised"),
        (recall(by="sex").min(), "is a rate per group and cannot be minimised"),
        (recall() >= 0.5, "it belongs in subject_to"),
        (0.5, "minimize takes a rate, such as error_rate"),
        ("error_rate()", "minimize takes a rate"),
    ],
)
def test_what_cannot_be_minimised(objective: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Goals(objective)


@pytest.mark.parametrize(
    ("subject_to", "message"),
    [
        ([recall() == precision()], r"== compares; write between\(...\) or two inequalities"),
        ([True], "== compares"),
        ([recall()], r"recall\(\), which is not a constraint: compare a rate with a bound"),
        (recall(), "not a constraint"),
        (["recall() >= 0.9"], r"write parse_goal\('recall\(\) >= 0.9'\)"),
        ("recall() >= 0.9", "parse_goal"),
        (0.9, "not a constraint"),
        ([None], "not a constraint"),
    ],
)
def test_what_cannot_be_a_goal(subject_to: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Goals(subject_to=subject_to)


def test_labels_are_unique() -> None:
    with pytest.raises(ValueError, match="is there twice"):
        Goals(subject_to=[recall() >= 0.9, recall() >= 0.9])
    with pytest.raises(ValueError, match="two goals are labelled 'a'"):
        Goals(subject_to=[(recall() >= 0.9).named("a"), (precision() >= 0.9).named("a")])


@pytest.mark.parametrize(
    "subject_to",
    [
        [recall() >= 0.9, recall() <= 0.8],
        [recall() >= 0.5, recall() >= 0.9, recall() <= 0.95, recall() <= 0.8],
        [precision() >= 0.9, precision() <= 0.8],
        [recall(by="sex").min() >= 0.9, recall(by="sex").max() <= 0.8],
    ],
)
def test_contradictory_bounds_name_both_goals(subject_to: Any) -> None:
    with pytest.raises(InfeasibleGoals, match=r">= 0.9'.*<= 0.8'"):
        Goals(subject_to=subject_to)


def test_bounds_that_meet_are_no_contradiction() -> None:
    Goals(subject_to=[recall() >= 0.1 + 0.2, recall() <= 0.3])


# --- evaluate -------------------------------------------------------------------------------------


def test_predictions() -> None:
    goals = Goals(error_rate(), [recall() >= 0.6, precision() >= 0.7])
    report = goals.evaluate(predictions=DECIDED, y=Y)
    assert report.objective_strict == pytest.approx(2 / 8)
    assert report.objective_expected is None
    assert line(report).strict == pytest.approx(2 / 3)
    assert line(report).slack == pytest.approx(2 / 3 - 0.6)
    assert line(report).met and not line(report, 1).met
    assert line(report, 1).strict == pytest.approx(2 / 3)
    assert not report.met


def test_scores_are_positive_above_zero() -> None:
    scores = np.array([2.0, 1e-9, 0.0, 3.0, -1, -1, -math.inf, -0.0])
    report = Goals(subject_to=[recall() >= 0.6]).evaluate(scores=scores, y=Y)
    assert line(report).strict == pytest.approx(2 / 3)


def test_probabilities_fill_the_expected_column() -> None:
    probabilities = np.array([0.5, 1.0, 0.0, 0.25, 0, 0, 0, 0])
    report = Goals(error_rate(), [recall() >= 0.6]).evaluate(probabilities=probabilities, y=Y)
    assert report.objective_strict is None and line(report).strict is None
    assert report.objective_expected == pytest.approx((0.5 + 1 + 0.25) / 8)
    assert line(report).expected == pytest.approx(0.5)
    assert line(report).slack == pytest.approx(-0.1)
    assert not line(report).met


def test_the_positive_label_turns_everything_round() -> None:
    goals = Goals(subject_to=[recall() >= 0.6, positive_rate() >= 0.6], pos_label=0)
    report = goals.evaluate(predictions=DECIDED, y=Y)
    assert [g.strict for g in report.goals] == pytest.approx([4 / 5, 5 / 8])
    report = goals.evaluate(scores=1.0 - 2 * DECIDED, y=Y)
    assert [g.strict for g in report.goals] == pytest.approx([4 / 5, 5 / 8])


@pytest.mark.parametrize(
    "classes", [["no", "yes"], [False, True], [-1, 1], [0, 1], [2.0, 5.0]], ids=str
)
def test_any_two_classes(classes: list[Any]) -> None:
    names = np.array(classes, dtype=object)
    for y, predictions in [
        (names[Y], names[DECIDED]),
        (names[Y].tolist(), names[DECIDED].tolist()),
        (pd.Series(names[Y].tolist()), pd.Series(names[DECIDED].tolist())),
        (pl.Series(names[Y].tolist()), pl.Series(names[DECIDED].tolist())),
        (np.array(names[Y].tolist()), np.array(names[DECIDED].tolist())),
    ]:
        report = Goals(subject_to=[recall() >= 0.6]).evaluate(predictions=predictions, y=y)
        assert line(report).strict == pytest.approx(2 / 3)


def test_weights_baseline_and_columns() -> None:
    goals = Goals(
        cost(fn=1.0), [churn() <= 0.5, positive_rate(by="sex").ratio() >= 0.8, win_rate() >= 0.0]
    )
    weight = np.array([2.0, 1, 1, 1, 1, 1, 1, 0])
    report = goals.evaluate(
        predictions=DECIDED, y=Y, sample_weight=weight, baseline=np.ones(8, dtype=int),
        columns=pl.DataFrame({"sex": list("FFFMMMMM")}),
    )  # fmt: skip
    assert report.objective_strict == pytest.approx(1 / 8)
    assert line(report).strict == pytest.approx(4 / 8)
    assert line(report, 1).groups == pytest.approx({"F": 3 / 4, "M": 1 / 4})
    assert line(report, 1).strict == pytest.approx(1 / 3)
    assert line(report, 2).strict == pytest.approx(3 / 8)


class Threshold:
    """A model without anything but what evaluate needs."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def predict(self, X: Any) -> Any:
        self.calls.append(len(X))
        return (np.asarray(X)[:, 0] > 5).astype(int)


class Ramp(Threshold):
    def positive_probability(self, X: Any) -> Any:
        return np.clip(np.asarray(X)[:, 0] / 10, 0, 1)


def test_a_model_is_called_on_every_dataset() -> None:
    audit = Dataset(np.array([[6.0, 0], [0, 0], [7, 0]]), [1, 1, 0])
    goals = Goals(error_rate(), [recall(on="audit") >= 0.5, positive_rate(on="audit") <= 0.7])
    model = Ramp()
    report = goals.evaluate(model, X, Y, datasets={"audit": audit})
    assert model.calls == [8, 3]
    assert report.objective_strict == pytest.approx(8 / 8)
    assert line(report).strict == pytest.approx(1 / 2)
    assert line(report).expected == pytest.approx(0.3)
    assert line(report, 1).expected == pytest.approx((0.6 + 0 + 0.7) / 3)


def test_a_model_without_probabilities_has_no_expected_values() -> None:
    report = Goals().evaluate(Threshold(), X, Y)
    assert report.objective_strict == 1.0 and report.objective_expected is None


def test_the_stacked_form_takes_arrays_over_all_rows() -> None:
    stacked = stack(
        train=Dataset(X, Y), traffic=Dataset(X[:4], baseline=[1, 0, 1, 0], columns={"k": [*"aabb"]})
    )
    goals = Goals(error_rate(), [churn(on="traffic", by="k").max() <= 0.5])
    decided = np.concatenate([DECIDED, [1, 1, 0, 1]])
    about = dict(y=stacked.y, baseline=stacked.baseline, columns=stacked.columns)
    report = goals.evaluate(predictions=decided, datasets="dataset", **about)
    assert report.objective_strict == pytest.approx(2 / 8)
    assert line(report).groups == pytest.approx({"a": 0.5, "b": 1.0})
    by_name = {"train": DECIDED, "traffic": decided[8:]}
    assert goals.evaluate(predictions=by_name, datasets="dataset", **about) == report
    model = Threshold()
    goals.evaluate(model, stacked.X, datasets="dataset", **about)
    assert model.calls == [12]


def test_goals_on_another_dataset_need_no_training_rows() -> None:
    audit = Dataset(X, Y)
    goals = Goals(error_rate(on="audit"), [recall(on="audit") >= 0.6])
    for source in ({"predictions": {"audit": DECIDED}}, {"scores": {"audit": DECIDED - 0.5}}):
        report = goals.evaluate(**source, datasets={"audit": audit})
        assert line(report).strict == pytest.approx(2 / 3)
    assert goals.evaluate(Threshold(), datasets={"audit": audit}).objective_strict == 1.0


def test_rows_of_one_class_can_be_evaluated() -> None:
    golden = Goals(accuracy(), [accuracy() >= 1.0])
    report = golden.evaluate(predictions=[1, 1, 0], y=[1, 1, 1])
    assert line(report).strict == pytest.approx(2 / 3)
    fitted = LogisticRegression().fit(X, Y)
    assert golden.evaluate(fitted, X[:3], Y[:3]).objective_strict is not None


def test_goals_out_of_reach_are_reported_and_not_raised() -> None:
    report = Goals(subject_to=[win_rate() >= 0.9]).evaluate(predictions=Y, y=Y, baseline=DECIDED)
    assert line(report).strict == pytest.approx(2 / 8) and not report.met


def test_nothing_over_nothing_warns_and_counts_as_met() -> None:
    goals = Goals(subject_to=[precision() >= 0.6])
    with pytest.warns(UserWarning, match=r"precision\(\) >= 0.6 is undefined \(0/0\)"):
        report = goals.evaluate(predictions=np.zeros(8, dtype=int), y=Y)
    assert line(report).met and math.isnan(line(report).strict)
    assert "undefined (0/0)" in str(report)


def test_groups_that_are_undefined_are_named() -> None:
    goals = Goals(subject_to=[precision(by="k").min() >= 0.6])
    with pytest.warns(UserWarning, match=r"undefined \(0/0\) in b and counts as met there"):
        report = goals.evaluate(predictions=DECIDED, y=Y, columns={"k": [*"aaaabbbb"]})
    assert line(report).strict == pytest.approx(2 / 3) and report.met
    goals = Goals(subject_to=[positive_rate(by="k").ratio() >= 0.8])
    with pytest.warns(UserWarning, match="undefined"):
        report = goals.evaluate(predictions=[0] * 8, y=Y, columns={"k": [*"aaaabbbb"]})
    assert report.met


AUDIT = {"audit": Dataset(X, Y)}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "exactly one of a model.*got none"),
        (
            {"predictions": DECIDED, "scores": DECIDED},
            TypeError,
            "exactly one of .*got predictions and scores",
        ),
        ({"predictions": DECIDED[:5]}, ValueError, "5 values for 8 rows"),
        ({"predictions": [*DECIDED[:7], 2]}, ValueError, r'"train" hold 2, and the classes are'),
        ({"predictions": DECIDED * 0.5}, ValueError, "real numbers go into scores="),
        ({"predictions": [*DECIDED[:7], None]}, ValueError, '"train": row 7 is NaN or missing'),
        ({"scores": [*DECIDED[:7], math.nan]}, ValueError, '"train": row 7 is NaN'),
        ({"scores": list("abcdefgh")}, TypeError, "must be numbers, not such as 'a'"),
        ({"probabilities": DECIDED - 0.5}, ValueError, "between 0 and 1, and row 2 is -0.5"),
        ({"probabilities": DECIDED + 0.5}, ValueError, "between 0 and 1, and row 0 is 1.5"),
        ({"probabilities": np.zeros((8, 2))}, ValueError, "1d array"),
        ({"model": object()}, TypeError, "a model has predict"),
        ({"model": Threshold(), "X": None}, TypeError, r"evaluate\(model\) needs X"),
        ({"model": Threshold(), "X": X[:5]}, ValueError, "5"),
        ({"predictions": {"train": DECIDED, "adit": DECIDED}}, ValueError, 'did you mean "audit"'),
        ({"predictions": {"audit": DECIDED}}, ValueError, 'dataset "train".*for it are missing'),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Goals().evaluate(**{"X": X, "y": Y, "datasets": AUDIT, **arguments})


def test_predictions_of_another_dataset_are_asked_for() -> None:
    goals = Goals(subject_to=[recall(on="audit") >= 0.5])
    with pytest.raises(ValueError, match='"audit", and predictions for it are missing'):
        goals.evaluate(predictions=DECIDED, y=Y, datasets=AUDIT)
    with pytest.raises(ValueError, match='predictions of dataset "audit": 3 values for 8 rows'):
        goals.evaluate(predictions={"train": DECIDED, "audit": [0, 1, 0]}, y=Y, datasets=AUDIT)


def test_a_model_that_answers_with_the_wrong_length_is_named() -> None:
    class Short(Threshold):
        def predict(self, X: Any) -> Any:
            return super().predict(X)[1:]

    with pytest.raises(ValueError, match='predict on dataset "train": 7 values for 8 rows'):
        Goals().evaluate(Short(), X, Y)


def test_classes_that_cannot_be_told() -> None:
    goals = Goals(positive_rate(on="traffic"))
    with pytest.raises(ValueError, match="two classes cannot be told from what was given"):
        goals.evaluate(scores={"traffic": [1.0] * 8}, datasets={"traffic": Dataset(X)})


# --- scorer ---------------------------------------------------------------------------------------


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Says:
    """A model that says what it is told."""

    def __init__(self, predictions: Any) -> None:
        self.predictions = np.asarray(predictions)
        self.classes_ = np.array([0, 1])

    def __sklearn_tags__(self) -> Any:
        return DummyClassifier().__sklearn_tags__()

    _estimator_type = "classifier"

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return self.predictions


def test_scores_rank_feasible_models_by_objective_and_above_all_others() -> None:
    score = Goals(error_rate(), [recall() >= 0.6]).scorer()
    everyone, right, two, one, nobody = (
        score(Says(p), X, Y)
        for p in (np.ones(8), Y, DECIDED, [1, 0, 0, 0, 0, 0, 0, 0], np.zeros(8))
    )
    assert right == 0.0
    assert two == pytest.approx(-2 / 8)
    assert everyone == pytest.approx(-5 / 8)
    assert right > two > everyone > one > nobody
    # The best that misses in one fold of ten ranks below the worst that meets in all.
    assert (9 * right + one) / 10 < -1.0


def test_scorers_pickle() -> None:
    score = pickle.loads(pickle.dumps(Goals(error_rate(), [recall() >= 0.6]).scorer()))
    assert score(Says(DECIDED), X, Y) == pytest.approx(-2 / 8)


def test_a_scorer_picks_the_best_model_that_meets_the_goals() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 1).astype(int)
    grid = {"class_weight": [{0: 1, 1: w} for w in (0.3, 1, 2, 4, 8, 16)]}
    plain = GridSearchCV(LogisticRegression(), grid, scoring=Goals().scorer(), cv=3).fit(X, y)
    goals = Goals(error_rate(), [recall() >= 0.8])
    search = GridSearchCV(LogisticRegression(), grid, scoring=goals.scorer(), cv=3).fit(X, y)
    chosen = search.best_params_["class_weight"][1]
    assert chosen > plain.best_params_["class_weight"][1]
    assert chosen < 16
    assert goals.evaluate(search.best_estimator_, X, y).met
    errors = -plain.cv_results_["mean_test_score"]
    assert (errors > 0).all() and (errors < 1).all()


def test_metadata_are_routed_to_the_scorer(routing: Any) -> None:
    rng = np.random.default_rng(1)
    n = 200
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    people = pd.DataFrame(
        {"sex": rng.choice(["F", "M"], n), "dataset": rng.choice(["train", "traffic"], n)}
    )
    goals = Goals(
        error_rate(),
        [churn(on="traffic") <= 0.45, positive_rate(by="sex").gap() <= 0.9, recall() >= 0.1],
    )
    search = GridSearchCV(
        LogisticRegression().set_fit_request(sample_weight=True),
        {"C": [1.0, 10.0]},
        scoring=goals.scorer(),
        cv=2,
    )
    search.fit(
        X, y, sample_weight=rng.integers(1, 3, n), baseline=1 - y, columns=people,
        datasets="dataset",
    )  # fmt: skip
    # The baseline is always wrong: no good model changes as few of its decisions as asked.
    assert (search.cv_results_["mean_test_score"] < -50).all()
    search.fit(X, y, sample_weight=np.ones(n), baseline=y, columns=people, datasets="dataset")
    assert (search.cv_results_["mean_test_score"] > -1).all()


def test_a_constant_model_in_cross_validation(routing: Any) -> None:
    goals = Goals(error_rate(), [recall() >= 0.5])
    search = GridSearchCV(
        DummyClassifier(), {"strategy": ["most_frequent"]}, scoring=goals.scorer(), cv=2
    ).fit(X, Y)
    assert search.best_score_ < -50
    constant = GridSearchCV(
        DummyClassifier(strategy="constant"), {"constant": [0, 1]}, scoring=goals.scorer(), cv=2
    ).fit(X, Y)
    assert constant.best_params_ == {"constant": 1}


def test_a_scorer_needs_the_stacked_form(routing: Any) -> None:
    score = Goals(subject_to=[recall(on="audit") >= 0.5]).scorer()
    with pytest.raises(TypeError, match="stack them under X"):
        score(Says(DECIDED), X, Y, datasets=AUDIT)
    with pytest.raises(ValueError, match='dataset "audit", which does not exist'):
        score(Says(DECIDED), X, Y)
