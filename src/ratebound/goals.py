"""What to minimise, subject to which constraints: goals, and how any classifier does on them.

Vocabulary: goals are *met* when no constraint is violated by more than 1e-9 in its normalised form
(see :mod:`ratebound.problem`); they are *infeasible* when no classifier whatever can meet them.

>>> from ratebound.rates import error_rate, recall
>>> print(Goals(error_rate(), [recall() >= 0.9, recall(by="country").min() >= 0.8]))
minimize error_rate()
subject to recall() >= 0.9
           recall(by=country).min() >= 0.8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics import make_scorer

from ratebound.compile import MET_TOLERANCE, InfeasibleGoals, compile_goals
from ratebound.data import TRAIN, BoundData, Dataset, bind, missing
from ratebound.data.arrays import Columns, distinct_values, listed, row_count, vector
from ratebound.faces import faces
from ratebound.rates import Constraint, GroupExtreme, Rate, RatesByGroup, RatioRate, error_rate
from ratebound.report import Report, build_report

__all__ = ["Goals", "InfeasibleGoals"]

#: Models that miss the goals score this many ranges of the objective below the worst that meets
#: them, so that in a mean over folds one missed fold is not made up for by the others.
_RANGES_BELOW = 100.0


@dataclass(frozen=True, init=False, repr=False)
class Goals:
    """Minimise a rate subject to constraints on rates.

    Immutable; equal when objective, constraints (in order) and positive label are.

    Parameters
    ----------
    minimize : Rate, default=error_rate()
        A linear rate.
    subject_to : iterable of Constraint
        Pairs made by `between` may stand among them as they are.
    pos_label : str, int, float or bool, optional
        The class called positive; by default the larger of the two.

    Raises
    ------
    InfeasibleGoals
        Two constraints on the same rate contradict each other.
    """

    minimize: Rate
    subject_to: tuple[Constraint, ...]
    pos_label: Any

    def __init__(
        self,
        minimize: Rate | None = None,
        subject_to: Constraint | Iterable[Any] = (),
        pos_label: Any = None,
    ) -> None:
        objective = error_rate() if minimize is None else _checked_objective(minimize)
        constraints = tuple(_flattened(subject_to))
        if not objective.terms and not constraints:
            raise ValueError(
                f"minimize is the number {objective}, and there are no goals, so every classifier "
                "is as good: minimise a rate, such as error_rate(), or set goals"
            )
        _check_labels(constraints)
        _check_bounds(constraints)
        if isinstance(pos_label, np.generic):
            pos_label = pos_label.item()
        if isinstance(pos_label, Constraint | tuple | list):
            raise TypeError(
                f"pos_label is one of the two classes, not {pos_label!r}; several goals go into a "
                "list, as in Goals(error_rate(), [recall() >= 0.9, churn() <= 0.1])"
            )
        object.__setattr__(self, "minimize", objective)
        object.__setattr__(self, "subject_to", constraints)
        object.__setattr__(self, "pos_label", pos_label)

    def __str__(self) -> str:
        lines = [f"minimize {self.minimize}"]
        for i, constraint in enumerate(self.subject_to):
            lines.append(f"{'           ' if i else 'subject to '}{constraint}")
        if self.pos_label is not None:
            lines.append(f"positive label {self.pos_label!r}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        parts = [str(self.minimize)]
        if self.subject_to:
            parts.append(f"subject_to=[{', '.join(map(str, self.subject_to))}]")
        if self.pos_label is not None:
            parts.append(f"pos_label={self.pos_label!r}")
        return f"Goals({', '.join(parts)})"

    @property
    def datasets(self) -> frozenset[str]:
        """Names of the datasets that are read."""
        return self.minimize.datasets.union(*(c.datasets for c in self.subject_to))

    @property
    def reads_labels(self) -> frozenset[str]:
        """Names of the datasets whose labels are read."""
        return self.minimize.reads_labels.union(*(c.reads_labels for c in self.subject_to))

    @property
    def reads_baseline(self) -> frozenset[str]:
        """Names of the datasets whose baseline decisions are read."""
        return self.minimize.reads_baseline.union(*(c.reads_baseline for c in self.subject_to))

    def evaluate(
        self,
        model: Any = None,
        X: Any = None,
        y: Any = None,
        *,
        predictions: Any = None,
        scores: Any = None,
        probabilities: Any = None,
        sample_weight: Any = None,
        baseline: Any = None,
        columns: Any = None,
        datasets: Any = None,
    ) -> Report:
        """Report goal by goal how a classifier does, whoever trained it.

        Exactly one of `model`, `predictions`, `scores` and `probabilities`. Arrays are about
        "train" (in the stacked form, about all rows of X); mappings are by dataset.

        Parameters
        ----------
        model : object with predict, optional
            Called on the X of every dataset that the goals read. Where it has
            `positive_probability`, that fills the expected column.
        X, y, sample_weight, baseline, columns, datasets
            As in the `fit` of ratebound's estimators. X may be left out where no model needs it,
            and both X and y where no goal is on "train".
        predictions : array-like or mapping of dataset to array-like, optional
            Labels.
        scores : likewise, optional
            Positive decisions are those above 0.
        probabilities : likewise, optional
            Probabilities, in [0, 1], of deciding for the positive label. They fill the expected
            column; there are no strict values then.

        Returns
        -------
        Report
        """
        given = {
            "model": model,
            "predictions": predictions,
            "scores": scores,
            "probabilities": probabilities,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise TypeError(
                "evaluate needs exactly one of a model, predictions=, scores= and probabilities=, "
                f"got {' and '.join(named) or 'none'}"
            )
        kind = named[0]
        if kind == "model" and not hasattr(model, "predict"):
            raise TypeError(
                f"a model has predict, and a {type(model).__name__} has not: evaluate(model, X, y)"
                ", or for arrays predictions=, scores= or probabilities="
            )
        data = self._bind(kind, given[kind], X, y, sample_weight, baseline, columns, datasets)
        problem = compile_goals(self, data, attainable=False)
        found = faces(kind, given[kind], problem, isinstance(datasets, str))
        return build_report(problem, strict=found.get("strict"), expected=found.get("expected"))

    def scorer(self) -> Any:
        """Return a scorer for GridSearchCV and the like: higher is better.

        Models that meet every goal score minus the objective. All others score below every
        model that does, the less violated the higher. With scikit-learn's metadata routing
        enabled the scorer asks for `sample_weight`, `baseline`, `columns` and `datasets`; without
        it, it knows X and y only.

        Returns
        -------
        callable
            As made by :func:`sklearn.metrics.make_scorer`.
        """
        scorer = make_scorer(self._score)
        if get_config()["enable_metadata_routing"]:
            scorer.set_score_request(sample_weight=True, baseline=True, columns=True, datasets=True)
        return scorer

    def _score(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sample_weight: Any = None,
        baseline: Any = None,
        columns: Any = None,
        datasets: Any = None,
    ) -> float:
        if isinstance(datasets, Mapping):
            raise TypeError(
                "a scorer sees the predictions for X only, not those for the other datasets: stack "
                "them under X with ratebound.stack and pass the name of the column as datasets="
            )
        if isinstance(datasets, str):
            self._check_fold(columns, datasets)
        data = self._bind(
            "predictions", y_pred, None, y_true, sample_weight, baseline, columns, datasets
        )
        problem = compile_goals(self, data, attainable=False)
        strict = faces("predictions", y_pred, problem, isinstance(datasets, str))["strict"]
        report = build_report(problem, strict=strict)
        objective = problem.objective_value(strict)
        if report.met:
            return -objective
        # The objective over all decisions whatever lies between these two.
        shifts = problem.cost * problem.cell_weight
        worst = problem.cost_constant + float(np.maximum(shifts, 0.0).sum())
        range_ = float(np.abs(shifts).sum()) or 1.0
        violation = float(problem.violations(strict).max())
        return -worst - range_ * (_RANGES_BELOW + violation)

    def _check_fold(self, columns: Any, datasets: str) -> None:
        """Raise where the rows to score, a fold's, are of too few datasets."""
        table = Columns.of(columns, None)
        if datasets not in table.names:
            return  # which says itself what is wrong
        there = set(table.get(datasets).tolist())
        lacking = sorted({TRAIN, *self.datasets} - there)
        if lacking:
            raise ValueError(
                f"no row to score is of dataset {listed(lacking)}: in the stacked form rows lie "
                "dataset by dataset, so shuffle the folds, as in "
                "cv=StratifiedKFold(5, shuffle=True, random_state=0)"
            )

    def _bind(
        self,
        kind: str,
        source: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        baseline: Any,
        columns: Any,
        datasets: Any,
    ) -> BoundData:
        """Bind what was given for an evaluation; without a model X is only a number of rows."""
        if X is None and kind != "model":
            rows = y if y is not None else None if isinstance(source, Mapping) else source
            if rows is None and isinstance(source, Mapping) and TRAIN in source:
                rows = source[TRAIN]
            X = None if rows is None else np.empty((row_count(rows, "y"), 0))
        if X is None and y is not None:
            raise TypeError("evaluate(model) needs X, the rows of y, to call the model on")
        return bind(
            X,
            y,
            sample_weight=sample_weight,
            baseline=baseline,
            columns=columns,
            datasets=datasets,
            pos_label=self.pos_label,
            reads_labels=self.reads_labels,
            reads_baseline=self.reads_baseline,
            used=self.datasets,
            classes=self._classes(kind, source, y, datasets),
        )

    def _classes(self, kind: str, source: Any, y: Any, datasets: Any) -> Any:
        """Return the two classes where y alone does not say them, else None.

        An evaluation may be on rows of one class, or on no training rows at all.
        """
        known = getattr(source, "classes_", None) if kind == "model" else None
        if known is not None and len(known) == 2:
            return known
        if isinstance(datasets, str):
            return None
        sources: list[Any] = [] if y is None else [y]
        if y is not None and len(_distinct(sources)) >= 2:
            return None
        if isinstance(datasets, Mapping):
            for dataset in datasets.values():
                if isinstance(dataset, Dataset):
                    sources += [v for v in (dataset.y, dataset.baseline) if v is not None]
        if kind == "predictions":
            sources += list(source.values()) if isinstance(source, Mapping) else [source]
        if self.pos_label is not None:
            sources.append([self.pos_label])
        found = _distinct(sources)
        if len(found) == 2:
            return found
        if y is not None:
            return None
        raise ValueError(
            f"the two classes cannot be told from what was given ({listed(found) or 'no labels'}): "
            "pass y, the labels of the training rows"
        )


