"""Rows that are the same: one row with the sum of their weights does as well.

A weight of 2 is the row twice, so rows with the same features in the same cell may be merged before
a solver sees them. Census-like data, with few values a column, shrinks by a quarter and more; the
work of every pass shrinks with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ratebound.rows.base import Floats

Cells = npt.NDArray[np.int32]

WORTHWHILE = 0.9  # share of the rows that may be left for a merged copy to be made
SAMPLE = 4096  # rows on which this is tried first
DENSE_ROWS = 65536  # rows of a dense X hashed at a time

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def merge_rows(X: Any, weight: Floats, cell: Cells) -> tuple[Any, Floats, Cells]:
    """Merge the rows that take part and are equal; rows of cell -1 are left out where any are.

    Parameters
    ----------
    X : (n, d) array or canonical CSR matrix
    weight : (n,)
    cell : (n,), -1 for rows that take no part

    Returns
    -------
    X, weight, cell
        What came in, where merging would leave more than `WORTHWHILE` of the rows.
    """
    distinct = distinct_rows(X, weight, cell)
    if distinct is None:
        return X, weight, cell
    return X[distinct.first], distinct.weight, cell[distinct.first]


class Distinct(NamedTuple):
    """The first of every set of equal rows in the order of the rows, with the weight of the set."""

    first: npt.NDArray[np.intp]
    weight: Floats


def distinct_rows(X: Any, weight: Floats, cell: Cells) -> Distinct | None:
    """The different rows among those that take part; None where merging is not worthwhile."""
    used = np.flatnonzero((cell >= 0) & (weight > 0))
    if len(used) > 4 * SAMPLE:
        sample = used[:SAMPLE]
        kept = len(_representatives(X[sample], cell[sample])[0])
        # a part of the rows shows a smaller share of the repetitions than all of them
        if kept == len(sample):
            return None
    first, group = _representatives(X[used], cell[used])
    if len(first) > WORTHWHILE * X.shape[0]:
        return None
    merged = np.bincount(group, weights=weight[used], minlength=len(first))
    return Distinct(used[first], merged.astype(np.float64))


def _representatives(X: Any, cell: Cells) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The first row of every set of equal rows, in order, and the number of each row's set."""
    hashes = _hashes(X) ^ _mixed(cell.astype(np.uint64), 2)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    # sets are numbered by hash: number them by their first rows, so that rows keep their order
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    first, group = first[order], number[group]
    other = np.flatnonzero(first[group] != np.arange(len(group)))
    alike = cell[other] == cell[first[group[other]]]
    difference = X[other] != X[first[group[other]]]
    if difference.sum() or not alike.all():  # a collision of hashes: once in many lifetimes
        everyone = np.arange(len(cell))
        return everyone, everyone
    return first, group


def _hashes(X: Any) -> npt.NDArray[np.uint64]:
    """A 64-bit hash a row, the sum of one of every entry other than 0."""
    if scipy.sparse.issparse(X):
        X = cast(Any, X)
        entries = _mixed(_bits(X.data), 0) ^ _mixed(X.indices.astype(np.uint64), 1)
        entries = np.where(X.data != 0, _mixed(entries, 2), np.uint64(0))
        sums = np.concatenate([[np.uint64(0)], np.cumsum(entries)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    columns = _mixed(np.arange(X.shape[1], dtype=np.uint64), 1)
    out = np.empty(X.shape[0], dtype=np.uint64)
    for start in range(0, X.shape[0], DENSE_ROWS):
        part = X[start : start + DENSE_ROWS]
        total = np.zeros(len(part), dtype=np.uint64)
        for j, column in enumerate(columns):
            values = np.ascontiguousarray(part[:, j])
            entry = _mixed(_mixed(_bits(values), 0) ^ column, 2)
            total += np.where(values != 0, entry, np.uint64(0))
        out[start : start + DENSE_ROWS] = total
    return out


def _bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)


def _mixed(values: npt.NDArray[np.uint64], which: int) -> npt.NDArray[np.uint64]:
    """Spread 64 bits over 64 bits: multiplication and a shift, twice."""
    mixed = values * np.uint64(_MULTIPLIERS[which])
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(_MULTIPLIERS[which - 1])
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(mixed)
