"""A goal that is set: an expression, a sense and a bound, under a label.

What may stand on the two sides is for the expressions to say, see `Expression._as_goal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ratebound.terms import number_text, quoted

if TYPE_CHECKING:
    from ratebound.expressions import Expression, Rate, RatioRate
    from ratebound.families import GroupExtreme, ScoreGap

Sense = Literal["<=", ">="]

FLIPPED: Mapping[Sense, Sense] = {"<=": ">=", ">=": "<="}


@dataclass(frozen=True, eq=False, repr=False)
class Constraint:
    """A goal: an expression on the left, at most or at least what is on the right.

    Written with `<=` and `>=`. Two linear rates compare with each other; everything else compares
    with numbers. Equality is structural: the same sides, sense and label.

    Parameters
    ----------
    left : Rate, RatioRate, GroupExtreme or ScoreGap
    sense : {"<=", ">="}
    right : Rate or float
    label : str
        What reports call the goal; by default its text.
    """

    left: Rate | RatioRate | GroupExtreme | ScoreGap
    sense: Sense
    right: Rate | float
    label: str = ""

    def __post_init__(self) -> None:
        if self.sense not in FLIPPED:
            raise ValueError(f"the sense of a goal is <= or >=, not {self.sense!r}")
        left, sense, right = self.left._as_goal(self.sense, self.right)
        if not isinstance(self.label, str):
            raise TypeError(f"the label of a goal is a string, not {self.label!r}")
        object.__setattr__(self, "left", left)
        object.__setattr__(self, "sense", sense)
        object.__setattr__(self, "right", right)
        object.__setattr__(self, "label", self.label or self.text)

    @property
    def text(self) -> str:
        """The goal as it is written, without its label."""
        right = number_text(self.right) if isinstance(self.right, float) else self.right
        return f"{self.left} {self.sense} {right}"

    def named(self, label: str) -> Constraint:
        """The same goal under another label."""
        if not isinstance(label, str) or not label.strip():
            raise ValueError(f"the label of a goal is a string with something in it, not {label!r}")
        return replace(self, label=label)

    @property
    def datasets(self) -> frozenset[str]:
        """Names of the datasets that are read."""
        return frozenset().union(*(side.datasets for side in self._sides()))

    @property
    def reads_labels(self) -> frozenset[str]:
        """Names of the datasets whose labels are read."""
        return frozenset().union(*(side.reads_labels for side in self._sides()))

    @property
    def reads_baseline(self) -> frozenset[str]:
        """Names of the datasets whose baseline decisions are read."""
        return frozenset().union(*(side.reads_baseline for side in self._sides()))

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The columns that are read, each with its dataset."""
        return frozenset().union(*(side.columns for side in self._sides()))

    def _sides(self) -> tuple[Expression, ...]:
        return (self.left,) if isinstance(self.right, float) else (self.left, self.right)

    def __str__(self) -> str:
        return self.text if self.label == self.text else f"{quoted(self.label)}: {self.text}"

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        # A right side that is a rate does not compare with one that is a number.
        same_type = type(self.right) is type(other.right)
        return same_type and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return self.sense, self.label, self.left, self.right

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self.text} is a goal and neither true nor false by itself: instead of "
            "0.1 <= rate <= 0.3 write between(rate, 0.1, 0.3), and put several goals in a list"
        )

    def _refuse_logic(self, other: object) -> NoReturn:
        raise TypeError(
            "goals are not combined by & or |: all goals of a list hold at once, as in "
            f"[{self.text}, ...]"
        )

    __and__ = __rand__ = __or__ = __ror__ = _refuse_logic
