"""Plain arrays from whatever holds one value a row, and the words that errors about them share."""

from __future__ import annotations

import difflib
import numbers
import operator
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are missing: NaN, None, NA or NaT."""
    gone = np.zeros(len(values), dtype=np.bool_)
    if values.dtype.kind in "fc":
        np.isnan(values, out=gone)
    elif values.dtype.kind in "mM":
        np.isnat(values, out=gone)
    elif values.dtype.kind == "O":
        # NA refuses to say whether it equals itself, so it is told by its type.
        gone[:] = [
            v is None or type(v).__name__ == "NAType" or bool(operator.ne(v, v)) for v in values
        ]
    return gone


def vector(values: Any, what: str, *, ravels: bool = False) -> NDArray[Any]:
    """Return what any array-like, series or list holds as a one-dimensional array."""
    if sp.issparse(values):
        raise TypeError(f"{what} is a sparse matrix; pass a dense array (.toarray().ravel())")
    native: Any = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    try:
        if isinstance(native, nw.Series | nw.DataFrame):
            array: NDArray[Any] = native.to_numpy()
        else:
            array = np.asarray(values)
            if array.dtype.kind in "US" and isinstance(values, list | tuple):
                # NumPy would turn the NaN of ["a", nan] into a third string.
                plain = all(isinstance(v, str | bytes) for v in values)
                array = array if plain else np.array(values, dtype=object)
    except ValueError:
        raise ValueError(f"{what} should be a 1d array; its rows differ in length") from None
    if ravels and array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples, ), for example using ravel().",
            DataConversionWarning,
            stacklevel=2,
        )
        array = array[:, 0]
    if array.ndim != 1:
        kind = type(values).__name__
        hint = ""
        if hasattr(values, "predict"):
            hint = "; pass what it predicts, model.predict(X)"
        elif array.ndim == 2 and what.startswith("probabilities"):
            hint = "; pass the column of the positive label, such as predict_proba(X)[:, 1]"
        elif array.ndim == 2 and what.startswith(("predictions", "baseline")):
            hint = "; pass one class a row, as predict does"
        got = f"a {kind} of shape {array.shape}" if array.ndim else f"a {kind}"
        raise ValueError(f"{what} should be a 1d array, got {got}{hint}")
    # NumPy's own variable-width strings have their own missing values; objects are simpler.
    return array.astype(object) if array.dtype.kind == "T" else array


def distinct_values(values: NDArray[Any], what: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted distinct values, none of them missing, and the position of each row's value."""
    if values.dtype.kind != "O":
        found_values, codes = np.unique(values, return_inverse=True)
        return found_values, codes
    try:
        found = sorted(set(values.tolist()))
    except TypeError:
        kinds = sorted({type(v).__name__ for v in values.tolist()})
        raise ValueError(
            f"{what} mixes values of types {listed(kinds, quote=False)}; use one type "
            "(strings, numbers or booleans)"
        ) from None
    position = {value: index for index, value in enumerate(found)}
    codes = np.fromiter((position[v] for v in values.tolist()), np.intp, count=len(values))
    if found and all(isinstance(v, numbers.Real | np.bool_) for v in found):
        return np.array(found), codes
    return np.array(found, dtype=object), codes


def row_count(thing: Any, what: str) -> int:
    """Count the rows of anything with a shape or a length."""
    if isinstance(nw.from_native(thing, pass_through=True), nw.LazyFrame):
        raise TypeError(f"{what} is a lazy frame, whose rows are not there yet: collect it first")
    if not hasattr(thing, "shape") and hasattr(thing, "__len__") and not isinstance(thing, str):
        return len(thing)
    shape = thing.shape if hasattr(thing, "shape") else np.asarray(thing).shape
    if not shape:
        raise TypeError(
            f"{what} is a {type(thing).__name__}, which has no rows: pass an array or a dataframe"
        )
    return int(shape[0])


def check_features(X: Any) -> None:
    """Raise where X has no rows to speak of, or columns that are no numbers, and name them."""
    row_count(X, "X")
    frame = as_frame(X)
    if frame is None:
        return
    words = [name for name, kind in frame.schema.items() if not _is_number(kind, frame, name)]
    if words:
        example = frame.get_column(words[0]).drop_nulls().head(1).to_list()
        raise ValueError(
            f"X has columns that are no numbers: {listed(words)}"
            + (f" (such as {example[0]!r})" if example else "")
            + "; encode them, with a OneHotEncoder in a Pipeline for example, or take them out of "
            "X and pass them as columns=, where goals find them for by= and where="
        )


def _is_number(kind: Any, frame: nw.DataFrame[Any], name: str) -> bool:
    if kind.is_numeric() or kind == nw.Boolean:
        return True
    if kind.is_temporal():  # NumPy would count nanoseconds
        return False
    # columns of objects, or of categories that are numbers, are as good
    try:
        np.asarray(frame.get_column(name).to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns by name, turned into arrays only when they are read.

    Where two tables have a column of the same name, the first one counts.
    """

    tables: tuple[Any, ...]

    @classmethod
    def of(cls, columns: Any, X: Any, owner: str = "") -> Columns:
        """Return the columns of ``columns`` and, where it is a dataframe, of X."""
        tables: list[Any] = []
        if isinstance(columns, Mapping) or _is_structured(columns):
            tables.append(columns)
        elif columns is not None:
            frame = as_frame(columns)
            if frame is None:
                raise TypeError(
                    f"columns{owner} is a {type(columns).__name__}; pass a dataframe (a lazy one "
                    'collected, a series as a frame) or a mapping such as {"sex": array}'
                )
            tables.append(frame)
        own = as_frame(X)
        return cls((*tables, own) if own is not None else tuple(tables))

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of all columns, each once."""
        return tuple(dict.fromkeys(name for table in self.tables for name in _names_of(table)))

    def get(self, name: Any) -> NDArray[Any]:
        """Return the values of a column that is there."""
        table = next(table for table in self.tables if name in _names_of(table))
        values = table.get_column(name) if isinstance(table, nw.DataFrame) else table[name]
        return vector(values, f"column {quoted(name)}")


def as_frame(thing: Any) -> nw.DataFrame[Any] | None:
    """Return a dataframe of any library as a narwhals one, and None for anything else."""
    try:
        frame = nw.from_native(thing, eager_only=True, pass_through=True)
    except DuplicateError as error:
        raise ValueError(f"a dataframe has two columns of one name; rename one. {error}") from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _is_structured(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) and thing.dtype.names is not None


def _names_of(table: Any) -> tuple[Any, ...]:
    if isinstance(table, nw.DataFrame):
        return tuple(table.columns)
    return tuple(table) if isinstance(table, Mapping) else tuple(table.dtype.names)


def quoted(name: Any) -> str:
    """Write a name in quotes, and anything else as Python does."""
    return f'"{name}"' if isinstance(name, str) else repr(name)


def listed(values: Iterable[Any], *, quote: bool = True) -> str:
    """Write the first ten values, and how many more there are."""
    words = [quoted(value) if quote else str(value) for value in values]
    shown = ", ".join(words[:10])
    return f"{shown} and {len(words) - 10} more" if len(words) > 10 else shown


def alternatives(name: Any, names: Collection[Any]) -> str:
    """Say what there is instead of a name that is unknown, and which is nearest."""
    if not names:
        return " (there are none)"
    nearest = difflib.get_close_matches(str(name), [str(n) for n in names], n=1)
    guess = f"; did you mean {quoted(nearest[0])}?" if nearest else ""
    return f" (there are: {listed(names)}{guess})"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
