"""RateBoundSVC among scikit-learn's tools: checks, clones, Pipelines, searches, routing, frames."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    Stacked,
    churn,
    cost,
    error_rate,
    parse_goal,
    positive_rate,
    recall,
    stack,
)

REACHABLE = Goals(error_rate(), [recall() >= 0.6])


@parametrize_with_checks(
    [RateBoundSVC(), RateBoundSVC(REACHABLE), RateBoundSVC(REACHABLE, threshold="zero")]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


# --- data: training, audit and traffic rows of very unequal scales --------------------------------

FEATURES = ["age", "income", "tenure"]
UNITS = np.array([10.0, 2000.0, 0.5])


class Rows(NamedTuple):
    """Rows of one dataset before anything is made of them."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    baseline: NDArray[np.int64]
    sex: NDArray[np.str_]


def rows(n: int, seed: int, shift: float = 0.0) -> Rows:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3)) + shift
    y = (Z @ [1.0, 0.7, -0.4] + rng.normal(size=n) > 0.5).astype(int)
    baseline = (Z @ [1.0, 0.2, 0.0] + 0.3 * rng.normal(size=n) > 0.5).astype(int)
    return Rows(Z * UNITS + 3 * UNITS, y, baseline, np.where(Z[:, 2] > 0.2, "F", "M"))


TRAIN, AUDIT, TRAFFIC = rows(260, 0), rows(120, 1, 0.2), rows(140, 2, -0.2)
GOALS = Goals(
    error_rate(),
    [
        recall(on="audit") >= 0.8,
        churn(on="traffic") <= 0.25,
        positive_rate(by="sex").ratio() >= 0.4,
    ],
)


def as_array(X: Any) -> Any:
    return X


def as_pandas(X: Any) -> Any:
    return pd.DataFrame(X, columns=FEATURES)


def as_polars(X: Any) -> Any:
    return pl.DataFrame(X, schema=FEATURES)


KINDS = pytest.mark.parametrize("kind", [as_array, as_pandas, as_polars])


def stacked(kind: Any = as_array) -> Stacked:
    """The three datasets in the stacked form; traffic is unlabelled, audit has no baseline."""
    table: Any = {as_pandas: pd.DataFrame, as_polars: pl.DataFrame}.get(kind, dict)
    return stack(
        train=Dataset(kind(TRAIN.X), TRAIN.y, columns=table({"sex": TRAIN.sex})),
        audit=Dataset(kind(AUDIT.X), AUDIT.y, columns=table({"sex": AUDIT.sex})),
        traffic=Dataset(kind(TRAFFIC.X), baseline=TRAFFIC.baseline),
    )


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(clf: RateBoundSVC) -> RateBoundSVC:
    """The estimator with requests for all that its fit takes."""
    return clf.set_fit_request(sample_weight=True, baseline=True, columns=True, datasets=True)


# --- parameters, copies ---------------------------------------------------------------------------


def test_goals_are_a_parameter_like_any_other() -> None:
    clf = RateBoundSVC(GOALS, alpha=0.01)
    parameters = clf.get_params()
    assert parameters["goals"] is GOALS and parameters["alpha"] == 0.01
    assert set(parameters) == {
        "goals", "alpha", "solver", "tol", "max_iter", "multiplier_bound", "fit_intercept", "start",
        "threshold", "n_starts", "random_state", "callback", "verbose", "time_limit", "kernel",
        "gamma", "degree", "coef0",
    }  # fmt: skip
    assert clf.set_params(goals=REACHABLE, tol=1e-3) is clf
    assert clf.goals is REACHABLE and clf.tol == 1e-3
    with pytest.raises(ValueError, match="Invalid parameter 'class_weight'"):
        clf.set_params(class_weight="balanced")
    assert "recall() >= 0.6" in repr(clf) or "recall()>=0.6" in repr(clf)
    assert "RateBoundSVC" in clf._repr_html_()
    assert is_classifier(clf) and not hasattr(clf, "predict_proba")


