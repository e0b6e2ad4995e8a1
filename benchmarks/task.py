"""A problem as plain arrays, which a process without ratebound can read as well.

Everything that goals read is a share of positive decisions among some rows, so the objective and
the constraints are sums ``coefficient * share(rows)``. Systems that have rates of their own go by
the name of the problem.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

#: Problems about the positive rates of the two groups.
RATIOS = ("ratio", "parity")
#: Threads that a system may use.
THREADS = int(os.environ.get("BENCHMARK_THREADS", "1"))


class Inexpressible(Exception):
    """The system has no way to state this problem; the message says what is missing."""


class Shares(NamedTuple):
    """A sum of coefficients times shares of positive decisions, one a set of rows; a constant."""

    parts: list[tuple[float, np.ndarray]]
    constant: float = 0.0


@dataclass
class Task:
    """Training and test rows of one problem.

    Attributes
    ----------
    problem : {"plain", "ratio", "parity", "recall", "six", "convex", "path"}
    X, X_test : CSR matrices
    y, y_test : arrays of 0 and 1
    men, men_test : bool arrays, the groups
    numbers : the bounds of the problem, by name
    """

    problem: str
    X: Any
    y: np.ndarray
    men: np.ndarray
    X_test: Any
    y_test: np.ndarray
    men_test: np.ndarray
    numbers: dict[str, float] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        arrays = {"y": self.y, "men": self.men, "y_test": self.y_test, "men_test": self.men_test}
        for name, X in (("X", self.X), ("X_test", self.X_test)):
            parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
            arrays |= {f"{name}_{part}": np.asarray(value) for part, value in parts.items()}
        names, values = list(self.numbers), list(self.numbers.values())
        np.savez(path, **arrays, problem=self.problem, names=names, values=values)

    @classmethod
    def read(cls, path: Path) -> Task:
        with np.load(path) as f:

            def matrix(name: str) -> Any:
                parts = tuple(f[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
                return sp.csr_matrix(parts, shape=tuple(f[f"{name}_shape"]))

            numbers = dict(zip(f["names"].tolist(), f["values"].tolist(), strict=True))
            return cls(
                str(f["problem"]), matrix("X"), f["y"], f["men"],
                matrix("X_test"), f["y_test"], f["men_test"], numbers,
            )  # fmt: skip

    @property
    def objective(self) -> Shares:
        positive = self.y == 1
        if self.problem == "recall":
            return Shares([(1.0, ~positive)])
        share = float(np.mean(positive))
        return Shares([(1 - share, ~positive), (-share, positive)], share)

    @property
    def constraints(self) -> list[Shares]:
        """Each at most zero."""
        positive, men, women = self.y == 1, self.men, ~self.men
        everyone = np.ones(len(self.y), dtype=bool)
        numbers = self.numbers
        if self.problem in ("ratio", "convex"):
            kappa = numbers["ratio"]
            return [Shares([(kappa, a), (-1.0, b)]) for a, b in ((men, women), (women, men))]
        if self.problem == "parity":
            return [Shares([(1.0, men), (-1.0, women)])]
        if self.problem == "recall":
            return [Shares([(-1.0, positive)], numbers["recall"])]
        if self.problem == "six":
            gaps = [
                Shares([(1.0, rows & a), (-1.0, rows & b)], -numbers["gap"])
                for rows in (positive, ~positive)
                for a, b in ((men, women), (women, men))
            ]
            return [
                Shares([(-1.0, positive)], numbers["recall"]),
                Shares([(1.0, everyone)], -numbers["coverage"]),
                *gaps,
            ]
        return []


@dataclass
class Answer:
    """Decisions of a fitted classifier, and what its fit counted."""

    train: np.ndarray
    test: np.ndarray
    train_probability: np.ndarray | None = None
    test_probability: np.ndarray | None = None
    counts: dict[str, float] = field(default_factory=dict)
    optimum: float | None = None


def decided(task: Task, model: Any, counts: dict[str, float] | None = None) -> Answer:
    return Answer(model.predict(task.X), model.predict(task.X_test), counts=counts or {})


def of_scores(
    task: Task, coef: np.ndarray, intercept: float, counts: Any, optimum: float | None = None
) -> Answer:
    scores = [np.asarray(X @ coef).ravel() + intercept for X in (task.X, task.X_test)]
    return Answer(*[(z > 0).astype(int) for z in scores], counts=counts, optimum=optimum)


#: A system: takes the task, imports and converts what it needs, and returns what is timed (a fit)
#: and what asks the fitted model for its answer.
System = Callable[[Task], tuple[Callable[[], Any], Callable[[Any], Answer]]]
