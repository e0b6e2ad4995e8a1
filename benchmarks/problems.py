"""The problems of the tables: their data, their goals in ratebound's language, and the judge."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.task import Task
from ratebound import (
    Goals,
    Report,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
    true_positive_rate,
)
from ratebound.datasets import load

NUMBERS: dict[str, dict[str, float]] = {
    "plain": {},
    "ratio": {"ratio": 0.8},
    "parity": {"ratio": 1.0},
    "recall": {"recall": 0.9},
    "six": {"recall": 0.6, "coverage": 0.25, "gap": 0.02},
    "convex": {"ratio": 0.8},
    "path": {"ratio": 0.8},
}


def goals_of(problem: str) -> Goals:
    numbers = NUMBERS[problem]
    if problem in ("ratio", "convex", "path"):
        return Goals(error_rate(), [positive_rate(by="sex").ratio() >= numbers["ratio"]])
    if problem == "parity":
        # the paper's one inequality: that both rates are equal to the last row, no cut but one that
        # decides for all or for none will meet
        women, men = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))
        return Goals(error_rate(), [men <= women])
    if problem == "recall":
        return Goals(false_positive_rate(), [recall() >= numbers["recall"]])
    if problem == "six":
        gap = numbers["gap"]
        return Goals(
            error_rate(),
            [
                recall() >= numbers["recall"],
                positive_rate() <= numbers["coverage"],
                true_positive_rate(by="sex").gap() <= gap,
                false_positive_rate(by="sex").gap() <= gap,
            ],
        )
    return Goals(error_rate())


def adult(problem: str, rows: int | None = None) -> Task:
    """The problem on the census rows of Adult, all of them or the first so many."""
    data = load("adult")
    test = data.test
    assert test is not None
    some = slice(rows)
    return Task(
        problem,
        data.X[some],
        (data.y[some] == 1).astype(np.int64),
        np.asarray(data.columns["sex"][some] == "Male"),
        test.X,
        (test.y == 1).astype(np.int64),
        np.asarray(test.columns["sex"] == "Male"),
        NUMBERS[problem],
    )


def columns(men: np.ndarray) -> dict[str, Any]:
    return {"sex": np.where(men, "Male", "Female")}


def judged(task: Task, answer: dict[str, np.ndarray], part: str) -> Report:
    """The goals on the training or test rows; expected values for what decides at random."""
    goals = goals_of(task.problem)
    y, men = (task.y, task.men) if part == "train" else (task.y_test, task.men_test)
    given = {"y": y, "columns": columns(men)}
    if f"{part}_probability" in answer:
        return goals.evaluate(probabilities=answer[f"{part}_probability"], **given)
    return goals.evaluate(predictions=answer[part], **given)