def test_a_clone_has_the_goals_and_nothing_that_was_learned() -> None:
    clf = RateBoundSVC(GOALS, alpha=0.01)
    unfitted = clone(clf)
    assert unfitted.goals == GOALS and unfitted.get_params() == clf.get_params()
    fitted = RateBoundSVC(REACHABLE).fit(TRAIN.X / UNITS, TRAIN.y)
    again = clone(fitted)
    assert not hasattr(again, "coef_")
    with pytest.raises(NotFittedError):
        again.predict(TRAIN.X)
    again.fit(TRAIN.X / UNITS, TRAIN.y)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)


def test_fit_changes_no_parameter() -> None:
    clf = RateBoundSVC(REACHABLE, random_state=3)
    before = dict(vars(clf))
    clf.fit(TRAIN.X / UNITS, TRAIN.y)
    assert {name: vars(clf)[name] for name in before} == before
    assert clf.alpha is None and clf.multiplier_bound is None


@pytest.mark.parametrize(
    "copied", [lambda clf: pickle.loads(pickle.dumps(clf)), copy.deepcopy, copy.copy]
)
def test_a_fitted_estimator_can_be_copied(copied: Any) -> None:
    frame = as_pandas(TRAIN.X / UNITS)
    goals = Goals(error_rate(), [positive_rate(by="sex").gap() <= 0.4, recall() >= 0.6])
    clf = RateBoundSVC(goals).fit(frame, TRAIN.y, columns={"sex": TRAIN.sex})
    twin = copied(clf)
    np.testing.assert_array_equal(twin.predict(frame), clf.predict(frame))
    np.testing.assert_array_equal(twin.positive_probability(frame), clf.positive_probability(frame))
    assert twin.goals == goals
    assert twin.report_ == clf.report_ and str(twin.report_) == str(clf.report_)
    assert twin.status_ == clf.status_ and twin.history_ == clf.history_
    assert twin.multipliers_ == clf.multipliers_
    assert list(twin.feature_names_in_) == FEATURES


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [as_pandas, as_polars, lambda X: pa.table(as_pandas(X))])
def test_frames_are_features_with_names(kind: Any) -> None:
    plain = RateBoundSVC(REACHABLE).fit(TRAIN.X / UNITS, TRAIN.y)
    clf = RateBoundSVC(REACHABLE).fit(kind(TRAIN.X / UNITS), TRAIN.y)
    assert list(clf.feature_names_in_) == FEATURES and clf.n_features_in_ == 3
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(kind(AUDIT.X)), plain.predict(AUDIT.X))


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, list, lambda y: pd.Series(y, index=y * 3)])
def test_series_and_lists_are_labels_weights_and_baselines(kind: Any) -> None:
    goals = Goals(error_rate(), [churn() <= 0.3])
    X = TRAIN.X / UNITS
    weight = np.arange(len(X)) % 3
    plain = RateBoundSVC(goals).fit(X, TRAIN.y, sample_weight=weight, baseline=TRAIN.baseline)
    clf = RateBoundSVC(goals).fit(
        X, kind(TRAIN.y), sample_weight=kind(weight), baseline=kind(TRAIN.baseline)
    )
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    assert clf.report_ == plain.report_


@pytest.mark.parametrize(
    "table",
    [
        dict,
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: pd.DataFrame(columns, index=np.arange(len(TRAIN.X))[::-1]),
        lambda columns: pd.DataFrame(columns).astype({"sex": "category"}),
        lambda columns: {"sex": columns["sex"].tolist()},
        lambda columns: {"sex": pd.Series(columns["sex"])},
    ],
)
def test_columns_are_any_table(table: Any) -> None:
    goals = Goals(error_rate(), [positive_rate(by="sex").gap() <= 0.4])
    X = TRAIN.X / UNITS
    plain = RateBoundSVC(goals).fit(X, TRAIN.y, columns={"sex": TRAIN.sex})
    clf = RateBoundSVC(goals).fit(X, TRAIN.y, columns=table({"sex": TRAIN.sex}))
    assert clf.report_ == plain.report_
    assert set(clf.report_.goals[0].groups) == {"F", "M"}


