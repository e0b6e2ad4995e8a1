"""Rates by group: one rate for each value of a column, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from ratebound.constraints import Sense
from ratebound.expressions import Expression, NoArithmetic, Rate, RatioRate, WithoutGroups
from ratebound.terms import Call, word


def group_columns(by: object) -> tuple[str, ...]:
    """`by` as the user writes it, one column or several, as a tuple of columns."""
    columns: tuple[object, ...] = ()
    if isinstance(by, str):
        columns = (by,)
    # A set has no order, and the order of the columns is the order in the names of the groups.
    elif isinstance(by, Iterable) and not isinstance(by, set | frozenset | Mapping):
        columns = tuple(by)
    if not columns or not all(isinstance(column, str) and column for column in columns):
        raise TypeError(f"by is the name of a column or a list of names, not {by!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice: {by!r}")
    return tuple(map(str, columns))


@dataclass(frozen=True, eq=False, repr=False)
class RatesByGroup(NoArithmetic):
    """One entry of the catalogue once per group: per combination of values of the `by` columns.

    Goals are set through `.min() >=`, `.max() <=`, `.gap() <=` and `.ratio() >=`.

    Parameters
    ----------
    rate : Rate or RatioRate
        One entry of the catalogue, over all the groups.
    by : tuple of str
        The columns.
    allow_empty : bool
        Drop groups without rows, with a warning, where they would be an error.
    """

    rate: Rate | RatioRate
    by: tuple[str, ...]
    allow_empty: bool = False

    def __post_init__(self) -> None:
        columns = group_columns(self.by)
        if not isinstance(self.allow_empty, bool):
            raise TypeError(f"allow_empty is True or False, not {self.allow_empty!r}")
        object.__setattr__(self, "by", columns)
        if not isinstance(self.rate, Rate | RatioRate) or self.rate._call() is None:
            raise ValueError(f"a family is one entry of the catalogue per group, not {self.rate}")

    def _identity(self) -> tuple[Any, ...]:
        return self.rate, self.by, self.allow_empty

    def _rates(self) -> tuple[Rate, ...]:
        return self.rate._rates()

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The columns that are read, each with its dataset."""
        groups = {(dataset, column) for dataset in self.datasets for column in self.by}
        return super().columns | groups

    def __str__(self) -> str:
        call = self.rate._call()
        assert call is not None  # or the family would not have been built
        return call.text(self.by, self.allow_empty)

    def _refuse_arithmetic(self) -> NoReturn:
        raise TypeError(
            f"{self} is one rate per group, so it cannot be part of a sum, a product or an "
            f"objective: set a goal on it, as in {self}.min() >= 0.8, or use the rate without by="
        )

    def _as_goal(self, sense: Sense, right: object) -> NoReturn:
        kind = "min" if sense == ">=" else "max"
        raise TypeError(
            f"{self} is one rate per group: write {self}.{kind}() {sense} {right} to bound each "
            "group, or .gap() <= or .ratio() >= to compare them"
        )

    def __le__(self, other: object) -> NoReturn:
        self._as_goal("<=", other)

    def __ge__(self, other: object) -> NoReturn:
        self._as_goal(">=", other)

    def min(self) -> GroupExtreme:
        """The smallest rate of a group: `.min() >= 0.8` bounds each from below."""
        return GroupExtreme(self, "min")

    def max(self) -> GroupExtreme:
        """The largest rate of a group: `.max() <= 0.2` bounds each from above."""
        return GroupExtreme(self, "max")

    def gap(self) -> GroupExtreme:
        """The largest difference between two groups: `.gap() <= 0.05`."""
        return GroupExtreme(self, "gap")

    def ratio(self) -> GroupExtreme:
        """The smallest ratio of two groups: `.ratio() >= 0.8` is r_a >= 0.8 r_b for every pair."""
        return GroupExtreme(self, "ratio")


_SENSE_OF_KIND: Mapping[str, Sense] = {"min": ">=", "max": "<=", "gap": "<=", "ratio": ">="}
_OTHER_WAY_ROUND = {
    "min": "to bound every group from above write .max() <=",
    "max": "to bound every group from below write .min() >=",
    "gap": "groups can be kept together and not apart: write .gap() <=",
    "ratio": "groups can be kept together and not apart: write .ratio() >=",
}


