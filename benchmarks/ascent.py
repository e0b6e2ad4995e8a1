"""Dual coordinate ascent beside LIBLINEAR: time to a relative gap of 1e-3 without goals.

``python -m benchmarks.ascent`` prints, for every dataset, the seconds in which `SDCA` certifies a
gap of 1e-3, and those of ``LinearSVC(loss="hinge")`` on the same rows at C = 2 / (n alpha), which
is the same problem but for its regularised bias: once at the loosest tolerance of a list that
leaves its primal value within 1e-3 of its own optimum (known from a certified solve, so that
LIBLINEAR is given for nothing when to stop), and once with its default tol=1e-4 and max_iter=1000,
with the relative error that this leaves. Times are CPU seconds, everything runs on one core, and
compared are times of the same run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ratebound.datasets import load
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.bias import BiasCuttingPlane
from ratebound.solvers.oracles import Answer, SVMOptimizer
from ratebound.solvers.sdca import SDCA

GAP = 1e-3
TOLERANCES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)
EXPECTED = {"w8a": 0.03, "adult": 0.175, "farm_ads": 0.003, "flights13": 0.097}  # about the optimum
NAMES = ("w8a", "adult", "farm_ads", "flights13")


def labelled(name: str) -> tuple[Any, np.ndarray]:
    """Rows with a label, and the labels."""
    data = load(name)
    known = ~np.isnan(data.y)
    return (data.X, data.y) if known.all() else (data.X[known], data.y[known])


def without_goals(X: Any, y: np.ndarray, fit_intercept: bool = True) -> ConvexProblem:
    """The mean hinge and alpha = 1/n, at the anchor zero."""
    rows = MemoryRows([(X, np.ones(len(y)), (y > 0).astype(np.int32))], 2, threads=1)
    n = len(y)
    problem = RampProblem(
        rows, np.array([[1.0, 0.0], [0.0, 1.0]]) / n, sp.csr_array((0, 4)), np.zeros(0),
        1.0 / n, 1.0, fit_intercept,
    )  # fmt: skip
    return problem.convex_at(np.zeros(X.shape[1]), 0.0)


def ask(oracle: SVMOptimizer, problem: ConvexProblem, gap: float, scale: float) -> Answer:
    """The oracle's answer to an accuracy of gap times scale."""
    return oracle.minimize(problem, np.zeros(0), gap * scale)


def certified(X: Any, y: np.ndarray, oracle: SVMOptimizer, optimum: float) -> Answer:
    """From matrix and labels to a certificate."""
    return ask(oracle, without_goals(X, y), GAP, optimum)


def timed(function: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """The last result, and the median of the seconds a call takes."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        result = function()
        seconds.append(time.process_time() - began)
    return result, median(seconds)


def with_ones(X: Any) -> Any:
    """X with the column that LIBLINEAR gives the bias."""
    if sp.issparse(X):
        return sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    return np.column_stack([X, np.ones(len(X))])


def primal(problem: ConvexProblem, svc: LinearSVC) -> float:
    """Value of a fit in the problem that has the bias among its coefficients."""
    coef = 0.5 * np.append(svc.coef_.ravel(), svc.intercept_)
    return problem.value(coef, problem.rows.hinge_sums(coef, 0.0))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bias", action="store_true", help="time BiasCuttingPlane as well")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        "dataset        rows  columns   SDCA s  passes      gap   LIBLINEAR at 1e-3 s (tol)  ratio"
        "   at its default s  error  ratio"
    )
    for name in given.only:
        X, y = labelled(name)
        other = without_goals(with_ones(X), y, fit_intercept=False)
        best = ask(SDCA(), other, 2e-4, EXPECTED[name]).lower
        optimum = 0.98 * best  # of our problem, whose bias costs nothing, about
        answer, ours = timed(lambda X=X, y=y, o=optimum: certified(X, y, SDCA(), o), given.repeats)

        def fit(tol: float, limit: int, X: Any = X, y: Any = y) -> LinearSVC:
            return LinearSVC(loss="hinge", C=2.0, tol=tol, max_iter=limit, random_state=0).fit(X, y)

        for tol in TOLERANCES:
            svc, theirs = timed(lambda tol=tol: fit(tol, 1_000_000), given.repeats)
            if primal(other, svc) - best <= GAP * best:
                break
        svc, default = timed(lambda: fit(1e-4, 1000), 1)
        print(
            f"{name:10s} {X.shape[0]:8d} {X.shape[1]:8d} {ours:8.3f} {answer.passes:7.0f} "
            f"{(answer.upper - answer.lower) / answer.upper:8.1e} {theirs:18.3f} ({tol:5.0e}) "
            f"{ours / theirs:8.2f} {default:15.3f} {primal(other, svc) / best - 1:8.1e} "
            f"{ours / default:6.2f}",
            flush=True,
        )
        if given.bias:
            for rule in ("center-of-mass", "minimization"):
                slow, seconds = timed(
                    lambda r=rule, X=X, y=y, o=optimum: certified(
                        X, y, BiasCuttingPlane(chooser=r), o
                    ),
                    1,
                )
                print(
                    f"  BiasCuttingPlane, {rule}: {seconds:.2f} s, {slow.passes:.0f} passes, gap "
                    f"{(slow.upper - slow.lower) / slow.upper:.1e}, {seconds / ours:.1f} times"
                )


if __name__ == "__main__":
    main()