@pytest.mark.parametrize("kind", [as_pandas, as_polars])
def test_a_numeric_column_of_a_frame_serves_as_groups(kind: Any) -> None:
    sex = (TRAIN.sex == "F").astype(float)
    X = np.column_stack([TRAIN.X[:, :2] / UNITS[:2], sex])
    goals = Goals(error_rate(), [positive_rate(by="tenure").gap() <= 0.3])
    clf = RateBoundSVC(goals).fit(kind(X), TRAIN.y)
    positive = clf.predict(kind(X)) == 1
    gap = abs(positive[sex == 1].mean() - positive[sex == 0].mean())
    assert gap <= 0.3 + 1e-9
    assert clf.report_.goals[0].strict == pytest.approx(gap, abs=1e-12)


def test_frames_and_arrays_are_not_mixed_silently() -> None:
    clf = RateBoundSVC().fit(as_pandas(TRAIN.X / UNITS), TRAIN.y)
    with pytest.raises(ValueError, match="same order"):
        clf.predict(as_pandas(TRAIN.X)[FEATURES[::-1]])
    with pytest.raises(ValueError, match="height"):
        clf.predict(as_pandas(TRAIN.X).rename(columns={"age": "height"}))
    with pytest.raises(ValueError, match=r"now missing:\n- tenure"):
        clf.predict(as_pandas(TRAIN.X)[FEATURES[:2]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(TRAIN.X)
    # a fit of arrays forgets the names
    clf.fit(TRAIN.X[:, :2] / UNITS[:2], TRAIN.y)
    assert not hasattr(clf, "feature_names_in_") and clf.n_features_in_ == 2
    assert clf.predict(TRAIN.X[:, :2]).shape == TRAIN.y.shape


# --- the stacked form in a Pipeline ---------------------------------------------------------------


def by_hand(**parameters: Any) -> tuple[RateBoundSVC, StandardScaler]:
    """The fit that a scaler over all rows in front of datasets of their own amounts to."""
    scaler = StandardScaler().fit(np.concatenate([TRAIN.X, AUDIT.X, TRAFFIC.X]))
    clf = RateBoundSVC(GOALS, **parameters).fit(
        scaler.transform(TRAIN.X),
        TRAIN.y,
        columns={"sex": TRAIN.sex},
        datasets={
            "audit": Dataset(scaler.transform(AUDIT.X), AUDIT.y),
            "traffic": Dataset(scaler.transform(TRAFFIC.X), baseline=TRAFFIC.baseline),
        },
    )
    return clf, scaler


def pipeline(scaler: Any = None, **parameters: Any) -> Pipeline:
    """A scaler in front of the estimator."""
    return Pipeline([("scale", scaler or StandardScaler()), ("svc", RateBoundSVC(**parameters))])


@pytest.mark.parametrize(
    ("kind", "keeps_frames"),
    [
        (as_array, False),
        (as_pandas, False),
        (as_pandas, True),
        (as_polars, False),
        (as_polars, True),
    ],
)
def test_a_scaler_in_front_of_audit_and_traffic_rows(kind: Any, keeps_frames: bool) -> None:
    scaler = StandardScaler()
    if keeps_frames:
        scaler.set_output(transform="pandas" if kind is as_pandas else "polars")
    X, y, _, baseline, columns = stacked(kind)
    pipe = pipeline(scaler, goals=GOALS).fit(
        X, y, svc__baseline=baseline, svc__columns=columns, svc__datasets="dataset"
    )
    expected, separate_scaler = by_hand()
    clf = pipe.named_steps["svc"]
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    assert clf.intercept_ == pytest.approx(expected.intercept_, rel=1e-6, abs=1e-9)
    assert hasattr(clf, "feature_names_in_") == keeps_frames
    assert list(clf.classes_) == list(pipe.classes_) == [0, 1]
    answers = expected.predict(separate_scaler.transform(AUDIT.X))
    np.testing.assert_array_equal(pipe.predict(kind(AUDIT.X)), answers)
    # the report is about the rows that each dataset has behind the scaler
    assert clf.report_.met
    assert clf.report_.goals[0].strict == pytest.approx(
        np.mean(pipe.predict(kind(AUDIT.X))[AUDIT.y == 1])
    )
    assert clf.report_.goals[1].strict == pytest.approx(
        np.mean(pipe.predict(kind(TRAFFIC.X)) != TRAFFIC.baseline)
    )
    assert clf.report_.objective_strict == pytest.approx(
        np.mean(pipe.predict(kind(TRAIN.X)) != TRAIN.y)
    )
    judged = GOALS.evaluate(pipe, X, y, baseline=baseline, columns=columns, datasets="dataset")
    for mine, theirs in zip(clf.report_.goals, judged.goals, strict=True):
        assert mine.strict == pytest.approx(theirs.strict)


@KINDS
def test_metadata_are_routed_through_a_pipeline(kind: Any, routing: None) -> None:
    X, y, _, baseline, columns = stacked(kind)
    weight = np.linspace(0.5, 1.5, len(y))
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = Pipeline([("scale", scaler), ("svc", asking(RateBoundSVC(GOALS)))])
    pipe.fit(X, y, sample_weight=weight, baseline=baseline, columns=columns, datasets="dataset")
    scaled = StandardScaler().fit_transform(np.asarray(X))
    alone = RateBoundSVC(GOALS).fit(
        scaled, y, sample_weight=weight, baseline=baseline, columns=columns, datasets="dataset"
    )
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)
    assert pipe[-1].report_ == alone.report_


def test_metadata_that_nobody_asked_for_are_refused(routing: None) -> None:
    X, y, _, baseline, _ = stacked()
    pipe = Pipeline([("scale", StandardScaler()), ("svc", RateBoundSVC())])
    with pytest.raises(ValueError, match="baseline"):
        pipe.fit(X, y, baseline=baseline)


def test_a_sparse_stack_goes_through_a_pipeline() -> None:
    dense = stacked()
    sparse = stack(
        train=Dataset(sp.csr_array(TRAIN.X), TRAIN.y, columns={"sex": TRAIN.sex}),
        audit=Dataset(sp.csc_matrix(AUDIT.X), AUDIT.y, columns={"sex": AUDIT.sex}),
        traffic=Dataset(sp.csr_matrix(TRAFFIC.X), baseline=TRAFFIC.baseline),
    )
    fits = [
        pipeline(StandardScaler(with_mean=False), goals=GOALS).fit(
            rows.X,
            rows.y,
            svc__baseline=rows.baseline,
            svc__columns=rows.columns,
            svc__datasets="dataset",
        )
        for rows in (dense, sparse)
    ]
    np.testing.assert_allclose(fits[1][-1].coef_, fits[0][-1].coef_, rtol=1e-5, atol=1e-8)
    assert fits[1][-1].report_.met


# --- searches and cross-validation ----------------------------------------------------------------

BOLD = Goals(error_rate(), [recall(on="audit") >= 0.9, churn(on="traffic") <= 0.4])
# shuffled, since the rows of a stack lie dataset by dataset
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)
TIMID = Goals(error_rate(), [recall(on="audit") <= 0.5, churn(on="traffic") <= 0.4])


