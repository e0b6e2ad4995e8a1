"""What a rate is made of: terms over subsets of rows, and the names that sums of them have.

A term is a share of rows: the weight of the rows in a subset that a classifier puts on one side,
over the weight of all the rows that the share is taken per. The catalogue gives names to sums of
terms; printing goes the other way and finds the names in a normal form. Both read the same tables
here, so that a name cannot mean one thing when it is built and another when it is printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

TRAIN = "train"

Value = str | bool | int | float
Conditions = tuple[tuple[str, tuple[Value, ...]], ...]


@dataclass(frozen=True, slots=True)
class Subset:
    """Rows with this label and this baseline decision, as a share `per` some larger set of rows.

    Parameters
    ----------
    label, baseline : {"", "+", "-"}
        The label, and the decision of the baseline classifier; "" is either.
    per : {"rows", "labelled", "positives", "negatives"}
        The rows that satisfy `where` and that the share is taken of: all of them, those with a
        label, those with a positive label, those with a negative one.
    where : tuple of (column, values)
        Each column holds one of its values. Sorted by column, values deduplicated and sorted.
    """

    label: str = ""
    baseline: str = ""
    per: str = "rows"
    where: Conditions = ()

    def __post_init__(self) -> None:
        if self.label not in SIDES_OR_ANY or self.baseline not in SIDES_OR_ANY:
            raise ValueError(
                f"label and baseline are '+', '-' or '', not {self.label!r} and {self.baseline!r}"
            )
        if self.per not in PER:
            raise ValueError(f"per is one of {', '.join(PER)}, not {self.per!r}")

    def within(self, where: Conditions) -> Subset:
        """The subset of these rows that satisfies `where` as well."""
        return replace(self, where=intersect(self.where, where))


class Term(NamedTuple):
    """The share of a subset of a dataset that is decided `side`, "+" or "-".

    Its value is the weight of the rows in (where, per, label, baseline) that are decided `side`,
    over the weight of the rows in (where, per).
    """

    dataset: str
    subset: Subset
    side: str


SIDES_OR_ANY = ("", "+", "-")
PER = ("rows", "labelled", "positives", "negatives")


class Outcome(NamedTuple):
    """A term without its dataset and conditions: what the entries of the catalogue sum."""

    label: str
    baseline: str
    per: str
    side: str


FALSE_POSITIVE = Outcome("-", "", "labelled", "+")
FALSE_NEGATIVE = Outcome("+", "", "labelled", "-")
TRUE_POSITIVE = Outcome("+", "", "labelled", "+")
TRUE_NEGATIVE = Outcome("-", "", "labelled", "-")

COST_ARGUMENTS: Mapping[str, Outcome] = {
    "fp": FALSE_POSITIVE,
    "fn": FALSE_NEGATIVE,
    "tp": TRUE_POSITIVE,
    "tn": TRUE_NEGATIVE,
}

# No outcome stands under two names, so a normal form has one reading.
LINEAR_ENTRIES: Mapping[str, tuple[Outcome, ...]] = {
    "error_rate": (FALSE_POSITIVE, FALSE_NEGATIVE),
    "accuracy": (TRUE_POSITIVE, TRUE_NEGATIVE),
    "positive_rate": (Outcome("", "", "rows", "+"),),
    "negative_rate": (Outcome("", "", "rows", "-"),),
    "recall": (Outcome("+", "", "positives", "+"),),
    "false_negative_rate": (Outcome("+", "", "positives", "-"),),
    "specificity": (Outcome("-", "", "negatives", "-"),),
    "false_positive_rate": (Outcome("-", "", "negatives", "+"),),
    "churn": (Outcome("", "-", "rows", "+"), Outcome("", "+", "rows", "-")),
    "win_rate": (Outcome("+", "-", "labelled", "+"), Outcome("-", "+", "labelled", "-")),
    "loss_rate": (Outcome("+", "+", "labelled", "-"), Outcome("-", "-", "labelled", "+")),
}

RATIO_ENTRIES: Mapping[str, tuple[tuple[Outcome, ...], tuple[Outcome, ...]]] = {
    "precision": ((TRUE_POSITIVE,), (TRUE_POSITIVE, FALSE_POSITIVE)),
    "false_discovery_rate": ((FALSE_POSITIVE,), (TRUE_POSITIVE, FALSE_POSITIVE)),
    "negative_predictive_value": ((TRUE_NEGATIVE,), (TRUE_NEGATIVE, FALSE_NEGATIVE)),
    "win_loss_ratio": (LINEAR_ENTRIES["win_rate"], LINEAR_ENTRIES["loss_rate"]),
    "win_change_ratio": (
        LINEAR_ENTRIES["win_rate"],
        LINEAR_ENTRIES["win_rate"] + LINEAR_ENTRIES["loss_rate"],
    ),
}


def f_score_outcomes(beta: float) -> tuple[dict[Outcome, float], dict[Outcome, float]]:
    """Numerator and denominator of (1 + b²) TP / ((1 + b²) TP + b² FN + FP)."""
    hits = {TRUE_POSITIVE: 1.0 + beta * beta}
    return hits, {**hits, FALSE_NEGATIVE: beta * beta, FALSE_POSITIVE: 1.0}


def outcome_term(outcome: Outcome, dataset: str, where: Conditions) -> Term:
    """The outcome on the rows of a dataset that satisfy `where`."""
    subset = Subset(outcome.label, outcome.baseline, outcome.per, where)
    return Term(dataset, subset, outcome.side)


# --- conditions ---------------------------------------------------------------------------------


def conditions(where: Mapping[str, Any] | None) -> Conditions:
    """`where` as the user writes it, in the one order that equal conditions share."""
    if where is None:
        return ()
    if not isinstance(where, Mapping):
        raise TypeError(
            f'where is a mapping of column to value, as in where={{"sex": "Female"}}; got {where!r}'
        )
    for column in where:
        if not isinstance(column, str):
            raise TypeError(f"columns in where are named by strings, not {column!r}")
    return tuple((str(column), _values(column, where[column])) for column in sorted(where))


def intersect(first: Conditions, second: Conditions) -> Conditions:
    """Both conditions at once; values that contradict each other leave an empty list of values."""
    both = dict(first)
    for column, values in second:
        kept = both.get(column)
        both[column] = values if kept is None else tuple(v for v in kept if v in values)
    return tuple(sorted(both.items()))


def conditions_order(where: Conditions) -> tuple[Any, ...]:
    """A sort key; numbers and strings do not compare with each other."""
    return tuple((column, tuple(map(_value_order, values))) for column, values in where)


def _values(column: str, given: Any) -> tuple[Value, ...]:
    scalar = isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable)
    if not scalar and getattr(given, "shape", None) == ():  # a NumPy array that holds one value
        scalar = True
    values = sorted((_value(column, v) for v in ([given] if scalar else given)), key=_value_order)
    return tuple(dict.fromkeys(values))


def _value(column: str, value: Any) -> Value:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        number = float(value)
        # 1.0 and 1 select the same rows and compare equal, so they should print alike.
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if _is_missing(value):
        raise ValueError(
            f"where {column!r} is missing ({value!r}) cannot be selected: fill the missing values "
            "of the column with a value of their own, and name that"
        )
    raise TypeError(
        f"where {column!r} takes strings, numbers, booleans, or a list of them, not {value!r}; "
        "for dates and the like give the column and the value as text"
    )


def _is_missing(value: Any) -> bool:
    # pandas' NA answers no comparison, not even with itself, so it is known by its type.
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, Real) and math.isnan(value))
    )


def _value_order(value: Value) -> tuple[bool, Value, str]:
    return isinstance(value, str), value, type(value).__name__


# --- words --------------------------------------------------------------------------------------

BARE_WORD = re.compile(r"[^\W\d]\w*")
READ_AS_SOMETHING_ELSE = frozenset({"true", "false", "none", "null", "nan", "inf", "infinity"})


def quoted(text: str) -> str:
    """`text` in double quotes; what would not survive a terminal or a file is escaped."""
    return '"' + "".join(_escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    return short or f"\\U{ord(character):08x}"


def word(text: str) -> str:
    """`text` as it stands where it can be read as nothing else, quoted where it could."""
    bare = BARE_WORD.fullmatch(text) and text.isidentifier()
    return text if bare and text.lower() not in READ_AS_SOMETHING_ELSE else quoted(text)


def number_text(number: float) -> str:
    """The shortest text that reads back as this number, whole numbers without a point."""
    return repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def value_text(value: Value) -> str:
    """A value of a column: strings are words, and what looks like a number is one."""
    return word(value) if isinstance(value, str) else repr(value)


def list_text(words: Iterable[str]) -> str:
    """One word by itself, any other number of them in brackets."""
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"


def where_text(where: Conditions) -> str:
    """Conditions as they are written after `where=`."""
    inside = (f"{word(column)}: {list_text(map(value_text, values))}" for column, values in where)
    return "{" + ", ".join(inside) + "}"


# --- from normal forms to names -----------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One entry of the catalogue with its arguments, as it is printed."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    dataset: str
    where: Conditions

    def text(self, by: tuple[str, ...] = (), allow_empty: bool = False) -> str:
        """The call as it is written; `by` makes a family of it."""
        arguments = [f"{name}={text}" for name, text in self.arguments]
        if self.dataset != TRAIN:
            arguments.append(f"on={word(self.dataset)}")
        if self.where:
            arguments.append(f"where={where_text(self.where)}")
        if by:
            arguments.append(f"by={list_text(map(word, by))}")
        if allow_empty:
            arguments.append("allow_empty=True")
        return f"{self.name}({', '.join(arguments)})"


def find_calls(terms: Mapping[Term, float]) -> list[tuple[float, Call]]:
    """A sum of terms as a sum of coefficients times entries of the catalogue."""
    found = []
    for (dataset, where), outcomes in _by_place(terms).items():
        for coefficient, name, arguments in _name_outcomes(outcomes):
            found.append((coefficient, Call(name, arguments, dataset, where)))
    return found


def find_single_call(terms: Mapping[Term, float], constant: float) -> Call | None:
    """The entry of the catalogue that a linear rate is, if it is just one."""
    calls = find_calls(terms)
    if constant == 0.0 and len(calls) == 1 and calls[0][0] == 1.0:
        return calls[0][1]
    places = _by_place(terms)
    if constant == 0.0 and len(places) == 1:
        [((dataset, where), outcomes)] = places.items()
        if outcomes.keys() <= set(COST_ARGUMENTS.values()):
            return Call("cost", _cost_arguments(outcomes), dataset, where)
    return None


def find_ratio_call(
    numerator: Mapping[Term, float], denominator: Mapping[Term, float]
) -> Call | None:
    """The entry of the catalogue that a ratio without constants is, if it is one."""
    above, below = _by_place(numerator), _by_place(denominator)
    if len(above) != 1 or above.keys() != below.keys():
        return None
    [((dataset, where), over)] = above.items()
    under = below[dataset, where]
    for name, (some, of) in RATIO_ENTRIES.items():
        if over == dict.fromkeys(some, 1.0) and under == dict.fromkeys(of, 1.0):
            return Call(name, (), dataset, where)
    # The root of a correctly rounded square is the number itself: beta comes back exactly.
    beta = math.sqrt(abs(under.get(FALSE_NEGATIVE, 0.0)))
    if (over, under) == f_score_outcomes(beta):
        arguments = () if beta == 1.0 else (("beta", number_text(beta)),)
        return Call("f_score", arguments, dataset, where)
    return None


def sum_text(terms: Mapping[Term, float], constant: float) -> str:
    """A linear rate as it is written: what is added first, what is subtracted after it."""
    calls = sorted(find_calls(terms), key=lambda found: found[0] < 0)
    parts = [
        (c < 0, call.text() if abs(c) == 1.0 else f"{number_text(abs(c))} * {call.text()}")
        for c, call in calls
    ]
    if constant or not parts:
        part = (constant < 0, number_text(abs(constant)))
        leads = bool(parts) and parts[0][0] and constant > 0
        parts.insert(0 if leads else len(parts), part)
    (negative, first), *rest = parts
    return (
        ("-" if negative else "")
        + first
        + "".join(f" {'-' if negative else '+'} {text}" for negative, text in rest)
    )


def term_order(term: Term) -> tuple[Any, ...]:
    """The order terms are kept in: the training data first, then datasets by name."""
    dataset, subset, side = term
    outcome = (subset.per, subset.label, subset.baseline, side)
    return dataset != TRAIN, dataset, conditions_order(subset.where), outcome


def _by_place(
    terms: Mapping[Term, float],
) -> dict[tuple[str, Conditions], dict[Outcome, float]]:
    places: dict[tuple[str, Conditions], dict[Outcome, float]] = {}
    for (dataset, subset, side), coefficient in terms.items():
        outcome = Outcome(subset.label, subset.baseline, subset.per, side)
        places.setdefault((dataset, subset.where), {})[outcome] = coefficient
    return places


def _name_outcomes(
    outcomes: Mapping[Outcome, float],
) -> list[tuple[float, str, tuple[tuple[str, str], ...]]]:
    left = dict(outcomes)
    found: list[tuple[float, str, tuple[tuple[str, str], ...]]] = []
    fp, fn, tp, tn = (left.get(outcome) for outcome in COST_ARGUMENTS.values())
    if fp != fn or tp != tn:
        found.append((1.0, "cost", _cost_arguments(left)))
        for outcome in COST_ARGUMENTS.values():
            left.pop(outcome, None)
    for name, entry in LINEAR_ENTRIES.items():
        coefficients = {left.get(outcome) for outcome in entry}
        coefficient = coefficients.pop()
        if coefficient is not None and not coefficients:
            found.append((coefficient, name, ()))
            for outcome in entry:
                del left[outcome]
    for outcome, coefficient in left.items():
        arguments = zip(Outcome._fields, outcome, strict=True)
        found.append((coefficient, "share", tuple((k, word(v)) for k, v in arguments if v)))
    return found


def _cost_arguments(outcomes: Mapping[Outcome, float]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, number_text(outcomes[outcome]))
        for name, outcome in COST_ARGUMENTS.items()
        if outcome in outcomes
    )
