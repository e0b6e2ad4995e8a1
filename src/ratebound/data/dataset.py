"""Which rows belong to which named dataset, and what was given for each of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ratebound.data.arrays import (
    Columns,
    alternatives,
    distinct_values,
    listed,
    missing,
    plural,
    quoted,
    row_count,
    vector,
)

TRAIN = "train"
DATASET_COLUMN = "dataset"  # of the stacked form, unless users call it otherwise


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows that goals can name: features and what is known about each row.

    Holds what it was given, without copies.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_features)
        Features, in the same columns as the ``X`` of ``fit``.
    y : array-like of shape (n_rows,), optional
        Labels among the classes of training. NaN, None and NA mean that a row has no label.
    sample_weight : array-like of shape (n_rows,), optional
        Nonnegative weights; a weight of 2 is the row twice.
    baseline : array-like of shape (n_rows,), optional
        Class that another classifier (the deployed one, say) gives each row.
    columns : dataframe or mapping of names to arrays, optional
        Columns for ``where=`` and ``by=``. Columns of a dataframe ``X`` serve too.

    Examples
    --------
    >>> import numpy as np
    >>> Dataset(np.zeros((3, 2)), [1, 0, 1], columns={"country": ["FR", "FR", "IT"]})
    Dataset(X: 3 x 2 ndarray, y, columns: country)
    """

    X: Any
    y: Any = None
    _: KW_ONLY
    sample_weight: Any = None
    baseline: Any = None
    columns: Any = None

    def __post_init__(self) -> None:
        read(
            self.X, self.y, self.sample_weight, self.baseline, self.columns, "", " of this Dataset"
        )

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None) or (row_count(self.X, "X"),)
        parts = [f"X: {' x '.join(map(str, shape))} {type(self.X).__name__}"]
        parts += [
            name for name in ("y", "sample_weight", "baseline") if getattr(self, name) is not None
        ]
        if self.columns is not None:
            parts.append(f"columns: {listed(Columns.of(self.columns, None).names, quote=False)}")
        return f"Dataset({', '.join(parts)})"


@dataclass(frozen=True, eq=False)
class NamedRows:
    """The rows of one name: a whole X, or some rows of it in the stacked form.

    ``y``, ``weight`` and ``baseline`` belong to these rows alone, ``columns`` to all of X.
    """

    name: str
    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64]
    baseline: NDArray[Any] | None
    columns: Columns
    rows: NDArray[np.intp] | None = None
    is_stacked: bool = False

    @property
    def owner(self) -> str:
        """Ending that tells in an error which dataset it is about."""
        return "" if self.name == TRAIN else f" of dataset {quoted(self.name)}"

    def first_row(self, where: NDArray[np.bool_]) -> int:
        """Row of X where a condition on these rows holds first."""
        first = int(np.argmax(where))
        return first if self.rows is None else int(self.rows[first])


def read(
    X: Any,
    y: Any,
    sample_weight: Any,
    baseline: Any,
    columns: Any,
    name: str,
    owner: str,
) -> NamedRows:
    """Turn what was given for the rows of X into arrays of the right length."""
    if X is None:
        raise ValueError(f"X{owner} is None; pass the features")
    n_rows = row_count(X, f"X{owner}")
    table = Columns.of(columns, X, owner)
    given = {"y": y, "sample_weight": sample_weight, "baseline": baseline, "columns": columns}
    _check_same_order(X, given, owner)
    if isinstance(columns, Mapping):
        for column in columns:
            _check_length(
                table.get(column),
                n_rows,
                f"column {quoted(column)}{owner}",
                " (splitters of cross-validation cut arrays and dataframes, but not a dict)",
            )
    elif columns is not None:
        _check_length(columns, n_rows, f"columns{owner}")

    def per_row(what: str, values: Any) -> NDArray[Any] | None:
        if values is None:
            return None
        array = vector(values, f"{what}{owner}", ravels=what == "y")
        _check_length(array, n_rows, f"{what}{owner}")
        return array

    weight = per_row("sample_weight", sample_weight)
    return NamedRows(
        name=name,
        X=X,
        y=per_row("y", y),
        weight=np.ones(n_rows) if weight is None else _weights(weight, owner),
        baseline=per_row("baseline", baseline),
        columns=table,
    )


