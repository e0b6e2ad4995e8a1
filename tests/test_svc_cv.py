"""RateBoundSVCCV: folds, held-out sums and the choice of alpha, against plain fits and loops."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    RateBoundSVCCV,
    churn,
    error_rate,
    positive_rate,
    recall,
    stack,
)
from ratebound.svc_cv import smoothed

Floats = NDArray[np.float64]


@parametrize_with_checks([RateBoundSVCCV(alphas=[1e-1, 1e-2], cv=3)])
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(n: int, seed: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.str_]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    sex = np.where(X[:, 1] + rng.normal(size=n) > 0.3, "f", "m")
    y = (X @ [1.5, 1.0, -0.5, 0.3, 0, 0] + rng.logistic(size=n) > 0.4).astype(int)
    return X, y, sex


X, Y, SEX = rows(400, 0)
AUDIT_X, AUDIT_Y, _ = rows(160, 1)
TRAFFIC_X, TRAFFIC_Y, _ = rows(150, 2)
DEPLOYED = np.where(TRAFFIC_X[:, 0] > 0.3, 1, 0)
ALPHAS = [0.3, 0.03, 0.003]
FAIR = Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.7, recall() >= 0.6])
SEVERAL = Goals(error_rate(), [recall(on="audit") >= 0.7, churn(on="traffic") <= 0.35])
OTHERS = {
    "audit": Dataset(AUDIT_X, AUDIT_Y),
    "traffic": Dataset(TRAFFIC_X, baseline=DEPLOYED),
}


def splits(n: int, k: int = 4) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    return list(KFold(k, shuffle=True, random_state=0).split(np.zeros(n)))


@pytest.fixture(scope="module")
def fair() -> RateBoundSVCCV:
    cv = RateBoundSVCCV(FAIR, alphas=ALPHAS, cv=splits(len(X)), path_tol=1e-4)
    return cv.fit(X, Y, columns={"sex": SEX})


def test_held_out_sums_are_those_of_models_that_have_not_seen_the_rows(
    fair: RateBoundSVCCV,
) -> None:
    """The first alpha of a path is a single fit: so its held-out values can be had by loops."""
    decided = np.full(len(X), -1)
    for train, test in splits(len(X)):
        single = RateBoundSVC(FAIR, alpha=ALPHAS[0])
        single.fit(X[train], Y[train], columns={"sex": SEX[train]})
        decided[test] = single.predict(X[test])
    results = fair.cv_results_
    assert results["param_alpha"].tolist() == ALPHAS
    assert results["test_objective"][0] == pytest.approx(np.mean(decided != Y), abs=1e-12)
    positive = {s: np.mean(decided[s == SEX]) for s in "fm"}
    low, high = sorted(positive.values())
    fairness, recalled = (goal.label for goal in FAIR.subject_to)
    assert results[f"test_{fairness}"][0] == pytest.approx(low / high, abs=1e-12)
    assert results[f"violation_{fairness}"][0] == pytest.approx(0.7 * high - low, abs=1e-12)
    assert results[f"test_{recalled}"][0] == pytest.approx(np.mean(decided[Y == 1]), abs=1e-12)
    # the goals tell positives of the two sexes apart: a share of two strata, from any textbook
    strata = [decided[(Y == 1) & (s == SEX)] for s in "fm"]
    error = np.sqrt(sum(len(s) * s.mean() * (1 - s.mean()) for s in strata)) / np.sum(Y == 1)
    assert results[f"error_{recalled}"][0] == pytest.approx(error, rel=1e-9)
    for number, (_, test) in enumerate(splits(len(X))):
        wrong = np.mean(decided[test] != Y[test])
        assert results[f"split{number}_test_objective"][0] == pytest.approx(wrong, abs=1e-12)


def test_the_lowest_objective_among_the_alphas_that_hold_is_chosen(fair: RateBoundSVCCV) -> None:
    results = fair.cv_results_
    excess = np.full(len(ALPHAS), -np.inf)
    for goal in FAIR.subject_to:
        ratio = results[f"violation_{goal.label}"] / results[f"error_{goal.label}"]
        excess = np.maximum(excess, ratio)
    assert np.all(results["test_excess"] >= excess - 1e-12)
    np.testing.assert_array_equal(results["test_met"], results["test_excess"] <= 1)
    hold = np.flatnonzero(results["test_met"])
    assert len(hold), "the example should have an alpha that holds"
    best = hold[np.argmin(results["test_objective"][hold])]
    assert fair.alpha_ == ALPHAS[best] == fair.alphas_[fair.best_index_]
    assert results["rank_test"][best] == 1
    assert sorted(results["rank_test"]) == [1, 2, 3]


def test_smoothing_is_by_a_line_through_alphas_within_a_factor_of_five() -> None:
    alphas = np.array([16.0, 4.0, 1.0, 0.01])
    # lines pass unchanged, with a bump spread over those within the factor; far ones stand alone
    line = np.log(alphas)
    np.testing.assert_allclose(smoothed(alphas, line), line, atol=1e-12)
    bump = smoothed(alphas, np.array([0.0, 3.0, 0.0, 7.0]))
    np.testing.assert_allclose(bump, [0.0, 1.0, 0.0, 7.0], atol=1e-12)
    np.testing.assert_allclose(smoothed(alphas[1:2], np.array([2.0])), [2.0])


def test_an_alpha_that_is_low_by_itself_is_not_chosen() -> None:
    cv = RateBoundSVCCV(alphas=np.geomspace(0.3, 3e-4, 10), cv=splits(len(X))).fit(X, Y)
    results = cv.cv_results_
    np.testing.assert_allclose(
        results["smooth_objective"], smoothed(cv.alphas_, results["test_objective"])
    )
    assert cv.best_index_ == np.argmin(results["smooth_objective"])


def test_the_last_fit_is_a_single_fit_at_that_alpha(fair: RateBoundSVCCV) -> None:
    single = RateBoundSVC(FAIR, alpha=fair.alpha_).fit(X, Y, columns={"sex": SEX})
    np.testing.assert_array_equal(fair.coef_, single.coef_)
    assert fair.intercept_ == single.intercept_
    assert fair.report_ == single.report_ and fair.status_ == single.status_
    np.testing.assert_array_equal(fair.predict(X), single.predict(X))
    np.testing.assert_array_equal(fair.decision_function(X), single.decision_function(X))
    np.testing.assert_array_equal(fair.positive_probability(X), single.positive_probability(X))
    drawn = fair.predict_randomized(X, 3), single.predict_randomized(X, 3)
    np.testing.assert_array_equal(*drawn)
    assert FAIR.evaluate(fair, X, Y, columns={"sex": SEX}).met == single.report_.met


def test_every_model_of_the_path_is_certified_and_the_path_is_shorter(
    fair: RateBoundSVCCV,
) -> None:
    assert np.all(fair.cv_results_["gap"] <= 1e-4)
    cold = 0
    for train, _ in splits(len(X)):
        single = RateBoundSVC(FAIR, alpha=ALPHAS[-1], start="zero")
        single.fit(X[train], Y[train], columns={"sex": SEX[train]})
        cold += single.n_iter_
    assert fair.cv_results_["n_iter"][-1] < cold


def test_the_answer_does_not_depend_on_the_number_of_jobs(fair: RateBoundSVCCV) -> None:
    again = clone(fair).set_params(n_jobs=2).fit(X, Y, columns={"sex": SEX})
    assert again.alpha_ == fair.alpha_
    for name, values in fair.cv_results_.items():
        if name not in ("fit_time", "params"):
            np.testing.assert_array_equal(again.cv_results_[name], values, err_msg=name)


def test_stacked_rows_give_what_separate_datasets_give() -> None:
    """Rows are dealt to folds dataset by dataset and cell by cell in both forms."""
    cv = RateBoundSVCCV(SEVERAL, alphas=ALPHAS[1:], cv=3, path_tol=1e-4)
    separate = clone(cv).fit(X, Y, datasets=OTHERS)
    whole = stack(train=Dataset(X, Y), **OTHERS)
    stacked = clone(cv).fit(
        whole.X, whole.y, baseline=whole.baseline, columns=whole.columns, datasets="dataset"
    )
    assert stacked.alpha_ == separate.alpha_ and stacked.n_splits_ == 3
    np.testing.assert_allclose(stacked.coef_, separate.coef_, atol=1e-6)
    for name in ("test_objective", *(f"test_{goal.label}" for goal in SEVERAL.subject_to)):
        # one decision may fall on the other side of a cut that two roundings put apart
        np.testing.assert_allclose(
            stacked.cv_results_[name], separate.cv_results_[name], atol=1 / 100, err_msg=name
        )


def test_other_datasets_are_held_out_too() -> None:
    """What the model of a fold sees of audit does not include the rows it is judged on there."""
    cells = {"train": Y, "audit": AUDIT_Y, "traffic": DEPLOYED}
    used = {name: thirds(cell) for name, cell in cells.items()}
    fold = {name: dealt(cell[used[name]], 3) for name, cell in cells.items()}
    x, y = X[used["train"]], Y[used["train"]]
    audit_x, audit_y = AUDIT_X[used["audit"]], AUDIT_Y[used["audit"]]
    traffic_x, deployed = TRAFFIC_X[used["traffic"]], DEPLOYED[used["traffic"]]
    others = {"audit": Dataset(audit_x, audit_y), "traffic": Dataset(traffic_x, baseline=deployed)}
    cv = RateBoundSVCCV(SEVERAL, alphas=[0.01], cv=3, path_tol=1e-4).fit(x, y, datasets=others)
    wrong, recalled, changed = [], [], []
    for k in range(3):
        out = {name: numbers == k for name, numbers in fold.items()}
        kept = {
            "audit": Dataset(audit_x[~out["audit"]], audit_y[~out["audit"]]),
            "traffic": Dataset(
                traffic_x[~out["traffic"]], baseline=deployed[~out["traffic"]]
            ),
        }  # fmt: skip
        single = RateBoundSVC(SEVERAL, alpha=0.01)
        single.fit(x[~out["train"]], y[~out["train"]], datasets=kept)
        wrong.append(single.predict(x[out["train"]]) != y[out["train"]])
        recalled.append(single.predict(audit_x[out["audit"] & (audit_y == 1)]) == 1)
        changed.append(single.predict(traffic_x[out["traffic"]]) != deployed[out["traffic"]])
    recall_label, churn_label = (goal.label for goal in SEVERAL.subject_to)
    results = cv.cv_results_
    assert results["test_objective"][0] == pytest.approx(np.mean(np.concatenate(wrong)))
    assert results[f"test_{recall_label}"][0] == pytest.approx(np.mean(np.concatenate(recalled)))
    assert results[f"test_{churn_label}"][0] == pytest.approx(np.mean(np.concatenate(changed)))


def thirds(cell: NDArray[Any]) -> NDArray[np.intp]:
    """Rows so many a cell that three folds share each evenly, whichever cell comes first."""
    found = [np.flatnonzero(cell == value) for value in np.unique(cell)]
    return np.sort(np.concatenate([rows[: len(rows) // 3 * 3] for rows in found]))


def dealt(cell: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The rows of every cell to the folds in turn."""
    fold = np.empty(len(cell), dtype=int)
    for value in np.unique(cell):
        for turn, i in enumerate(np.flatnonzero(cell == value)):
            fold[i] = turn % k
    return fold


