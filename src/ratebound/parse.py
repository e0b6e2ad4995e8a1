r"""The language of rates as text.

`parse_rate` and `parse_goal` read what `str` prints, and what is written in Python, without
evaluating anything:

    goal     = [string ":"] sum ("<=" | ">=") sum
    sum      = product {("+" | "-") product}
    product  = factor {("*" | "/") factor}
    factor   = ("+" | "-") factor | number | "(" sum ")" | call ["." extreme "(" ")"]
    call     = name "(" [argument {"," argument}] ")"
    argument = name "=" (value | "[" values "]" | "{" column ":" value or list, ... "}")

Names, datasets, columns and values that are plain words need no quotes.
"""

from __future__ import annotations

import difflib
import inspect
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from ratebound.rates import (
    CALLABLE,
    Constraint,
    GroupExtreme,
    Rate,
    RatesByGroup,
    RatioRate,
    ScoreGap,
)
from ratebound.terms import BARE_WORD, READ_AS_SOMETHING_ELSE, Value


def parse_rate(text: str) -> Rate | RatioRate | RatesByGroup | GroupExtreme | ScoreGap:
    """The rate that `text` says: a linear rate, a ratio, a family, its extreme, or a score gap.

    Raises
    ------
    ValueError
        Where the text is no rate; the message points at the place.

    Examples
    --------
    >>> parse_rate("error_rate() + error_rate() / 2 - 0.5 * recall(on=audit)")
    1.5 * error_rate() - 0.5 * recall(on=audit)
    """
    reader = _Reader(text)
    rate = reader.whole(reader.sum)
    return Rate({}, rate) if isinstance(rate, float) else rate


def parse_goal(text: str) -> Constraint:
    """The goal that `text` says, with its label if there is one in front.

    Raises
    ------
    ValueError
        Where the text is no goal; the message points at the place.

    Examples
    --------
    >>> parse_goal('"as before": recall(on=audit, where={sex: Female}) >= 0.9').label
    'as before'
    """
    reader = _Reader(text)
    return reader.whole(reader.goal)


Parsed = TypeVar("Parsed")


class _Token(NamedTuple):
    kind: str  # "number", "name", "string", "mark" or "end"
    text: str
    start: int


