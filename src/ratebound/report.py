"""Goal by goal: what was asked, what a classifier does, and what each goal costs.

Rates have two faces, under the same two names everywhere: *strict* counts decisions, *expected*
takes the probability of a positive decision (the ramp, for ratebound's own classifiers). A goal is
met when no normalised row of it is violated by more than 1e-9, on the strict values where there
are any. *Slack* is the distance to the bound, positive where there is room. The *price* of a goal
is how much the objective falls per unit that its bound is loosened.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Any
from warnings import warn

import numpy as np

from ratebound.compile import MET_TOLERANCE, CompiledGoal, Floats, RateProblem

__all__ = ["Certificate", "GoalLine", "Report", "build_report"]

_WIDTH = 100
_SIGN = {"<=": "≤", ">=": "≥"}
_UNDEFINED = "undefined (0/0)"
_WHAT_PRICE_MEANS = "price: loosening the bound by 0.01 lowers the objective by about price × 0.01"
_WHAT_V_MEANS = "price ≥ V: missed although a unit of violation costs V"


@dataclass(frozen=True)
class GoalLine:
    """One goal in a report.

    Attributes
    ----------
    label, text : str
        The label is the text unless the goal was named.
    sense : {"<=", ">="}
    bound : float
    strict, expected : float or None
        The number to compare with the bound; NaN where it is 0/0, None where it is not known.
    slack : float
        Distance from the strict value (the expected one where there is none) to the bound.
    price : float or None
    price_bound : float or None
        Set in place of `price` where the goal was missed at this price of violation.
    met : bool
    groups : mapping of str to float
        Of a family, the rate of each group.
    """

    label: str
    text: str
    sense: str
    bound: float
    strict: float | None
    expected: float | None
    slack: float
    price: float | None = None
    price_bound: float | None = None
    met: bool = True
    groups: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def price_text(self) -> str:
        """The price as printed, "≥ V" where it is only known to be at least V."""
        if self.price_bound is not None:
            return f"≥ {self.price_bound:.4g}"
        return "" if self.price is None else _number(self.price)

    @property
    def remark(self) -> str:
        """The text of a goal that is shown by its label, and a family's extreme groups."""
        words = [] if self.label == self.text else [self.text]
        known = {group: rate for group, rate in self.groups.items() if not math.isnan(rate)}
        if known:
            low, high = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
            words.append(f"lowest {low} {_number(known[low])}")
            words.append(f"highest {high} {_number(known[high])}")
        return ", ".join(words)


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum of the last convex problem.

    Attributes
    ----------
    upper, lower : float
    gap : float
        Relative distance between them.
    violation : float
        Largest violation of a goal's convex bound.
    """

    upper: float
    lower: float
    gap: float
    violation: float

    def __str__(self) -> str:
        if math.isfinite(self.lower):
            between = f"between {self.lower:.6g} and {self.upper:.6g}, relative gap {self.gap:.2g}"
        else:
            between = f"at most {self.upper:.6g}, no lower bound known"
        text = f"certificate: optimum of the last convex problem, regulariser included, {between}"
        if self.violation > MET_TOLERANCE:
            text += f", its goals missed by up to {self.violation:.2g}"
        return text


@dataclass(frozen=True)
class Report:
    """What a classifier does about every goal.

    Attributes
    ----------
    objective_text : str
    objective_strict, objective_expected : float or None
    goals : tuple of GoalLine
    certificate : Certificate or None
    status : str
    notes : tuple of str
    """

    objective_text: str
    objective_strict: float | None
    objective_expected: float | None
    goals: tuple[GoalLine, ...] = ()
    certificate: Certificate | None = None
    status: str = ""
    notes: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether every goal is met."""
        return all(goal.met for goal in self.goals)

    def __str__(self) -> str:
        header, rows = self._table()
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(1, len(header))]
        first = max(30, _WIDTH - sum(widths) - 2 * len(widths))
        first = min(first, max(len(row[0]) for row in [header, *rows]))
        remarks = ["", "", *(goal.remark for goal in self.goals)]
        lines: list[str] = []
        for row, remark in zip([header, *rows], remarks, strict=True):
            *before, last = wrap(row[0], first, subsequent_indent="    ") or [""]
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True)]
            lines += [*before, "  ".join([last.ljust(first), *cells]).rstrip()]
            lines += wrap(remark, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        lines.insert(1, "-" * max(map(len, lines)))
        for text in self._below_the_table():
            lines += wrap(text, _WIDTH, subsequent_indent="  ")
        return "\n".join(lines)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows; columns that nobody fills are left out."""
        objective = [
            f"minimize {self.objective_text}",
            "",
            _number(self.objective_strict),
            _number(self.objective_expected),
            "",
            "",
            "",
        ]
        rows = [objective]
        for goal in self.goals:
            rows.append(
                [
                    goal.label,
                    f"{_SIGN[goal.sense]} {_short(goal.bound)}",
                    _number(goal.strict),
                    _number(goal.expected),
                    "" if math.isnan(goal.slack) else _signed(goal.slack),
                    goal.price_text,
                    "✓" if goal.met else "✗",
                ]
            )
        header = ["goal", "bound", "strict", "expected", "slack", "price", "met"]
        filled = [i for i in range(len(header)) if i == 0 or any(row[i] for row in rows)]
        return [header[i] for i in filled], [[row[i] for i in filled] for row in rows]

    def _below_the_table(self) -> list[str]:
        missed = sum(not goal.met for goal in self.goals)
        lines: list[str] = []
        if self.goals:
            count = len(self.goals)
            if missed:
                lines.append(f"{missed} of {count} goals {'is' if missed == 1 else 'are'} not met")
            else:
                lines.append("the goal is met" if count == 1 else f"all {count} goals are met")
        if self.status:
            lines.append(f"status: {self.status}")
        if any(goal.price_text for goal in self.goals):
            lines.append(_WHAT_PRICE_MEANS)
        if any(goal.price_bound is not None for goal in self.goals):
            lines.append(_WHAT_V_MEANS)
        if self.certificate is not None:
            lines.append(str(self.certificate))
        lines += [f"note: {note}" for note in self.notes]
        return lines

    def _repr_html_(self) -> str:
        header, rows = self._table()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        lines = [f"<table><thead><tr>{head}</tr></thead><tbody>"]
        remarks = ["", *(goal.remark for goal in self.goals)]
        for row, remark in zip(rows, remarks, strict=True):
            name = escape(row[0]) + (f"<br><small>{escape(remark)}</small>" if remark else "")
            right = '<td style="text-align: right">'
            cells = "".join(f"{right}{escape(cell)}</td>" for cell in row[1:])
            lines.append(f'<tr><td style="text-align: left">{name}</td>{cells}</tr>')
        lines.append("</tbody></table>")
        lines += [f"<p>{escape(text)}</p>" for text in self._below_the_table()]
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return the goals as a pandas DataFrame, one row per goal."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "Report.to_frame needs pandas: pip install pandas; Report.to_dict does not"
            ) from error
        names = ["label", "text", "sense", "bound", "strict", "expected", "slack", "price"]
        names += ["price_bound", "met"]
        rows = [[getattr(goal, name) for name in names] for goal in self.goals]
        frame = pd.DataFrame(rows, columns=names)
        numbers = names[3:9]
        return frame.astype({**dict.fromkeys(numbers, "float64"), "met": "bool"})

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers; None for what is not a finite number."""
        return {
            "objective": {
                "text": self.objective_text,
                "strict": _finite(self.objective_strict),
                "expected": _finite(self.objective_expected),
            },
            "goals": [
                {
                    "label": goal.label,
                    "text": goal.text,
                    "sense": goal.sense,
                    "bound": _finite(goal.bound),
                    "strict": _finite(goal.strict),
                    "expected": _finite(goal.expected),
                    "slack": _finite(goal.slack),
                    "price": _finite(goal.price),
                    "price_bound": _finite(goal.price_bound),
                    "met": goal.met,
                    "groups": {group: _finite(rate) for group, rate in goal.groups.items()},
                }
                for goal in self.goals
            ],
            "met": self.met,
            "certificate": None
            if self.certificate is None
            else {
                "upper": _finite(self.certificate.upper),
                "lower": _finite(self.certificate.lower),
                "gap": _finite(self.certificate.gap),
                "violation": _finite(self.certificate.violation),
            },
            "status": self.status,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON, the same text for the same report."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def build_report(
    problem: RateProblem,
    *,
    strict: Floats | None = None,
    expected: Floats | None = None,
    prices: Mapping[str, float] | None = None,
    price_bounds: Mapping[str, float] | None = None,
    certificate: Certificate | None = None,
    status: str = "",
    notes: Sequence[str] = (),
) -> Report:
    """Return the report of a problem.

    Parameters
    ----------
    problem : RateProblem
    strict, expected : ndarray of shape (cells,), optional
        P of the decisions, and of the probabilities of a positive decision. At least one.
    prices : mapping of goal label to float, optional
    price_bounds : mapping of goal label to float, optional
        For goals that were missed at the price of violation V: that V, per unit of their bound.
    certificate : Certificate, optional
    status : str
    notes : sequence of str

    Warns
    -----
    UserWarning
        A rate is 0/0: its goal counts as met.
    """
    decided = expected if strict is None else strict
    if decided is None:
        raise ValueError("a report needs strict or expected values of the cells")
    violations = problem.violations(decided)
    undefined: list[str] = []
    lines: list[GoalLine] = []
    for goal in problem.goals:
        value = goal.value(decided)
        undefined += _undefined(goal, decided)
        lines.append(
            GoalLine(
                label=goal.label,
                text=goal.text,
                sense=goal.sense,
                bound=goal.bound,
                strict=None if strict is None else value,
                expected=None if expected is None else goal.value(expected),
                slack=value - goal.bound if goal.sense == ">=" else goal.bound - value,
                price=(prices or {}).get(goal.label),
                price_bound=(price_bounds or {}).get(goal.label),
                met=bool(violations[goal.rows].max(initial=-math.inf) <= MET_TOLERANCE),
                groups=goal.values(decided),
            )
        )
    for text in undefined:
        warn(text, stacklevel=3)
    return Report(
        objective_text=str(problem.objective_text),
        objective_strict=None if strict is None else problem.objective_value(strict),
        objective_expected=None if expected is None else problem.objective_value(expected),
        goals=tuple(lines),
        certificate=certificate,
        status=status,
        notes=(*notes, *undefined),
    )


def _undefined(goal: CompiledGoal, P: Floats) -> list[str]:
    """Say that a rate is 0/0, and in which groups."""
    unknown = np.isnan(goal.rates(P))
    if not unknown.any() and not math.isnan(goal.value(P)):
        return []
    where = ""
    if goal.is_family and unknown.any():
        groups = [goal.groups[i] for i in np.flatnonzero(unknown).tolist()]
        where = f" in {', '.join(groups[:10])}{', ...' if len(groups) > 10 else ''}"
    return [f"{goal.label} is undefined (0/0){where} and counts as met there"]


# --- numbers as printed ---------------------------------------------------------------------------


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if math.isnan(value):
        return _UNDEFINED
    if abs(value) <= MET_TOLERANCE:
        return "0.0000"
    if abs(value) < 5e-4 or (math.isfinite(value) and abs(value) >= 1e4):
        return f"{value:.1e}"
    return f"{value:.4f}"


def _signed(value: float) -> str:
    text = _number(value)
    return text if text.startswith("-") or text == "0.0000" else f"+{text}"


def _short(value: float) -> str:
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
