"""The expressions of the language: linear rates and their ratios.

A linear rate is one immutable normal form, `{term: coefficient} + constant`, merged on every
operation. Equality is that of normal forms, whatever the order they were built in. Whatever has
no meaning as a goal raises where it is written, and the error says what to write instead.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, TypeGuard, TypeVar, cast

from ratebound.constraints import FLIPPED, Constraint, Sense
from ratebound.terms import (
    Call,
    Term,
    conditions,
    find_ratio_call,
    find_single_call,
    number_text,
    sum_text,
    term_order,
)


class Expression(ABC):
    """What may stand on the left of a goal."""

    # NumPy then leaves `numpy.float64(0.9) <= rate` to the rate instead of trying it elementwise.
    __array_ufunc__: ClassVar[None] = None

    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """What makes two expressions of one type equal."""

    @abstractmethod
    def _rates(self) -> tuple[Rate, ...]:
        """The linear rates inside."""

    @property
    def datasets(self) -> frozenset[str]:
        """Names of the datasets that are read."""
        return frozenset(term.dataset for rate in self._rates() for term in rate.terms)

    @property
    def reads_labels(self) -> frozenset[str]:
        """Names of the datasets whose labels are read."""
        return frozenset(
            term.dataset
            for rate in self._rates()
            for term in rate.terms
            if term.subset.label or term.subset.per != "rows"
        )

    @property
    def reads_baseline(self) -> frozenset[str]:
        """Names of the datasets whose baseline decisions are read."""
        return frozenset(
            term.dataset for rate in self._rates() for term in rate.terms if term.subset.baseline
        )

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The columns that are read, each with its dataset."""
        return frozenset(
            (term.dataset, column)
            for rate in self._rates()
            for term in rate.terms
            for column, _ in term.subset.where
        )

    def _as_goal(self, sense: Sense, right: object) -> tuple[Expression, Sense, Rate | float]:
        """The two sides and the sense of a goal as they are kept; raises where it is none."""
        return self, sense, self._number_on_the_right(right)

    def _number_on_the_right(self, right: object) -> float:
        if isinstance(right, Expression):
            raise TypeError(
                f"{self} and {right} do not compare, only linear rates do with each other: "
                "compare each with a number"
            )
        return scalar(right, "the bound of a rate", _RATE_OR_NUMBER) + 0.0  # no negative zero

    def __eq__(self, other: object) -> bool:
        if _is_number(other) or hasattr(other, "__array__"):
            raise TypeError(
                f"== compares expressions as they are written and sets no goal: write "
                f"between({self}, low, high) with low = high, or two inequalities"
            )
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Expression)
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._identity()))

    def __le__(self, other: Rate | float) -> Constraint:
        return Constraint(self, "<=", other)  # type: ignore[arg-type]

    def __ge__(self, other: Rate | float) -> Constraint:
        return Constraint(self, ">=", other)  # type: ignore[arg-type]

    def __lt__(self, other: object) -> NoReturn:
        raise TypeError("a goal is met at its bound as well: write <= instead of <")

    def __gt__(self, other: object) -> NoReturn:
        raise TypeError("a goal is met at its bound as well: write >= instead of >")

    def __abs__(self) -> NoReturn:
        raise TypeError(
            f"the size of ({self}) is not linear: bound it from both sides, as in "
            "between(rate, -0.1, 0.1)"
        )

    def __repr__(self) -> str:
        return str(self)


class WithoutGroups(Expression):
    """One value on the data, not one per group; what compares groups raises, naming `by=`."""

    @abstractmethod
    def _call(self) -> Call | None:
        """The entry of the catalogue that this is, if it is one."""

    def min(self) -> NoReturn:
        """Raises: only a rate with `by=` has groups."""
        self._has_no_groups("min")

    def max(self) -> NoReturn:
        """Raises: only a rate with `by=` has groups."""
        self._has_no_groups("max")

    def gap(self) -> NoReturn:
        """Raises: only a rate with `by=` has groups."""
        self._has_no_groups("gap")

    def ratio(self) -> NoReturn:
        """Raises: only a rate with `by=` has groups."""
        self._has_no_groups("ratio")

    def _has_no_groups(self, kind: str) -> NoReturn:
        raise TypeError(
            f".{kind}() compares groups and {self} has none: "
            f'name the column of groups in the rate, as in recall(by="sex").{kind}()'
        )


