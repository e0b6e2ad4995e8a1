"""Real data files for examples and measurements: found where they lie, or downloaded.

>>> from ratebound.datasets import NAMES
>>> NAMES[:3]
('adult', 'bank', 'compas')

A file is looked for in the folder that the environment variable ``RATEBOUND_DATA`` names, in
``shared/data`` beside a source checkout or above the working directory, and in the user's cache
(``~/.cache/ratebound``). Two datasets can be had from OpenML where there is no file.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.datasets
from numpy.typing import NDArray

from ratebound.data.arrays import distinct_values


@dataclass(frozen=True, eq=False, repr=False)
class RealData:
    """Features, labels and columns of a real dataset.

    Attributes
    ----------
    name : str
    X : CSR matrix or dense array of shape (n_rows, n_features)
        As measured: numbers are not scaled, categories are one-hot.
    y : array of shape (n_rows,)
        +1 and -1; NaN where the label is not known.
    columns : structured array of shape (n_rows,)
        For ``by=`` and ``where=``, and to be read as ``columns["sex"]``.
    feature_names : tuple of str
    test : RealData or None
        Test rows, where the dataset comes with such a split.
    """

    name: str
    X: Any
    y: NDArray[Any]
    columns: NDArray[np.void]
    feature_names: tuple[str, ...]
    test: RealData | None = None

    def __repr__(self) -> str:
        rows, features = self.X.shape
        test = "" if self.test is None else f", test: {self.test.X.shape[0]} rows"
        return (
            f"RealData({self.name}: {rows} rows, {features} features, "
            f"{np.mean(self.y == 1):.1%} positive, columns: "
            f"{', '.join(self.columns.dtype.names or ())}{test})"
        )


def load(name: str, *, download: bool = True) -> RealData:
    """Load a dataset by name from its file or, where there is none, from OpenML.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    download : bool, default True
        Whether to ask OpenML where no file is found.

    Returns
    -------
    RealData
    """
    if name not in _LOADERS:
        nearest = difflib.get_close_matches(str(name), NAMES, n=1)
        guess = f'; did you mean "{nearest[0]}"?' if nearest else ""
        raise ValueError(f'there is no dataset "{name}" (there are: {", ".join(NAMES)}{guess})')
    try:
        return _LOADERS[name]()
    except FileNotFoundError:
        if not (download and name in _DOWNLOADS):
            raise
    return _DOWNLOADS[name]()


def find(file_name: str) -> Path:
    """Return the path of a data file, or say where it was looked for."""
    folders = list(dict.fromkeys(_folders()))
    for folder in folders:
        if (folder / file_name).is_file():
            return folder / file_name
    raise FileNotFoundError(
        f"no file {file_name} in {', '.join(map(str, folders))}; put it there, or set "
        "RATEBOUND_DATA to the folder that has it"
    )


def _folders() -> Iterator[Path]:
    if os.environ.get("RATEBOUND_DATA"):
        yield Path(os.environ["RATEBOUND_DATA"])
    working = Path.cwd()
    for base in (*Path(__file__).resolve().parents, working, *working.parents):
        if (base / "shared" / "data").is_dir():
            yield base / "shared" / "data"
    yield _cache()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ratebound"


# --- LIBSVM text --------------------------------------------------------------------------------

# Attribute: the first of its columns in a9a, counted from 0, and what each of them stands for.
_ADULT_ATTRIBUTES = {
    "sex": (71, ("Female", "Male")),
    "race": (66, ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")),
    "age": (0, ("17-25", "26-32", "33-40", "41-49", "50-90")),
}


def _adult() -> RealData:
    train = _libsvm("a9a.train.libsvm.gz", 123)
    test = _libsvm("a9a.test.libsvm.gz", 123)
    return _adult_of(*train, *test)


def _adult_of(X: Any, y: NDArray[Any], X_test: Any, y_test: NDArray[Any]) -> RealData:
    names = _adult_feature_names()
    test = RealData("adult (test)", X_test, y_test, _adult_columns(X_test), names)
    return RealData("adult", X, y, _adult_columns(X), names, test)


def _adult_columns(X: Any) -> NDArray[np.void]:
    by_column = X.tocsc()
    columns = {}
    for attribute, (first, values) in _ADULT_ATTRIBUTES.items():
        block = by_column[:, first : first + len(values)].toarray()
        columns[attribute] = np.array(values, dtype=object)[np.argmax(block, axis=1)]
    return _records(columns)


def _adult_feature_names() -> tuple[str, ...]:
    try:
        table = _csv("a9a_columns.csv")
    except FileNotFoundError:
        return tuple(f"column {j + 1}" for j in range(123))
    names = []
    for attribute, kind, value, low, high in zip(
        *(table[key] for key in ("attribute", "kind", "value", "low", "high")), strict=True
    ):
        names.append(f"{attribute}={value if kind == 'equals' else f'{low}..{high}'}")
    return tuple(names)


def _libsvm(file_name: str, n_features: int, positive: int = 1) -> tuple[Any, NDArray[Any]]:
    X, y = sklearn.datasets.load_svmlight_file(str(find(file_name)), n_features=n_features)
    # narrow indices are what scikit-learn's own classifiers take
    X = sp.csr_matrix(
        (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
    )
    return X, np.where(y == positive, 1, -1)


def _plain_libsvm(name: str, n_features: int) -> Callable[[], RealData]:
    """Make the loader of a LIBSVM file whose class 1 is positive and that has no columns."""

    def load_it() -> RealData:
        X, y = _libsvm(f"{name}.libsvm.gz", n_features)
        names = tuple(f"column {j + 1}" for j in range(n_features))
        return RealData(name, X, y, np.empty(len(y), dtype=[]), names)

    return load_it


# --- CSV ----------------------------------------------------------------------------------------


def _compas() -> RealData:
    table = _csv("compas_two_years.csv.gz")
    counts = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
    return _tabular(
        "compas",
        table,
        _signs(table["two_year_recid"] == "1"),
        numbers=(*counts, "decile_score", "v_decile_score", "propublica_filter"),
        features=(*counts, "sex", "age_cat", "race", "c_charge_degree"),
    )


def _bank() -> RealData:
    table = _csv("bank_full.csv.gz")
    # The duration of a call is known only after it.
    features = tuple(name for name in table if name not in ("duration", "y"))
    numbers = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
    return _tabular("bank", table, _signs(table["y"] == "yes"), numbers, features)


def _german_credit() -> RealData:
    table = _csv("german_credit.csv.gz")
    features = tuple(name for name in table if name not in ("sex", "credit_risk"))
    numbers = (
        "duration",
        "credit_amount",
        "installment_rate",
        "residence_since",
        "age",
        "existing_credits",
        "num_dependents",
    )
    # Positive is the bad risk.
    return _tabular("german_credit", table, _signs(table["credit_risk"] == "2"), numbers, features)


_ELEC2_FEATURES = ("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")


def _elec2() -> RealData:
    table = _csv("elec2.csv.gz")
    return _tabular("elec2", table, _signs(table["class"] == "1"), _ELEC2_FEATURES, _ELEC2_FEATURES)


def _flights13() -> RealData:
    table = _csv("flights13_jan_sep.csv.gz")
    delay = _numbers(table["arr_delay"])
    # Positive is more than 15 minutes late; a flight that never arrived has no label.
    late = np.where(np.isnan(delay), np.nan, _signs(delay > 15))
    features = tuple(name for name in table if name != "arr_delay")
    X, names = _one_hot(table, features)
    kept = {name: table[name] for name in ("carrier", "origin", "dest")}
    kept |= {name: _numbers(table[name]) for name in ("month", "day", "dep_delay", "arr_delay")}
    return RealData("flights13", X, late, _records(kept), names)


def _tabular(
    name: str,
    table: dict[str, NDArray[Any]],
    y: NDArray[Any],
    numbers: tuple[str, ...],
    features: tuple[str, ...],
) -> RealData:
    """Dense features, numbers first and then categories one-hot, and all columns beside them."""
    columns = {key: _numbers(v) if key in numbers else v for key, v in table.items()}
    measured = tuple(key for key in features if key in numbers)
    one_hot, names = _one_hot(table, tuple(key for key in features if key not in numbers))
    X = np.column_stack([*(columns[key] for key in measured), one_hot.toarray()])
    return RealData(name, X, y, _records(columns), measured + names)


def _csv(file_name: str) -> dict[str, NDArray[Any]]:
    path = find(file_name)
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        header = next(rows)
        columns = (np.array(values, dtype=object) for values in zip(*rows, strict=True))
        return dict(zip(header, columns, strict=True))


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([float(value) if value else np.nan for value in values])


def _signs(is_positive: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(is_positive, 1, -1)


def _one_hot(
    table: dict[str, NDArray[Any]], features: tuple[str, ...]
) -> tuple[sp.csr_matrix, tuple[str, ...]]:
    """One column for each value of each feature; an empty field is a value too."""
    n_rows = len(next(iter(table.values())))
    names: list[str] = []
    places = np.empty((n_rows, len(features)), dtype=np.int32)
    for j, feature in enumerate(features):
        values, codes = distinct_values(table[feature], feature)
        places[:, j] = len(names) + codes
        names += [f"{feature}={value}" for value in values]
    ends = np.arange(0, places.size + 1, max(1, len(features)), dtype=np.int32)
    if not features:
        ends = np.zeros(n_rows + 1, dtype=np.int32)
    X = sp.csr_matrix((np.ones(places.size), places.ravel(), ends), shape=(n_rows, len(names)))
    return X, tuple(names)


def _records(columns: dict[str, NDArray[Any]]) -> NDArray[np.void]:
    n_rows = len(next(iter(columns.values())))
    records = np.empty(n_rows, dtype=[(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        records[name] = values
    return records


# --- OpenML -------------------------------------------------------------------------------------


def _openml(name: str, data_id: int) -> Any:
    try:
        return sklearn.datasets.fetch_openml(
            data_id=data_id, data_home=str(_cache()), as_frame=False, parser="liac-arff"
        )
    except OSError as error:
        raise FileNotFoundError(
            f'dataset "{name}" is not on this machine and could not be had from OpenML '
            f"(data_id={data_id}): {error}. Set RATEBOUND_DATA to a folder that has its files"
        ) from error


def _check_download(name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuse a table of another size or with other numbers of positive rows."""
    if found != expected:
        raise ValueError(
            f'what OpenML has sent for "{name}" is not the dataset meant: rows and positives '
            f"are {found}, expected {expected}; set RATEBOUND_DATA to a folder that has its files"
        )


