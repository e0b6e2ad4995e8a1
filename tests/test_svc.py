"""RateBoundSVC by what its documentation says: answers, signs, forms of data, how fits end."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    accuracy,
    between,
    churn,
    cost,
    error_rate,
    f_score,
    false_negative_rate,
    false_positive_rate,
    loss_rate,
    negative_predictive_value,
    negative_rate,
    positive_rate,
    precision,
    recall,
    specificity,
    stack,
    win_change_ratio,
    win_rate,
)

Floats = NDArray[np.float64]

# One problem posed in two ways is solved on two paths: the answers agree as far as it is solved.
EXACTLY: dict[str, Any] = {"tol": 1e-9, "max_iter": 500}


class People(NamedTuple):
    """Rows with everything that goals can read."""

    X: Floats
    y: NDArray[np.int64]
    baseline: NDArray[np.int64]
    sex: NDArray[np.str_]
    weight: Floats


def people(n: int = 300, seed: int = 0, d: int = 4) -> People:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    direction = np.resize([1.0, -0.8, 0.5, 0.3], d)
    y = (X @ direction + rng.normal(size=n) > 0.4).astype(int)
    baseline = (X[:, 0] + 0.5 * rng.normal(size=n) > 0.2).astype(int)
    sex = np.where(X[:, -1] + rng.normal(size=n) > 0.3, "F", "M")
    return People(X, y, baseline, sex, rng.integers(1, 4, n).astype(float))


P = people()
AUDIT = people(150, 1)
TRAFFIC = people(180, 2)
RECALL = Goals(error_rate(), [recall() >= 0.85])
SEVERAL = Goals(
    error_rate(),
    [
        recall(on="audit") >= 0.75,
        churn(on="traffic") <= 0.35,
        positive_rate(by="sex").ratio() >= 0.5,
    ],
)
# nobody is in both halves of the plane, and the goals ask for both
CONFLICT = Goals(error_rate(), [recall() >= 0.98, specificity() >= 0.98])


def fit_several(**parameters: Any) -> RateBoundSVC:
    return RateBoundSVC(SEVERAL, **parameters).fit(
        P.X,
        P.y,
        columns={"sex": P.sex},
        datasets={
            "audit": Dataset(AUDIT.X, AUDIT.y),
            "traffic": Dataset(TRAFFIC.X, baseline=TRAFFIC.baseline),
        },
    )


def assert_same_model(a: RateBoundSVC, b: RateBoundSVC, tolerance: float = 1e-6) -> None:
    """Both decide by the same scores, and say the same of themselves."""
    scale = max(1.0, float(np.abs(a.coef_).max()))
    np.testing.assert_allclose(b.coef_, a.coef_, rtol=0, atol=tolerance * scale)
    assert b.intercept_ == pytest.approx(a.intercept_, abs=tolerance * scale)
    assert b.threshold_shift_ == pytest.approx(a.threshold_shift_, abs=tolerance * scale)
    for mine, theirs in zip(a.report_.goals, b.report_.goals, strict=True):
        assert theirs.label == mine.label and theirs.met == mine.met
        assert theirs.strict == pytest.approx(mine.strict, abs=1e-9)
        assert theirs.expected == pytest.approx(mine.expected, abs=100 * tolerance)


def ramp(scores: Floats) -> Floats:
    return np.clip(0.5 + scores, 0.0, 1.0)


# --- X in any form --------------------------------------------------------------------------------


def sparse_rows(form: Any) -> Any:
    return lambda X: form(X)


def unsorted(X: Floats) -> Any:
    """CSR whose entries lie in falling order of column, some of them split in two or zero."""
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], n)
    data = X[:, ::-1].ravel()
    columns = np.repeat(columns, 2)
    data = np.repeat(data / 2, 2)
    return sp.csr_matrix((data, columns, np.arange(n + 1) * 2 * d), shape=(n, d))


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        np.ndarray.tolist,
        lambda X: X.astype(object),
        sp.csr_matrix,
        sp.csr_array,
        sp.csc_matrix,
        sp.coo_array,
        unsorted,
        lambda X: sp.csr_array((X + 0.0).astype(np.float64)).astype(np.float64),
    ],
    ids=["fortran", "strided", "list", "object", "csr", "csr_array", "csc", "coo", "unsorted", "x"],
)
def test_storage_does_not_matter(form: Any) -> None:
    X = P.X.copy()
    X[np.abs(X) < 0.4] = 0.0
    plain = RateBoundSVC(RECALL).fit(X, P.y)
    clf = RateBoundSVC(RECALL).fit(form(X), P.y)
    assert_same_model(plain, clf)
    np.testing.assert_array_equal(clf.predict(form(X)), plain.predict(X))
    np.testing.assert_allclose(clf.positive_probability(form(X)), plain.positive_probability(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_float32_is_the_same_numbers(form: Any) -> None:
    X = P.X.astype(np.float32)
    plain = RateBoundSVC(RECALL).fit(X.astype(np.float64), P.y)
    clf = RateBoundSVC(RECALL).fit(form(X), P.y)
    assert_same_model(plain, clf, 1e-4)
    assert clf.coef_.dtype == np.float64
    assert clf.decision_function(form(X)).dtype == np.float64
    # what the report says is what predict does, in float32 too
    assert clf.report_.goals[0].strict == pytest.approx(np.mean(clf.predict(form(X))[P.y == 1]))


def test_integers_and_booleans_are_numbers() -> None:
    X = (P.X > 0).astype(int)
    plain = RateBoundSVC().fit(X.astype(float), P.y)
    for other in (X, X.astype(np.int8), X.astype(bool), sp.csr_array(X)):
        assert_same_model(plain, RateBoundSVC().fit(other, P.y))


def test_nothing_that_is_passed_is_changed() -> None:
    arrays = {name: np.array(value) for name, value in P._asdict().items()}
    audit = sp.csr_matrix(AUDIT.X)
    held = audit.copy()
    for array in arrays.values():
        array.setflags(write=False)
    goals = Goals(error_rate(), [recall(on="audit") >= 0.7, churn() <= 0.4])
    clf = RateBoundSVC(goals).fit(
        arrays["X"], arrays["y"], sample_weight=arrays["weight"], baseline=arrays["baseline"],
        columns={"sex": arrays["sex"]}, datasets={"audit": Dataset(audit, AUDIT.y)},
    )  # fmt: skip
    assert (audit != held).nnz == 0
    clf.predict(arrays["X"])
    for name, value in P._asdict().items():
        np.testing.assert_array_equal(arrays[name], value)


def test_the_coefficients_are_the_estimators_own() -> None:
    X = P.X.copy()
    clf = RateBoundSVC(RECALL).fit(X, P.y)
    before = clf.predict(P.X)
    X[:] = 0.0
    np.testing.assert_array_equal(clf.predict(P.X), before)


def test_datasets_may_be_stored_in_different_ways() -> None:
    def fit(form: Any, audit_form: Any) -> RateBoundSVC:
        goals = Goals(error_rate(), [recall(on="audit") >= 0.8])
        audit = Dataset(audit_form(AUDIT.X), AUDIT.y)
        return RateBoundSVC(goals).fit(form(P.X), P.y, datasets={"audit": audit})

    plain = fit(np.asarray, np.asarray)
    assert_same_model(plain, fit(sp.csr_array, np.asarray))
    assert_same_model(plain, fit(np.asarray, sp.csc_matrix))
    assert_same_model(plain, fit(np.asarray, np.ndarray.tolist))


# --- labels ---------------------------------------------------------------------------------------

CLASSES = pytest.mark.parametrize(
    "classes",
    [["no", "yes"], [False, True], [-1, 1], [0, 1], [2.0, 5.0], [b"n", b"y"], [3, 10]],
    ids=str,
)


@CLASSES
@pytest.mark.parametrize("as_objects", [False, True])
def test_any_two_classes(classes: list[Any], as_objects: bool) -> None:
    names = np.array(classes, dtype=object) if as_objects else np.array(classes)
    goals = Goals(error_rate(), [recall() >= 0.85, churn() <= 0.4])
    plain = RateBoundSVC(goals).fit(P.X, P.y, baseline=P.baseline)
    clf = RateBoundSVC(goals).fit(P.X, names[P.y], baseline=names[P.baseline])
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    assert clf.classes_.tolist() == classes
    assert clf.predict(P.X).tolist() == names[plain.predict(P.X)].tolist()
    assert (
        clf.predict_randomized(P.X, 0).tolist() == names[plain.predict_randomized(P.X, 0)].tolist()
    )
    assert clf.report_.to_dict() == plain.report_.to_dict()


@CLASSES
def test_the_positive_label_is_either_class(classes: list[Any]) -> None:
    """Calling the other class positive is the same as turning the labels round."""
    names = np.array(classes)
    goals = [recall() >= 0.85, positive_rate() <= 0.75, churn() <= 0.5]
    turned = RateBoundSVC(Goals(error_rate(), goals)).fit(P.X, 1 - P.y, baseline=1 - P.baseline)
    clf = RateBoundSVC(Goals(error_rate(), goals, pos_label=classes[0]))
    clf.fit(P.X, names[P.y], baseline=names[P.baseline])
    np.testing.assert_allclose(clf.coef_, -turned.coef_)
    assert clf.intercept_ == pytest.approx(-turned.intercept_)
    assert clf.threshold_shift_ == pytest.approx(-turned.threshold_shift_)
    np.testing.assert_allclose(clf.positive_probability(P.X), turned.positive_probability(P.X))
    assert clf.predict(P.X).tolist() == names[1 - turned.predict(P.X)].tolist()
    assert clf.report_.to_dict() == turned.report_.to_dict()
    # scores are signed by classes_[1], whatever is called positive
    np.testing.assert_array_equal(
        clf.decision_function(P.X) > 0, clf.predict(P.X) == clf.classes_[1]
    )
    drawn = clf.predict_randomized(P.X, 0)
    assert (drawn[clf.positive_probability(P.X) == 1] == names[0]).all()
    assert (drawn[clf.positive_probability(P.X) == 0] == names[1]).all()


def test_pos_label_of_the_larger_class_is_the_default() -> None:
    plain = RateBoundSVC(RECALL).fit(P.X, P.y)
    for label in (1, 1.0, True, np.int64(1)):
        goals = Goals(error_rate(), [recall() >= 0.85], pos_label=label)
        np.testing.assert_array_equal(RateBoundSVC(goals).fit(P.X, P.y).coef_, plain.coef_)


@pytest.mark.parametrize(
    "with_gaps",
    [
        lambda y, gaps: np.where(gaps, np.nan, y),
        lambda y, gaps: [None if gap else int(label) for label, gap in zip(y, gaps, strict=True)],
        lambda y, gaps: pd.Series(y, dtype="Int64").mask(gaps),
        lambda y, gaps: pd.Series(y.astype(object)).mask(gaps, pd.NA),
        lambda y, gaps: pd.Series(y.astype(float)).mask(gaps),
    ],
    ids=["nan", "none", "Int64", "pd.NA", "series"],
)
def test_labelled_rates_run_over_labelled_rows(with_gaps: Any) -> None:
    gaps = np.arange(150) % 3 == 0
    goals = Goals(error_rate(), [recall(on="audit") >= 0.9, positive_rate(on="audit") <= 0.8])
    clf = RateBoundSVC(goals, **EXACTLY).fit(
        P.X, P.y, datasets={"audit": Dataset(AUDIT.X, with_gaps(AUDIT.y, gaps))}
    )
    decided = clf.predict(AUDIT.X) == 1
    assert clf.report_.goals[0].strict == pytest.approx(decided[~gaps & (AUDIT.y == 1)].mean())
    assert clf.report_.goals[1].strict == pytest.approx(decided.mean())
    # the same as two datasets, the labelled rows and all rows
    goals = Goals(error_rate(), [recall(on="audit") >= 0.9, positive_rate(on="all") <= 0.8])
    two = RateBoundSVC(goals, **EXACTLY).fit(
        P.X,
        P.y,
        datasets={"audit": Dataset(AUDIT.X[~gaps], AUDIT.y[~gaps]), "all": Dataset(AUDIT.X)},
    )
    np.testing.assert_allclose(two.coef_, clf.coef_, rtol=1e-4, atol=1e-9)


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("goals", [None, RECALL, SEVERAL, CONFLICT], ids=["none", "1", "3", "no"])
@pytest.mark.parametrize("threshold", ["repair", "zero"])
def test_a_weight_of_two_is_the_row_twice(goals: Any, threshold: str) -> None:
    times = np.arange(300) % 4
    audit_times = 1 + np.arange(150) % 2
    traffic_times = np.arange(180) % 3

    def fit(times: Any, audit_times: Any, traffic_times: Any, repeats: bool) -> RateBoundSVC:
        def rows(values: Any, times: Any) -> Any:
            return np.repeat(values, times, axis=0) if repeats else values

        def weight(times: Any) -> Any:
            return None if repeats else times

        return RateBoundSVC(goals, threshold=threshold).fit(
            rows(P.X, times),
            rows(P.y, times),
            sample_weight=weight(times),
            columns={"sex": rows(P.sex, times)},
            datasets={
                "audit": Dataset(
                    rows(AUDIT.X, audit_times),
                    rows(AUDIT.y, audit_times),
                    sample_weight=weight(audit_times),
                ),
                "traffic": Dataset(
                    rows(TRAFFIC.X, traffic_times),
                    baseline=rows(TRAFFIC.baseline, traffic_times),
                    sample_weight=weight(traffic_times),
                ),
            },
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if goals is CONFLICT else "error", ConvergenceWarning)
        weighted = fit(times, audit_times, traffic_times, repeats=False)
        repeated = fit(times, audit_times, traffic_times, repeats=True)
    assert weighted.n_iter_ == repeated.n_iter_
    assert_same_model(weighted, repeated, 1e-5)


def test_rows_of_weight_zero_are_not_there() -> None:
    used = np.arange(300) % 5 > 0
    y: Any = P.y.astype(object)
    y[~used] = None
    baseline: Any = P.baseline.astype(object)
    baseline[~used] = "nothing that is a class"
    goals = Goals(error_rate(), [recall() >= 0.8, churn() <= 0.4, recall(by="sex").min() >= 0.6])
    with_zeros = RateBoundSVC(goals).fit(
        P.X, y, sample_weight=1.0 * used, baseline=baseline, columns={"sex": P.sex}
    )
    without = RateBoundSVC(goals).fit(
        P.X[used], P.y[used], baseline=P.baseline[used], columns={"sex": P.sex[used]}
    )
    assert_same_model(without, with_zeros)
    assert with_zeros.classes_.tolist() == [0, 1]


def test_rates_are_shares_whatever_the_weights_add_up_to() -> None:
    def fit(factor: float, audit_factor: float) -> RateBoundSVC:
        audit = Dataset(AUDIT.X, AUDIT.y, sample_weight=audit_factor * AUDIT.weight)
        goals = Goals(error_rate(), [recall(on="audit") >= 0.9])
        # the homotopy's way, unlike that of convex problems, knows how much weight each dataset has
        return RateBoundSVC(goals, alpha=0.01, start="zero", **EXACTLY).fit(
            P.X, P.y, sample_weight=factor * P.weight, datasets={"audit": audit}
        )

    assert_same_model(fit(1.0, 1.0), fit(1e-3, 70.0), 1e-4)


def test_alpha_none_is_one_over_the_weight_of_the_training_rows() -> None:
    audit = {"audit": Dataset(AUDIT.X, AUDIT.y)}
    default = RateBoundSVC(RECALL).fit(P.X, P.y, sample_weight=P.weight, datasets=audit)
    explicit = RateBoundSVC(RECALL, alpha=1 / P.weight.sum())
    explicit.fit(P.X, P.y, sample_weight=P.weight, datasets=audit)
    np.testing.assert_array_equal(default.coef_, explicit.coef_)


# --- datasets -------------------------------------------------------------------------------------


def test_a_baseline_on_the_training_rows() -> None:
    goals = Goals(error_rate(), [churn() <= 0.1, loss_rate() <= 0.08, win_rate() >= 0.01])
    clf = RateBoundSVC(goals).fit(P.X, P.y, baseline=P.baseline)
    decided = clf.predict(P.X)
    changed = decided != P.baseline
    assert [goal.strict for goal in clf.report_.goals] == pytest.approx(
        [
            changed.mean(),
            np.mean(changed & (P.baseline == P.y)),
            np.mean(changed & (decided == P.y)),
        ]
    )
    assert clf.report_.met


def test_datasets_that_share_one_X() -> None:
    """The same rows under several names, with labels and weights of their own."""
    goals = Goals(
        error_rate(),
        [recall(on="women") >= 0.9, churn(on="deployed") <= 0.5, recall(on="self") >= 0.7],
    )

    def fit(X: Any) -> RateBoundSVC:
        return RateBoundSVC(goals).fit(
            P.X,
            P.y,
            datasets={
                "women": Dataset(X(P.X), P.y, sample_weight=1.0 * (P.sex == "F")),
                "deployed": Dataset(X(P.X), baseline=P.baseline),
                "self": Dataset(X(P.X), 1 - P.y * (P.X[:, 0] < 1)),
            },
        )

    shared, copies = fit(lambda X: X), fit(np.copy)
    assert_same_model(copies, shared)
    decided = shared.predict(P.X)
    assert shared.report_.goals[0].strict == pytest.approx(
        decided[(P.sex == "F") & (P.y == 1)].mean()
    )
    assert shared.report_.goals[1].strict == pytest.approx(np.mean(decided != P.baseline))


def test_a_mapping_and_the_stacked_form_are_the_same() -> None:
    apart = fit_several()
    rows = stack(
        traffic=Dataset(TRAFFIC.X, baseline=TRAFFIC.baseline),
        train=Dataset(P.X, P.y, columns={"sex": P.sex}),
        audit=Dataset(AUDIT.X, AUDIT.y),
    )
    together = RateBoundSVC(SEVERAL).fit(
        rows.X, rows.y, baseline=rows.baseline, columns=rows.columns, datasets="dataset"
    )
    assert_same_model(apart, together)
    assert list(together.classes_) == [0, 1]
    order = np.random.default_rng(0).permutation(len(rows.y))
    shuffled = RateBoundSVC(SEVERAL).fit(
        rows.X[order],
        rows.y[order],
        baseline=rows.baseline[order],
        columns=pd.DataFrame(rows.columns).iloc[order],
        datasets="dataset",
    )
    assert_same_model(apart, shuffled)


def test_the_stacked_form_with_weights_and_words() -> None:
    names = np.array(["bad", "good"])
    rows = stack(
        train=Dataset(P.X, names[P.y], sample_weight=P.weight),
        audit=Dataset(AUDIT.X, names[AUDIT.y], sample_weight=AUDIT.weight),
        traffic=Dataset(TRAFFIC.X, baseline=names[TRAFFIC.baseline]),
    )
    assert set(rows.y) == {"bad", "good", "unlabelled"}
    goals = Goals(error_rate(), [recall(on="audit") >= 0.8, churn(on="traffic") <= 0.4])
    together = RateBoundSVC(goals).fit(
        rows.X, rows.y, sample_weight=rows.sample_weight, baseline=rows.baseline,
        columns=rows.columns, datasets="dataset",
    )  # fmt: skip
    apart = RateBoundSVC(goals).fit(
        P.X,
        names[P.y],
        sample_weight=P.weight,
        datasets={
            "audit": Dataset(AUDIT.X, names[AUDIT.y], sample_weight=AUDIT.weight),
            "traffic": Dataset(TRAFFIC.X, baseline=names[TRAFFIC.baseline]),
        },
    )
    assert_same_model(apart, together)
    assert together.classes_.tolist() == ["bad", "good"]


def test_datasets_that_no_goal_reads_do_not_matter() -> None:
    plain = RateBoundSVC(RECALL).fit(P.X, P.y)
    more = RateBoundSVC(RECALL).fit(P.X, P.y, datasets={"audit": Dataset(AUDIT.X, AUDIT.y)})
    np.testing.assert_array_equal(more.coef_, plain.coef_)


def test_an_objective_on_another_dataset() -> None:
    """What is minimised may be about rows that are not trained on."""
    goals = Goals(error_rate(on="audit"), [recall(on="audit") >= 0.8])
    clf = RateBoundSVC(goals, alpha=0.01).fit(
        P.X, P.y, datasets={"audit": Dataset(AUDIT.X, AUDIT.y)}
    )
    alone = RateBoundSVC(Goals(error_rate(), [recall() >= 0.8]), alpha=0.01).fit(AUDIT.X, AUDIT.y)
    np.testing.assert_allclose(clf.coef_, alone.coef_, rtol=1e-6, atol=1e-9)
    assert clf.report_.objective_strict == pytest.approx(alone.report_.objective_strict)


# --- order, symmetry ------------------------------------------------------------------------------


@pytest.mark.parametrize("goals", [None, RECALL], ids=["none", "recall"])
def test_the_order_of_rows_and_columns_does_not_matter(goals: Any) -> None:
    rng = np.random.default_rng(3)
    plain = RateBoundSVC(goals).fit(P.X, P.y)
    order = rng.permutation(300)
    assert_same_model(plain, RateBoundSVC(goals).fit(P.X[order], P.y[order]))
    order = rng.permutation(4)
    turned = RateBoundSVC(goals).fit(P.X[:, order], P.y)
    np.testing.assert_allclose(turned.coef_, plain.coef_[order], rtol=1e-6, atol=1e-8)


def test_the_order_of_goals_does_not_matter() -> None:
    goals = [recall() >= 0.85, positive_rate() <= 0.7, precision() >= 0.5]
    plain = RateBoundSVC(Goals(error_rate(), goals)).fit(P.X, P.y)
    turned = RateBoundSVC(Goals(error_rate(), goals[::-1])).fit(P.X, P.y)
    np.testing.assert_allclose(turned.coef_, plain.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("goals", [None, RECALL], ids=["none", "recall"])
def test_the_intercept_is_not_regularised(goals: Any) -> None:
    """Moving all rows moves the intercept and nothing else."""
    plain = RateBoundSVC(goals, alpha=0.05).fit(P.X, P.y)
    shift = np.array([3.0, -5.0, 1.0, 0.5])
    moved = RateBoundSVC(goals, alpha=0.05).fit(P.X + shift, P.y)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-4, atol=1e-5)
    assert moved.intercept_ == pytest.approx(plain.intercept_ - shift @ plain.coef_, abs=1e-3)


def test_without_an_intercept() -> None:
    clf = RateBoundSVC(RECALL, fit_intercept=False, threshold="zero").fit(P.X, P.y)
    assert clf.intercept_ == 0.0
    np.testing.assert_array_equal(clf.decision_function(P.X), P.X @ clf.coef_)
    repaired = RateBoundSVC(RECALL, fit_intercept=False).fit(P.X, P.y)
    assert repaired.intercept_ == repaired.threshold_shift_
    assert repaired.report_.met
    # turning X and the labels round turns nothing else
    turned = RateBoundSVC(fit_intercept=False).fit(-P.X, 1 - P.y)
    plain = RateBoundSVC(fit_intercept=False).fit(P.X, P.y)
    np.testing.assert_allclose(turned.coef_, plain.coef_, rtol=1e-6, atol=1e-8)


def test_a_constant_in_the_objective_changes_nothing() -> None:
    """Fewer errors, more right answers, and dearer errors are the same."""
    plain = RateBoundSVC(alpha=0.01).fit(P.X, P.y)
    for objective in (-accuracy(), 1 - accuracy(), cost(fp=1, fn=1), error_rate() - 3.0):
        clf = RateBoundSVC(Goals(objective), alpha=0.01).fit(P.X, P.y)
        np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    shifted = RateBoundSVC(Goals(error_rate() - 3.0), alpha=0.01).fit(P.X, P.y)
    assert shifted.report_.objective_strict == pytest.approx(plain.report_.objective_strict - 3)
    assert shifted.history_[-1].objective == pytest.approx(plain.history_[-1].objective - 3)


def test_goals_that_say_the_same_do_the_same() -> None:
    def fit(goal: Any) -> RateBoundSVC:
        return RateBoundSVC(Goals(error_rate(), [goal])).fit(P.X, P.y)

    pairs = [
        (recall() >= 0.9, false_negative_rate() <= 0.1),
        (positive_rate() <= 0.25, negative_rate() >= 0.75),
        (specificity() >= 0.95, false_positive_rate() <= 0.05),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(fit(other).coef_, fit(one).coef_, rtol=1e-5, atol=1e-8)


# --- scores, decisions and probabilities ----------------------------------------------------------


@pytest.mark.parametrize("threshold", ["repair", "zero"])
@pytest.mark.parametrize("pos_label", [0, 1])
def test_scores_decisions_and_probabilities(threshold: str, pos_label: int) -> None:
    goals = Goals(error_rate(), [recall() >= 0.93], pos_label=pos_label)
    clf = RateBoundSVC(goals, threshold=threshold).fit(P.X, P.y)
    assert clf.coef_.shape == (4,) and isinstance(clf.intercept_, float)
    scores = clf.decision_function(P.X)
    np.testing.assert_allclose(scores, P.X @ clf.coef_ + clf.intercept_)
    np.testing.assert_array_equal(clf.predict(P.X), (scores > 0).astype(int))
    # the score without the repair of the threshold, turned towards the positive label
    sign = 1 if pos_label == 1 else -1
    unrepaired = scores - clf.threshold_shift_
    np.testing.assert_allclose(clf.positive_probability(P.X), ramp(sign * unrepaired), atol=1e-12)
    assert (clf.threshold_shift_ == 0) == (threshold == "zero")


def test_predict_gives_the_same_answer_every_time() -> None:
    clf = RateBoundSVC(RECALL).fit(P.X, P.y)
    np.testing.assert_array_equal(clf.predict(P.X), clf.predict(P.X))
    one_by_one = [clf.predict(P.X[[i]])[0] for i in range(50)]
    np.testing.assert_array_equal(one_by_one, clf.predict(P.X)[:50])


def test_random_decisions_are_reproducible_and_as_frequent_as_said() -> None:
    clf = RateBoundSVC(RECALL, alpha=0.3).fit(P.X, P.y)
    probability = clf.positive_probability(P.X)
    assert ((probability > 0) & (probability < 1)).sum() > 100  # or there is nothing to draw
    first = clf.predict_randomized(P.X, random_state=4)
    np.testing.assert_array_equal(first, clf.predict_randomized(P.X, random_state=4))
    np.testing.assert_array_equal(first, clf.predict_randomized(P.X, np.random.RandomState(4)))
    assert (first != clf.predict_randomized(P.X, random_state=5)).any()
    drawn = np.mean([clf.predict_randomized(P.X, random_state=s) for s in range(400)], axis=0)
    deviation = np.sqrt(probability * (1 - probability) / 400)
    assert (np.abs(drawn - probability) <= 4.5 * deviation).all()


@pytest.mark.parametrize(
    "keys",
    [
        range(300),
        [f"person {i}" for i in range(300)],
        np.arange(300) * 7919,
        [str(i).encode() for i in range(300)],
        pd.Series([f"p{i}" for i in range(300)]),
    ],
    ids=["range", "text", "array", "bytes", "series"],
)
def test_keys_give_a_person_the_same_answer_in_any_company(keys: Any) -> None:
    clf = RateBoundSVC(RECALL, alpha=0.3).fit(P.X, P.y)
    all_keys = list(keys)
    drawn = clf.predict_randomized(P.X, keys=keys)
    np.testing.assert_array_equal(clf.predict_randomized(P.X, keys=keys), drawn)
    some = np.random.default_rng(0).permutation(300)[:120]
    again = clf.predict_randomized(P.X[some], keys=[all_keys[i] for i in some])
    np.testing.assert_array_equal(again, drawn[some])
    other = clf.predict_randomized(P.X, random_state=1, keys=keys)
    assert (other != drawn).any()
    many = [clf.predict_randomized(P.X, random_state=s, keys=keys) for s in range(150)]
    probability = clf.positive_probability(P.X)
    assert np.mean(many) == pytest.approx(probability.mean(), abs=0.01)
    sure = (probability == 0) | (probability == 1)
    np.testing.assert_array_equal(drawn[sure], probability[sure])


# --- the report -----------------------------------------------------------------------------------

WIDE = Goals(
    cost(fp=1.0, fn=2.0) + 0.1 * positive_rate(on="traffic"),
    [
        recall() >= 0.8,
        precision(on="audit") >= 0.5,
        (negative_predictive_value() >= 0.6).named("npv"),
        f_score(beta=2) >= 0.6,
        error_rate(on="audit") <= 0.35,
        positive_rate(by="sex").gap() <= 0.3,
        recall(by="sex").min() >= 0.6,
        false_positive_rate(by="sex").max() <= 0.5,
        positive_rate(by="sex").ratio() >= 0.6,
        churn(on="traffic") <= 0.4,
        win_rate() >= 0.02,
        win_change_ratio() >= 0.3,
        recall(where={"sex": "F"}) >= 0.7,
        positive_rate(on="traffic") <= 1.5 * positive_rate(),
    ],
)


def rates_by_hand(q: Floats, q_audit: Floats, q_traffic: Floats) -> dict[str, float]:
    """The rates of `WIDE` straight from their definitions, for probabilities of a positive."""
    w, y, base = P.weight, P.y == 1, P.baseline == 1
    women = P.sex == "F"

    def share(values: Any, among: Any) -> float:
        return float(np.sum((w * values)[among]) / np.sum(w[among]))

    everyone = np.full(300, True)
    groups = [women, ~women]
    tp, fp = np.sum(w * y * q), np.sum(w * ~y * q)
    fn, tn = np.sum(w * y * (1 - q)), np.sum(w * ~y * (1 - q))
    ya = AUDIT.y == 1
    bt = TRAFFIC.baseline == 1
    positive = [share(q, g) for g in groups]
    wins = share(np.where(base, 1 - q, q), everyone & (base != y)) * share(base != y, everyone)
    losses = share(np.where(base, 1 - q, q), everyone & (base == y)) * share(base == y, everyone)
    return {
        "objective": (fp + 2 * fn) / w.sum() + 0.1 * q_traffic.mean(),
        "recall() >= 0.8": tp / (tp + fn),
        "precision(on=audit) >= 0.5": np.sum(q_audit[ya]) / np.sum(q_audit),
        "npv": tn / (tn + fn),
        "f_score(beta=2) >= 0.6": 5 * tp / (5 * tp + 4 * fn + fp),
        "error_rate(on=audit) <= 0.35": np.mean(np.where(ya, 1 - q_audit, q_audit)),
        "positive_rate(by=sex).gap() <= 0.3": abs(positive[0] - positive[1]),
        "recall(by=sex).min() >= 0.6": min(share(q, g & y) for g in groups),
        "false_positive_rate(by=sex).max() <= 0.5": max(share(q, g & ~y) for g in groups),
        "positive_rate(by=sex).ratio() >= 0.6": min(positive) / max(positive),
        "churn(on=traffic) <= 0.4": np.mean(np.where(bt, 1 - q_traffic, q_traffic)),
        "win_rate() >= 0.02": wins,
        "win_change_ratio() >= 0.3": wins / (wins + losses),
        "recall(where={sex: F}) >= 0.7": share(q, women & y),
        "positive_rate(on=traffic) <= 1.5 * positive_rate()": q_traffic.mean()
        - 1.5 * share(q, everyone),
    }


def wide(threshold: str, alpha: float) -> tuple[RateBoundSVC, dict[str, Any]]:
    data: dict[str, Any] = dict(
        sample_weight=P.weight, baseline=P.baseline, columns={"sex": P.sex},
        datasets={
            "audit": Dataset(AUDIT.X, AUDIT.y),
            "traffic": Dataset(TRAFFIC.X, baseline=TRAFFIC.baseline),
        },
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = RateBoundSVC(WIDE, threshold=threshold, alpha=alpha).fit(P.X, P.y, **data)
    return clf, data


@pytest.mark.parametrize(
    ("threshold", "alpha"), [("repair", 0.003), ("zero", 0.003), ("zero", 0.5)]
)
def test_the_report_by_hand(threshold: str, alpha: float) -> None:
    clf, _ = wide(threshold, alpha)
    report = clf.report_

    def faces(face: Any) -> dict[str, float]:
        return rates_by_hand(face(P.X), face(AUDIT.X), face(TRAFFIC.X))

    strict = faces(lambda X: (clf.predict(X) == 1).astype(float))
    expected = faces(clf.positive_probability)
    assert report.objective_text == str(WIDE.minimize)
    assert report.objective_strict == pytest.approx(strict.pop("objective"), abs=1e-9)
    assert report.objective_expected == pytest.approx(expected.pop("objective"), abs=1e-9)
    assert [goal.label for goal in report.goals] == list(strict)
    for goal in report.goals:
        assert goal.strict == pytest.approx(strict[goal.label], abs=1e-9), goal.label
        assert goal.expected == pytest.approx(expected[goal.label], abs=1e-9), goal.label
        room = goal.strict - goal.bound if goal.sense == ">=" else goal.bound - goal.strict
        assert goal.slack == pytest.approx(room, abs=1e-12)
        assert goal.met == (room >= -1e-8) or abs(room) < 1e-7
        assert goal.price is None or goal.price >= 0
    assert report.met == all(goal.met for goal in report.goals)
    # the ramp objective with its regulariser is what majorization brought down
    penalty = 0.5 * alpha * float(clf.coef_ @ clf.coef_)
    assert clf.history_[-1].objective == pytest.approx(
        report.objective_expected + penalty, abs=1e-9
    )


@pytest.mark.parametrize("threshold", ["repair", "zero"])
def test_evaluate_says_of_a_fitted_estimator_what_its_report_says(threshold: str) -> None:
    clf, data = wide(threshold, 0.003)
    judged = WIDE.evaluate(clf, P.X, P.y, **data)
    assert judged.objective_strict == pytest.approx(clf.report_.objective_strict, abs=1e-12)
    assert judged.objective_expected == pytest.approx(clf.report_.objective_expected, abs=1e-12)
    for mine, theirs in zip(clf.report_.goals, judged.goals, strict=True):
        assert theirs.strict == pytest.approx(mine.strict, abs=1e-12)
        assert theirs.expected == pytest.approx(mine.expected, abs=1e-12)
        assert theirs.met == mine.met
        assert theirs.groups == pytest.approx(mine.groups)


def test_the_report_as_text_html_frame_and_json() -> None:
    clf, _ = wide("repair", 0.003)
    report = clf.report_
    text, html = str(report), report._repr_html_()
    frame = report.to_frame()
    assert list(frame["label"]) == [goal.label for goal in report.goals]
    assert list(frame["text"]) == [constraint.text for constraint in WIDE.subject_to]
    np.testing.assert_allclose(frame["strict"], [goal.strict for goal in report.goals])
    assert frame["met"].dtype == bool
    for goal in report.goals:
        assert goal.label.split(" ")[0] in text
        assert goal.label.replace(">", "&gt;").replace("<", "&lt;") in html
        assert f"{goal.strict:.4f}" in text and f"{goal.strict:.4f}" in html
    assert "npv" in text and "negative_predictive_value() >= 0.6" in text
    assert "certificate" in text and str(clf.status_).split(";")[0] in text
    plain = json.loads(report.to_json())
    assert plain == report.to_dict()
    assert plain["met"] == report.met and len(plain["goals"]) == 14
    assert plain["goals"][0]["price"] == report.goals[0].price
    assert plain["certificate"]["lower"] <= plain["certificate"]["upper"]
    assert report.to_json() == wide("repair", 0.003)[0].report_.to_json()


def test_no_goals_is_plain_error_minimisation() -> None:
    clf = RateBoundSVC().fit(P.X, P.y)
    same = RateBoundSVC(Goals(error_rate())).fit(P.X, P.y)
    np.testing.assert_array_equal(clf.coef_, same.coef_)
    assert clf.report_.goals == () and clf.report_.met and clf.multipliers_ == {}
    assert clf.report_.objective_strict == pytest.approx(np.mean(clf.predict(P.X) != P.y))
    assert clf.status_.goals_met and clf.status_.converged
    # no cut of its scores makes fewer errors
    scores = clf.decision_function(P.X)
    errors = [np.mean((scores > cut) != P.y) for cut in np.r_[-np.inf, np.sort(scores)]]
    assert clf.report_.objective_strict == pytest.approx(min(errors))


# --- goals are met --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "goals",
    [
        [recall() >= 0.95],
        [recall() >= 1.0],
        [false_positive_rate() <= 0.0],
        [precision() >= 0.9],
        between(positive_rate(), 0.2, 0.21),
        [churn() <= 0.05],
        [churn() <= 0.0],
        [positive_rate(by="sex").gap() <= 0.0],
        [positive_rate(by="sex").ratio() >= 1.0],
        [recall(by="sex").min() >= 0.8, positive_rate() <= 0.6],
        [accuracy(where={"sex": "F"}) >= 0.8, recall() >= 0.6],
        [win_change_ratio() >= 0.55],
        [positive_rate(where={"sex": "F"}) >= positive_rate(where={"sex": "M"})],
    ],
    ids=lambda goals: ", ".join(map(str, goals)),
)
def test_the_deterministic_rule_meets_goals_that_can_be_met(goals: Any) -> None:
    """Of each there is a linear classifier that meets it (for churn 0, the baseline itself)."""
    baseline = (P.X @ [1.0, -0.2, 0.1, 0.0] > 0.15).astype(int)
    data: dict[str, Any] = dict(baseline=baseline, columns={"sex": P.sex})
    written = Goals(error_rate(), goals)
    with warnings.catch_warnings():  # equal rates in groups of odd sizes: none is positive
        warnings.filterwarnings("ignore", r"positive_rate\(by=sex\).ratio\(\) >= 1 is undefined")
        clf = RateBoundSVC(written).fit(P.X, P.y, **data)
        judged = written.evaluate(predictions=clf.predict(P.X), y=P.y, **data)
    assert clf.status_.goals_met and clf.report_.met
    assert judged.met
    for goal in judged.goals:
        assert math.isnan(goal.slack) or goal.slack >= -1e-8


def test_goals_on_other_datasets_are_met_there() -> None:
    clf = fit_several()
    assert clf.report_.met
    assert np.mean(clf.predict(AUDIT.X)[AUDIT.y == 1]) >= 0.75
    assert np.mean(clf.predict(TRAFFIC.X) != TRAFFIC.baseline) <= 0.35


def test_repair_costs_no_more_than_the_best_cut() -> None:
    """Among the cuts of the scores that meet the goals, none has fewer errors."""
    clf = RateBoundSVC(RECALL).fit(P.X, P.y)
    assert clf.status_.repair_rounds == 0
    scores = clf.decision_function(P.X)
    best = min(
        np.mean(decided != P.y)
        for cut in np.r_[-np.inf, np.sort(scores)]
        if np.mean((decided := (scores > cut).astype(int))[P.y == 1]) >= 0.85
    )
    assert clf.report_.objective_strict == pytest.approx(best)


def test_the_papers_rule_leaves_the_threshold_at_zero() -> None:
    clf = RateBoundSVC(RECALL, threshold="zero").fit(P.X, P.y)
    assert clf.threshold_shift_ == 0 and clf.status_.repair_rounds == 0
    # the goals are met by the expected rates, to the tolerance of the fit
    assert clf.report_.goals[0].expected >= 0.85 - 1e-4
    assert clf.status_.goals_met and clf.status_.converged
    repaired = RateBoundSVC(RECALL).fit(P.X, P.y)
    np.testing.assert_array_equal(repaired.coef_, clf.coef_)
    assert repaired.intercept_ - repaired.threshold_shift_ == pytest.approx(clf.intercept_)


def test_goals_that_do_not_bind_cost_nothing() -> None:
    plain = RateBoundSVC(alpha=0.01).fit(P.X, P.y)
    easy = RateBoundSVC(Goals(error_rate(), [recall() >= 0.01]), alpha=0.01).fit(P.X, P.y)
    np.testing.assert_allclose(easy.coef_, plain.coef_, rtol=0.02, atol=0.01)
    goal = easy.report_.goals[0]
    assert goal.met and goal.price == pytest.approx(0, abs=1e-4)


def test_multipliers_are_by_label_and_not_negative() -> None:
    clf, _ = wide("repair", 0.003)
    assert list(clf.multipliers_) == [goal.label for goal in clf.report_.goals]
    for goal in clf.report_.goals:
        values = clf.multipliers_[goal.label]
        if ".gap()" in goal.text or ".ratio()" in goal.text:
            assert isinstance(values, dict) and len(values) == 2  # each ordered pair
            assert all("F" in name and "M" in name for name in values)
        elif ".min()" in goal.text or ".max()" in goal.text:
            assert isinstance(values, dict) and len(values) == 2  # each group
        else:
            assert isinstance(values, float)
        for value in values.values() if isinstance(values, dict) else [values]:
            assert 0 <= value <= clf.status_.multiplier_bound * (1 + 1e-9)


def test_a_linear_goals_price_is_its_multiplier() -> None:
    clf = RateBoundSVC(RECALL).fit(P.X, P.y)
    (goal,) = clf.report_.goals
    assert goal.price == pytest.approx(clf.multipliers_[goal.label])
    assert goal.price > 0.01


# --- goals that cannot be met ---------------------------------------------------------------------


@pytest.mark.parametrize("threshold", ["repair", "zero"])
def test_goals_in_conflict_are_told(threshold: str) -> None:
    clf = RateBoundSVC(CONFLICT, threshold=threshold)
    with pytest.warns(ConvergenceWarning, match="goals missed") as caught:
        clf.fit(P.X, P.y)
    assert len(caught) == 1
    assert not clf.status_.goals_met
    missed = [goal for goal in clf.report_.goals if not goal.met]
    assert missed and not clf.report_.met
    for goal in missed:
        assert goal.label in str(clf.status_) and goal.slack < 0
    assert str(clf.status_) in str(caught[0].message)
    assert "✗" in str(clf.report_) and "not met" in str(clf.report_)
    # what it has is a classifier all the same
    assert set(clf.predict(P.X)) <= {0, 1}
    assert np.isfinite(clf.coef_).all()
    assert caught[0].filename == __file__  # the warning points at the call of fit


def test_a_fixed_price_of_violation_is_kept() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = RateBoundSVC(CONFLICT, multiplier_bound=2.0, threshold="zero").fit(P.X, P.y)
    assert {step.multiplier_bound for step in clf.history_} == {2.0}
    assert clf.status_.multiplier_bound == 2.0
    assert all(0 <= value <= 2.0 for value in clf.multipliers_.values())
    assert max(clf.multipliers_.values()) == pytest.approx(2.0)


# --- the course of a fit --------------------------------------------------------------------------


@pytest.mark.parametrize("goals", [None, RECALL, SEVERAL, CONFLICT], ids=["none", "1", "3", "no"])
@pytest.mark.parametrize("alpha", [None, 1e-5, 1.0])
def test_the_history_is_certified_and_never_rises(goals: Any, alpha: float | None) -> None:
    seen: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = RateBoundSVC(goals, alpha=alpha, callback=seen.append).fit(
            P.X,
            P.y,
            columns={"sex": P.sex},
            datasets={
                "audit": Dataset(AUDIT.X, AUDIT.y),
                "traffic": Dataset(TRAFFIC.X, baseline=TRAFFIC.baseline),
            },
        )
    assert clf.n_iter_ == len(clf.history_) > 0
    assert all(any(step is other for other in seen) for step in clf.history_)
    assert [step.iteration for step in clf.history_] == list(range(1, clf.n_iter_ + 1))
    for step in seen:
        slack = 1e-9 * max(1.0, abs(step.upper))
        assert step.lower <= step.upper + slack
        # the bound holds at the model that minimises it
        assert step.penalised <= step.upper + slack
        assert step.solver_iterations >= 0 and step.seconds >= 0
    for before, after in zip(clf.history_, clf.history_[1:], strict=False):
        assert after.seconds >= before.seconds
        if (after.multiplier_bound, after.attempt) == (before.multiplier_bound, before.attempt):
            assert after.penalised <= before.penalised + 1e-12 * max(1.0, abs(before.penalised))
    if clf.status_.converged:
        assert clf.history_[-1].gap <= clf.tol
        assert clf.history_[-1].decrease <= clf.tol
        assert clf.report_.certificate.gap <= clf.tol
    assert clf.report_.certificate.lower <= clf.report_.certificate.upper


def test_a_smaller_tol_brings_the_bounds_together() -> None:
    clf = RateBoundSVC(RECALL, tol=1e-7, max_iter=200).fit(P.X, P.y)
    certificate = clf.report_.certificate
    assert clf.status_.converged
    assert certificate.upper - certificate.lower <= 1e-7 * max(certificate.upper, 1e-3)
    loose = RateBoundSVC(RECALL).fit(P.X, P.y)
    assert clf.history_[-1].objective <= loose.history_[-1].objective + 1e-4


def test_two_fits_are_equal_to_the_bit() -> None:
    first, second = fit_several(), fit_several()
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.intercept_ == second.intercept_
    assert first.report_ == second.report_
    assert first.multipliers_ == second.multipliers_
    assert [step.penalised for step in first.history_] == [
        step.penalised for step in second.history_
    ]
    # and a refit starts afresh
    second.fit(
        AUDIT.X, AUDIT.y, columns={"sex": AUDIT.sex},
        datasets={
            "audit": Dataset(AUDIT.X, AUDIT.y),
            "traffic": Dataset(TRAFFIC.X, baseline=TRAFFIC.baseline),
        },
    )  # fmt: skip
    np.testing.assert_array_equal(fit_several().coef_, first.coef_)


@pytest.mark.parametrize("goals", [None, RECALL, CONFLICT], ids=["none", "recall", "conflict"])
def test_more_starts_are_reproducible_and_never_worse(goals: Any) -> None:
    def fit(**parameters: Any) -> RateBoundSVC:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return RateBoundSVC(goals, threshold="zero", **parameters).fit(P.X, P.y)

    one = fit()
    first, second = fit(n_starts=4, random_state=0), fit(n_starts=4, random_state=0)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(fit(random_state=7).coef_, one.coef_)  # one start draws nothing
    for many in (first, fit(n_starts=4, random_state=1)):
        mine, theirs = one.history_[-1], many.history_[-1]
        assert (theirs.violation <= one.tol) >= (mine.violation <= one.tol)
        if mine.violation <= one.tol:
            assert theirs.objective <= mine.objective + 1e-12
        elif theirs.violation > one.tol:
            assert theirs.violation <= mine.violation + 1e-12


def test_a_callback_sees_each_step_and_stops() -> None:
    seen: list[Any] = []

    def callback(step: Any) -> bool:
        seen.append(step)
        return len(seen) == 3

    clf = RateBoundSVC(RECALL, start="zero", threshold="zero", callback=callback)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        clf.fit(P.X, P.y)
    assert [step.iteration for step in seen] == [1, 2, 3]
    assert clf.history_ == tuple(seen) and clf.n_iter_ == 3
    assert not clf.status_.converged and "callback" in clf.report_.status
    assert "max_iter" not in clf.report_.status  # that would not have helped
    assert clf.predict(P.X).shape == (300,)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_starts": 5, "random_state": 0},
        {"n_starts": 5, "random_state": 0, "threshold": "zero"},
    ],
    ids=["repair", "starts and repair", "starts"],
)
def test_a_callback_that_returns_true_stops_the_whole_fit(parameters: Any) -> None:
    """Not one start or one round of repair only, after which the next would go on."""
    seen: list[Any] = []

    def callback(step: Any) -> bool:
        seen.append(step)
        return True

    clf = RateBoundSVC(CONFLICT, callback=callback, **parameters)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        clf.fit(P.X, P.y)
    assert len(seen) == 1
    assert clf.n_iter_ == 1
    assert clf.predict(P.X).shape == (300,)


def test_a_goal_that_is_missed_at_its_price_has_that_price_for_a_bound_and_no_price() -> None:
    goals = Goals(error_rate(), [precision() >= 0.99, recall() >= 0.99])
    clf = RateBoundSVC(goals, multiplier_bound=10.0, threshold="zero")
    with pytest.warns(ConvergenceWarning):
        clf.fit(P.X, P.y)
    lines = dict(zip(("precision", "recall"), clf.report_.goals, strict=True))
    assert clf.report_.goals[0].price is None and clf.report_.goals[1].price is None
    assert lines["recall"].price_bound == 10.0
    # a unit of precision is worth as much of the normalised goal as there are positive decisions
    share = np.mean(clf.positive_probability(P.X))
    assert lines["precision"].price_bound == pytest.approx(10.0 * share)


def test_nothing_to_minimise_is_a_search_for_any_classifier_that_meets_the_goals() -> None:
    for start in ("homotopy", "zero"):
        clf = RateBoundSVC(Goals(0 * error_rate(), RECALL.subject_to), start=start).fit(P.X, P.y)
        assert clf.report_.met and clf.report_.objective_strict == 0


def test_verbose_prints_a_line_a_step(capsys: Any) -> None:
    RateBoundSVC(RECALL).fit(P.X, P.y)
    assert capsys.readouterr().out == ""
    seen: list[Any] = []
    clf = RateBoundSVC(RECALL, verbose=1, callback=seen.append).fit(P.X, P.y)
    captured = capsys.readouterr()
    chosen, *lines = captured.out.splitlines()
    assert chosen == f"[RateBoundSVC] {clf.status_.solver}"
    assert captured.err == "" and len(lines) == len(seen) > 1
    for line, step in zip(lines, seen, strict=True):
        assert str(step) in line and f"{step.objective:.6f}" in line


def test_a_time_limit_returns_what_there_is() -> None:
    clf = RateBoundSVC(RECALL, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        clf.fit(P.X, P.y)
    assert not clf.status_.converged and clf.n_iter_ >= 1
    assert "max_iter" not in clf.status_.message  # that would not have helped
    assert clf.predict(P.X).shape == (300,) and np.isfinite(clf.coef_).all()
    assert clf.report_.goals[0].strict == pytest.approx(np.mean(clf.predict(P.X)[P.y == 1]))
    judged = RECALL.evaluate(clf, P.X, P.y)
    assert judged.goals[0].expected == pytest.approx(clf.report_.goals[0].expected)
    long = RateBoundSVC(RECALL, time_limit=1000.0).fit(P.X, P.y)
    np.testing.assert_array_equal(long.coef_, RateBoundSVC(RECALL).fit(P.X, P.y).coef_)


def test_a_limit_of_steps_is_told_with_the_remedy() -> None:
    clf = RateBoundSVC(max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*raise max_iter or tol"):
        clf.fit(P.X, P.y)
    assert clf.n_iter_ == 1 and not clf.status_.converged and clf.status_.goals_met


# --- interruptions --------------------------------------------------------------------------------


class Interrupting:
    """A callback that raises at its second step, until told otherwise."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error: type[BaseException] | None = error
        self.calls = 0

    def __call__(self, step: Any) -> None:
        self.calls += 1
        if self.error is not None and step.iteration == 2:
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interruption_comes_through_at_once_and_leaves_nothing_behind(
    error: type[BaseException],
) -> None:
    callback = Interrupting(error)
    clf = RateBoundSVC(RECALL, callback=callback)
    with pytest.raises(error):
        clf.fit(P.X, P.y)
    assert callback.calls == 2
    assert not hasattr(clf, "coef_")
    callback.error = None
    clf.fit(P.X, P.y)
    np.testing.assert_array_equal(clf.coef_, RateBoundSVC(RECALL).fit(P.X, P.y).coef_)


