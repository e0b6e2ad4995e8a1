"""Goals on the census rows of Adult (the a9a encoding): objective, errors, goals and time.

``python -m benchmarks.adult`` prints, for every problem and both rules of the threshold, what the
fit reaches on the training and test rows and its time as a multiple of one
``LinearSVC(loss="hinge", C=2, tol=1e-3)`` fit of the same rows in the same run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ratebound import (
    Goals,
    RateBoundSVC,
    churn,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
    true_positive_rate,
)
from ratebound.datasets import RealData, load

WOMEN, MEN = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))

SIX_GOALS = Goals(
    error_rate(),
    [
        recall() >= 0.6,
        positive_rate() <= 0.25,
        true_positive_rate(by="sex").gap() <= 0.02,
        false_positive_rate(by="sex").gap() <= 0.02,
    ],
)

PROBLEMS: dict[str, Goals] = {
    "no goal": Goals(),
    "ratio 0.5": Goals(error_rate(), [MEN <= WOMEN / 0.5]),
    "ratio 0.8": Goals(error_rate(), [MEN <= WOMEN / 0.8]),
    "ratio 1": Goals(error_rate(), [MEN <= WOMEN]),
    "pairs 0.5": Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.5]),
    "pairs 0.8": Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.8]),
    "pairs 1": Goals(error_rate(), [positive_rate(by="sex").ratio() >= 1.0]),
    "recall 0.9": Goals(false_positive_rate(), [recall() >= 0.9]),
    "six goals": SIX_GOALS,
}


def timed(function: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """The result of the last call, and the median of the seconds that a call takes."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - began)
    return result, median(seconds)


def churn_problem(adult: RealData) -> tuple[Goals, np.ndarray]:
    """At most 1 % of decisions changed against a model of a random fifth, recall as high as its."""
    fifth = np.random.default_rng(0).permutation(len(adult.y))[: len(adult.y) // 5]
    deployed = LogisticRegression(max_iter=1000).fit(adult.X[fifth], adult.y[fifth])
    decided = deployed.predict(adult.X)
    reached = float(np.mean(decided[adult.y == 1] == 1))
    return Goals(error_rate(), [churn() <= 0.01, recall() >= reached]), decided


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--start", default=None, help="RateBoundSVC's start (default: its default)")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    adult = load("adult")
    test = adult.test
    assert test is not None
    _, floor = timed(lambda: LinearSVC(loss="hinge", C=2, tol=1e-3).fit(adult.X, adult.y), 5)
    print(f'one LinearSVC(loss="hinge", C=2, tol=1e-3) fit: {floor:.3f} s')
    with_churn, deployed = churn_problem(adult)
    problems = {**PROBLEMS, "churn 1 %": with_churn}
    header = (
        "problem      threshold  steps newton  ramp obj.  worst exp.  train obj.  worst strict  "
        "test obj. (exp.)  test ratio (exp.)    s      x"
    )
    print(header)
    for name, goals in problems.items():
        if given.only not in name:
            continue
        for threshold in ("zero", "repair"):
            options = {} if given.start is None else {"start": given.start}
            svc = RateBoundSVC(goals, threshold=threshold, **options)
            baseline = deployed if "churn" in name else None

            def fit(svc: RateBoundSVC = svc, baseline: Any = baseline) -> Any:
                return svc.fit(adult.X, adult.y, baseline=baseline, columns=adult.columns)

            fitted, seconds = timed(fit, given.repeats)
            print(row(name, threshold, fitted, test, seconds, seconds / floor))


def row(
    name: str, threshold: str, fitted: Any, test: RealData, seconds: float, times: float
) -> str:
    """One line of the table."""
    report = fitted.report_
    expected = [goal.bound - goal.expected for goal in report.goals]
    signs = [1 if goal.sense == "<=" else -1 for goal in report.goals]
    missed = [-s * room for s, room in zip(signs, expected, strict=True)]
    strict_missed = [-goal.slack for goal in report.goals]
    decisions = fitted.predict(test.X)
    probability = fitted.positive_probability(test.X)
    minimize = Goals(fitted.goals.minimize)
    strict = minimize.evaluate(predictions=decisions, y=test.y).objective_strict
    soft = minimize.evaluate(probabilities=probability, y=test.y).objective_expected
    women = np.asarray(test.columns["sex"] == "Female")
    ratio = np.mean(decisions[~women] == 1) / max(np.mean(decisions[women] == 1), 1e-12)
    soft_ratio = np.mean(probability[~women]) / np.mean(probability[women])
    newton = sum(step.solver_iterations for step in fitted.history_)
    last = fitted.history_[-1]
    return (
        f"{name:12s} {threshold:9s} {fitted.n_iter_:5d} {newton:7d} {last.objective:10.5f} "
        f"{max(missed, default=0):11.1e} {report.objective_strict:11.5f} "
        f"{max(strict_missed, default=0):13.1e} {strict:10.4f} ({soft:.4f}) "
        f"{ratio:9.3f} ({soft_ratio:.3f}) {seconds:8.2f} {times:6.1f}"
    )


if __name__ == "__main__":
    main()