# --- checking goals -------------------------------------------------------------------------------


def _checked_objective(objective: Any) -> Rate:
    if isinstance(objective, Rate):
        return objective
    if isinstance(objective, RatioRate):
        raise TypeError(
            f"{objective} is a ratio and cannot be minimised: minimise a linear rate, such as "
            "error_rate() or cost(fp=, fn=), and set a goal on the ratio"
        )
    if isinstance(objective, (RatesByGroup, GroupExtreme)):
        raise TypeError(
            f"{objective} is a rate per group and cannot be minimised: minimise a linear rate and "
            "set goals on the groups, such as .min() >= or .gap() <="
        )
    if isinstance(objective, Constraint):
        raise TypeError(
            f"{objective} is a constraint: it belongs in subject_to, and minimize takes a rate"
        )
    raise TypeError(f"minimize takes a rate, such as error_rate(), not {objective!r}")


def _flattened(subject_to: Any) -> Iterable[Constraint]:
    """Yield the constraints, with the tuples of `between` opened."""
    if isinstance(subject_to, Constraint):
        yield subject_to
        return
    if isinstance(subject_to, (str, Mapping)) or not isinstance(subject_to, Iterable):
        raise TypeError(_not_a_constraint(subject_to))
    for item in subject_to:
        if isinstance(item, Constraint):
            yield item
        elif isinstance(item, (tuple, list)):
            yield from _flattened(item)
        else:
            raise TypeError(_not_a_constraint(item))


