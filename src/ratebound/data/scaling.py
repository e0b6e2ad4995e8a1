"""A warning for columns of X whose scales are too far apart."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_LARGEST_ENTRY = 1e4
_LARGEST_SPREAD = 1e6
_CHUNK_ENTRIES = 1 << 18


def warn_of_bad_scaling(X: Any, feature_names: Sequence[Any] | None = None) -> None:
    """Warn of columns so badly scaled that one regularisation cannot suit them all.

    A column is named if it has an entry above 1e4 in size, or, where the root mean squares of two
    columns differ by more than a factor of 1e6, if its own is more than 1e3 times larger or
    smaller than that of the middle column. Columns of zeros do not matter.

    Parameters
    ----------
    X : dense array or sparse matrix of shape (n_rows, n_features)
    feature_names : sequence of length n_features, optional
    """
    with np.errstate(over="ignore"):
        largest, mean_square = _column_sizes(X)
    size = np.sqrt(mean_square)
    is_bad = largest > _LARGEST_ENTRY
    nonzero = size > 0
    if nonzero.any() and size[nonzero].max() > _LARGEST_SPREAD * size[nonzero].min():
        middle = np.median(size[nonzero])
        limit = np.sqrt(_LARGEST_SPREAD)
        is_bad |= nonzero & ((size > limit * middle) | (size < middle / limit))
    bad = np.flatnonzero(is_bad)
    if len(bad) == 0:
        return
    names = [f"column {j}" if feature_names is None else str(feature_names[j]) for j in bad[:5]]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    warnings.warn(
        f"badly scaled columns of X: {', '.join(names)}{more} (sizes of columns range from "
        f"{size[nonzero].min():.1g} to {size[nonzero].max():.1g}, the largest entry is "
        f"{largest.max():.1g}); put a StandardScaler or MaxAbsScaler in front, in a Pipeline",
        UserWarning,
        stacklevel=3,
    )


def _column_sizes(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest absolute entry and mean square of each column, read in pieces so as not to copy X."""
    is_sparse: bool = sp.issparse(X)
    n_rows, n_features = X.shape
    largest = np.zeros(n_features)
    squares = np.zeros(n_features)
    if is_sparse:
        entries: Any = X if X.format in ("csr", "csc") else X.tocsr()
        for start in range(0, entries.nnz, _CHUNK_ENTRIES):
            piece = slice(start, start + _CHUNK_ENTRIES)
            values = np.abs(entries.data[piece], dtype=np.float64)
            if entries.format == "csr":
                column = entries.indices[piece]
            else:
                places = np.arange(start, start + len(values))
                column = np.searchsorted(entries.indptr, places, side="right") - 1
            np.maximum.at(largest, column, values)
            squares += np.bincount(column, values**2, minlength=n_features)
    else:
        step = max(1, _CHUNK_ENTRIES // max(1, n_features))
        for start in range(0, n_rows, step):
            values = np.abs(X[start : start + step], dtype=np.float64)
            np.maximum(largest, values.max(axis=0), out=largest)
            squares += np.einsum("ij,ij->j", values, values)
    return largest, squares / max(1, n_rows)