def test_a_weight_of_two_is_the_row_twice_in_its_fold() -> None:
    weight = np.random.default_rng(4).integers(0, 3, size=len(X))
    twice = np.repeat(np.arange(len(X)), weight)
    fold = np.arange(len(X)) % 3
    weighted = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    repeated = [
        (np.flatnonzero(fold[twice] != k), np.flatnonzero(fold[twice] == k)) for k in range(3)
    ]
    cv = RateBoundSVCCV(Goals(error_rate(), [recall() >= 0.8]), alphas=[0.1, 0.01], path_tol=1e-4)
    a = clone(cv).set_params(cv=weighted).fit(X, Y, sample_weight=weight)
    b = clone(cv).set_params(cv=repeated).fit(X[twice], Y[twice])
    np.testing.assert_allclose(
        a.cv_results_["test_objective"], b.cv_results_["test_objective"], atol=2 / len(twice)
    )
    assert a.alpha_ == b.alpha_
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


def test_goals_that_no_alpha_holds_are_said() -> None:
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(60, 40)), rng.integers(0, 2, size=60)
    goals = Goals(positive_rate(), [recall() >= 0.95])  # learned by heart, and held by none
    cv = RateBoundSVCCV(goals, alphas=[1e-3, 1e-5], cv=5)
    with pytest.warns(ConvergenceWarning, match=r"no alpha meets the goals on held-out rows"):
        cv.fit(noise, y)
    assert not cv.cv_results_["test_met"].any()
    assert cv.alpha_ == cv.alphas_[np.argmin(cv.cv_results_["test_excess"])]