def search(scorer: Any) -> GridSearchCV:
    """A search over goals and alpha of the stacked form, behind a scaler."""
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = Pipeline([("scale", scaler), ("svc", asking(RateBoundSVC(threshold="zero")))])
    grid = {"svc__goals": [BOLD, TIMID], "svc__alpha": [1e-3, 1e-1]}
    return GridSearchCV(pipe, grid, scoring=scorer, cv=FOLDS, error_score="raise")


@KINDS
def test_a_search_over_goals_and_alpha(kind: Any, routing: None) -> None:
    X, y, _, baseline, columns = stacked(kind)
    about = {"baseline": baseline, "columns": columns, "datasets": "dataset"}
    judge = Goals(error_rate(), [recall(on="audit") >= 0.65, churn(on="traffic") <= 0.5])
    found = search(judge.scorer()).fit(X, y, sample_weight=np.ones(len(y)), **about)
    assert set(found.cv_results_["param_svc__goals"]) == {BOLD, TIMID}
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    # only the model that was asked for recall has it
    assert found.best_params_["svc__goals"] == BOLD == found.best_estimator_[-1].goals
    assert -1 <= found.best_score_ <= 0
    assert (np.sort(found.cv_results_["mean_test_score"])[:2] < -50).all()
    report = judge.evaluate(found, X, y, **about)
    assert report.met
    assert found.score(X, y, **about) == pytest.approx(-report.objective_strict)


