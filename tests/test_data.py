"""Binding of names, labels, groups, weights and baselines to rows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.estimator_checks import _NotAnArray

from ratebound.data import Dataset, bind, missing

X = np.arange(12.0).reshape(6, 2)
Y = [0, 1, 0, 1, 1, 0]
SIGNS = [-1, 1, -1, 1, 1, -1]

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
SERIES = {
    "pandas": pd.Series,
    "polars": lambda values: pl.Series("v", values),
    "pyarrow": lambda values: pa.chunked_array([pa.array(values)]),
    "pyarrow array": pa.array,
    "list": list,
    "numpy": np.array,
}


# --- the mapping form -----------------------------------------------------------------------------


def test_only_training_rows():
    bound = bind(X, Y)
    train = bound.datasets["train"]
    assert list(bound.datasets) == ["train"]
    assert bound.blocks[0] is X
    assert train.rows is None
    assert train.n_rows == 6
    assert train.baseline is None
    assert train.label.dtype == np.int8
    assert_array_equal(train.label, SIGNS)
    assert_array_equal(train.weight, np.ones(6))
    assert_array_equal(bound.classes, [0, 1])
    assert bound.pos_label == 1


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1, 0, 1, 1, 0], [0, 1]),
        ([-1, 1, -1, 1, 1, -1], [-1, 1]),
        ([1, 2, 1, 2, 2, 1], [1, 2]),
        ([0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0]),
        ([False, True, False, True, True, False], [False, True]),
        (["no", "yes", "no", "yes", "yes", "no"], ["no", "yes"]),
    ],
)
@pytest.mark.parametrize("make", SERIES.values(), ids=SERIES)
def test_labels_of_any_type_in_any_container(labels, classes, make):
    bound = bind(X, make(labels), pos_label=classes[0])
    assert bound.classes.tolist() == classes
    assert bound.pos_label == classes[0]
    assert_array_equal(bound.datasets["train"].label, np.negative(SIGNS))
    as_objects = bind(X, np.array(labels, dtype=object))
    assert as_objects.classes.tolist() == classes
    assert_array_equal(as_objects.datasets["train"].label, SIGNS)


def test_labels_in_types_of_the_libraries():
    for labels in (
        _NotAnArray(np.array(Y)),
        np.array(list("ababba"), dtype=np.dtypes.StringDType()),
        pl.Series(list("ababba"), dtype=pl.Categorical),
        pa.array(list("ababba")).dictionary_encode(),
        pd.Series(Y, dtype="Int64"),
        pd.Series(Y, dtype="boolean"),
        pd.Series(list("ababba"), dtype="category"),
        pd.Series(list("ababba"), dtype="string"),
    ):
        assert_array_equal(bind(X, labels).datasets["train"].label, SIGNS)


@pytest.mark.parametrize(
    "labels",
    [
        [1, None, 0],
        [1.0, np.nan, 0.0],
        np.array([True, None, False], dtype=object),
        pd.Series([1, pd.NA, 0], dtype="Int64"),
        pd.Series([1, pd.NaT, 0], dtype=object),
        pl.Series("y", [1, None, 0]),
        pa.array([1, None, 0]),
        pd.Series([True, None, False], dtype="boolean"),
    ],
)
def test_labels_may_be_missing_in_a_dataset(labels):
    bound = bind(X, Y, datasets={"audit": Dataset(X[:3], labels)}, reads_labels={"audit"})
    assert_array_equal(bound.datasets["audit"].label, [1, 0, -1])


def test_missing_labels_among_strings():
    for labels in (["yes", np.nan, "no"], ["yes", None, "no"], pd.Series(["yes", None, "no"])):
        bound = bind(X[:3], ["yes", "yes", "no"], datasets={"audit": Dataset(X[:3], labels)})
        assert_array_equal(bound.datasets["audit"].label, [1, 0, -1])


def test_shared_features_are_one_block_and_nothing_is_copied():
    other = sp.csr_array(np.ones((4, 2)))
    bound = bind(
        X,
        Y,
        datasets={
            "same": Dataset(X, baseline=Y),
            "a": Dataset(other),
            "b": Dataset(other, [1, 1, 1, 0]),
        },
    )
    assert [d.block for d in bound.datasets.values()] == [0, 0, 1, 1]
    assert bound.blocks[0] is X
    assert bound.blocks[1] is other


def test_weights_are_float64_and_rows_without_weight_are_not_read():
    weight = np.array([1, 2, 0, 1, 1, 1], dtype=np.float32)
    bound = bind(X, [0, 1, 7, 1, 1, 0], sample_weight=weight, baseline=[0, 1, 9, 1, 1, 0])
    train = bound.datasets["train"]
    assert train.weight.dtype == np.float64
    assert_array_equal(train.weight, weight)
    assert_array_equal(train.label, [-1, 1, 0, 1, 1, -1])
    assert_array_equal(train.baseline, [-1, 1, 0, 1, 1, -1])


def test_a_float64_weight_is_not_copied():
    weight = np.ones(6)
    assert bind(X, Y, sample_weight=weight).datasets["train"].weight is weight


def test_baseline_matches_classes_of_another_type():
    bound = bind(X, Y, baseline=np.array(Y, dtype=bool), reads_baseline={"train"})
    assert_array_equal(bound.datasets["train"].baseline, SIGNS)


def test_a_column_vector_of_labels_warns_as_scikit_learn_does():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        bound = bind(X, np.reshape(Y, (-1, 1)))
    assert_array_equal(bound.datasets["train"].label, SIGNS)


def test_known_classes_allow_evaluation_of_few_rows():
    bound = bind(X, [1] * 6, classes=[1, 0])
    assert_array_equal(bound.datasets["train"].label, [1] * 6)
    assert bind(X, None, classes=[0, 1]).datasets["train"].label is None
    alone = bind(None, None, classes=[0, 1], datasets={"audit": Dataset(X, Y)})
    assert list(alone.datasets) == ["audit"]
    assert_array_equal(alone.datasets["audit"].label, SIGNS)


# --- columns --------------------------------------------------------------------------------------

COLUMNS = {"sex": list("fmfmfm"), "age": [20, 30, 40, 50, 60, 70]}


@pytest.mark.parametrize("make", [dict, *FRAMES.values()])
def test_columns_of_frames_and_mappings(make):
    train = bind(X, Y, columns=make(COLUMNS)).datasets["train"]
    assert train.column_names == ("sex", "age")
    assert train.column("sex").tolist() == COLUMNS["sex"]
    assert train.column("age").tolist() == COLUMNS["age"]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_frame_of_features_serves_as_columns_too(make):
    frame = make({"age": COLUMNS["age"], "income": [1.0] * 6})
    train = bind(frame, Y, columns={"sex": COLUMNS["sex"], "age": [0] * 6}).datasets["train"]
    assert train.column_names == ("sex", "age", "income")
    assert train.column("income").tolist() == [1.0] * 6
    assert train.column("age").tolist() == [0] * 6  # columns= comes first


def test_columns_of_a_dataset_and_of_a_structured_array():
    records = np.array([("FR", 1), ("IT", 2)], dtype=[("country", "U2"), ("n", int)])
    bound = bind(X, Y, datasets={"audit": Dataset(X[:2], columns=records)})
    assert bound.datasets["audit"].column("country").tolist() == ["FR", "IT"]


def test_missing_values_of_columns_are_seen():
    nothing = [None, np.nan, pd.NA, pd.NaT, "a", 1]
    assert missing(np.array(nothing, dtype=object)).tolist() == [True] * 4 + [False] * 2
    assert missing(np.array([1.0, np.nan])).tolist() == [False, True]
    assert missing(np.array(["NaT", "2020-01-01"], dtype="M8[D]")).tolist() == [True, False]
    assert missing(np.array(["a", ""])).tolist() == [False, False]


# --- the stacked form -----------------------------------------------------------------------------


def test_datasets_by_the_name_of_a_column():
    where = ["train", "audit", "train", "train", "traffic", "audit"]
    bound = bind(
        X,
        [0, 1, 1, 1, 5, 0],
        sample_weight=[1, 2, 3, 4, 5, 6],
        baseline=[7, 7, 7, 7, 1, 7],
        columns={"where": where, "sex": list("abcdef")},
        datasets="where",
        reads_labels={"audit"},
        reads_baseline={"traffic"},
        used={"train", "audit", "traffic"},
    )
    train, audit, traffic = (bound.datasets[name] for name in ("train", "audit", "traffic"))
    assert next(iter(bound.datasets)) == "train"
    assert len(bound.blocks) == 1
    assert bound.blocks[0] is X
    assert_array_equal(audit.rows, [1, 5])
    assert audit.rows.dtype == np.intp
    assert_array_equal(audit.label, [1, -1])
    assert_array_equal(audit.weight, [2, 6])
    assert audit.column("sex").tolist() == ["b", "f"]
    assert_array_equal(train.label, [-1, 1, 1])
    assert train.baseline is None
    assert traffic.label is None
    assert_array_equal(traffic.baseline, [1])


def test_datasets_by_a_column_of_the_features():
    frame = pd.DataFrame({"x": X[:, 0], "where": ["train"] * 5 + ["audit"]})
    bound = bind(frame, Y, datasets="where")
    assert bound.datasets["audit"].n_rows == 1


def test_all_rows_are_for_training():
    bound = bind(X, Y, columns={"where": ["train"] * 6}, datasets="where")
    assert bound.datasets["train"].rows is None


# --- what goes wrong ------------------------------------------------------------------------------

NAN = float("nan")
WRONG = {
    "y is None": (dict(y=None), "requires y to be passed, but the target y is None"),
    "X is None": (dict(X=None), "X is None"),
    "X has no rows": (dict(X=3.0), "X is a float, which has no rows"),
    "empty X": (dict(X=X[:0], y=[]), "X has no rows"),
    "NaN in y": (
        dict(y=[0, 1, NAN, 1, 0, 0]),
        r"y has 1 missing label .* row 2\. .*Dataset\(X, y\).*stack",
    ),
    "None in y": (dict(y=["a", "b", None, "a", None, "b"]), "y has 2 missing labels"),
    "infinite y": (dict(y=[0, 1, np.inf, 1, 0, 0]), "y contains infinity"),
    "continuous y": (
        dict(y=[0.1, 0.2, 1, 2, 3, 4]),
        r"Unknown label type: continuous\. y holds numbers such as 0\.1",
    ),
    "three classes": (
        dict(y=[0, 1, 2, 0, 1, 2]),
        "Only binary classification is supported.*multiclass.*3 classes.*OneVsRestClassifier",
    ),
    "one class": (dict(y=[1] * 6), r"y has one class only \(1\)"),
    "one class with weight": (
        dict(sample_weight=[0, 1, 0, 1, 1, 0]),
        "one class only in rows of positive weight",
    ),
    "short y": (dict(y=[0, 1]), "y has 2 rows and X has 6"),
    "two-dimensional y": (dict(y=np.zeros((6, 2))), r"y should be a 1d array.*\(6, 2\)"),
    "ragged y": (dict(y=[[1], [1, 2], [], [], [], []]), "y should be a 1d array"),
    "a word for y": (dict(y="label"), r"y should be a 1d array, got a str"),
    "sparse y": (dict(y=sp.csr_array(np.ones((6, 1)))), "y is a sparse matrix; pass a dense"),
    "mixed y": (
        dict(y=np.array([0, 1, "a", 0, 1, "a"], dtype=object)),
        "y mixes values of types int, str",
    ),
    "pos_label": (dict(pos_label="yes"), "pos_label='yes' is not one of the classes of y: 0, 1"),
    "short weights": (dict(sample_weight=[1.0]), "sample_weight has 1 row and X has 6"),
    "two-dimensional weights": (
        dict(sample_weight=np.ones((6, 2))),
        "sample_weight should be a 1d",
    ),
    "negative weight": (
        dict(sample_weight=[1, 1, -2, 1, 1, 1]),
        r"sample_weight has -2\.0 in row 2",
    ),
    "NaN weight": (dict(sample_weight=[1, NAN, 1, 1, 1, 1]), "sample_weight has nan in row 1"),
    "infinite weight": (dict(sample_weight=[np.inf] * 6), "sample_weight has inf in row 0"),
    "zero weights": (dict(sample_weight=np.zeros(6)), "sample_weight is zero in every row"),
    "words as weights": (dict(sample_weight=list("abcdef")), "sample_weight must hold numbers"),
    "short baseline": (dict(baseline=[1]), "baseline has 1 row and X has 6"),
    "scores as baseline": (
        dict(baseline=[0.2, 0, 1, 1, 1, 1]),
        r"baseline holds 0\.2, and the classes are 0, 1; .*predict, not scores",
    ),
    "missing baseline": (dict(baseline=[0, 1, NAN, 1, 1, 1]), "baseline is missing in row 2 of X"),
    "no baseline": (
        dict(reads_baseline={"train"}),
        r'baseline of dataset "train", which has none; .*baseline=..., beside X',
    ),
    "columns of a type unknown": (dict(columns=[1, 2]), "columns is a list; pass a dataframe"),
    "lazy columns": (dict(columns=pl.LazyFrame(COLUMNS)), "columns is a LazyFrame.*collected"),
    "a series as columns": (dict(columns=pd.Series(Y)), "columns is a Series.*as a frame"),
    "two columns of one name": (
        dict(columns=pd.DataFrame(np.ones((6, 2)), columns=["sex", "sex"])),
        "a dataframe has two columns of one name; rename one",
    ),
    "short column": (
        dict(columns={"sex": ["f"]}),
        'column "sex" has 1 row and X has 6.*not a dict',
    ),
    "short frame": (dict(columns=pd.DataFrame({"s": [1]})), "columns has 1 row and X has 6"),
    "datasets is a list": (dict(datasets=[Dataset(X)]), "datasets is a list; pass a mapping such"),
    "datasets is a Dataset": (dict(datasets=Dataset(X)), "datasets is a Dataset; pass a mapping"),
    "a pair in datasets": (
        dict(datasets={"audit": (X, Y)}),
        r'dataset "audit" is a tuple; write Dataset\(X, y\)',
    ),
    "a number as name": (dict(datasets={1: Dataset(X)}), "datasets has the name 1; names of"),
    "the reserved name": (dict(datasets={"train": Dataset(X)}), 'named "train", which is reserved'),
    "unknown dataset": (
        dict(datasets={"audit": Dataset(X)}, used={"audti"}),
        r'on dataset "audti", which does not exist \(there are: "train", "audit"; did you mean '
        r'"audit"\?\)',
    ),
    "no labels to read": (
        dict(datasets={"audit": Dataset(X)}, reads_labels={"audit"}),
        r'labels of dataset "audit", which has none; .*Dataset\(X, y\).*positive_rate',
    ),
    "all labels missing": (
        dict(datasets={"audit": Dataset(X, [None] * 6)}, reads_labels={"audit"}),
        'labels of dataset "audit", and every label there is missing',
    ),
    "strange labels": (
        dict(datasets={"audit": Dataset(X, [1, 2, 0, 0, 0, 3])}),
        'y of dataset "audit" holds 2, 3, and the classes are 0, 1; labels must be among',
    ),
    "labels of another type": (
        dict(datasets={"audit": Dataset(X, list("010101"))}),
        'y of dataset "audit" holds "0", "1", and the classes are 0, 1',
    ),
    "no baseline in a dataset": (
        dict(datasets={"audit": Dataset(X)}, reads_baseline={"audit"}),
        r'baseline of dataset "audit", which has none; .*Dataset\(X, baseline=',
    ),
    "zero weights in a dataset": (
        dict(datasets={"audit": Dataset(X, sample_weight=[0] * 6)}, used={"audit"}),
        'sample_weight of dataset "audit" is zero in every row',
    ),
    "negative weight in a dataset": (
        dict(
            datasets={"audit": Dataset(X[:1], sample_weight=np.array([1.0]))},
            sample_weight=[-1] * 6,
        ),
        "sample_weight has -1",
    ),
    "stacked without columns": (
        dict(datasets="where"),
        r'datasets="where" names a column, and there is none of that name \(there are none\)',
    ),
    "stacked by an unknown column": (
        dict(datasets="were", columns={"where": ["train"] * 6}),
        r'there are: "where"; did you mean "where"\?',
    ),
    "stacked without training rows": (
        dict(datasets="where", columns={"where": ["Train"] * 6}),
        r'no row has "train" in column "where" \(it has: "Train"\)',
    ),
    "stacked with a missing name": (
        dict(datasets="where", columns={"where": ["train"] * 5 + [None]}),
        'column "where" is missing in row 5',
    ),
    "stacked by numbers": (
        dict(datasets="where", columns={"where": [1] * 6}),
        'column "where" holds 1; names of datasets are strings',
    ),
    "stacked NaN in y": (
        dict(
            y=[NAN, NAN, 1, 0, 1, NAN],
            datasets="where",
            columns={"where": ["audit"] * 2 + ["train"] * 4},
        ),
        "y has 1 missing label .* row 5",
    ),
    "stacked strange labels": (
        dict(
            y=[7, 1, 1, 0, 1, 0],
            datasets="where",
            columns={"where": ["audit"] * 2 + ["train"] * 4},
            reads_labels={"audit"},
        ),
        'y of dataset "audit" holds 7, and the classes are 0, 1',
    ),
    "not two classes known": (dict(classes=[1]), "classes must be two, got 1"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_an_error_names_the_thing_and_the_remedy(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bind(**({"X": X, "y": Y} | wrong))


def test_an_unknown_column_names_the_nearest():
    audit = bind(X, Y, datasets={"audit": Dataset(X, columns=COLUMNS)}).datasets["audit"]
    message = (
        r'dataset "audit" has no column "sx" \(there are: "sex", "age"; did you mean "sex"\?\); '
        "pass it in columns= of that Dataset"
    )
    with pytest.raises(ValueError, match=message):
        audit.column("sx")
    with pytest.raises(ValueError, match=r"there are none\); pass it in fit's columns="):
        bind(X, Y).datasets["train"].column("sex")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(y=[1]), "y of this Dataset has 1 row and X has 6"),
        (dict(baseline=[1]), "baseline of this Dataset has 1 row"),
        (dict(sample_weight=[1]), "sample_weight of this Dataset has 1 row"),
        (dict(columns={"sex": [1]}), 'column "sex" of this Dataset has 1 row'),
        (dict(columns=4), "columns of this Dataset is a int"),
    ],
)
def test_a_dataset_checks_lengths_when_it_is_made(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Dataset(X, **given)


def test_a_dataset_says_what_it_holds():
    dataset = Dataset(sp.csr_array(X), Y, baseline=Y, columns=COLUMNS)
    assert repr(dataset) == "Dataset(X: 6 x 2 csr_array, y, baseline, columns: sex, age)"
    assert dataset.y is Y
    assert pickle.loads(pickle.dumps(dataset)).y == Y


def test_only_another_order_of_the_same_index_is_warned_of() -> None:
    frame = pd.DataFrame(np.zeros((3, 1)), columns=["a"], index=[7, 8, 9])
    for index in ([7, 8, 9], [0, 1, 2], [7, 7, 9]):  # pytest makes an error of a warning
        Dataset(frame, pd.Series([0, 1, 0], index=index))
    Dataset(frame.to_numpy(), pd.Series([0, 1, 0], index=[9, 8, 7]))
    Dataset(pl.from_pandas(frame), pd.Series([0, 1, 0], index=[9, 8, 7]))
    with pytest.warns(UserWarning, match="baseline of this Dataset has the index of X in another"):
        Dataset(frame, baseline=pd.Series([0, 1, 0], index=[9, 8, 7]))