def named(X: Floats) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (P.X, AUDIT.X),
        (P.X, AUDIT.X[:, :2]),
        (P.X, named(AUDIT.X)),
        (named(P.X), named(AUDIT.X).add_prefix("other ")),
        (named(P.X), AUDIT.X),
    ],
    ids=["same features", "fewer features", "names", "other names", "no names"],
)
@pytest.mark.parametrize("ending", ["interrupted", "wrong labels", "out of reach"])
def test_a_failed_refit_leaves_the_fitted_estimator_as_it_was(
    before: Any, after: Any, ending: str
) -> None:
    callback = Interrupting(KeyboardInterrupt)
    clf = RateBoundSVC(RECALL).fit(before, P.y)
    state = {name: value for name, value in vars(clf).items() if name.endswith("_")}
    decided = clf.predict(before)
    y = AUDIT.y
    if ending == "interrupted":
        clf.set_params(callback=callback)
    elif ending == "wrong labels":
        y = np.zeros(150)
    else:
        clf.set_params(goals=Goals(error_rate(), [recall() >= 1.5]))
    with pytest.raises((KeyboardInterrupt, ValueError)):
        clf.fit(after, y)
    np.testing.assert_array_equal(clf.predict(before), decided)
    now = {name: value for name, value in vars(clf).items() if name.endswith("_")}
    assert now.keys() == state.keys()
    for name, value in state.items():
        assert now[name] is value or np.array_equal(now[name], value), name