def _not_a_constraint(item: Any) -> str:
    if isinstance(item, (bool, np.bool_)):
        return (
            f"subject_to holds {item!r}, which is not a constraint: == compares; write "
            "between(...) or two inequalities"
        )
    if isinstance(item, str):
        return f"subject_to holds the text {item!r}: write parse_goal({item!r})"
    return (
        f"subject_to holds {item!r}, which is not a constraint: compare a rate with a bound, as in "
        "recall() >= 0.9"
    )


def _check_labels(constraints: tuple[Constraint, ...]) -> None:
    seen: dict[str, Constraint] = {}
    for constraint in constraints:
        other = seen.setdefault(constraint.label, constraint)
        if other is not constraint:
            if other == constraint:
                raise ValueError(f"the goal {constraint.label!r} is there twice: leave one out")
            raise ValueError(
                f"two goals are labelled {constraint.label!r}: {other.text} and {constraint.text}; "
                "give them labels of their own with .named(...)"
            )


def _check_bounds(constraints: tuple[Constraint, ...]) -> None:
    """Raise where a rate is bounded from below by more than it is bounded from above."""
    lower: dict[Any, Constraint] = {}
    upper: dict[Any, Constraint] = {}
    for constraint in constraints:
        if isinstance(constraint.right, Rate):
            continue
        left: Any = constraint.left
        if isinstance(left, GroupExtreme) and left.kind in ("min", "max"):
            left = left.family  # .min() >= 0.8 contradicts .max() <= 0.7
        bound = float(constraint.right)
        side, tighter = (lower, 1.0) if constraint.sense == ">=" else (upper, -1.0)
        if left not in side or tighter * (bound - _bound(side[left])) > 0.0:
            side[left] = constraint
    for left in lower.keys() & upper.keys():
        # Each may be missed by the tolerance of what counts as met.
        if _bound(lower[left]) > _bound(upper[left]) + 2 * MET_TOLERANCE:
            raise InfeasibleGoals(
                f"the goals {str(lower[left])!r} and {str(upper[left])!r} contradict each other"
            )


def _bound(constraint: Constraint) -> float:
    assert not isinstance(constraint.right, Rate)
    return float(constraint.right)


def _distinct(sources: Iterable[Any]) -> list[Any]:
    """Return the distinct values of several arrays, sorted; none of them missing."""
    found: set[Any] = set()
    for source in sources:
        array = vector(source, "labels")
        values, _ = distinct_values(array[~missing(array)], "labels")
        found.update(values.tolist())
    return sorted(found, key=lambda value: (isinstance(value, str), value))
