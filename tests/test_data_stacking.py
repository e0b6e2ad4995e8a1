"""The stacked form, bound again and cut by Pipelines and searches; and scales of columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ratebound.data import Dataset, bind, missing, stack, warn_of_bad_scaling

X = np.arange(12.0).reshape(6, 2)
Y = [0, 1, 0, 1, 1, 0]

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def _parts(make_x, make_columns):
    return {
        "train": Dataset(make_x(X), ["a", "b"] * 3, columns=make_columns({"sex": list("fmfmfm")})),
        "audit": Dataset(
            make_x(X[:2]),
            ["b", None],
            sample_weight=[2, 3],
            columns=make_columns({"sex": ["f", "f"], "zip": [75, 13]}),
        ),
        "traffic": Dataset(make_x(X[:3]), baseline=["a", "b", "b"]),
    }


@pytest.mark.parametrize("make_columns", [dict, *FRAMES.values()])
@pytest.mark.parametrize(
    "make_x",
    [
        np.float32,
        sp.csr_array,
        sp.csc_matrix,
        lambda x: pd.DataFrame(x, columns=["p", "q"]),
        lambda x: pl.DataFrame({"p": x[:, 0], "q": x[:, 1]}),
        lambda x: pa.table({"p": x[:, 0], "q": x[:, 1]}),
    ],
    ids=["float32", "csr", "csc", "pandas", "polars", "pyarrow"],
)
def test_stack_goes_round(make_x, make_columns):
    parts = _parts(make_x, make_columns)
    rows = stack(**parts)
    assert rows.X.shape == (11, 2)
    if sp.issparse(parts["train"].X):
        assert rows.X.format == "csr"
        assert_array_equal(rows.X.toarray(), np.vstack([X, X[:2], X[:3]]))
    else:
        assert type(rows.X) is type(parts["train"].X)
        assert_array_equal(np.asarray(rows.X), np.vstack([X, X[:2], X[:3]]))
    if isinstance(rows.X, np.ndarray):
        assert rows.X.dtype == np.float32
    assert rows.y.tolist() == ["a", "b"] * 3 + ["b"] + ["unlabelled"] * 4
    assert rows.sample_weight.tolist() == [1] * 6 + [2, 3] + [1] * 3
    assert rows.baseline.tolist() == ["unlabelled"] * 8 + ["a", "b", "b"]
    assert repr(rows) == (
        "<Stacked: 11 rows x 2 features (audit 2, traffic 3, train 6); "
        "with sample_weight and baseline>"
    )
    if make_columns is not dict:
        assert type(rows.columns) is type(make_columns({}))

    given = {
        "sample_weight": rows.sample_weight,
        "baseline": rows.baseline,
        "columns": rows.columns,
        "datasets": "dataset",
    }
    bound = bind(rows.X, rows.y, **given, reads_baseline={"traffic"}, used=set(parts))
    assert_array_equal(bound.datasets["train"].label, [-1, 1] * 3)
    assert_array_equal(bound.datasets["traffic"].baseline, [-1, 1, 1])
    assert_array_equal(bound.datasets["audit"].weight, [2, 3])
    assert bound.datasets["audit"].column("sex").tolist() == ["f", "f"]
    assert bound.datasets["audit"].column("zip").tolist() == [75, 13]
    assert missing(bound.datasets["traffic"].column("sex")).all()
    assert missing(bound.datasets["train"].column("zip")).all()
    with pytest.raises(ValueError, match='y of dataset "audit" holds "unlabelled"'):
        bind(rows.X, rows.y, **given, reads_labels={"audit"})
    with pytest.raises(ValueError, match='baseline holds "unlabelled"'):
        bind(rows.X, rows.y, **given, reads_baseline={"train"})


@pytest.mark.parametrize(
    ("labels", "baseline", "filler"),
    [
        ([0, 1], [0, 1], -1),
        ([-1, 1], [1, 1], -2),
        ([False, True], [True, True], -1),
        ([1.0, 2.0], [1, 1], 0.0),
        ([1, 2], [1.0, 0.0], -1),  # a value of the baseline is no invented label either
        (np.array([0, 1], dtype=np.uint8), [0, 1], -1),
        (["a", "unlabelled"], ["a", "a"], "unlabelled_"),
    ],
)
def test_stack_invents_a_label_that_is_no_class(labels, baseline, filler):
    rows = stack(train=Dataset(X[:2], labels), traffic=Dataset(X[:2], baseline=baseline))
    assert rows.y.tolist() == [*list(labels), filler, filler]
    assert rows.baseline.tolist() == [filler, filler, *baseline]
    assert rows.sample_weight is None


def test_stack_keeps_numbers_where_all_labels_of_a_dataset_are_missing():
    rows = stack(train=Dataset(X[:2], [0, 1]), audit=Dataset(X[:2], [None, None]))
    assert rows.y.dtype.kind == "i"
    assert rows.y.tolist() == [0, 1, -1, -1]


def test_stack_needs_no_filler_where_all_rows_have_labels():
    rows = stack(train=Dataset(X[:2], [False, True]), audit=Dataset(X[:1], [True]))
    assert rows.y.dtype == bool
    assert rows.baseline is None
    assert rows.columns["dataset"].tolist() == ["train", "train", "audit"]


def test_stack_finds_a_column_in_columns_or_in_the_features():
    rows = stack(
        train=Dataset(pd.DataFrame({"age": [1, 2]}), [0, 1]),
        audit=Dataset(pd.DataFrame({"age": [3.5]}), [0], columns={"sex": ["f"]}),
        later=Dataset(pd.DataFrame({"age": [4]}), [0], columns={"age": [40]}),
    )
    assert rows.X["age"].tolist() == [1, 2, 3.5, 4]
    assert rows.columns["age"].tolist() == [1, 2, 3.5, 40]
    assert rows.columns["dataset"].tolist() == ["train", "train", "audit", "later"]


def test_stack_keeps_columns_of_mixed_types_and_dates_apart():
    day = np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]")
    rows = stack(
        train=Dataset(X[:2], [0, 1], columns={"code": ["a", "b"], "day": day}),
        audit=Dataset(X[:2], columns={"code": [1, 2]}),
    )
    assert rows.columns["code"].tolist() == ["a", "b", 1, 2]
    assert rows.columns["day"].dtype == "M8[ns]"
    assert missing(rows.columns["day"]).tolist() == [False, False, True, True]


class Binder(ClassifierMixin, BaseEstimator):
    """Remembers what its fit was given, bound."""

    def __init__(self, c=1):
        self.c = c

    def fit(self, X, y, sample_weight=None, baseline=None, columns=None, datasets=None):
        bound = bind(
            X,
            y,
            sample_weight=sample_weight,
            baseline=baseline,
            columns=columns,
            datasets=datasets,
            reads_baseline={"traffic"},
        )
        self.classes_ = bound.classes
        self.means_ = {name: float(d.column("score").mean()) for name, d in bound.datasets.items()}
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[1])


@pytest.mark.parametrize("make_columns", [dict, *FRAMES.values()])
def test_the_stacked_form_in_a_pipeline_and_a_search(make_columns):
    def part(start, stop, **given):
        x = np.arange(start, stop, dtype=float)[:, None]
        return Dataset(x, columns=make_columns({"score": x[:, 0]}), **given)

    rows = stack(
        train=part(0, 40, y=[0, 1] * 20),
        audit=part(40, 60, y=[1, 0] * 10),
        traffic=part(60, 90, baseline=[1, 0, 1] * 10),
    )
    with sklearn.config_context(enable_metadata_routing=True):
        binder = Binder().set_fit_request(baseline=True, columns=True, datasets=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), binder), {"binder__c": [1, 2]}, cv=3, scoring="accuracy"
        )
        search.fit(rows.X, rows.y, baseline=rows.baseline, columns=rows.columns, datasets="dataset")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_[-1].means_ == {"train": 19.5, "audit": 49.5, "traffic": 74.5}


FRAME = pd.DataFrame({"p": [1.0], "q": [2.0]})


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({}, "stack needs the rows to train on.*got nothing"),
        ({"audit": Dataset(X)}, 'got "audit"'),
        ({"train": (X, Y)}, 'dataset "train" is a tuple; write Dataset'),
        ({"train": Dataset(X)}, 'dataset "train" needs a label in every row'),
        ({"train": Dataset(X, [*Y[:5], None])}, 'dataset "train" needs a label in every row'),
        (
            {"train": Dataset(X, Y), "audit": Dataset(X[:, :1])},
            r'shape \(6, 2\) in "train" and \(6, 1\) in "audit"',
        ),
        (
            {"train": Dataset(X, Y), "audit": Dataset(sp.csr_array(X))},
            'X is a ndarray in "train" and a csr_array in "audit"',
        ),
        (
            {"train": Dataset(FRAME, [1]), "audit": Dataset(FRAME[["q", "p"]])},
            'columns of X in "audit" are not those of "train" in the same order',
        ),
        (
            {"train": Dataset(FRAME, [1]), "audit": Dataset(FRAME.astype(str))},
            'column "p" of X is of type String in "audit" and Float64 in "train"',
        ),
        (
            {"train": Dataset(X, Y, columns={"dataset": Y})},
            'a column is named "dataset"',
        ),
        (
            {"train": Dataset(X, Y), "audit": Dataset(X, list("ababab"))},
            "y and baseline.* mixes values of types int, str",
        ),
    ],
)
def test_errors_of_stack(datasets, message):
    with pytest.raises((ValueError, TypeError), match=message):
        stack(**datasets)


# --- scales ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_badly_scaled_columns_are_named(make):
    rng = np.random.default_rng(0)
    good = rng.normal(size=(50, 8))
    good[:, 3] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_bad_scaling(make(good))
    large = good.copy()
    large[7, 2] = -2e4
    with pytest.warns(UserWarning, match=r"of X: column 2 \(.*StandardScaler.*Pipeline"):
        warn_of_bad_scaling(make(large))
    with pytest.warns(UserWarning, match=r"of X: salary \("):
        warn_of_bad_scaling(make(large), ["a", "b", "salary", "d", "e", "f", "g", "h"])
    small = good.copy()
    small[:, 5] *= 1e-8
    with pytest.warns(UserWarning, match=r"of X: column 5 \("):
        warn_of_bad_scaling(make(small))
    with pytest.warns(
        UserWarning, match=r"column 0, column 1, column 2, column 4, column 5 and 2 m"
    ):
        warn_of_bad_scaling(make(good * 1e6))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
def test_scales_are_read_in_pieces_and_without_warnings_of_their_own(make):
    from ratebound.data.scaling import _column_sizes

    x = np.random.default_rng(1).normal(size=(70_000, 9)).astype(np.float32)
    largest, mean_square = _column_sizes(make(x))
    np.testing.assert_allclose(largest, np.abs(x).max(axis=0))
    np.testing.assert_allclose(mean_square, np.mean(x.astype(float) ** 2, axis=0), rtol=1e-9)
    warn_of_bad_scaling(make(np.zeros((3, 2))))
    with pytest.warns(UserWarning, match="column 0"):
        warn_of_bad_scaling(make(np.array([[1e200, 1.0], [1.0, 1.0]])))
