"""Merged rows: every row's features, cell and weight are there once, in the order of the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ratebound.rows.merge import merge_rows


def weights_by_row(X: Any, weight: Any, cell: Any) -> Counter[tuple[Any, ...]]:
    """The weight of every distinct (cell, features) among the rows that take part, by a loop."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    total: Counter[tuple[Any, ...]] = Counter()
    for row, w, c in zip(dense.tolist(), weight.tolist(), cell.tolist(), strict=True):
        if c >= 0 and w > 0:
            total[(c, *row)] += w
    return total


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=st.integers(0, 1000))
def test_nothing_is_lost(form: Any, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    X = rng.integers(-1, 2, size=(n, int(rng.integers(1, 4)))).astype(dtype)
    X[rng.random(X.shape) < 0.1] = -0.0
    weight = rng.integers(0, 4, n).astype(float)
    cell = rng.integers(-1, 2, n).astype(np.int32)
    merged = merge_rows(form(X), weight, cell)
    assert weights_by_row(*merged) == weights_by_row(X, weight, cell)
    if merged[0].shape[0] < n:
        assert len(weights_by_row(X, weight, cell)) == merged[0].shape[0]
        assert merged[0].dtype == dtype


def test_rows_that_differ_are_left_as_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    cell, weight = np.zeros(20_000, np.int32), np.ones(20_000)
    assert merge_rows(X, weight, cell)[0] is X


def test_repeated_rows_merge_to_the_weighted_rows_in_their_order() -> None:
    X = np.random.default_rng(1).normal(size=(50, 3))
    times = np.arange(50) % 3
    repeated = np.repeat(X, times, axis=0)
    merged, weight, _ = merge_rows(
        repeated, np.ones(len(repeated)), np.zeros(len(repeated), np.int32)
    )
    np.testing.assert_array_equal(merged, X[times > 0])
    np.testing.assert_array_equal(weight, times[times > 0])
