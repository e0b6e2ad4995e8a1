"""What each bound of a goal costs: one fit a bound, warm-started, with its price.

The sweep of one bound while all other goals stay is the epsilon-constraint frontier of objective
and goal. A goal's price at a bound is the slope of the frontier there, so a table of both says how
far to push a goal, and a price that jumps says where it starts to hurt.

>>> from sklearn.datasets import make_classification
>>> from ratebound import Goals, RateBoundSVC, false_positive_rate, recall
>>> X, y = make_classification(300, n_features=5, flip_y=0.2, random_state=0)
>>> clf = RateBoundSVC(Goals(false_positive_rate(), [recall() >= 0.8]))
>>> swept = frontier(clf, "recall() >= 0.8", [0.7, 0.8, 0.9], X, y)
>>> [point.met for point in swept.points]
[True, True, True]
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ratebound.compile import compile_goals
from ratebound.data.arrays import alternatives, quoted
from ratebound.goals import Goals
from ratebound.paths import Stop, follow
from ratebound.ramp import RampProblem
from ratebound.rates import Constraint
from ratebound.svc import RateBoundSVC

__all__ = ["Frontier", "FrontierPoint", "frontier"]


@dataclass(frozen=True)
class FrontierPoint:
    """The fit at one bound.

    Attributes
    ----------
    bound : float
    objective_strict, objective_expected : float
        What the decisions of ``predict`` and those of the randomized classifier cost.
    strict, expected : float
        The number that the bound is compared with, likewise.
    price : float
        How much the ramp objective falls per unit that the bound is loosened. Where the goal is
        missed though a unit of violation costs V, that V: a lower bound of the price.
    met : bool
        Whether every goal is met, not only this one.
    gap : float
        Certified relative gap of the last convex problem.
    n_iter : int
        Majorization steps.
    estimator : RateBoundSVC
        The fitted classifier, its goals at this bound.
    """

    bound: float
    objective_strict: float
    objective_expected: float
    strict: float
    expected: float
    price: float
    met: bool
    gap: float
    n_iter: int
    estimator: RateBoundSVC


_COLUMNS = (
    ("bound", "bound"),
    ("objective_strict", "objective (strict)"),
    ("objective_expected", "objective (expected)"),
    ("strict", "goal (strict)"),
    ("expected", "goal (expected)"),
    ("price", "price"),
    ("met", "all met"),
)


@dataclass(frozen=True)
class Frontier:
    """Objective against the bound of one goal.

    Attributes
    ----------
    goal : Constraint
        The goal as the estimator had it.
    objective_text : str
    points : tuple of FrontierPoint
        In the order in which bounds were given.
    """

    goal: Constraint
    objective_text: str
    points: tuple[FrontierPoint, ...]

    def __str__(self) -> str:
        header, rows = self._table()
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in [header, *rows]
        ]
        lines.insert(1, "-" * len(lines[0]))
        return "\n".join([self._title, *lines])

    def _repr_html_(self) -> str:
        header, rows = self._table()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        return (
            f"<table><caption>{escape(self._title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    @property
    def _title(self) -> str:
        return f"minimize {self.objective_text}, along the bound of {self.goal}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [[_cell(getattr(p, name)) for name, _ in _COLUMNS] for p in self.points]
        return [title for _, title in _COLUMNS], rows

    def to_frame(self) -> Any:
        """Return the points as a pandas DataFrame, one row per bound."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "Frontier.to_frame needs pandas: pip install pandas; Frontier.points does not"
            ) from error
        names = [*(name for name, _ in _COLUMNS), "gap", "n_iter"]
        rows = [[getattr(point, name) for name in names] for point in self.points]
        return pd.DataFrame(rows, columns=names)

    def plot(self, axes: Any = None) -> Any:
        """Draw objective and price against the bound; hollow where some goal is missed.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional
            For the objective and for the price; new ones, one above the other, by default.

        Returns
        -------
        pair of matplotlib Axes
        """
        if axes is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    'Frontier.plot needs matplotlib: pip install "ratebound[plot]"'
                ) from error
            _, axes = plt.subplots(2, 1, sharex=True, layout="constrained", figsize=(6.4, 6.4))
        above, below = axes
        points = sorted(self.points, key=lambda point: point.bound)
        bounds = np.array([point.bound for point in points])
        met = np.array([point.met for point in points])
        series = (
            (above, "objective_strict", "strict: decisions of predict", "C0", "-"),
            (above, "objective_expected", "expected: randomized decisions", "C1", "--"),
            (below, "price", "price", "C2", "-"),
        )
        for panel, name, label, colour, line in series:
            values = np.array([getattr(point, name) for point in points])
            panel.plot(bounds, values, line, color=colour, label=label)
            for those, face in ((met, colour), (~met, "white")):
                panel.plot(
                    bounds[those], values[those], "o", color=colour, markerfacecolor=face, ms=5
                )
        above.set_ylabel(self.objective_text)
        above.legend()
        below.set_ylabel("price of a unit of the bound")
        below.set_ylim(bottom=0)
        below.set_xlabel(f"bound of {self.goal.left} {self.goal.sense}")
        for panel in (above, below):
            panel.grid(alpha=0.3)
        return above, below


