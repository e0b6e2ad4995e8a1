"""The smaller experiments: coverage, Neyman-Pearson and golden examples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ratebound.datasets import load as load_data
from ratebound.experiments import coverage, egregious, neyman_pearson
from ratebound.experiments.experiment import Results
from ratebound.experiments.rows import Rows

#: How many records a quick run has: bounds, splits and methods.
CASES = {
    coverage: 2 * 2 * 3,
    neyman_pearson: 2 * 2 * 5,
    egregious: 1 + 2 + 1,
}


@pytest.fixture(scope="module")
def measured(data_file):
    data_file("a9a.train.libsvm.gz")
    data_file("a9a.test.libsvm.gz")
    return {module.EXPERIMENT.name: module.measure(1, True) for module in CASES}


@pytest.mark.parametrize("module", CASES, ids=lambda module: module.EXPERIMENT.name)
def test_every_case_is_measured_drawn_and_claimed(measured, module):
    experiment = module.EXPERIMENT
    records = measured[experiment.name]
    assert len(records) == CASES[module]
    assert experiment.measure(1, True) == records
    results = Results({"run": 1, **r} for r in records)
    (figure,) = experiment.figures(results).values()
    for panel in figure.axes:
        assert panel.get_xlabel()
    assert figure.axes[0].get_ylabel()
    assert experiment.tables(results).startswith("## ")
    assert all(claim.found and claim.text for claim in experiment.claims(results))


class TestCoverage:
    def test_the_bound_is_kept_on_training_rows(self, measured):
        for r in measured["coverage"]:
            if r["split"] == "train" and r["method"] != "randomized":
                assert r["coverage"] <= r["asked"] + 1e-9
        assert any(r["coverage"] != r["asked"] for r in measured["coverage"])

    def test_claims(self):
        def of(ours, theirs, covered=0.1):
            return Results(
                {"run": 0, "asked": 0.1, "split": split, "method": method, "error": error,
                 "coverage": covered}
                for split in ("train", "test")
                for method, error in (("deterministic", ours), ("thresholded", theirs))
            )  # fmt: skip

        assert [c.met for c in coverage.claims(of(0.2, 0.3))] == [True] * 3
        assert [c.met for c in coverage.claims(of(0.3, 0.2))] == [True, False, False]
        assert "more errors at coverage 0.1" in coverage.claims(of(0.3, 0.2))[1].found
        assert coverage.claims(of(0.2, 0.3, covered=0.1001))[0].met is False


class TestNeymanPearson:
    def test_all_but_the_randomized_rule_have_the_recall_on_training_rows(self, measured):
        for r in measured["neyman-pearson"]:
            if r["split"] == "train" and r["method"] not in ("randomized", "hinge"):
                assert r["recall"] >= r["asked"] - 1e-9

    def test_equal_recall_is_on_the_line_between_points(self):
        def of():
            for asked, recall, theirs in ((0.5, 0.4, 0.1), (0.9, 0.8, 0.3)):
                for split in ("train", "test"):
                    case = {"run": 0, "asked": asked, "split": split}
                    for method in neyman_pearson.METHODS:
                        yield {**case, "method": method, "recall": recall, "fpr": theirs}

        # halfway between (0.4, 0.1) and (0.8, 0.3) is 0.2
        assert neyman_pearson._along(np.array([0.8, 0.4]), np.array([0.3, 0.1]), 0.6) == (
            pytest.approx(0.2)
        )
        assert np.isnan(neyman_pearson._along(np.array([0.8, 0.4]), np.array([0.3, 0.1]), 0.9))
        records = [dict(r) for r in of()]
        for r in records:
            if r["split"] == "test" and r["method"] == "deterministic":
                r["recall"], r["fpr"] = 0.6, 0.19
        claims = neyman_pearson.claims(Results(records))
        assert [c.met for c in claims[-3:]] == [True] * 3
        for r in records:
            if r["split"] == "test" and r["method"] == "deterministic":
                r["fpr"] = 0.21
        claims = neyman_pearson.claims(Results(records))
        assert [c.met for c in claims[-3:]] == [False] * 3
        assert claims[0].met is False  # recall 0.4 where 0.5 was asked for


class TestGolden:
    def test_rows_are_set_apart_by_the_rule(self, data_file):
        data_file("a9a.train.libsvm.gz")
        adult = load_data("adult")
        rows = Rows(adult.X, adult.y)
        others, golden = egregious.set_apart(rows, 40, np.random.default_rng(0))
        assert len(golden.y) == 80
        assert len(others.y) == len(adult.y) - 80
        names = list(adult.feature_names)
        dense = golden.X.toarray()
        for x, label in zip(dense, golden.y, strict=True):
            values = {names[j] for j in np.flatnonzero(x)}
            if label == 1:
                assert values & {"education=Doctorate", "education=Prof-school"}
            else:
                assert {"age=..25", "marital-status=Never-married"} <= values
        total = sp.vstack([others.X, golden.X]).sum(axis=0)
        np.testing.assert_array_equal(total, adult.X.sum(axis=0))

    def test_bounds_are_kept(self, measured):
        proposed = [r for r in measured["egregious"] if r["method"] == "proposed"]
        for r in proposed:
            assert r["golden_error"] <= 1 - r["value"] + 1e-9

    def test_weights_are_repetition(self):
        random = np.random.default_rng(0)
        X = sp.csr_matrix(random.normal(size=(60, 3)))
        y = np.where(X.toarray()[:, 0] + random.normal(size=60) > 0, 1, -1)
        train = Rows(X[:50], y[:50])
        golden = Rows(X[50:], y[50:])
        thrice = Rows(sp.vstack([golden.X] * 3, format="csr"), np.concatenate([golden.y] * 3))
        weighted = egregious.weighted_svm(train, golden, 3, 0.01)
        repeated = egregious.weighted_svm(train, thrice, 1, 0.01)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5)
        plain = egregious.weighted_svm(train, golden, 1, 0.01)
        assert not np.allclose(plain.coef_, weighted.coef_, rtol=1e-3)

    def test_claims(self):
        def of(golden, held_out, test):
            case = {"run": 0, "train_error": 0.1}
            plain = {"golden_error": 0.05, "held_out_error": 0.05, "test_error": 0.15}
            ours = {"golden_error": golden, "held_out_error": held_out, "test_error": test}
            yield {**case, "method": "plain", "value": 0, **plain}
            yield {**case, "method": "weighted", "value": 10, **plain}
            yield {**case, "method": "weighted", "value": 100, **plain, "golden_error": 0.0}
            yield {**case, "method": "proposed", "value": 1, **ours}

        assert [c.met for c in egregious.claims(Results(of(0.0, 0.05, 0.15)))] == [True] * 5
        missed = egregious.claims(Results(of(0.01, 0.06, 0.17)))
        assert [c.met for c in missed] == [False, True, False, False, False]
        assert "0.1500 at weight 100" in missed[-1].found