# --- hard cases -----------------------------------------------------------------------------------


def test_one_feature() -> None:
    clf = RateBoundSVC(RECALL).fit(P.X[:, :1], P.y)
    assert clf.coef_.shape == (1,) and clf.report_.met
    # one feature has only so many cuts
    best = min(
        np.mean(decided != P.y)
        for cut in P.X[:, 0]
        if np.mean((decided := (P.X[:, 0] >= cut).astype(int))[P.y == 1]) >= 0.85
    )
    assert clf.report_.objective_strict == pytest.approx(best)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_fewer_rows_than_features(form: Any) -> None:
    wide_rows = people(30, 5, d=80)
    clf = RateBoundSVC(Goals(error_rate(), [recall() >= 0.9])).fit(form(wide_rows.X), wide_rows.y)
    assert clf.coef_.shape == (80,)
    assert clf.report_.met and clf.report_.objective_strict == 0  # so many can be told apart


def test_rows_that_can_be_told_apart_are() -> None:
    y = (P.X[:, 0] - P.X[:, 1] > 0.3).astype(int)
    clf = RateBoundSVC(Goals(error_rate(), [accuracy() >= 1.0]), alpha=1e-6).fit(P.X, y)
    np.testing.assert_array_equal(clf.predict(P.X), y)
    assert clf.report_.met