def frontier(
    estimator: RateBoundSVC,
    goal: Constraint | str,
    bounds: Iterable[float],
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    baseline: Any = None,
    columns: Any = None,
    datasets: Any = None,
) -> Frontier:
    """Fit along the bounds of one goal, all other goals as they are.

    From the loosest bound to the tightest, whatever the order in which they are given; the first
    fit is as the estimator says, every later one starts from those before it. So a point may be
    another local optimum than a single fit at its bound finds. Each is certified as any fit, and
    the same bounds give the same frontier.

    Parameters
    ----------
    estimator : RateBoundSVC
        Not changed, and need not be fitted.
    goal : Constraint or str
        One of the estimator's goals, or its label: a rate against a number.
    bounds : iterable of float
    X, y, sample_weight, baseline, columns, datasets
        As in `RateBoundSVC.fit`.

    Returns
    -------
    Frontier
        A missed goal gives no warning here: ``met`` says so, and each point's
        ``estimator.status_`` why.
    """
    if not isinstance(estimator, RateBoundSVC):
        raise TypeError(f"frontier sweeps a RateBoundSVC, not a {type(estimator).__name__}")
    estimator._validate_params()
    chosen = _goal_of(estimator, goal)
    given = [float(bound) for bound in bounds]
    if not given or not all(map(math.isfinite, given)):
        raise ValueError(f"bounds are numbers, at least one; got {given}")
    swept = {bound: _at(estimator, chosen, bound) for bound in given}
    svc = next(iter(swept.values()))
    data, arrays = svc._bound(X, y, sample_weight, baseline, columns, datasets)
    loose_to_tight = sorted(swept, reverse=chosen.sense == "<=")

    stops: list[Stop] = []
    for bound in loose_to_tight:
        rates = compile_goals(swept[bound]._goals(), data)
        if stops:  # the rows and their cells do not depend on the bound
            first = stops[0].problem
            problem = RampProblem.from_rates(
                first.rows, rates.cost, rates.cost_constant, rates.table, rates.offset,
                alpha=first.alpha, multiplier_bound=first.multiplier_bound,
                fit_intercept=first.fit_intercept,
            )  # fmt: skip
        else:
            problem, source = svc._ramp_problem(rates, data, arrays)
        stops.append(Stop(bound, rates, problem))
    points: dict[float, FrontierPoint] = {}
    for stop, solved in zip(stops, follow(svc, stops), strict=False):
        fitted = swept[stop.position]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(svc, name):
                setattr(fitted, name, getattr(svc, name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted._keep(stop.rates, stop.problem, solved, source)
        points[stop.position] = _point(fitted, _place(estimator, chosen), stop.position)
    return Frontier(
        chosen,
        str(svc._goals().minimize),
        tuple(points[bound] for bound in given if bound in points),
    )


def _goal_of(estimator: RateBoundSVC, goal: Constraint | str) -> Constraint:
    """The one of the estimator's goals that is meant."""
    constraints = estimator._goals().subject_to
    for constraint in constraints:
        if goal == constraint or goal in (constraint.label, constraint.text):
            if not isinstance(constraint.right, float):
                raise ValueError(
                    f"{constraint.text} compares two rates and has no bound to sweep: write their "
                    "difference on the left and a number on the right"
                )
            return constraint
    labels = [constraint.label for constraint in constraints]
    name = goal.label if isinstance(goal, Constraint) else str(goal)
    raise ValueError(
        f"the estimator has no goal {quoted(name)}{alternatives(name, labels)}; add it to its goals"
    )


def _place(estimator: RateBoundSVC, goal: Constraint) -> int:
    return estimator._goals().subject_to.index(goal)


def _at(estimator: RateBoundSVC, goal: Constraint, bound: float) -> RateBoundSVC:
    """The estimator, unfitted, with the goal at a bound."""
    goals = estimator._goals()
    label = "" if goal.label == goal.text else goal.label
    moved = replace(goal, right=bound, label=label)
    others = [moved if other is goal else other for other in goals.subject_to]
    at: RateBoundSVC = clone(estimator)
    at.goals = Goals(goals.minimize, others, pos_label=goals.pos_label)
    return at


def _point(fitted: RateBoundSVC, place: int, bound: float) -> FrontierPoint:
    report = fitted.report_
    line = report.goals[place]
    price = line.price if line.price_bound is None else line.price_bound
    return FrontierPoint(
        bound=bound,
        objective_strict=_number(report.objective_strict),
        objective_expected=_number(report.objective_expected),
        strict=_number(line.strict),
        expected=_number(line.expected),
        price=_number(price),
        met=report.met,
        gap=report.certificate.gap if report.certificate is not None else math.nan,
        n_iter=fitted.n_iter_,
        estimator=fitted,
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _cell(value: float | bool) -> str:
    if isinstance(value, bool):
        return "✓" if value else "✗"
    return f"{value:.6g}" if abs(value) >= 5e-4 or value == 0 else f"{value:.1e}"
