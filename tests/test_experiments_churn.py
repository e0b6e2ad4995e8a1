"""The churn experiment: its datasets, what is measured on them, and its claims."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from ratebound.datasets import RealData
from ratebound.experiments import churn, flights
from ratebound.experiments.experiment import Results
from ratebound.experiments.plain_models import (
    cut_for_coverage,
    cut_for_recall,
    hinge_relaxation,
    plain_svm,
)
from ratebound.experiments.running import make_runs
from ratebound.goals import Goals
from ratebound.rates import false_positive_rate, recall


@pytest.fixture(scope="module")
def drawn(data_file):
    data_file("flights13_jan_sep.csv.gz")
    return flights.draw(np.random.default_rng(0), 4000, 20)


@pytest.fixture(scope="module")
def records(data_file):
    data_file("flights13_jan_sep.csv.gz")
    return churn.measure(3, True)


class TestDatasets:
    def test_sizes_are_in_the_papers_proportions(self):
        assert flights.sizes(254_609) == (131_840, 53_877, 68_892)
        for total in (1000, 50_000):
            found = flights.sizes(total)
            assert total - 3 < sum(found) <= total
            for size, paper in zip(found, (131_840, 53_877, 68_892), strict=True):
                assert abs(size / total - paper / 254_609) <= 1 / total

    def test_four_fifths_are_for_training(self, drawn):
        train, test = drawn
        for name, size in zip(
            ("chosen", "labelled", "unlabelled"), flights.sizes(4000), strict=True
        ):
            counts = [len(getattr(half, name).y) for half in (train, test)]
            assert sum(counts) == size
            assert abs(counts[0] - 0.8 * size) <= 0.5

    def test_features_are_the_raw_columns_and_waves(self, drawn):
        train, _ = drawn
        X = train.labelled.X
        assert X.shape[1] == 28 + 20
        assert X.dtype == np.float32
        np.testing.assert_allclose(np.sum(X[:, 28:].astype(float) ** 2, axis=1), 1.0, rtol=1e-5)

    def test_no_flight_is_in_two_places(self, drawn):
        train, test = drawn
        rows = [getattr(h, n).X for h in drawn for n in ("chosen", "labelled", "unlabelled")]
        both = np.concatenate(rows)
        distinct = len(np.unique(both[:, :9], axis=0))
        # two flights of the same minute, delay and weather are rare
        assert distinct > 0.95 * len(both)
        assert not np.array_equal(train.labelled.X[:100], test.labelled.X[:100])

    def test_active_sampling_takes_the_doubtful(self, drawn):
        train, _ = drawn
        wrong = {
            name: np.mean(getattr(train, name).deployed != getattr(train, name).y)
            for name in ("chosen", "labelled", "unlabelled")
        }
        assert wrong["chosen"] > 2 * wrong["labelled"]
        assert abs(wrong["labelled"] - wrong["unlabelled"]) < 0.05

    def test_too_few_flights_are_refused(self, data_file):
        data_file("flights13_jan_sep.csv.gz")
        with pytest.raises(ValueError, match="too few flights"):
            flights.draw(np.random.default_rng(0), 180_000, 2)

    def test_one_hot_columns_are_read_back(self):
        table = {
            "dep_delay": ["-3", ""], "sched_dep_time": ["630", "1800"], "distance": ["100", "200"],
            "temp": ["40.5", "41"], "wind_speed": ["1", "2"], "precip": ["0", "0.1"],
            "pressure": ["1000", ""], "visib": ["9", "10"], "carrier": ["UA", "AA"],
            "origin": ["JFK", "JFK"],
        }  # fmt: skip
        columns, names = [], []
        for attribute, values in table.items():
            for value in sorted(set(values)):
                columns.append([float(v == value) for v in values])
                names.append(f"{attribute}={value}")
        X = sp.csr_matrix(np.array(columns).T)
        data = RealData("two flights", X, np.ones(2), np.empty(2, dtype=[]), tuple(names))
        found = flights.raw_columns(data)
        # the delay's logarithm, the angle of the hour, numbers, then AA, UA, JFK
        angle = 2 * np.pi * 6.5 / 24
        first = [-np.log(4), np.sin(angle), np.cos(angle), 100, 40.5, 1, 0, 1000, 9, 0, 1, 1]
        np.testing.assert_allclose(found[0], first)
        second = [np.nan, -1, 0, 200, 41, 2, 0.1, np.nan, 10, 1, 0, 1]
        np.testing.assert_allclose(found[1], second, atol=1e-12)


class TestMeasuring:
    def test_every_case_is_there_once(self, records):
        cases = [(r["method"], r["target"], r["split"]) for r in records]
        assert len(set(cases)) == len(cases)
        assert len(cases) == 2 * (3 + 2 * len(churn.QUICK.targets))

    def test_a_run_depends_on_its_number_alone(self, records):
        assert churn.measure(3, True) == records
        assert churn.measure(4, True) != records

    def test_runs_are_kept(self, data_file, tmp_path):
        data_file("flights13_jan_sep.csv.gz")
        made = make_runs(churn.EXPERIMENT, tmp_path, runs=1, quick=True, jobs=1)
        figures = churn.figures(made.results)
        assert list(figures) == ["churn"]
        assert len(figures["churn"].axes) == 4
        assert "proposed" not in churn.tables(made.results)  # methods by their names in the CSV
        assert all(claim.found for claim in churn.claims(made.results))

    def test_rates_are_those_of_loops(self, drawn):
        _, test = drawn

        def rule(X):
            return np.clip(np.abs(X[:, 0].astype(float)), 0.0, 1.0)

        wrong, rows = 0.0, 0
        for part in (test.chosen, test.labelled):
            for p, y in zip(rule(part.X), part.y, strict=True):
                wrong += 1 - p if y == 1 else p
                rows += 1
        changed = [
            1 - p if d == 1 else p
            for p, d in zip(rule(test.unlabelled.X), test.unlabelled.deployed, strict=True)
        ]
        hits = [p for p, y in zip(rule(test.labelled.X), test.labelled.y, strict=True) if y == 1]
        found = churn.rates(rule, test)
        assert found["error"] == pytest.approx(wrong / rows)
        assert found["churn"] == pytest.approx(sum(changed) / len(changed))
        assert found["recall"] == pytest.approx(sum(hits) / len(hits))

    def test_the_baseline_has_the_deployed_models_recall(self, records):
        on_train = Results({"run": 0, **r} for r in records).where(split="train")
        deployed = on_train.where(method="deployed").mean("recall")
        positives = 0.2 * churn.QUICK.rows * 0.8 * 0.2  # at least as many positive rows of D2
        assert 0 <= on_train.where(method="baseline").mean("recall") - deployed < 2 / positives
        assert on_train.where(method="deployed").mean("churn") == 0

    def test_the_objective_counts_errors_and_false_positives(self, drawn):
        train, _ = drawn
        clf = churn.fit(train, 0.5, 0.1)
        wrong = np.sum(clf.predict(train.chosen.X) != train.chosen.y)
        false = np.sum((clf.predict(train.labelled.X) == 1) & (train.labelled.y == -1))
        rows = len(train.chosen.y) + len(train.labelled.y)
        assert clf.report_.objective_strict == pytest.approx((wrong + false) / rows)
        assert clf.n_iter_ <= 5


def made_up(ours, **others):
    """One run: `ours` of the deterministic rule by target, the others as given."""
    base = {"churn": 0.04, "error": 0.2, "recall": 0.6}
    cases = {
        "baseline": base,
        "svm at zero": {**base, "churn": 0.05},
        "deployed": {**base, "churn": 0.0, "error": 0.25},
    }
    for split in ("train", "test"):
        for method, values in cases.items():
            yield {"run": 0, "method": method, "target": 1.0, "split": split, **values}
        for target, values in ours.items():
            case = {"run": 0, "target": target, "split": split, "price": 1.0}
            yield {**case, "method": "deterministic", **base, **values}
            yield {**case, "method": "randomized", **base, "churn": target, **others}


class TestClaims:
    def test_all_met(self):
        ours = {0.01: {"churn": 0.01}, 0.02: {"churn": 0.03, "error": 0.19}}
        found = churn.claims(Results(made_up(ours)))
        assert [claim.met for claim in found] == [True] * 5
        assert "2 of" not in found[1].found
        assert "4 fits" not in found[2].found  # training rows alone

    def test_churn_error_and_recall_are_missed_by_name(self):
        ours = {
            0.01: {"churn": 0.01, "error": 0.21},
            0.02: {"churn": 0.041, "recall": 0.59, "error": 0.2},
        }
        less, cost, tracks, recalled, beyond = churn.claims(Results(made_up(ours)))
        assert (less.met, cost.met, tracks.met, recalled.met) == (False, False, True, False)
        assert "higher at 0.02" in less.found
        assert "ask for no less" not in less.found  # 0.02 is below the baseline's 0.04
        assert "higher at 0.01 (the deployed model, which no churn repeats, 0.2500)" in cost.found
        assert beyond.met  # 0.041 is less than 0.05, at as many errors

    def test_targets_above_the_baselines_churn_are_named(self):
        ours = {0.01: {"churn": 0.01}, 0.05: {"churn": 0.045}}
        less = churn.claims(Results(made_up(ours)))[0]
        assert less.met is False
        assert "higher at 0.05 (which ask for no less than the baseline has)" in less.found

    def test_tracking_is_of_binding_goals(self):
        ours = {0.01: {"churn": 0.01}}
        far = churn.claims(Results(made_up(ours, churn=0.016)))[2]
        assert far.met is False
        assert "60.0%" in far.found
        loose = churn.claims(Results(made_up(ours, churn=0.016, price=0.0)))[2]
        assert loose.met is None


class TestCuts:
    def test_for_recall(self):
        random = np.random.default_rng(0)
        for recall_asked in (0.0, 0.3, 0.5, 1.0):
            score = random.integers(0, 9, size=40).astype(float)
            y = np.where(random.random(40) < 0.5, 1, -1)
            cut = cut_for_recall(score, y, recall_asked)
            reached = [c for c in score if np.mean(score[y == 1] >= c) >= recall_asked]
            if recall_asked == 0.0:
                assert not np.any(score >= cut)
            else:
                assert cut == max(reached)

    def test_for_coverage(self):
        random = np.random.default_rng(0)
        for coverage in (0.0, 0.2, 0.33, 1.0):
            score = random.integers(0, 9, size=30).astype(float)
            cut = cut_for_coverage(score, coverage)
            shares = {c: np.mean(score >= c) for c in (*score, np.inf)}
            best = max(share for share in shares.values() if share <= coverage)
            assert np.mean(score >= cut) == best

    def test_the_plain_svm_is_that_of_liblinear(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(200, 4))
        y = np.where(X[:, 0] + random.normal(size=200) > 0, 1, -1)
        ours = plain_svm(X, y, 0.05)
        # hinges of scores z at 1/2 are half those of 2z at 1
        theirs = LinearSVC(
            loss="hinge", C=4 / (200 * 0.05) / 2, tol=1e-8, max_iter=10**6, intercept_scaling=100
        ).fit(X, y)
        np.testing.assert_allclose(2 * ours.coef_, theirs.coef_[0], atol=0.01)

    def test_the_hinge_relaxation_takes_one_step_to_a_small_gap(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(200, 4))
        y = np.where(X[:, 0] + random.normal(size=200) > 0, 1, -1)
        svc = hinge_relaxation(Goals(false_positive_rate(), [recall() >= 0.8]), X, y, 0.01)
        assert svc.n_iter_ == 1
        assert svc.report_.certificate.gap <= 1e-4
        assert np.mean(svc.predict(X)[y == 1] == 1) >= 0.8