def _check_same_order(X: Any, given: Mapping[str, Any], owner: str) -> None:
    """Warn where indices of pandas say that rows come in another order than those of X.

    Rows belong together by position, as everywhere in scikit-learn; other indices are no matter.
    """
    ours = _index(X)
    if ours is None or not ours.is_unique:
        return
    for what, values in given.items():
        theirs = _index(values)
        if theirs is None or len(theirs) != len(ours) or theirs.equals(ours):
            continue
        if theirs.is_unique and theirs.isin(ours).all():
            warnings.warn(
                f"{what}{owner} has the index of X in another order, and rows are matched by "
                f"position: pass {what}.loc[X.index], or where the order is right "
                f"{what}.set_axis(X.index)",
                UserWarning,
                stacklevel=5,
            )


def _index(values: Any) -> Any | None:
    """The index of a frame or series of pandas (or like it); None of anything else."""
    table = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    return nw.maybe_get_index(table) if isinstance(table, nw.DataFrame | nw.Series) else None


def read_dataset(dataset: Any, name: str) -> NamedRows:
    """Read a Dataset that goals call by a name."""
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"dataset {quoted(name)} is a {type(dataset).__name__}; write Dataset(X, y)"
        )
    return read(
        dataset.X,
        dataset.y,
        dataset.sample_weight,
        dataset.baseline,
        dataset.columns,
        name,
        f" of dataset {quoted(name)}",
    )


def _check_length(values: Any, n_rows: int, what: str, hint: str = "") -> None:
    length = row_count(values, what)
    if length != n_rows:
        raise ValueError(
            f"{what} has {plural(length, 'row')} and X has {n_rows}; pass one entry for each row "
            f"of X{hint}"
        )


def _weights(values: NDArray[Any], owner: str) -> NDArray[np.float64]:
    try:
        weight = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight{owner} must hold numbers") from None
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight{owner} has {weight[row]} in row {row}; weights must be finite and "
            "not negative (0 leaves a row out)"
        )
    return weight


def by_mapping(datasets: Any) -> list[NamedRows]:
    """Rows of the datasets given as a mapping."""
    if datasets is None:
        return []
    if not isinstance(datasets, Mapping):
        raise TypeError(
            f"datasets is a {type(datasets).__name__}; pass a mapping such as "
            '{"audit": Dataset(X, y)}, or the name of the column of columns= that says which '
            "dataset each row of X belongs to"
        )
    found = []
    for name, dataset in datasets.items():
        if not isinstance(name, str) or not name:
            raise TypeError(
                f'datasets has the name {name!r}; names of datasets are strings such as "audit"'
            )
        if name == TRAIN:
            raise ValueError(
                f"datasets has a dataset named {quoted(TRAIN)}, which is reserved for the X, y "
                "of fit; give it another name"
            )
        found.append(read_dataset(dataset, name))
    return found


def by_column(whole: NamedRows, column: str) -> list[NamedRows]:
    """Rows of each dataset that a column of the stacked rows names, those of training first."""
    if column not in whole.columns.names:
        raise ValueError(
            f"datasets={quoted(column)} names a column, and there is none of that name"
            f"{alternatives(column, whole.columns.names)}; pass it in columns= "
            "(ratebound.stack builds X, y and columns)"
        )
    values = whole.columns.get(column)
    lacks = missing(values)
    if lacks.any():
        raise ValueError(
            f"column {quoted(column)} is missing in row {int(np.argmax(lacks))}; it must say of "
            "every row which dataset it belongs to"
        )
    distinct, codes = distinct_values(values, f"column {quoted(column)}")
    names = distinct.tolist()
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"column {quoted(column)} holds {name!r}; names of datasets are strings"
            )
    if TRAIN not in names:
        raise ValueError(
            f"no row has {quoted(TRAIN)} in column {quoted(column)} (it has: {listed(names)}); "
            f"the rows to train on must be named {quoted(TRAIN)}"
        )
    if len(names) == 1:
        return [replace(whole, is_stacked=True)]
    # A stable sort keeps the rows of each dataset in their order.
    order = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    found = [
        replace(
            whole,
            name=name,
            y=None if whole.y is None else whole.y[rows],
            weight=whole.weight[rows],
            baseline=None if whole.baseline is None else whole.baseline[rows],
            rows=rows,
            is_stacked=True,
        )
        for name, rows in zip(names, order, strict=True)
    ]
    return sorted(found, key=lambda named: named.name != TRAIN)
