"""Seven real datasets, each with goals that bind, split anew in every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ratebound import (
    Goals,
    churn,
    error_rate,
    false_negative_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from ratebound.experiments.rows import Rows, all_rows

DEPLOYED_ROWS = 500  # that a deployed model has learned from


@dataclass(frozen=True)
class Case:
    """A dataset and its goals.

    Attributes
    ----------
    name : str
    goals : Goals
    has_deployed : bool
        Whether goals refer to a deployed model: a logistic regression of rows of its own.
    """

    name: str
    goals: Goals
    has_deployed: bool = False

    def split(self, run: int, n_train: int, n_test: int) -> tuple[Rows, Rows]:
        """Draw the training and held-out rows of a run, features scaled by the training rows.

        Two thirds of the rows at most are for training.
        """
        data = all_rows(self.name)
        # text has no numbers of its own to be seeded by
        order = np.random.default_rng([run, *self.name.encode()]).permutation(len(data.y))
        first = DEPLOYED_ROWS if self.has_deployed else 0
        n_train = min(n_train, 2 * (len(order) - first) // 3)
        parts = np.split(order, [first, first + n_train, first + n_train + n_test])[:3]
        X, y = data.X, data.y.astype(np.int64)
        if not sp.issparse(X):
            scaler = StandardScaler().fit(X[parts[1]])
            X = scaler.transform(X)
        deployed = None
        if self.has_deployed:
            deployed = LogisticRegression(max_iter=1000).fit(X[parts[0]], y[parts[0]])
        train, test = (
            Rows(
                X[rows], y[rows], data.columns[rows],
                None if deployed is None else deployed.predict(X[rows]),
            )
            for rows in parts[1:]
        )  # fmt: skip
        return train, test


_BLACK, _WHITE = (
    false_positive_rate(where={"race": race}) for race in ("African-American", "Caucasian")
)

CASES = (
    Case("adult", Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.8])),
    Case("bank", Goals(false_positive_rate(), [recall() >= 0.7])),
    Case("compas", Goals(error_rate(), [_BLACK - _WHITE <= 0.05, _WHITE - _BLACK <= 0.05])),
    Case("elec2", Goals(error_rate(), [churn() <= 0.1, recall() >= 0.65]), has_deployed=True),
    Case(
        "german_credit",
        Goals(error_rate(), [recall() >= 0.7, positive_rate(by="sex").gap() <= 0.05]),
    ),
    Case("mushrooms", Goals(error_rate(), [positive_rate() <= 0.3])),
    Case("w8a", Goals(false_negative_rate(), [precision() >= 0.9])),
)  # fmt: skip


def judge(goals: Goals, decided: NDArray[Any], rows: Rows) -> tuple[float, float]:
    """Objective of decisions for rows, and by how much the worst goal is missed there.

    Missed is in the unit of that goal's bound, 0 where all goals are met.
    """
    report = goals.evaluate(
        predictions=decided, y=rows.y, columns=rows.columns, baseline=rows.baseline
    )
    objective = report.objective_strict
    missed = [-goal.slack for goal in report.goals if not goal.met]
    return (np.nan if objective is None else objective), max(missed, default=0.0)
