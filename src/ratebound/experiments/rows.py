"""Rows of real data as experiments pass them around, and classifiers fitted to them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ratebound import RateBoundSVC, RateBoundSVCCV
from ratebound.datasets import load


@dataclass(frozen=True)
class Rows:
    """Rows of a dataset, as `RateBoundSVC.fit` and `Goals.evaluate` take them."""

    X: Any
    y: NDArray[Any]
    columns: Any = None
    baseline: NDArray[Any] | None = None

    def __getitem__(self, rows: Any) -> Rows:
        """Return some of the rows, by their places or a slice."""
        columns, baseline = (
            None if values is None else values[rows] for values in (self.columns, self.baseline)
        )
        return Rows(self.X[rows], self.y[rows], columns, baseline)


@cache
def all_rows(name: str) -> Rows:
    """The rows of a dataset, its own test rows after the others."""
    data = load(name)
    if data.test is None:
        return Rows(data.X, data.y, data.columns)
    parts = (data, data.test)
    return Rows(
        sp.vstack([part.X for part in parts], format="csr"),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.columns for part in parts]),
    )


def fit_quietly(svc: RateBoundSVC | RateBoundSVCCV, rows: Rows) -> None:
    """Fit without the warning of goals that are missed, which the records tell of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(rows.X, rows.y, columns=rows.columns, baseline=rows.baseline)