@dataclass(frozen=True, eq=False, repr=False)
class Rate(WithoutGroups):
    """A linear rate: the sum of coefficient * term, plus a constant.

    Rates are built by the catalogue (`recall(on="audit")`), added, subtracted, multiplied and
    divided by numbers, and compared with numbers and with each other. A rate divided by a rate
    is a `RatioRate`.

    Parameters
    ----------
    terms : mapping of Term to float
        Kept without zero coefficients, in an order that does not depend on how it was built.
    constant : float
    """

    terms: Mapping[Term, float]
    constant: float = 0.0

    def __post_init__(self) -> None:
        coefficients = [(Term(*term), float(c)) for term, c in self.terms.items()]
        for term, _ in coefficients:
            if term.side not in ("+", "-"):
                raise ValueError(f"the side of a term is '+' or '-', not {term.side!r}")
        for number in [*(c for _, c in coefficients), self.constant]:
            if not math.isfinite(number):
                raise ValueError(f"coefficients and constants of a rate are finite, not {number}")
        kept = sorted((i for i in coefficients if i[1] != 0.0), key=lambda i: term_order(i[0]))
        object.__setattr__(self, "terms", MappingProxyType(dict(kept)))
        object.__setattr__(self, "constant", float(self.constant) + 0.0)  # no negative zero

    def __reduce__(self) -> tuple[Any, ...]:
        return Rate, (dict(self.terms), self.constant)  # a mapping proxy does not pickle

    def _identity(self) -> tuple[Any, ...]:
        return frozenset(self.terms.items()), self.constant

    def _rates(self) -> tuple[Rate, ...]:
        return (self,)

    def __str__(self) -> str:
        return sum_text(self.terms, self.constant)

    def __add__(self, other: Rate | float) -> Rate:
        if isinstance(other, Rate):
            both = [*self.terms.items(), *other.terms.items()]
            return _merged(both, self.constant + other.constant)
        if isinstance(other, Expression):
            return NotImplemented
        return Rate(self.terms, self.constant + scalar(other, "adding to a rate", _RATE_OR_NUMBER))

    __radd__ = __add__

    def __neg__(self) -> Rate:
        return self * -1.0

    def __pos__(self) -> Rate:
        return self

    def __sub__(self, other: Rate | float) -> Rate:
        if isinstance(other, Expression):
            return self + -other if isinstance(other, Rate) else NotImplemented
        return self + -scalar(other, "subtracting from a rate", _RATE_OR_NUMBER)

    def __rsub__(self, other: float) -> Rate:
        return -self + other

    def __mul__(self, other: float) -> Rate:
        if isinstance(other, Rate):
            raise TypeError(
                f"the product of ({self}) and ({other}) is not a linear rate: multiply by numbers"
            )
        if isinstance(other, Expression):
            return NotImplemented
        factor = scalar(other, "multiplying a rate")
        return Rate({t: c * factor for t, c in self.terms.items()}, self.constant * factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        # Any, because a checker should see a ratio for a rate and a rate for a number.
        if isinstance(other, Rate):
            return RatioRate(self, other)
        if isinstance(other, Expression):
            return NotImplemented
        divisor = scalar(other, "dividing a rate")
        return Rate({t: c / divisor for t, c in self.terms.items()}, self.constant / divisor)

    def __rtruediv__(self, other: object) -> NoReturn:
        raise TypeError(
            f"{other!r} cannot be divided by a rate: bound the rate itself, as in {self} >= 0.5"
        )

    def _as_goal(self, sense: Sense, right: object) -> tuple[Rate, Sense, Rate | float]:
        bound = right if isinstance(right, Rate) else self._number_on_the_right(right)
        if not (self - bound).terms:
            raise ValueError(
                f"the two sides of {self} {sense} {bound} differ by a number: "
                "no classifier changes whether this is met"
            )
        # A side that is a number goes to the right, wherever it was written.
        if isinstance(bound, Rate) and not bound.terms:
            return self, sense, bound.constant
        if isinstance(bound, Rate) and not self.terms:
            return bound, FLIPPED[sense], self.constant
        return self, sense, bound

    def within(self, where: Mapping[str, Any]) -> Rate:
        """The same rate over fewer rows: the conditions hold in addition to those it has.

        A column that has a condition already keeps the values that satisfy both.
        """
        more = conditions(where)
        narrowed = (
            (t._replace(subset=t.subset.within(more)), coefficient)
            for t, coefficient in self.terms.items()
        )
        return _merged(narrowed, self.constant)

    def _call(self) -> Call | None:
        return find_single_call(self.terms, self.constant)


class NoArithmetic(Expression):
    """An expression that is compared and nothing else; arithmetic raises, naming what to write."""

    @abstractmethod
    def _refuse_arithmetic(self) -> NoReturn: ...

    def _refuse(self, other: object) -> NoReturn:
        self._refuse_arithmetic()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = _refuse

    def __neg__(self) -> NoReturn:
        self._refuse_arithmetic()


@dataclass(frozen=True, eq=False, repr=False)
class RatioRate(NoArithmetic, WithoutGroups):
    """One linear rate over another, N / D, compared with numbers only.

    N / D >= k is constrained as N - k D >= 0, so D must not be able to be negative: its constant
    and its negative coefficients together must not be.
    """

    numerator: Rate
    denominator: Rate

    def __post_init__(self) -> None:
        if not isinstance(self.numerator, Rate) or not isinstance(self.denominator, Rate):
            raise TypeError("the two parts of a ratio are linear rates")
        for part, name in ((self.numerator, "numerator"), (self.denominator, "denominator")):
            if not part.terms:
                raise ValueError(
                    f"the {name} of ({self.numerator}) / ({self.denominator}) is the number "
                    f"{number_text(part.constant)}: divide by a number, or bound the rate itself"
                )
        below = self.denominator
        numbers = [below.constant, *below.terms.values()]
        least = math.fsum([below.constant, *(min(0.0, c) for c in below.terms.values())])
        # One less ten tenths is a little below zero in binary, and meant to be zero.
        if least < -1e-12 * max(map(abs, numbers)):
            raise ValueError(
                f"the denominator {below} could be negative, which would turn the goal round: "
                "write it as a sum of rates with positive coefficients, such as accuracy() "
                "for 1 - error_rate()"
            )

    def _identity(self) -> tuple[Any, ...]:
        return self.numerator, self.denominator

    def _rates(self) -> tuple[Rate, ...]:
        return self.numerator, self.denominator

    def __str__(self) -> str:
        call = self._call()
        if call is not None:
            return call.text()
        return f"{_operand_text(self.numerator)} / {_operand_text(self.denominator)}"

    def _refuse_arithmetic(self) -> NoReturn:
        raise TypeError(
            f"{self} is a ratio and not linear, so it cannot be part of a sum or a product: "
            "compare it with a number, as in precision() >= 0.6"
        )

    def within(self, where: Mapping[str, Any]) -> RatioRate:
        """The same ratio over fewer rows; see `Rate.within`."""
        return RatioRate(self.numerator.within(where), self.denominator.within(where))

    def _call(self) -> Call | None:
        above, below = self.numerator, self.denominator
        if above.constant or below.constant:
            return None
        return find_ratio_call(above.terms, below.terms)


_RATE_OR_NUMBER = "a linear rate or a single number"
Function = TypeVar("Function", bound=Callable[..., Any])


def _merged(terms: Iterable[tuple[Term, float]], constant: float) -> Rate:
    coefficients: dict[Term, list[float]] = {}
    for term, coefficient in terms:
        coefficients.setdefault(term, []).append(coefficient)
    # fsum rounds once, so the order in which terms fall together does not show.
    return Rate({term: math.fsum(some) for term, some in coefficients.items()}, constant)


def _operand_text(rate: Rate) -> str:
    """A linear rate as one operand of a quotient."""
    call = rate._call()
    return f"{rate}" if call is not None and call.text() == str(rate) else f"({rate})"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real)


def scalar(value: object, role: str, takes: str = "a single number") -> float:
    """`value` as a float where it is one finite number; `role` and `takes` are for the error."""
    if isinstance(value, bool) or not _is_number(value):
        kind = "an array" if hasattr(value, "__array__") else repr(value)
        raise TypeError(f"{role} takes {takes}, not {kind}")
    if not math.isfinite(value):
        raise ValueError(f"{role} takes finite numbers, not {value}")
    return float(value)


def by_name(function: Function) -> Function:
    """The same function, which says how to write arguments without a name or of another name."""
    known = list(inspect.signature(function).parameters)
    name = function.__name__

    @functools.wraps(function)
    def called(*args: Any, **arguments: Any) -> Any:
        if args:
            raise TypeError(
                f"{name}() takes its arguments by name, as in {name}({known[0]}=...), not "
                f"{args[0]!r} alone; there are {', '.join(known)}"
            )
        for given in arguments:
            if given not in known:
                near = difflib.get_close_matches(given, known, 1)
                guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise TypeError(f"{name}() has no argument {given!r}; {guess}")
        return function(**arguments)

    return cast(Function, called)