@dataclass(frozen=True, eq=False, repr=False)
class GroupExtreme(NoArithmetic):
    """The smallest or largest rate of the groups of a family, or their gap or ratio.

    One constraint per group (`min`, `max`) or ordered pair of groups (`gap`, `ratio`), once the
    groups are known. The directions that are constraints on every group: min >=, max <=, gap <=,
    ratio >=.
    """

    family: RatesByGroup
    kind: Literal["min", "max", "gap", "ratio"]

    def __post_init__(self) -> None:
        if not isinstance(self.family, RatesByGroup) or self.kind not in _SENSE_OF_KIND:
            raise TypeError("a group extreme is the min, max, gap or ratio of a rate with by=")
        if self.kind in ("gap", "ratio") and isinstance(self.family.rate, RatioRate):
            raise TypeError(
                f"{self.family} is a ratio in each group, and ratios cannot be compared with each "
                f"other by .{self.kind}(): bound each group by .min() >= or .max() <="
            )

    def _identity(self) -> tuple[Any, ...]:
        return self.family, self.kind

    def _rates(self) -> tuple[Rate, ...]:
        return self.family._rates()

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The columns that are read, each with its dataset."""
        return self.family.columns

    def __str__(self) -> str:
        return f"{self.family}.{self.kind}()"

    def _as_goal(self, sense: Sense, right: object) -> tuple[Expression, Sense, Rate | float]:
        if sense != _SENSE_OF_KIND[self.kind]:
            raise TypeError(
                f"{self} {sense} {right} is not a goal on every group: "
                f"{_OTHER_WAY_ROUND[self.kind]}"
            )
        bound = self._number_on_the_right(right)
        if self.kind == "gap" and bound < 0.0:
            raise ValueError(f"the bound of .gap() is at least 0, not {bound}")
        if self.kind == "ratio" and not 0.0 < bound <= 1.0:
            raise ValueError(
                f"the bound of .ratio() is above 0 and at most 1, not {bound}: it holds for each "
                "pair of groups both ways round"
            )
        return self, sense, bound

    def _refuse_arithmetic(self) -> NoReturn:
        raise TypeError(
            f"{self} cannot be part of a sum, a product or an objective: compare it with a number, "
            f"as in {self} {_SENSE_OF_KIND[self.kind]} 0.8"
        )


SCORE_GAP_FORMS = ("linear", "hinge", "ramp")


@dataclass(frozen=True, eq=False, repr=False)
class ScoreGap(NoArithmetic, WithoutGroups):
    """The largest difference between the mean scores of two groups, for goals `<= c`.

    Zafar et al.'s covariance: with the mean row x̄ of each group, ``|<coef, x̄_a - x̄_b>| <= c`` for
    every pair of groups. It is about scores and not about decisions, so no threshold changes it,
    and its bound is in units of scores.

    Parameters
    ----------
    family : RatesByGroup
        `positive_rate` by group: its dataset, conditions and groups are those compared.
    form : {"linear", "hinge", "ramp"}
        How training holds it, see `score_gap`.
    """

    family: RatesByGroup
    form: str = "linear"

    def __post_init__(self) -> None:
        if not isinstance(self.family, RatesByGroup):
            raise TypeError("a score gap is between the groups of a family")
        if self.form not in SCORE_GAP_FORMS:
            listed = ", ".join(map(repr, SCORE_GAP_FORMS))
            raise ValueError(f"form is one of {listed}, not {self.form!r}")

    def _identity(self) -> tuple[Any, ...]:
        return self.family, self.form

    def _rates(self) -> tuple[Rate, ...]:
        return self.family._rates()

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The columns that are read, each with its dataset."""
        return self.family.columns

    def _call(self) -> Call:
        groups = self.family.rate._call()
        assert groups is not None  # or the family would not have been built
        arguments = () if self.form == "linear" else (("form", word(self.form)),)
        return Call("score_gap", arguments, groups.dataset, groups.where)

    def __str__(self) -> str:
        return self._call().text(self.family.by, self.family.allow_empty)

    def _as_goal(self, sense: Sense, right: object) -> tuple[Expression, Sense, Rate | float]:
        if sense != "<=":
            raise TypeError(
                f"{self} {sense} {right} is no convex goal: scores can be kept together and not "
                f"apart, as in {self} <= 0.1"
            )
        bound = self._number_on_the_right(right)
        if bound < 0.0 or (bound == 0.0 and self.form == "ramp"):
            least = "above 0" if self.form == "ramp" else "at least 0"
            raise ValueError(f"the bound of {self} is {least}, not {bound}")
        return self, sense, bound

    def _refuse_arithmetic(self) -> NoReturn:
        raise TypeError(
            f"{self} is no rate and cannot be part of a sum, a product or an objective: compare "
            f"it with a number, as in {self} <= 0.1"
        )

    def _has_no_groups(self, kind: str) -> NoReturn:
        raise TypeError(f"{self} compares groups already: write {self} <= 0.1 without .{kind}()")