def _download_adult() -> RealData:
    bunch = _openml("adult", 1430)
    X, y = sp.csr_matrix(bunch.data)[:, :123], _signs(np.asarray(bunch.target, dtype=float) > 0)
    data = _adult_of(X[:32561], y[:32561], X[32561:], y[32561:])
    assert data.test is not None
    men = int(np.sum((data.columns["sex"] == "Male") & (data.y == 1)))
    found = (len(y), int(np.sum(data.y == 1)), int(np.sum(data.test.y == 1)), men)
    _check_download("adult", found, (48842, 7841, 3846, 6662))
    return data


def _download_elec2() -> RealData:
    bunch = _openml("elec2", 151)
    places = [list(bunch.feature_names).index(name) for name in _ELEC2_FEATURES]
    X = np.asarray(bunch.data, dtype=np.float64)[:, places]
    y = _signs(np.asarray(bunch.target) == "UP")
    _check_download("elec2", (len(y), int(np.sum(y == 1))), (45312, 19237))
    columns = _records(dict(zip(_ELEC2_FEATURES, X.T, strict=True)))
    return RealData("elec2", X, y, columns, _ELEC2_FEATURES)


_LOADERS: dict[str, Callable[[], RealData]] = {
    "adult": _adult,
    "bank": _bank,
    "compas": _compas,
    "elec2": _elec2,
    "farm_ads": _plain_libsvm("farm_ads", 54877),
    "flights13": _flights13,
    "german_credit": _german_credit,
    "mushrooms": _plain_libsvm("mushrooms", 112),
    "w8a": _plain_libsvm("w8a", 300),
}
_DOWNLOADS: dict[str, Callable[[], RealData]] = {
    "adult": _download_adult,
    "elec2": _download_elec2,
}

NAMES = tuple(_LOADERS)
"""Names that ``load`` knows."""
