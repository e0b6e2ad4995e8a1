"""What a classifier says of the rows of data: decisions, probabilities, scores, as sums by cell.

Any classifier can be asked, whoever trained it: its *strict* face counts decisions, its *expected*
face takes probabilities of a positive decision. A goal on a score gap reads scores besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratebound.compile import Floats, RateProblem
from ratebound.data import TRAIN, BoundData, missing
from ratebound.data.arrays import alternatives, distinct_values, listed, quoted, row_count, vector


def faces(kind: str, source: Any, problem: RateProblem, stacked: bool) -> dict[str, Floats]:
    """Return P of the strict and the expected face, whichever the source knows."""
    decided = _decided_faces(kind, source, problem, stacked)
    if not problem.score_gaps:
        return decided
    goal = next(goal for goal in problem.goals if goal.kind == "score gap")
    if kind == "scores":
        values = _by_dataset(kind, source, problem, stacked)
    elif kind == "model" and hasattr(source, "decision_function"):
        values = _answers(source.decision_function, problem)
    else:
        what = "a model without decision_function tells" if kind == "model" else f"{kind} tell"
        raise TypeError(
            f"the goal {goal.label!r} is about scores, of which {what} nothing: pass scores= or a "
            "model that has decision_function"
        )
    scores = {name: array.astype(np.float64) for name, array in values.items()}
    return {face: problem.with_score_gaps(P, scores) for face, P in decided.items()}


def _decided_faces(
    kind: str, source: Any, problem: RateProblem, stacked: bool
) -> dict[str, Floats]:
    if kind == "model":
        faces = {"strict": _positives("predictions", _answers(source.predict, problem), problem)}
        if hasattr(source, "positive_probability"):
            answers = _answers(source.positive_probability, problem)
            faces["expected"] = _positives("probabilities", answers, problem)
        return faces
    values = _by_dataset(kind, source, problem, stacked)
    face = "expected" if kind == "probabilities" else "strict"
    return {face: _positives(kind, values, problem)}


def _answers(method: Any, problem: RateProblem) -> dict[str, NDArray[Any]]:
    """Call the model once per X; return its answers by dataset."""
    answers: dict[int, NDArray[Any]] = {}
    values: dict[str, NDArray[Any]] = {}
    for name in problem.reads:
        dataset = problem.data.datasets[name]
        if dataset.block not in answers:
            X = problem.data.blocks[dataset.block]
            what = f"{method.__name__} on dataset {quoted(name)}"
            answer = vector(method(X), what)
            _check_length(answer, row_count(X, "X"), what)
            answers[dataset.block] = answer
        answer = answers[dataset.block]
        values[name] = answer if dataset.rows is None else answer[dataset.rows]
    return values


def _by_dataset(
    kind: str, source: Any, problem: RateProblem, stacked: bool
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a source by dataset, those that the goals read."""
    datasets = problem.data.datasets
    if stacked and not isinstance(source, Mapping):
        whole = vector(source, kind)
        _check_length(whole, row_count(problem.data.blocks[0], "X"), kind)
        return {name: whole[datasets[name].rows] for name in problem.reads}
    by_name = dict(source) if isinstance(source, Mapping) else {TRAIN: source}
    for name in by_name:
        if name not in datasets:
            raise ValueError(
                f"{kind} are given for dataset {quoted(name)}, which does not exist"
                f"{alternatives(name, list(datasets))}"
            )
    values: dict[str, NDArray[Any]] = {}
    for name in problem.reads:
        if name not in by_name:
            raise ValueError(
                f"a goal is on dataset {quoted(name)}, and {kind} for it are missing: pass a "
                f"mapping, {kind}={{{', '.join(f'{quoted(n)}: ...' for n in problem.reads)}}}"
            )
        what = f"{kind} of dataset {quoted(name)}"
        values[name] = vector(by_name[name], what)
        _check_length(values[name], datasets[name].n_rows, what)
    return values


def _positives(kind: str, values: Mapping[str, NDArray[Any]], problem: RateProblem) -> Floats:
    data = problem.data
    decided: dict[str, Floats] = {}
    for name, array in values.items():
        what = f"{kind} of dataset {quoted(name)}"
        lacks = missing(array)
        if lacks.any():
            raise ValueError(f"{what}: row {int(lacks.argmax())} is NaN or missing")
        if kind == "predictions":
            decided[name] = _decisions(array, what, data)
            continue
        try:
            numbers = array.astype(np.float64)
        except (TypeError, ValueError):
            example = array.tolist()[0]
            raise TypeError(f"{what} must be numbers, not such as {example!r}") from None
        if kind == "scores":
            decided[name] = (numbers > 0.0).astype(np.float64)
        else:
            outside = (numbers < 0.0) | (numbers > 1.0)
            if outside.any():
                row = int(outside.argmax())
                raise ValueError(
                    f"{what} must be between 0 and 1, and row {row} is {numbers[row]:g}; scores "
                    "around 0 go into scores="
                )
            decided[name] = numbers
    return problem.positives_by_dataset(decided)


def _decisions(predictions: NDArray[Any], what: str, data: BoundData) -> Floats:
    found, codes = distinct_values(predictions, what)
    classes = data.classes.tolist()
    strangers = [value for value in found.tolist() if value not in classes]
    if strangers:
        raise ValueError(
            f"{what} hold {listed(strangers)}, and the classes are {listed(classes)}; real numbers "
            "go into scores= or probabilities="
        )
    positive = np.array([float(value == data.pos_label) for value in found.tolist()])
    return positive[codes]


def _check_length(values: NDArray[Any], n_rows: int, what: str) -> None:
    if len(values) != n_rows:
        raise ValueError(f"{what}: {len(values)} values for {n_rows} rows")