def test_a_search_by_accuracy(routing: None) -> None:
    X, y, _, baseline, columns = stacked()
    about = {"baseline": baseline, "columns": columns, "datasets": "dataset"}
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=False)
    found = search(scorer).fit(X, y, sample_weight=np.ones(len(y)), **about)
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    assert found.score(X, y) == pytest.approx(np.mean(found.predict(X) == y))


def test_a_search_without_routing_knows_training_rows_only() -> None:
    X, y = TRAIN.X / UNITS, TRAIN.y
    judge = Goals(error_rate(), [recall() >= 0.75])
    grid = {
        "goals": [Goals(cost(fp=3, fn=1)), Goals(error_rate(), [recall() >= 0.9])],
        "alpha": [0.01, 0.1],
    }
    found = GridSearchCV(RateBoundSVC(), grid, scoring=judge.scorer(), cv=3).fit(X, y)
    assert found.best_params_["goals"] == grid["goals"][1]
    assert judge.evaluate(found.best_estimator_, X, y).met


def test_goals_of_a_search_may_come_from_text() -> None:
    goals = [Goals(error_rate(), [parse_goal(f"recall() >= {bound}")]) for bound in (0.5, 0.95)]
    found = GridSearchCV(RateBoundSVC(), {"goals": goals}, scoring="recall", cv=3)
    found.fit(TRAIN.X / UNITS, TRAIN.y)
    assert found.best_params_ == {"goals": goals[1]}


def test_cross_validation() -> None:
    X, y = TRAIN.X / UNITS, TRAIN.y
    clf = RateBoundSVC(REACHABLE)
    folds = StratifiedKFold(4)
    accuracies = cross_val_score(clf, X, y, cv=folds)
    expected = [
        np.mean(clone(clf).fit(X[train], y[train]).predict(X[test]) == y[test])
        for train, test in folds.split(X, y)
    ]
    np.testing.assert_allclose(accuracies, expected)
    # a linear logistic regression does about as well
    assert accuracies.mean() > cross_val_score(LogisticRegression(), X, y, cv=folds).mean() - 0.05
    assert cross_val_predict(clf, X, y, cv=folds).shape == y.shape
    scores = cross_val_predict(clf, X, y, cv=folds, method="decision_function")
    assert scores.shape == y.shape
    assert (cross_val_score(clf, X, y, cv=folds, scoring="roc_auc") > 0.7).all()


def test_cross_validation_of_the_stacked_form(routing: None) -> None:
    rows = stacked(as_pandas)
    about = {"baseline": rows.baseline, "columns": rows.columns, "datasets": "dataset"}
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = Pipeline([("scale", scaler), ("svc", asking(RateBoundSVC(BOLD, threshold="zero")))])
    loose = Goals(error_rate(), [recall(on="audit") >= 0.5, churn(on="traffic") <= 0.6])
    found = cross_validate(
        pipe, rows.X, rows.y, params=about, scoring=loose.scorer(), cv=FOLDS,
        return_estimator=True,
    )  # fmt: skip
    assert (found["test_score"] <= 0).all() and (found["test_score"] > -1).all()
    for clf, score, (_, test) in zip(
        found["estimator"], found["test_score"], FOLDS.split(rows.X, rows.y), strict=True
    ):
        part = rows.columns["dataset"].iloc[test] == "train"
        mine = test[part]
        assert score == pytest.approx(-np.mean(clf.predict(rows.X.iloc[mine]) != rows.y[mine]))


def test_three_classes_by_one_vs_rest() -> None:
    """What the error about three classes advises works."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 240)
    X = np.eye(3)[y] + 0.4 * rng.normal(size=(240, 3))
    clf = OneVsRestClassifier(RateBoundSVC(Goals(error_rate(), [recall() >= 0.8]))).fit(X, y)
    assert np.mean(clf.predict(X) == y) > 0.8
    assert all(part.report_.met for part in clf.estimators_)


def test_score_is_the_accuracy() -> None:
    X, y = TRAIN.X / UNITS, np.where(TRAIN.y, "yes", "no")
    clf = RateBoundSVC().fit(X, y)
    weight = np.arange(len(y))
    assert clf.score(X, y) == pytest.approx(np.mean(clf.predict(X) == y))
    right = np.average(clf.predict(X) == y, weights=weight)
    assert clf.score(X, y, sample_weight=weight) == pytest.approx(right)
