"""Rates and goals as text: what prints parses back, and what is no rate is pointed at."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratebound.parse import parse_goal, parse_rate
from ratebound.rates import (
    CATALOGUE,
    Rate,
    Subset,
    Term,
    accuracy,
    cost,
    error_rate,
    f_score,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
    share,
    win_rate,
)
from ratebound.terms import LINEAR_ENTRIES, RATIO_ENTRIES


class TestByHand:
    @pytest.mark.parametrize(
        ("text", "rate"),
        [
            ("recall()", recall()),
            (" recall ( ) ", recall()),
            ("coverage(on=audit)", positive_rate(on="audit")),
            ("recall(on='audit set',)", recall(on="audit set")),
            (
                "error_rate() + 0.5 * false_positive_rate(on=audit)",
                error_rate() + 0.5 * false_positive_rate(on="audit"),
            ),
            ("1 - 2 * recall() / 4", 1 - 0.5 * recall()),
            ("-recall() - -1", 1 - recall()),
            ("+.5e0 * (recall() - (accuracy() + 1.))", 0.5 * recall() - 0.5 * accuracy() - 0.5),
            ("1 + 2 * 3", Rate({}, 7)),
            ("recall() / accuracy()", recall() / accuracy()),
            ("2 * recall() / (3 * accuracy())", (2 * recall()) / (3 * accuracy())),
            ("cost(fp=1, fn=-2.5, on=b)", cost(fp=1, fn=-2.5, on="b")),
            ("f_score(beta=0.5)", f_score(beta=0.5)),
            ('share(side="-", baseline="+")', share(side="-", baseline="+")),
            ("recall(by=sex)", recall(by="sex")),
            ("recall(by=[sex, 'b c'])", recall(by=["sex", "b c"])),
            ("recall(by=(a, b), allow_empty=True)", recall(by=["a", "b"], allow_empty=True)),
            ("recall(by=sex).gap()", recall(by="sex").gap()),
            (
                'recall(where={"sex": "Female", age: [1, -2.5], "a b": True})',
                recall(where={"sex": "Female", "age": [1, -2.5], "a b": True}),
            ),
            (
                r"""recall(on="\x41\u0042\U00000043\n\"\'\\", where={a: "it's"})""",
                recall(on="ABC\n\"'\\", where={"a": "it's"}),
            ),
            ("recall(\n  on=b\n)", recall(on="b")),
        ],
    )
    def test_rates(self, text, rate):
        assert parse_rate(text) == rate

    @pytest.mark.parametrize(
        ("text", "goal"),
        [
            ("recall(on=audit) >= 0.9", recall(on="audit") >= 0.9),
            ("0.9 <= recall()", recall() >= 0.9),
            ("recall() <= 1 - 0.25", recall() <= 0.75),
            ("precision() >= .6", precision() >= 0.6),
            ("recall() / accuracy() <= 2", recall() / accuracy() <= 2),
            (
                "positive_rate(on=a) >= 0.8 * positive_rate(on=b)",
                positive_rate(on="a") >= 0.8 * positive_rate(on="b"),
            ),
            ("positive_rate(by=sex).ratio() >= 0.8", positive_rate(by="sex").ratio() >= 0.8),
            ('"as before": recall() >= 0.9', (recall() >= 0.9).named("as before")),
        ],
    )
    def test_goals(self, text, goal):
        assert parse_goal(text) == goal

    def test_values_keep_their_types(self):
        [term] = parse_rate('recall(where={a: [1, 1.5, "1", x]})').terms
        assert repr(term.subset.where) == "(('a', (1, 1.5, '1', 'x')),)"
        [term] = parse_rate("recall(where={a: True})").terms
        assert repr(term.subset.where) == "(('a', (True,)),)"


class TestErrors:
    # The caret stands under the character after which each text is cut by "|".
    @pytest.mark.parametrize(
        ("marked", "message"),
        [
            ("|recal() >= 0.9", "did you mean recall?"),
            ("|zzz() >= 0.9", "there are positive_rate, coverage"),
            ("recall(|onn=b) >= 0.9", "did you mean on?"),
            ("recall(fp=1) >= 0.9".replace("fp", "|fp"), "recall() has no argument 'fp'"),
            ("recall(on=b, |on=b) >= 0.9", "on is given twice"),
            ("recall(on|) >= 0.9", "expected ="),
            ("recall(on=b |by=c) >= 0.9", "expected , or )"),
            ("recall |>= 0.9", "expected ( as in recall()"),
            ("recall(on=b|", "expected , or )"),
            ("|recall(on=3) >= 0.9", "name of a dataset"),
            ("recall(on=|true) >= 0.9", "needs quotes"),
            ("recall(where=|a) >= 0.9", "expected {"),
            ("recall(where={|3: a}) >= 0.9", "name of a column"),
            ("recall(where={a: 1, |a: 2}) >= 0.9", "given twice"),
            ("recall(where={a: |007}) >= 0.9", 'quote a code, "007"'),
            ("recall(where={a: |None}) >= 0.9", "needs quotes"),
            ("recall(where={a: |{}}) >= 0.9", "expected a word, a string"),
            ("recall(where={a: [1 |2]}) >= 0.9", "expected , or ]"),
            ("recall(by=a).|mean() >= 0.9", "expected min(), max(), gap() or ratio()"),
            ("recall().|min() >= 0.9", "as in recall(by="),
            ("recall() |< 0.9", "<= or >="),
            ("recall() |== 0.9", "<= or >="),
            ("0.1 <= recall() |<= 0.9", "two goals"),
            ("|between(recall(), 0.1, 0.3)", "two goals"),
            ("recall()|", "expected <= or >="),
            ("|", "expected a rate or a number"),
            ("recall() >= |", "expected a rate or a number"),
            ("recall() >= 0.9 |0.8", "expected an operator or the end"),
            ("recall() >= 0.9 |%", "no meaning"),
            ('recall(on=|"b) >= 0.9', "not closed"),
            (r'recall(on=|"\q") >= 0.9', "stands for no character"),
            (r'recall(on=|"\U7fffffff") >= 0.9', "stands for no character"),
            ("(recall() |>= 0.9", "expected ) to close"),
            ("1 |>= 0.9", "both sides are numbers"),
            ("recall() |>= 1e999", "finite"),
            ("recall() |/ 0 >= 1", "division by zero"),
            ("1 |/ recall() >= 1", "cannot be divided by a rate"),
            ("recall() |* recall() >= 1", "multiply by numbers"),
            ("precision() |+ recall() >= 1", "precision() is a ratio"),
            ("recall() |>= recall()", "differ by a number"),
            ("recall(by=a) |>= 0.9", "recall(by=a).min() >= 0.9"),
            ("recall(by=a).min() |<= 0.9", ".max() <="),
            ('|" ": recall() >= 0.9', "something in it"),
            ('"a" |recall() >= 0.9', "expected : after the label"),
        ],
    )
    def test_the_place_is_pointed_at(self, marked, message):
        text = marked.replace("|", "")
        with pytest.raises(ValueError, match=re.escape(message)) as raised:
            parse_goal(text)
        line, caret = str(raised.value).split("\n")[-2:]
        assert line == "    " + text
        assert caret == "    " + " " * marked.index("|") + "^"

    def test_only_the_line_is_shown(self):
        with pytest.raises(ValueError, match="no rate 'recal'") as raised:
            parse_rate("error_rate()\n + recal()\n + accuracy()")
        assert str(raised.value).split("\n")[1:] == ["     + recal()", "       ^"]

    def test_a_goal_is_no_rate(self):
        with pytest.raises(ValueError, match="parse_goal"):
            parse_rate("recall() >= 0.9")

    @pytest.mark.parametrize("deep", ["(" * 20_000 + "recall()", "-" * 20_000 + "recall()"])
    def test_depth(self, deep):
        with pytest.raises(ValueError, match="too many brackets"):
            parse_rate(deep)

    def test_nothing_is_evaluated(self):
        for text in ("__import__(os)", "recall.__class__", "recall(on=open(x))", "[recall()]"):
            with pytest.raises(ValueError, match=r"\^"):
                parse_rate(text)

    @pytest.mark.parametrize("parse", [parse_rate, parse_goal])
    @pytest.mark.parametrize("text", [None, 0.9, b"recall()", recall()])
    def test_what_is_no_text(self, parse, text):
        with pytest.raises(TypeError, match="from a string"):
            parse(text)

    @given(st.text(st.sampled_from("recall()>=0.9*/+-on{}[]:'\"\\, \n"), max_size=30))
    def test_any_text_parses_or_says_why(self, text):
        for parse in (parse_rate, parse_goal):
            try:
                parsed = parse(text)
            except ValueError as error:
                assert str(error).endswith("^")
            else:
                assert parse(str(parsed)) == parsed


# --- round trips --------------------------------------------------------------------------------

names = st.one_of(
    st.sampled_from(["train", "audit", "True", "none", "1", "a b", "é", '"', "\\", "\n", "\u2028"]),
    st.text(min_size=1, max_size=5),
)
finite = st.floats(-1e100, 1e100)
values = st.one_of(names, st.just(""), st.booleans(), st.integers(), finite)
wheres = st.dictionaries(names, values | st.lists(values, max_size=3), max_size=2)
groups = st.lists(names, min_size=1, max_size=2, unique=True)
linear_names = st.sampled_from(list(LINEAR_ENTRIES))
ratio_names = st.sampled_from(list(RATIO_ENTRIES))
nonzero = finite.filter(bool)
shares = st.fixed_dictionaries(
    {"side": st.sampled_from("+-")},
    optional={
        "label": st.sampled_from("+-"),
        "baseline": st.sampled_from("+-"),
        "per": st.sampled_from(["rows", "labelled", "positives", "negatives"]),
    },
)
costs = st.dictionaries(st.sampled_from(["fp", "fn", "tp", "tn"]), nonzero, min_size=1)


@st.composite
def linear_entries(draw, **more):
    place = {"on": draw(names), "where": draw(wheres), **more}
    kind = draw(st.sampled_from(["named", "cost", "share"]))
    if kind == "named":
        return CATALOGUE[draw(linear_names)](**place)
    if kind == "cost":
        return cost(**draw(costs), **place)
    return share(**draw(shares), **place)


@st.composite
def ratio_entries(draw, **more):
    place = {"on": draw(names), "where": draw(wheres), **more}
    if draw(st.booleans()):
        return CATALOGUE[draw(ratio_names)](**place)
    return f_score(beta=draw(st.floats(0, 1e100)), **place)


@st.composite
def linear_rates(draw):
    parts = draw(st.lists(st.tuples(nonzero, linear_entries()), max_size=3))
    return sum((c * rate for c, rate in parts), Rate({}, draw(finite)))


@st.composite
def quotients(draw):
    def with_terms(rate):
        return bool(rate.terms)

    above = draw(linear_rates().filter(with_terms))
    below = draw(linear_rates().filter(with_terms))
    # A denominator that cannot be negative.
    return above / Rate({t: abs(c) for t, c in below.terms.items()}, abs(below.constant))


@st.composite
def families(draw, entries):
    return draw(entries(by=draw(groups), allow_empty=draw(st.booleans())))


@st.composite
def goals(draw):
    kind = draw(st.sampled_from(["linear", "rates", "ratio", "min", "max", "gap", "group ratio"]))
    if kind in ("linear", "rates"):
        left = draw(linear_rates())
        right = draw(linear_rates()) if kind == "rates" else draw(finite)
        difference = left - right
        if not difference.terms:
            left = left + recall()
        goal = left >= right if draw(st.booleans()) else left <= right
    elif kind == "ratio":
        left = draw(ratio_entries() | quotients())
        goal = left >= draw(finite)
    elif kind in ("gap", "group ratio"):
        family = draw(families(linear_entries))
        bound = draw(st.floats(1e-9, 1))
        goal = family.gap() <= bound if kind == "gap" else family.ratio() >= bound
    else:
        family = draw(families(linear_entries) | families(ratio_entries))
        bound = draw(finite)
        goal = family.min() >= bound if kind == "min" else family.max() <= bound
    label = draw(st.none() | st.text(max_size=8).filter(str.strip))
    return goal if label is None else goal.named(label)


def assert_comes_back(parse, thing):
    text = str(thing)
    back = parse(text)
    assert back == thing
    assert hash(back) == hash(thing)
    assert str(back) == text


class TestRoundTrips:
    @given(linear_rates())
    def test_linear_rates(self, rate):
        assert_comes_back(parse_rate, rate)

    @given(ratio_entries() | quotients())
    def test_ratios(self, ratio):
        assert_comes_back(parse_rate, ratio)

    @given(families(linear_entries) | families(ratio_entries))
    def test_families(self, family):
        assert_comes_back(parse_rate, family)
        assert_comes_back(parse_rate, family.min())

    @given(goals())
    def test_goals(self, goal):
        assert_comes_back(parse_goal, goal)

    @given(
        st.dictionaries(
            st.builds(
                Term,
                st.sampled_from(["train", "b"]),
                st.builds(
                    Subset,
                    st.sampled_from(["", "+", "-"]),
                    st.sampled_from(["", "+", "-"]),
                    st.sampled_from(["rows", "labelled", "positives", "negatives"]),
                ),
                st.sampled_from("+-"),
            ),
            st.sampled_from([-1.0, 0.5, 1.0]),
        )
    )
    def test_any_normal_form(self, terms):
        assert_comes_back(parse_rate, Rate(terms, 0.25))

    def test_every_entry(self):
        for name, entry in CATALOGUE.items():
            extra = {"cost": {"fn": 2}, "share": {"side": "-"}}.get(name, {})
            assert_comes_back(parse_rate, entry(on="b", where={"a": 1}, **extra))
            assert_comes_back(parse_rate, entry(by="a", **extra))
        assert_comes_back(parse_goal, win_rate() - recall() / 3 >= 0.1)