def test_columns_that_say_nothing() -> None:
    X = np.column_stack([P.X, np.ones(300), np.zeros(300), P.X[:, 0]])
    clf = RateBoundSVC(RECALL).fit(X, P.y)
    assert clf.report_.met and np.isfinite(clf.coef_).all()
    assert clf.coef_[5] == pytest.approx(0, abs=1e-9)
    assert clf.coef_[0] == pytest.approx(clf.coef_[6], abs=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_without_any_feature(form: Any) -> None:
    """Only the intercept decides: all or none."""
    X = form(np.zeros((300, 3)))
    clf = RateBoundSVC(threshold="zero").fit(X, P.y)
    assert np.abs(clf.coef_).max() <= 1e-9
    assert np.mean(clf.predict(X) != P.y) == pytest.approx(min(P.y.mean(), 1 - P.y.mean()))
    all_of_them = RateBoundSVC(RECALL).fit(X, P.y)
    assert (all_of_them.predict(X) == 1).all() and all_of_them.report_.met
    assert any("positively" in note for note in all_of_them.report_.notes)


def test_very_few_rows() -> None:
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    clf = RateBoundSVC(Goals(error_rate(), [recall() >= 1.0]), alpha=1e-3).fit(X, y)
    assert clf.predict(X).tolist() == [0, 1]


def test_many_groups() -> None:
    group = np.arange(300) % 25
    goals = Goals(error_rate(), [positive_rate(by="g").max() <= 0.8])
    clf = RateBoundSVC(goals).fit(P.X, P.y, columns={"g": group})
    decided = clf.predict(P.X) == 1
    assert max(decided[group == g].mean() for g in range(25)) <= 0.8 + 1e-9
    assert (
        len(clf.report_.goals[0].groups) == 25 == len(clf.multipliers_[goals.subject_to[0].label])
    )


def test_empty_groups_may_be_dropped() -> None:
    group = np.where(P.y == 1, P.sex, "only negatives")
    goals = Goals(error_rate(), [recall(by="g", allow_empty=True).min() >= 0.8])
    with pytest.warns(UserWarning, match="only negatives"):
        clf = RateBoundSVC(goals).fit(P.X, P.y, columns={"g": group})
    assert set(clf.report_.goals[0].groups) == {"F", "M"}


def test_nothing_over_nothing_is_said() -> None:
    """Nobody is decided positive, so the precision is 0/0, which counts as met."""
    goals = Goals(error_rate(), [positive_rate() <= 0.0, precision() >= 0.9])
    with pytest.warns(UserWarning, match=r"precision\(\) >= 0.9 is undefined \(0/0\)"):
        clf = RateBoundSVC(goals).fit(P.X, P.y)
    assert (clf.predict(P.X) == 0).all()
    assert math.isnan(clf.report_.goals[1].strict) and clf.report_.met
    assert "undefined (0/0)" in str(clf.report_)
    json.loads(clf.report_.to_json())
