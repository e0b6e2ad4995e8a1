"""Wrong calls, and what the message of each must say: the thing that is wrong and the remedy.

`python tests/wrong_calls.py` prints the table of calls, exceptions and messages. The calls are
source text, so that the table shows exactly what is run.
"""

from __future__ import annotations

import warnings
from functools import cache
from textwrap import indent, wrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import ratebound
from ratebound import Dataset, Goals, InfeasibleGoals, RateBoundSVC, error_rate, recall, stack
from ratebound.solvers import InteriorPoint


class Case(NamedTuple):
    """A wrong call.

    `error` may be a warning. Every one of `says` is part of the message.
    """

    name: str
    call: str
    error: type[Exception]
    says: tuple[str, ...]


class Raised(NamedTuple):
    """What a call raised, and what it printed on the way."""

    error: Exception
    message: str


@cache
def names() -> dict[str, Any]:
    """What the calls may name: the library, and small data that is right unless named otherwise."""
    rng = np.random.default_rng(7)
    n = 60
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    sex = np.array(["F", "M", "M"] * (n // 3))
    frame = pd.DataFrame(X, columns=["age", "income", "tenure"])
    X_nan = X.copy()
    X_nan[3, 1] = np.nan
    X_inf = X.copy()
    X_inf[3, 1] = np.inf
    y_nan = y.astype(float)
    y_nan[3] = np.nan
    ones = np.ones(n)
    w_nan, w_negative = ones.copy(), ones.copy()
    w_nan[3], w_negative[3] = np.nan, -1.0
    sex_nan = sex.astype(object)
    sex_nan[3] = None
    large = frame * [1.0, 1e7, 1.0]
    audit = Dataset(X, y)
    return {name: getattr(ratebound, name) for name in ratebound.__all__} | {
        "np": np,
        "pd": pd,
        "pl": pl,
        "sp": sp,
        "InteriorPoint": InteriorPoint,
        "pickle": __import__("pickle"),
        "OneVsRestClassifier": OneVsRestClassifier,
        "n": n,
        "X": X,
        "y": y,
        "sex": sex,
        "frame": frame,
        "X_nan": X_nan,
        "X_inf": X_inf,
        "y_nan": y_nan,
        "y_three": np.arange(n) % 3,
        "y_real": X[:, 0],
        "ones": ones,
        "w_nan": w_nan,
        "w_negative": w_negative,
        "sex_nan": sex_nan,
        "large": large,
        "audit": audit,
        "traffic": Dataset(X),
        "stacked": stack(train=audit, traffic=Dataset(X, baseline=y)),
        "model": LogisticRegression().fit(X, y),
        "audited": RateBoundSVC(Goals(error_rate(), [recall(on="audit") >= 0.5])),
        "fitted": RateBoundSVC().fit(X, y),
        "fitted_on_frame": RateBoundSVC().fit(frame, y),
    }


def attempt(call: str) -> Raised | None:
    """Run a call with warnings as errors; None where nothing is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            eval(call, dict(names()))
        except Exception as error:
            return Raised(error, str(error))
    return None


def _goal(goal: str, fit: str = "X, y") -> str:
    return f"RateBoundSVC(Goals(error_rate(), [{goal}])).fit({fit})"


CASES = [
    # --- X ---------------------------------------------------------------------------------------
    Case("NaN in X", "RateBoundSVC().fit(X_nan, y)", ValueError, ("X contains NaN", "imputer")),
    Case("infinity in X", "RateBoundSVC().fit(X_inf, y)", ValueError, ("X contains infinity",)),
    Case(
        "NaN in the X of another dataset",
        'audited.fit(X, y, datasets={"audit": Dataset(X_nan, y)})',
        ValueError,
        ("NaN", "audit"),
    ),
    Case("no X", "RateBoundSVC().fit(None, y)", ValueError, ("X", "None")),
    Case("X of one dimension", "RateBoundSVC().fit(X[:, 0], y)", ValueError, ("2D", "reshape")),
    Case("text in X", 'RateBoundSVC().fit(np.full((n, 2), "a"), y)', ValueError, ("'a'",)),
    Case("X without rows", "RateBoundSVC().fit(X[:0], y[:0])", ValueError, ("0 sample",)),
    Case(
        "features of another dataset",
        'audited.fit(X, y, datasets={"audit": Dataset(X[:, :2], y)})',
        ValueError,
        ("audit", "2 features", "3 features"),
    ),
    Case(
        "order of features in another dataset",
        'audited.fit(frame, y, datasets={"audit": Dataset(frame[["income", "age", "tenure"]], y)})',
        ValueError,
        ("audit", "feature names", "same order"),
    ),
    Case(
        "names of features in another dataset",
        'audited.fit(frame, y, datasets={"audit": Dataset(frame.add_prefix("x"), y)})',
        ValueError,
        ("audit", "feature names", "xage"),
    ),
    Case(
        "a frame to train on and an array to audit",
        'audited.fit(frame, y, datasets={"audit": Dataset(X, y)})',
        UserWarning,
        ("audit", "feature names"),
    ),
    Case("complex numbers in X", "RateBoundSVC().fit(1j * X, y)", ValueError, ("Complex data",)),
    Case(
        "a column of X far larger than the others",
        "RateBoundSVC().fit(large, y)",
        UserWarning,
        ("badly scaled", "income", "StandardScaler"),
    ),
    Case(
        "words among the features of a frame",
        "RateBoundSVC().fit(frame.assign(sex=sex), y)",
        ValueError,
        ("no numbers", '"sex"', "'F'", "OneHotEncoder", "columns="),
    ),
    Case(
        "dates among the features of a frame",
        'RateBoundSVC().fit(frame.assign(day=pd.to_datetime(["2020-01-01"] * n)), y)',
        ValueError,
        ("no numbers", '"day"', "columns="),
    ),
    Case(
        "words in the frame of another dataset",
        'audited.fit(frame, y, datasets={"audit": Dataset(frame.assign(age=sex), y)})',
        ValueError,
        ('X of dataset "audit"', '"age"', "OneHotEncoder"),
    ),
    Case(
        "words in what is predicted",
        "fitted_on_frame.predict(frame.assign(age=sex))",
        ValueError,
        ("no numbers", '"age"', "OneHotEncoder"),
    ),
    Case(
        "a lazy frame",
        'RateBoundSVC().fit(pl.LazyFrame({"age": range(60)}), y)',
        TypeError,
        ("X is a lazy frame", "collect"),
    ),
    Case("a path as X", 'RateBoundSVC().fit("X.csv", y)', TypeError, ("X is a str", "dataframe")),
    Case("a path as a Dataset", 'Dataset("X.csv")', TypeError, ("X of this Dataset is a str",)),
    # --- y ---------------------------------------------------------------------------------------
    Case("no y", "RateBoundSVC().fit(X, None)", ValueError, ("y", "None", "pass")),
    Case(
        "NaN in y",
        "RateBoundSVC().fit(X, y_nan)",
        ValueError,
        ("1 missing label", "row 3", "Dataset(X, y)", "ratebound.stack"),
    ),
    Case(
        "length of y", "RateBoundSVC().fit(X, y[:-1])", ValueError, ("y has 59", "60", "each row")
    ),
    Case("one class", "RateBoundSVC().fit(X, y * 0)", ValueError, ("one class", "two classes")),
    Case(
        "one class among rows of positive weight",
        "RateBoundSVC().fit(X, y, sample_weight=y)",
        ValueError,
        ("one class only in rows of positive weight", "two classes"),
    ),
    Case(
        "three classes",
        "RateBoundSVC().fit(X, y_three)",
        ValueError,
        ("3 classes", "one-vs-rest", "OneVsRestClassifier"),
    ),
    Case("a regression", "RateBoundSVC().fit(X, y_real)", ValueError, ("continuous", "threshold")),
    Case(
        "y of two dimensions",
        "RateBoundSVC().fit(X, np.column_stack([y, y]))",
        ValueError,
        ("y should be a 1d array", "(60, 2)"),
    ),
    Case("sparse y", "RateBoundSVC().fit(X, sp.csr_matrix(y))", TypeError, ("y", "toarray")),
    Case(
        "mixed labels",
        'RateBoundSVC().fit(X, np.array([0, "one"] * 30, dtype=object))',
        ValueError,
        ("y mixes", "int", "str", "one type"),
    ),
    Case(
        "labels of another dataset in other words",
        'audited.fit(X, y, datasets={"audit": Dataset(X, np.where(y, "yes", "no"))})',
        ValueError,
        ('"audit"', '"no", "yes"', "0, 1", "among the training classes"),
    ),
    Case(
        "positive label not among the classes",
        'RateBoundSVC(Goals(pos_label="yes")).fit(X, y)',
        ValueError,
        ("pos_label='yes'", "classes of y: 0, 1"),
    ),
    # --- weights ---------------------------------------------------------------------------------
    Case(
        "NaN in sample_weight",
        "RateBoundSVC().fit(X, y, sample_weight=w_nan)",
        ValueError,
        ("sample_weight", "nan in row 3", "finite"),
    ),
    Case(
        "text as sample_weight",
        "RateBoundSVC().fit(X, y, sample_weight=sex)",
        ValueError,
        ("sample_weight must hold numbers",),
    ),
    Case(
        "negative sample_weight",
        "RateBoundSVC().fit(X, y, sample_weight=w_negative)",
        ValueError,
        ("sample_weight", "-1.0 in row 3", "not negative"),
    ),
    Case(
        "length of sample_weight",
        "RateBoundSVC().fit(X, y, sample_weight=ones[:-1])",
        ValueError,
        ("sample_weight has 59", "60", "each row"),
    ),
    Case(
        "no weight at all",
        "RateBoundSVC().fit(X, y, sample_weight=0 * ones)",
        ValueError,
        ("sample_weight is zero in every row", "positive"),
    ),
    Case(
        "one weight for all",
        "RateBoundSVC().fit(X, y, sample_weight=0.5)",
        ValueError,
        ("sample_weight", "1d array"),
    ),
    Case(
        "weights that sum to one",
        "RateBoundSVC().fit(X, y, sample_weight=ones / n)",
        UserWarning,
        ("weights of the 60 training rows sum to 1", "alpha=", "average 1"),
    ),
    Case(
        "class_weight",
        'RateBoundSVC(class_weight="balanced")',
        TypeError,
        ("class_weight", "cost(fp=1, fn=5)", "sample_weight"),
    ),
    Case("C", "RateBoundSVC(C=2)", TypeError, ("no C", "alpha=1/(n * C)")),
    # --- baseline --------------------------------------------------------------------------------
    Case(
        "churn without a baseline",
        _goal("churn() <= 0.1"),
        ValueError,
        ('baseline of dataset "train"', "baseline=..., beside X"),
    ),
    Case(
        "churn on a dataset without a baseline",
        _goal('churn(on="traffic") <= 0.1', 'X, y, datasets={"traffic": traffic}'),
        ValueError,
        ('baseline of dataset "traffic"', "Dataset(X, baseline=...)"),
    ),
    Case(
        "scores as the baseline",
        _goal("churn() <= 0.1", "X, y, baseline=X[:, 0]"),
        ValueError,
        ("baseline", "classes are 0, 1", "not scores"),
    ),
    Case(
        "length of baseline",
        "RateBoundSVC().fit(X, y, baseline=y[:-1])",
        ValueError,
        ("baseline has 59", "60", "each row"),
    ),
    Case(
        "NaN in baseline",
        _goal("churn() <= 0.1", "X, y, baseline=y_nan"),
        ValueError,
        ("baseline is missing in row 3", "predict"),
    ),
    Case(
        "a model as the baseline",
        "RateBoundSVC().fit(X, y, baseline=model)",
        ValueError,
        ("baseline", "a LogisticRegression", "model.predict(X)"),
    ),
    Case(
        "probabilities as the baseline",
        "RateBoundSVC().fit(X, y, baseline=model.predict_proba(X))",
        ValueError,
        ("baseline", "(60, 2)", "one class a row"),
    ),
    # --- columns and groups ----------------------------------------------------------------------
    Case(
        "length of a column",
        'RateBoundSVC().fit(X, y, columns={"sex": sex[:-1]})',
        ValueError,
        ('column "sex" has 59', "60", "each row"),
    ),
    Case(
        "an array as columns",
        "RateBoundSVC().fit(X, y, columns=sex)",
        TypeError,
        ("columns is a ndarray", "dataframe", "mapping"),
    ),
    Case(
        "columns in another order",
        'RateBoundSVC().fit(frame, y, columns=pd.DataFrame({"sex": sex}).iloc[::-1])',
        UserWarning,
        ("columns has the index of X in another order", "columns.loc[X.index]", "set_axis"),
    ),
    Case(
        "labels in another order",
        "RateBoundSVC().fit(frame, pd.Series(y).iloc[::-1])",
        UserWarning,
        ("y has the index of X in another order", "y.loc[X.index]"),
    ),
    Case(
        "unknown column",
        _goal('recall(by="sexx").min() >= 0.5', 'X, y, columns={"sex": sex}'),
        ValueError,
        ('"train" has no column "sexx"', 'did you mean "sex"', "columns="),
    ),
    Case(
        "no columns",
        _goal('recall(by="sex").min() >= 0.5'),
        ValueError,
        ('"train" has no column "sex"', "there are none", "columns="),
    ),
    Case(
        "unknown value of a column",
        _goal('recall(where={"sex": "female"}) >= 0.5', 'X, y, columns={"sex": sex}'),
        ValueError,
        ("'female' in column 'sex'", "its values are 'F', 'M'"),
    ),
    Case(
        "NaN in a column of groups",
        _goal('recall(by="sex").min() >= 0.5', 'X, y, columns={"sex": sex_nan}'),
        ValueError,
        ("without a value in column 'sex'", "fill the missing values"),
    ),
    Case(
        "a group without positive rows",
        _goal('recall(by="k").min() >= 0.5', 'X, y, columns={"k": np.where(y, "a", sex)}'),
        ValueError,
        ("no positively labelled rows", "k = 'F'", "allow_empty=True"),
    ),
    Case(
        "a group of no weight",
        _goal(
            'positive_rate(by="sex").min() >= 0.1',
            'X, y, sample_weight=1.0 * (sex == "M"), columns={"sex": sex}',
        ),
        ValueError,
        ("sex = 'F'", "positive weight", "allow_empty=True"),
    ),
    Case(
        "a gap with one group",
        _goal('positive_rate(by="k").gap() <= 0.1', 'X, y, columns={"k": np.full(n, "a")}'),
        UserWarning,
        ("positive_rate(by=k).gap()", "one only, a", "met whatever"),
    ),
    Case(
        "a gap between too many groups",
        'Goals(error_rate(), [positive_rate(by="k").gap() <= 0.1]).evaluate('
        'predictions=np.arange(3000) % 2, y=np.arange(3000) % 2, columns={"k": np.arange(3000)})',
        ValueError,
        ("3000 groups", "at most 2000", '"k"', "pandas.cut", ".min() >="),
    ),
    Case('by=""', 'recall(by="")', TypeError, ("by is the name of a column", "''")),
    # --- datasets --------------------------------------------------------------------------------
    Case(
        "unknown dataset",
        _goal('recall(on="adit") >= 0.5', 'X, y, datasets={"audit": audit}'),
        ValueError,
        ('dataset "adit", which does not exist', 'did you mean "audit"', "datasets="),
    ),
    Case(
        "recall on a dataset without labels",
        _goal('recall(on="traffic") >= 0.5', 'X, y, datasets={"traffic": traffic}'),
        ValueError,
        ('labels of dataset "traffic"', "positive_rate or churn"),
    ),
    Case(
        "a dataset whose labels are all missing",
        'audited.fit(X, y, datasets={"audit": Dataset(X, np.nan * y)})',
        ValueError,
        ('labels of dataset "audit"', "every label there is missing", "pass labels"),
    ),
    Case(
        "a goal on a dataset, and no datasets",
        "audited.fit(X, y)",
        ValueError,
        ('dataset "audit", which does not exist', "datasets="),
    ),
    Case(
        "a dataset without rows",
        'audited.fit(X, y, datasets={"audit": Dataset(X[:0], y[:0])})',
        ValueError,
        ('X of dataset "audit" has no rows',),
    ),
    Case(
        "a dataset whose name is a number",
        "RateBoundSVC().fit(X, y, datasets={3: audit})",
        TypeError,
        ("name 3", "strings"),
    ),
    Case(
        "a dataset called train",
        'RateBoundSVC().fit(X, y, datasets={"train": audit})',
        ValueError,
        ('"train"', "reserved", "another name"),
    ),
    Case(
        "a Dataset in place of a mapping",
        "RateBoundSVC().fit(X, y, datasets=audit)",
        TypeError,
        ("datasets is a Dataset", '{"audit": Dataset(X, y)}'),
    ),
    Case(
        "a tuple in place of a Dataset",
        'RateBoundSVC().fit(X, y, datasets={"audit": (X, y)})',
        TypeError,
        ('dataset "audit" is a tuple', "Dataset(X, y)"),
    ),
    Case(
        "a dataset column without train",
        'RateBoundSVC().fit(X, y, columns={"part": sex}, datasets="part")',
        ValueError,
        ('no row has "train" in column "part"', "F", "must be named"),
    ),
    Case(
        "a dataset column that is not there",
        'RateBoundSVC().fit(X, y, columns={"sex": sex}, datasets="part")',
        ValueError,
        ('datasets="part"', '"sex"', "columns=", "ratebound.stack"),
    ),
    Case(
        "a dataset column with gaps",
        'RateBoundSVC().fit(X, y, columns={"part": sex_nan}, datasets="part")',
        ValueError,
        ('"part" is missing in row 3', "which dataset"),
    ),
    Case(
        "a dataset without a name",
        'RateBoundSVC().fit(X, y, datasets={"": audit})',
        TypeError,
        ("the name ''", '"audit"'),
    ),
    Case(
        "stacked rows, unsaid",
        "RateBoundSVC().fit(stacked.X, stacked.y, columns=stacked.columns)",
        ValueError,
        ("3 classes", "rows are stacked", 'datasets="dataset"'),
    ),
    Case(
        "stacked rows, unsaid, and a goal on another dataset",
        _goal(
            'positive_rate(on="traffic") <= 0.5',
            "stacked.X, np.abs(stacked.y), columns=stacked.columns",
        ),
        ValueError,
        ('dataset "traffic"', 'datasets="dataset"'),
    ),
    Case("length within a Dataset", "Dataset(X, y[:-1])", ValueError, ("y of this Dataset", "59")),
    Case(
        "stack without train",
        "stack(audit=audit)",
        ValueError,
        ("stack(train=Dataset(X, y)", "audit"),
    ),
    Case(
        "stack of arrays and frames",
        "stack(train=audit, audit=Dataset(frame, y))",
        TypeError,
        ("DataFrame", "ndarray", "one kind"),
    ),
    # --- goals -----------------------------------------------------------------------------------
    Case(
        "== in a goal",
        "Goals(error_rate(), [recall() == 0.9])",
        TypeError,
        ("==", "between(recall(), low, high)", "two inequalities"),
    ),
    Case(
        "== of two rates in a goal",
        "Goals(error_rate(), [recall() == precision()])",
        TypeError,
        ("not a constraint", "== compares", "between(...) or two inequalities"),
    ),
    Case("a chained comparison", "0.1 <= recall() <= 0.3", TypeError, ("between(rate, 0.1, 0.3)",)),
    Case("<", "recall() < 0.9", TypeError, ("write <= instead of <",)),
    Case(">", "recall() > 0.9", TypeError, ("write >= instead of >",)),
    Case(
        "and between goals",
        "Goals(error_rate(), recall() >= 0.9 and churn() <= 0.1)",
        TypeError,
        ("recall() >= 0.9", "neither true nor false", "list"),
    ),
    Case("an array as bound", "recall() >= np.array([0.9, 0.8])", TypeError, ("array", "number")),
    Case("an array times a rate", "np.ones(3) * recall()", TypeError, ("array", "single number")),
    Case("NaN as bound", 'recall() >= float("nan")', ValueError, ("finite", "nan")),
    Case("a product of rates", "recall() * recall()", TypeError, ("linear", "multiply by numbers")),
    Case(
        "a ratio as objective",
        "Goals(precision())",
        TypeError,
        ("precision() is a ratio and cannot be minimised", "error_rate()"),
    ),
    Case(
        "a family as objective",
        'Goals(recall(by="sex").min())',
        TypeError,
        ("is a rate per group and cannot be minimised", "minimise a linear rate"),
    ),
    Case(
        "a goal as objective",
        "Goals(recall() >= 0.9)",
        TypeError,
        ("recall() >= 0.9 is a constraint", "subject_to"),
    ),
    Case(
        "a rate without a bound",
        "Goals(error_rate(), [recall()])",
        TypeError,
        ("recall(), which is not a constraint", "recall() >= 0.9"),
    ),
    Case(
        "text as a goal",
        'Goals(error_rate(), ["recall() >= 0.9"])',
        TypeError,
        ("parse_goal('recall() >= 0.9')",),
    ),
    Case(
        "a family without min, max, gap or ratio",
        'recall(by="sex") >= 0.8',
        TypeError,
        ("one rate per group", "recall(by=sex).min() >= 0.8"),
    ),
    Case(
        "a family the other way round",
        'recall(by="sex").min() <= 0.8',
        TypeError,
        ("not a goal on every group", ".max() <="),
    ),
    Case(
        "a family in a sum",
        'error_rate() + recall(by="sex").gap()',
        TypeError,
        ("cannot be part of a sum", "compare it with a number"),
    ),
    Case(
        "a ratio in a sum", "precision() + 1", TypeError, ("is a ratio", "compare it with a number")
    ),
    Case(
        "gap of a ratio rate",
        'precision(by="sex").gap() <= 0.1',
        TypeError,
        (".gap()", ".min() >= or .max() <="),
    ),
    Case("groups of a rate without by", "recall().min()", TypeError, ("none", 'recall(by="sex")')),
    Case(
        "a negative gap",
        'recall(by="sex").gap() <= -0.1',
        ValueError,
        (".gap()", "at least 0", "-0.1"),
    ),
    Case(
        "a ratio above 1", 'recall(by="sex").ratio() >= 1.25', ValueError, (".ratio()", "at most 1")
    ),
    Case("between the wrong way", "between(recall(), 0.9, 0.1)", ValueError, ("low bound first",)),
    Case(
        "a denominator that may be negative",
        "recall() / (error_rate() - 0.5)",
        ValueError,
        ("could be negative", "positive coefficients"),
    ),
    Case(
        "contradictory bounds",
        "Goals(error_rate(), [recall() >= 0.9, recall() <= 0.8])",
        InfeasibleGoals,
        ("recall() >= 0.9", "recall() <= 0.8", "contradict"),
    ),
    Case(
        "a goal twice",
        "Goals(error_rate(), [recall() >= 0.9, recall() >= 0.9])",
        ValueError,
        ("recall() >= 0.9", "twice", "leave one out"),
    ),
    Case(
        "a goal out of reach of every classifier",
        _goal("recall() >= 1.1"),
        InfeasibleGoals,
        ("recall() >= 1.1", "1 is the best"),
    ),
    Case(
        "goals out of reach of linear classifiers",
        _goal("recall() >= 0.99, false_positive_rate() <= 0.01"),
        ConvergenceWarning,
        ("goals missed strictly", "recall() >= 0.99", "loosen one", "n_starts"),
    ),
    Case("costs of nothing", "cost()", ValueError, ("every cost is 0", "cost(fp=1, fn=5)")),
    Case("by that is no name", "recall(by=3)", TypeError, ("by is the name of a column", "3")),
    Case("on that is no name", "recall(on=3)", TypeError, ("on is the name of a dataset", "3")),
    Case("where that is no mapping", 'recall(where="sex")', TypeError, ("where", "sex", "{")),
    Case(
        "a dataset without on=",
        'recall("audit") >= 0.9',
        TypeError,
        ("recall()", "by name", "recall(on=...)", "'audit'"),
    ),
    Case("costs without names", "cost(1, 5)", TypeError, ("by name", "cost(fp=...)", "fn")),
    Case(
        "an argument that no rate has",
        'recall(dataset="audit")',
        TypeError,
        ("recall()", "no argument 'dataset'", "on, where, by"),
    ),
    Case(
        "a misspelt argument of a rate",
        'recall(wher={"sex": "F"})',
        TypeError,
        ("no argument 'wher'", "did you mean where?"),
    ),
    Case(
        "the size of a difference",
        'abs(recall(on="a") - recall(on="b")) <= 0.1',
        TypeError,
        ("recall(on=a) - recall(on=b)", "not linear", "between(rate, -0.1, 0.1)"),
    ),
    Case(
        "& between goals",
        "(recall() >= 0.9) & (churn() <= 0.1)",
        TypeError,
        ("&", "list", "recall() >= 0.9"),
    ),
    Case(
        "goals that are not in a list",
        "Goals(error_rate(), recall() >= 0.9, churn() <= 0.1)",
        TypeError,
        ("pos_label", "churn() <= 0.1", "list"),
    ),
    Case(
        "a number to minimise, and no goal",
        "Goals(0 * error_rate() + 3)",
        ValueError,
        ("the number 3", "minimise a rate"),
    ),
    # --- goals as text ---------------------------------------------------------------------------
    Case(
        "a misspelt rate",
        'parse_goal("recal() >= 0.9")',
        ValueError,
        ("'recal'", "did you mean recall"),
    ),
    Case(
        "text without a bound",
        'parse_goal("recall()")',
        ValueError,
        ("expected <= or >= and a bound",),
    ),
    Case(
        "text with two bounds",
        'parse_goal("0.1 <= recall() <= 0.3")',
        ValueError,
        ("one <= or >=", "two goals"),
    ),
    Case("≥ in text", 'parse_goal("recall() ≥ 0.9")', ValueError, ("write >=", "^")),
    Case("per cent", 'parse_goal("recall() >= 90%")', ValueError, ("write 0.9 for 90 %",)),
    Case(
        "a misspelt argument",
        'parse_rate("recall(onn=audit)")',
        ValueError,
        ("no argument 'onn'", "did you mean on"),
    ),
    Case("a goal as a rate", 'parse_rate("recall() >= 0.9")', ValueError, ("parse_goal",)),
    # --- parameters ------------------------------------------------------------------------------
    Case(
        "unknown solver",
        'RateBoundSVC(solver="simplex").fit(X, y)',
        ValueError,
        ("'solver'", "auto"),
    ),
    Case(
        "the class of a solver",
        "RateBoundSVC(solver=InteriorPoint).fit(X, y)",
        TypeError,
        ("the class InteriorPoint", "solver=InteriorPoint()"),
    ),
    Case("unknown start", 'RateBoundSVC(start="one").fit(X, y)', ValueError, ("'start'", "zero")),
    Case(
        "unknown threshold",
        'RateBoundSVC(threshold="best").fit(X, y)',
        ValueError,
        ("'threshold'", "repair", "zero"),
    ),
    Case("tol of 0", "RateBoundSVC(tol=0).fit(X, y)", ValueError, ("'tol'", "(0.0, 1.0)")),
    Case(
        "negative alpha",
        "RateBoundSVC(alpha=-1.0).fit(X, y)",
        ValueError,
        ("'alpha'", "(0.0, inf)"),
    ),
    Case("alpha of 0", "RateBoundSVC(alpha=0.0).fit(X, y)", ValueError, ("'alpha'", "(0.0, inf)")),
    Case(
        "NaN as alpha",
        'RateBoundSVC(alpha=float("nan")).fit(X, y)',
        ValueError,
        ("'alpha'", "(0.0, inf)"),
    ),
    Case(
        "max_iter of 0",
        "RateBoundSVC(max_iter=0).fit(X, y)",
        ValueError,
        ("'max_iter'", "[1, inf)"),
    ),
    Case(
        "n_starts of 0",
        "RateBoundSVC(n_starts=0).fit(X, y)",
        ValueError,
        ("'n_starts'", "[1, inf)"),
    ),
    Case(
        "time_limit of 0",
        "RateBoundSVC(time_limit=0).fit(X, y)",
        ValueError,
        ("'time_limit'", "(0.0, inf)"),
    ),
    Case(
        "a list as goals",
        "RateBoundSVC([recall() >= 0.9]).fit(X, y)",
        ValueError,
        ("'goals'", "Goals", "recall() >= 0.9"),
    ),
    Case(
        "a list as callback",
        "RateBoundSVC(callback=[]).fit(X, y)",
        ValueError,
        ("callback", "callable"),
    ),
    # --- prediction ------------------------------------------------------------------------------
    Case(
        "predict before fit", "RateBoundSVC().predict(X)", NotFittedError, ("not fitted", "'fit'")
    ),
    Case(
        "probability before fit",
        "RateBoundSVC().positive_probability(X)",
        NotFittedError,
        ("not fitted", "'fit'"),
    ),
    Case("predict_proba", "fitted.predict_proba(X)", AttributeError, ("positive_probability(X)",)),
    Case("NaN in what is predicted", "fitted.predict(X_nan)", ValueError, ("X contains NaN",)),
    Case("too few features", "fitted.predict(X[:, :2])", ValueError, ("2 features", "3 features")),
    Case(
        "features in another order",
        'fitted_on_frame.predict(frame[["income", "age", "tenure"]])',
        ValueError,
        ("feature names", "same order"),
    ),
    Case(
        "too few keys",
        "fitted.predict_randomized(X, keys=[1, 2, 3])",
        ValueError,
        ("keys has 3 entries", "60 rows"),
    ),
    Case(
        "one key for all",
        "fitted.predict_randomized(X, keys=7)",
        TypeError,
        ("one key a row", "7"),
    ),
    Case(
        "keys that are fractions",
        "fitted.predict_randomized(X, keys=X[:, 0])",
        TypeError,
        ("key must be an integer, a string or bytes", "float"),
    ),
    Case(
        "keys and a random state",
        "fitted.predict_randomized(X, np.random.RandomState(0), keys=range(60))",
        TypeError,
        ("with keys, random_state must be an int", "RandomState"),
    ),
    # --- evaluation ------------------------------------------------------------------------------
    Case(
        "nothing to evaluate",
        "Goals().evaluate(X=X, y=y)",
        TypeError,
        ("exactly one of a model, predictions=, scores= and probabilities=", "none"),
    ),
    Case(
        "data in place of a model",
        "Goals().evaluate(X, y)",
        TypeError,
        ("a model has predict", "ndarray", "evaluate(model, X, y)", "predictions="),
    ),
    Case(
        "a model and no data",
        "Goals().evaluate(model)",
        ValueError,
        ('dataset "train"', "pass X and y"),
    ),
    Case(
        "a model and no labels",
        "Goals().evaluate(model, X)",
        ValueError,
        ('labels of dataset "train"', "y, beside X"),
    ),
    Case(
        "the probabilities of both classes",
        "Goals().evaluate(probabilities=model.predict_proba(X), y=y)",
        ValueError,
        ("probabilities", "(60, 2)", "predict_proba(X)[:, 1]"),
    ),
    Case(
        "a fold without a dataset",
        "audited.goals.scorer()._score_func(stacked.y, stacked.y, columns=stacked.columns, "
        'datasets="dataset")',
        ValueError,
        ('"audit"', "shuffle=True"),
    ),
    Case(
        "scores as predictions",
        "Goals().evaluate(predictions=X[:, 0], y=y)",
        ValueError,
        ("predictions", "classes are 0, 1", "scores="),
    ),
    Case(
        "scores as probabilities",
        "Goals().evaluate(probabilities=3 * X[:, 0], y=y)",
        ValueError,
        ("between 0 and 1", "scores="),
    ),
    Case(
        "predictions of one dataset only",
        'Goals(recall(on="audit")).evaluate(predictions=y, y=y, datasets={"audit": audit})',
        ValueError,
        ("predictions for it are missing", '"audit"', "mapping"),
    ),
]


def table() -> str:
    """Every wrong call with what it raises."""
    lines = []
    for number, case in enumerate(CASES, 1):
        raised = attempt(case.call)
        kind = "nothing raised" if raised is None else type(raised.error).__name__
        lines.append(f"{number:3d}  {case.name}\n     >>> {case.call}\n     {kind}")
        for line in ("" if raised is None else raised.message).strip().splitlines():
            lines.append(indent("\n".join(wrap(line, 90, drop_whitespace=False)), " " * 9))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