def test_the_paper_s_rule_is_judged_by_expected_rates() -> None:
    svc = RateBoundSVC(threshold="zero")
    cv = RateBoundSVCCV(FAIR, alphas=[0.03], svc=svc, cv=splits(len(X)), path_tol=1e-4)
    cv.fit(X, Y, columns={"sex": SEX})
    probability = np.empty(len(X))
    for train, test in splits(len(X)):
        single = RateBoundSVC(FAIR, alpha=0.03, threshold="zero")
        single.fit(X[train], Y[train], columns={"sex": SEX[train]})
        probability[test] = single.positive_probability(X[test])
    expected = np.mean(np.where(Y == 1, 1 - probability, probability))
    assert cv.cv_results_["test_objective"][0] == pytest.approx(expected, abs=1e-12)
    assert cv.threshold_shift_ == 0


def test_parameters_of_the_fits_are_those_of_svc() -> None:
    svc = RateBoundSVC(FAIR, max_iter=3, fit_intercept=False, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cv = RateBoundSVCCV(alphas=[0.1], svc=svc, cv=2).fit(X, Y, columns={"sex": SEX})
    assert cv.best_estimator_.goals == FAIR and cv.best_estimator_.max_iter == 3
    assert cv.cv_results_["n_iter"][0] <= 6
    assert svc.alpha is None and not hasattr(svc, "coef_")


def test_default_alphas_fall_from_a_thousand_to_one_share_of_a_row() -> None:
    cv = RateBoundSVCCV(alphas=4, cv=2).fit(X, Y, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(cv.alphas_, [1000 / 800, 100 / 800, 10 / 800, 1 / 800])


def test_splitters_frames_and_pickles() -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    cv = RateBoundSVCCV(FAIR, alphas=[0.1, 0.01], cv=KFold(3), n_jobs=2)
    cv.fit(frame, Y, columns=pd.DataFrame({"sex": SEX}))
    assert cv.n_splits_ == 3 and cv.feature_names_in_.tolist() == list("abcdef")
    again = pickle.loads(pickle.dumps(cv))
    np.testing.assert_array_equal(again.predict(frame), cv.predict(frame))


def test_before_fit_there_is_nothing() -> None:
    cv = RateBoundSVCCV(FAIR)
    with pytest.raises(NotFittedError):
        cv.predict(X)
    with pytest.raises(AttributeError, match="no attribute 'coef_'"):
        cv.coef_  # noqa: B018
    assert not hasattr(cv, "predict_proba")


def test_a_fold_that_leaves_a_goal_without_rows_says_so() -> None:
    lonely = np.where(np.arange(len(X)) == 7, "x", SEX)
    with pytest.raises(ValueError, match=r"without the rows that fold \d+ holds out.*fewer folds"):
        RateBoundSVCCV(Goals(error_rate(), [recall(where={"sex": "x"}) >= 0]), alphas=[0.1]).fit(
            X, np.where(lonely == "x", 1, Y), columns={"sex": lonely}
        )


@pytest.mark.parametrize("alphas", [[], [0.0, 1.0], [np.nan], -1, "many"])
def test_bad_alphas_are_refused(alphas: Any) -> None:
    with pytest.raises(ValueError, match="alphas"):
        RateBoundSVCCV(alphas=alphas).fit(X, Y)


def test_bad_parameters_of_svc_are_refused_before_anything_is_fitted() -> None:
    with pytest.raises(ValueError, match="'tol' parameter of RateBoundSVC"):
        RateBoundSVCCV(svc=RateBoundSVC(tol=-1.0)).fit(X, Y)
