"""Large sparse rows: flights with recall and churn goals, advertisements with recall and coverage.

``python -m benchmarks.large_sparse`` prints, for both problems, the time of the convex problems of
a majorization as a multiple of one ``LinearSVC(loss="hinge")`` fit of the labelled rows at the same
regularisation, in the same run; how much work that was; and the peak of memory beyond X. Each
convex problem is certified to a relative gap of 1e-3; flights take five of them, advertisements as
many as it takes until the decrease is below 1e-3. The estimator's own fit, which solves early
problems loosely, is the last column.

``flights`` is fitted on January to June, labelled, and July to September of 2013, unlabelled. A
logistic regression of January to March is taken to be deployed: recall on April to June may be no
worse than its, and decisions on July to September may differ from its on 2 % of the rows.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ratebound import Goals, RateBoundSVC, churn, error_rate, positive_rate, recall
from ratebound.datasets import load
from ratebound.majorize import Majorization
from ratebound.ramp import RampProblem
from ratebound.rows.bent import BentRows
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.base import Solution, Start, Status, Stop
from ratebound.solvers.choice import choose_solver

GAP = 1e-3

Clock = Callable[[], float]


@dataclass(frozen=True)
class Task:
    """Rows, goals, and the plain fit to compare with."""

    name: str
    X: Any
    y: np.ndarray
    data: dict[str, Any]
    goals: Goals
    alpha: float
    steps: int
    floor_rows: np.ndarray
    floor_tol: float

    @property
    def estimator(self) -> RateBoundSVC:
        """The estimator that states the task."""
        return RateBoundSVC(
            self.goals, alpha=self.alpha, tol=GAP, max_iter=self.steps, threshold="zero"
        )

    def fit_floor(self) -> None:
        """One plain SVM of the labelled rows, at the same regularisation."""
        rows, labels = self.X[self.floor_rows], self.y[self.floor_rows]
        C = 2.0 / (self.alpha * len(labels))
        LinearSVC(loss="hinge", C=C, tol=self.floor_tol).fit(rows, labels)


def flights() -> Task:
    """January to June labelled, July to September traffic."""
    data = load("flights13")
    month, known = data.columns["month"], ~np.isnan(data.y)
    first = known & (month <= 3)
    deployed = LogisticRegression(max_iter=1000).fit(data.X[first], data.y[first])
    keep = (known & (month <= 6)) | (month > 6)
    X, month = data.X[keep], month[keep]
    train = month <= 6
    y = np.where(train, np.nan_to_num(data.y[keep]), -1).astype(int)
    decided = deployed.predict(X).astype(int)
    spring = train & (month >= 4)
    reached = float(np.mean(decided[spring & (y == 1)] == 1))
    goals = Goals(
        error_rate(),
        [recall(where={"season": "spring"}) >= reached, churn(on="traffic") <= 0.02],
    )
    columns = {
        "dataset": np.where(train, "train", "traffic"),
        "season": np.where(spring, "spring", "other"),
    }
    more = {"baseline": decided, "columns": columns, "datasets": "dataset"}
    return Task("flights", X, y, more, goals, 1e-5, 5, train, 0.1)


def farm_ads() -> Task:
    """Many more columns than rows."""
    data = load("farm_ads")
    goals = Goals(error_rate(), [recall() >= 0.95, positive_rate() <= 0.52])
    everyone = np.ones(len(data.y), dtype=bool)
    return Task("farm_ads", data.X, data.y, {}, goals, 1 / len(data.y), 50, everyone, 1e-3)


# ---- measuring ---------------------------------------------------------------------------------


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the passes over the entries of X, and products with the few rows that bend."""
    counts: Counter[str] = Counter()
    watched = [
        (MemoryRows, "_compute_scores", "passes"),
        (MemoryRows, "_transpose", "passes"),
        (MemoryRows, "_by_cell", "passes"),
        (BentRows, "product", "products"),
    ]
    before = [getattr(owner, name) for owner, name, _ in watched]

    def wrapped(function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            counts[what] += 1
            return function(*args, **options)

        return call

    for (owner, name, what), function in zip(watched, before, strict=True):
        setattr(owner, name, wrapped(function, what))
    try:
        yield counts
    finally:
        for (owner, name, _), function in zip(watched, before, strict=True):
            setattr(owner, name, function)


@dataclass(frozen=True)
class Tight:
    """A solver that solves every convex problem to the same gap."""

    inner: Any
    solutions: list[Solution]

    def solve(
        self,
        problem: Any,
        tolerance: float,
        start: Start | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Solve to `GAP`, however loosely it was asked for."""
        solution: Solution = self.inner.solve(problem, min(tolerance, GAP), start, stop)
        self.solutions.append(solution)
        return solution


class Timed(RateBoundSVC):
    """The estimator with every convex problem certified to `GAP`."""

    def problem_of(self, task: Task) -> RampProblem:
        """The ramp problem that the estimator would solve."""
        found: list[RampProblem] = []

        def keep(rates: Any, problem: RampProblem) -> Any:
            found.append(problem)
            raise StopIteration

        self._solve = keep  # type: ignore[method-assign]
        with suppress(StopIteration):
            self.fit(task.X, task.y, **task.data)
        return found[0]


def majorize(
    task: Task, solver: str, limit: float, clock: Clock
) -> tuple[list[Solution], float, str]:
    """Solutions of the convex problems, seconds for all, and the choice of the solver."""
    estimator = task.estimator
    problem = Timed(**estimator.get_params()).problem_of(task)
    chosen, why = choose_solver(solver, problem)
    tight = Tight(chosen, [])
    began = clock()
    Majorization(tight, GAP, task.steps).run(problem, deadline=time.monotonic() + limit)
    return tight.solutions, clock() - began, why


def seconds(function: Callable[[], Any], clock: Clock) -> float:
    """Time of a call."""
    began = clock()
    function()
    return clock() - began


def bytes_of(X: Any) -> int:
    """Size of a CSR matrix."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def report(task: Task, solver: str, limit: float, repeats: int, clock: Clock) -> None:
    """Print one row of the table."""
    floor = float(np.median([seconds(task.fit_floor, clock) for _ in range(repeats)]))
    runs = [majorize(task, solver, limit, clock) for _ in range(repeats)]
    solutions, _, why = runs[0]
    spent = float(np.median([run[1] for run in runs]))
    with counted() as counts:
        majorize(task, solver, limit, clock)
    tracemalloc.start()
    majorize(task, solver, limit, clock)
    beyond = tracemalloc.get_traced_memory()[1] / bytes_of(task.X)
    tracemalloc.stop()
    whole = seconds(lambda: task.estimator.fit(task.X, task.y, **task.data), clock)
    unsolved = sum(s.status is not Status.OPTIMAL for s in solutions)
    print(
        f"| {task.name} | {why.partition(':')[0]} | {floor:.2f} | {spent:.2f} | {spent / floor:.2f}"
        f" | {len(solutions)} ({unsolved} unsolved) | {sum(s.iterations for s in solutions)}"
        f" | {counts['products']} | {counts['passes']} | {beyond:.2f} | {whole / floor:.2f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--solvers", nargs="+", default=["auto"], help="names that RateBoundSVC takes"
    )
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a majorization")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="cpu: of all threads, for a busy machine",
    )
    given = parser.parse_args()
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        "| rows | solver | LinearSVC, s | convex problems, s | ratio | convex problems "
        "| iterations | products | passes | peak memory beyond X, in X | whole fit, ratio |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for make in (flights, farm_ads):
        if given.only not in make.__name__:
            continue
        task = make()
        for solver in given.solvers:
            report(task, solver, given.limit, given.repeats, clock)


if __name__ == "__main__":
    main()