_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    rf"|(?P<name>{BARE_WORD.pattern})"
    r"""|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<mark><=|>=|==|[-+*/(){}\[\],:=.<>])",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_ADDITIVE = {"+": operator.add, "-": operator.sub}
_MULTIPLICATIVE = {"*": operator.mul, "/": operator.truediv}
_COMPARISONS = {"<=": operator.le, ">=": operator.ge}
_EXTREMES = ("min", "max", "gap", "ratio")


class _Reader:
    """Reads tokens from left to right; one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a rate or goal is parsed from a string, not {text!r}")
        self.text = text
        self.tokens = list(self._split())
        self.at = 0

    def whole(self, rule: Callable[[], Parsed]) -> Parsed:
        """What the rule reads, where that is the whole text."""
        try:
            parsed = rule()
        except RecursionError:
            raise ValueError("the text has too many brackets or signs inside each other") from None
        if self.next.kind != "end":
            if self.next.text in (*_COMPARISONS, "==", "<", ">"):
                self.fail(
                    "a goal has one <= or >=: write two goals for two bounds"
                    if rule == self.goal
                    else "expected a rate, and this is a goal: read it with parse_goal"
                )
            self.fail("expected an operator or the end")
        return parsed

    def goal(self) -> Constraint:
        label = None
        if self.next.kind == "string":
            label = self.string()
            self.expect(":", "after the label of the goal")
        left = self.sum()
        comparison = self.next
        if comparison.text in ("==", "<", ">"):
            self.fail("a goal is written with <= or >=")
        if comparison.text not in _COMPARISONS:
            self.fail("expected <= or >= and a bound")
        self.skip()
        right = self.sum()
        if isinstance(left, float) and isinstance(right, float):
            self.fail("both sides are numbers: expected a rate on one of them", comparison)
        goal: Constraint = self.apply(_COMPARISONS[comparison.text], comparison, left, right)
        return goal if label is None else self.apply(goal.named, self.tokens[0], label)

    def sum(self) -> Any:
        return self.chain(self.product, _ADDITIVE)

    def product(self) -> Any:
        return self.chain(self.factor, _MULTIPLICATIVE)

    def chain(self, operand: Callable[[], Any], operators: Mapping[str, Any]) -> Any:
        value = operand()
        while self.next.text in operators:
            sign = self.skip()
            value = self.apply(operators[sign.text], sign, value, operand())
        return value

    def factor(self) -> Any:
        token = self.skip()
        if token.text == "-":
            return self.apply(operator.neg, token, self.factor())
        if token.text == "+":
            return self.factor()
        if token.text == "(":
            inside = self.sum()
            self.expect(")", "to close the bracket")
            return inside
        if token.kind == "number":
            return float(token.text)
        if token.kind != "name":
            self.fail("expected a rate or a number", token)
        return self.call(token)

    def call(self, name: _Token) -> Any:
        if name.text == "between":
            self.fail("between is two goals: write each of them with <= or >=", name)
        function = CALLABLE.get(name.text)
        if function is None:
            self.fail(f"there is no rate {name.text!r}{_nearest(name.text, CALLABLE)}", name)
        self.expect("(", f"as in {name.text}()")
        arguments: dict[str, Any] = {}
        while self.next.text != ")":
            argument = self.skip()
            known = inspect.signature(function).parameters
            if argument.kind != "name" or argument.text not in known:
                hint = _nearest(argument.text, known)
                self.fail(f"{name.text}() has no argument {argument.text!r}{hint}", argument)
            if argument.text in arguments:
                self.fail(f"{argument.text} is given twice", argument)
            self.expect("=", f"and the value of {argument.text}")
            arguments[argument.text] = self.argument(argument.text)
            if self.next.text != ")":
                self.expect(",", "or )")
        self.skip()
        rate = self.apply(lambda: function(**arguments), name)
        if self.next.text != ".":
            return rate
        self.skip()
        extreme = self.skip()
        if extreme.text not in _EXTREMES:
            self.fail("expected min(), max(), gap() or ratio()", extreme)
        self.expect("(", f"as in .{extreme.text}()")
        self.expect(")", f"as in .{extreme.text}()")
        return self.apply(getattr(rate, extreme.text), extreme)

    def argument(self, name: str) -> Any:
        if name == "where":
            return self.where()
        return self.values() if self.next.text in ("[", "(") else self.value()

    def where(self) -> dict[str, Any]:
        self.expect("{", "as in where={sex: Female}")
        where: dict[str, Any] = {}
        while self.next.text != "}":
            token = self.next
            column = self.value()
            if not isinstance(column, str):
                self.fail("expected the name of a column; quote it if it is not a word", token)
            if column in where:
                self.fail(f"the column {column!r} is given twice: list its values", token)
            self.expect(":", f"and the value of {column!r}")
            where[column] = self.values() if self.next.text in ("[", "(") else self.value()
            if self.next.text != "}":
                self.expect(",", "or }")
        self.skip()
        return where

    def values(self) -> list[Value]:
        closing = {"[": "]", "(": ")"}[self.skip().text]
        values = []
        while self.next.text != closing:
            values.append(self.value())
            if self.next.text != closing:
                self.expect(",", f"or {closing}")
        self.skip()
        return values

    def value(self) -> Value:
        if self.next.kind == "string":
            return self.string()
        token = self.skip()
        if token.kind == "name":
            if token.text in ("True", "False"):
                return token.text == "True"
            if token.text.lower() in READ_AS_SOMETHING_ELSE:
                self.fail(f'is this the string "{token.text}"? Then it needs quotes', token)
            return token.text
        sign = 1
        if token.text in ("-", "+"):
            sign = -1 if token.text == "-" else 1
            token = self.skip()
        if token.kind != "number":
            self.fail("expected a word, a string in quotes, a number, True or False", token)
        if re.fullmatch("0[0-9]+", token.text):
            self.fail(f'a number does not begin with 0: quote a code, "{token.text}"', token)
        return sign * (int(token.text) if token.text.isdecimal() else float(token.text))

    def string(self) -> str:
        token = self.skip()

        def character(found: re.Match[str]) -> str:
            *codes, short = found.groups()
            code = next((int(c, 16) for c in codes if c), None)
            if code is None and short in _ESCAPED:
                return _ESCAPED[short]
            if code is None or code > sys.maxunicode:
                self.fail(f"{found[0]} stands for no character", token)
            return chr(code)

        return _ESCAPE.sub(character, token.text[1:-1])

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def skip(self) -> _Token:
        token = self.next
        if token.kind != "end":
            self.at += 1
        return token

    def expect(self, mark: str, why: str) -> None:
        if self.next.text != mark or self.next.kind != "mark":
            self.fail(f"expected {mark} {why}")
        self.skip()

    def apply(self, function: Callable[..., Any], token: _Token, *operands: Any) -> Any:
        """What the language makes of the operands; where it refuses, the place is pointed at."""
        try:
            return function(*operands)
        except (TypeError, ValueError, ArithmeticError) as error:
            self.fail(str(error), token)

    def fail(self, message: str, token: _Token | None = None) -> NoReturn:
        start = (token or self.next).start
        line_start = self.text.rfind("\n", 0, start) + 1
        line = self.text[line_start:].split("\n", 1)[0]
        raise ValueError(f"{message}\n    {line}\n    {' ' * (start - line_start)}^") from None

    def _split(self) -> Iterator[_Token]:
        at = 0
        while True:
            space = _SPACE.match(self.text, at)
            at = space.end() if space else at
            found = _TOKEN.match(self.text, at)
            if found is None:
                break
            yield _Token(str(found.lastgroup), found[0], at)
            at = found.end()
        end = _Token("end", "", at)
        if at < len(self.text):
            quote = self.text[at] in "\"'"
            sign = {"≤": ": write <=", "≥": ": write >=", "%": ": write 0.9 for 90 %"}
            nothing = "this has no meaning here" + sign.get(self.text[at], "")
            self.fail("the string is not closed" if quote else nothing, end)
        yield end


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f": did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
