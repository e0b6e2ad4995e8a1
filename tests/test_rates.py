"""The language of rates: what expressions are, how they print, and what is refused."""

from __future__ import annotations

import copy
import math
import operator
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratebound import rates
from ratebound.rates import (
    CATALOGUE,
    Constraint,
    Rate,
    RatesByGroup,
    RatioRate,
    Subset,
    Term,
    accuracy,
    between,
    churn,
    cost,
    error_rate,
    f_score,
    false_positive_rate,
    loss_rate,
    positive_rate,
    precision,
    recall,
    share,
    win_rate,
)


def term(label="", baseline="", per="rows", side="+", on="train", where=()):
    return Term(on, Subset(label, baseline, per, where), side)


FP = term("-", per="labelled", side="+")
FN = term("+", per="labelled", side="-")
TP = term("+", per="labelled", side="+")
TN = term("-", per="labelled", side="-")
WIN = {term("+", "-", "labelled", "+"): 1, term("-", "+", "labelled", "-"): 1}
LOSS = {term("+", "+", "labelled", "-"): 1, term("-", "-", "labelled", "+"): 1}


class TestCatalogue:
    @pytest.mark.parametrize(
        ("name", "terms"),
        [
            ("positive_rate", {term(side="+"): 1}),
            ("coverage", {term(side="+"): 1}),
            ("negative_rate", {term(side="-"): 1}),
            ("error_rate", {FP: 1, FN: 1}),
            ("accuracy", {TP: 1, TN: 1}),
            ("recall", {term("+", per="positives", side="+"): 1}),
            ("true_positive_rate", {term("+", per="positives", side="+"): 1}),
            ("false_negative_rate", {term("+", per="positives", side="-"): 1}),
            ("specificity", {term("-", per="negatives", side="-"): 1}),
            ("true_negative_rate", {term("-", per="negatives", side="-"): 1}),
            ("false_positive_rate", {term("-", per="negatives", side="+"): 1}),
            ("churn", {term("", "-", "rows", "+"): 1, term("", "+", "rows", "-"): 1}),
            ("win_rate", WIN),
            ("loss_rate", LOSS),
        ],
    )
    def test_linear_entries(self, name, terms):
        rate = CATALOGUE[name]()
        assert rate.terms == terms
        assert rate.constant == 0

    @pytest.mark.parametrize(
        ("name", "above", "below"),
        [
            ("precision", {TP: 1}, {TP: 1, FP: 1}),
            ("false_discovery_rate", {FP: 1}, {TP: 1, FP: 1}),
            ("negative_predictive_value", {TN: 1}, {TN: 1, FN: 1}),
            ("f_score", {TP: 2}, {TP: 2, FN: 1, FP: 1}),
            ("win_loss_ratio", WIN, LOSS),
            ("win_change_ratio", WIN, {**WIN, **LOSS}),
        ],
    )
    def test_ratios(self, name, above, below):
        ratio = CATALOGUE[name]()
        assert ratio.numerator.terms == above
        assert ratio.denominator.terms == below

    def test_cost_and_f_score_take_their_numbers(self):
        assert cost(fp=1, fn=5, tp=-2).terms == {FP: 1, FN: 5, TP: -2}
        assert f_score(beta=2).denominator.terms == {TP: 5, FN: 4, FP: 1}

    def test_every_entry_takes_on_where_and_by(self):
        for name, entry in CATALOGUE.items():
            extra = {"cost": {"fn": 2}, "share": {"side": "-"}}.get(name, {})
            rate = entry(on="audit", where={"sex": "Female"}, **extra)
            family = entry(on="audit", where={"sex": "Female"}, by="country", **extra)
            assert isinstance(family, RatesByGroup)
            assert family.rate == rate
            assert family.by == ("country",)
            assert rate.datasets == {"audit"}
            assert rate.columns == {("audit", "sex")}
            assert family.columns == {("audit", "sex"), ("audit", "country")}

    def test_catalogue_is_public(self):
        assert set(CATALOGUE) < set(rates.__all__)
        assert all(getattr(rates, name) is entry for name, entry in CATALOGUE.items())

    def test_what_is_read(self):
        mixed = churn(on="traffic") + recall(on="audit") + positive_rate() + win_rate(on="both")
        assert mixed.datasets == {"traffic", "audit", "train", "both"}
        assert mixed.reads_labels == {"audit", "both"}
        assert mixed.reads_baseline == {"traffic", "both"}
        assert share(side="+", label="+", on="b").reads_labels == {"b"}
        assert share(side="+", per="labelled", on="b").reads_labels == {"b"}
        goal = recall(on="audit", where={"a": 1}) >= positive_rate(on="b", where={"c": 2})
        assert goal.datasets == {"audit", "b"}
        assert goal.reads_labels == {"audit"}
        assert goal.reads_baseline == frozenset()
        assert goal.columns == {("audit", "a"), ("b", "c")}
        assert (positive_rate(by=["a", "b"]).gap() <= 0.1).columns == {
            ("train", "a"),
            ("train", "b"),
        }


class TestConditions:
    def test_where_has_one_form(self):
        one = recall(where={"b": ["y", "x", "y"], "a": 1})
        assert one == recall(where={"a": [1.0], "b": ("x", "y")})
        [only] = one.terms
        assert only.subset.where == (("a", (1,)), ("b", ("x", "y")))

    def test_numpy_values_are_plain(self):
        [only] = recall(where={"a": np.array([2, 1]), "b": np.bool_(True), "c": np.str_("s")}).terms
        assert repr(only.subset.where) == "(('a', (1, 2)), ('b', (True,)), ('c', ('s',)))"

    def test_numbers_and_their_texts_differ(self):
        assert recall(where={"a": 1}) != recall(where={"a": "1"})

    def test_within_adds_and_intersects(self):
        rate = recall(where={"a": [1, 2]}) + 0.5
        assert rate.within({"b": "x"}) == recall(where={"a": [1, 2], "b": "x"}) + 0.5
        assert rate.within({"a": [2, 3]}) == recall(where={"a": 2}) + 0.5
        assert rate.within({}) == rate
        assert precision().within({"a": 1}) == precision(where={"a": 1})

    def test_within_merges_terms_that_fall_together(self):
        both = recall(where={"a": 1}) + recall(where={"a": [1, 2]})
        assert both.within({"a": 1}) == 2 * recall(where={"a": 1})

    def test_contradictory_conditions_leave_no_value(self):
        assert str(recall(where={"a": 1}).within({"a": 2})) == "recall(where={a: []})"

    @pytest.mark.parametrize(
        "missing", [None, math.nan, np.float64("nan"), np.datetime64("NaT"), pd.NA, pd.NaT]
    )
    def test_missing_values_are_refused(self, missing):
        with pytest.raises(ValueError, match="fill the missing values"):
            recall(where={"a": missing})

    @pytest.mark.parametrize("where", ["sex", [("a", 1)], {1: "a"}, {"a": {"b": 1}}, {"a": b"x"}])
    def test_what_is_no_condition(self, where):
        with pytest.raises(TypeError, match="where"):
            recall(where=where)

    def test_dates_are_given_as_text(self):
        with pytest.raises(TypeError, match="as text"):
            recall(where={"day": pd.Timestamp("2020-01-01")})


class TestNormalForm:
    def test_merging_drops_zeros(self):
        rate = recall() + 2 * recall() + 0.5 - error_rate() + error_rate()
        assert rate.terms == {term("+", per="positives", side="+"): 3}
        assert rate.constant == 0.5
        assert (0 * recall()).terms == {}

    def test_scalars_from_both_sides(self):
        expected = Rate({term(side="+"): 0.5}, 0.25)
        r = positive_rate()
        assert r / 2 + 0.25 == 0.25 + 0.5 * r == r * 0.5 + 0.25 == expected
        assert 1 - r == -r + 1
        assert r - 1 == -(1 - r)
        assert +r == r
        assert sum([r, r, r]) == 3 * r

    @pytest.mark.parametrize("scalar", [np.float64(0.5), np.float32(0.5), np.array([0.5])[0]])
    def test_numpy_scalars_from_the_left(self, scalar):
        r = recall()
        assert scalar * r == r * scalar == 0.5 * r
        assert scalar + r == 0.5 + r
        assert scalar - r == 0.5 - r
        assert (scalar <= r) == (r >= 0.5)
        assert (scalar >= r) == (r <= 0.5)
        assert type((r >= scalar).right) is float
        assert (np.int64(2) * r).terms == (2 * r).terms

    @pytest.mark.parametrize("array", [np.ones(2), np.array(0.5), pd.Series([1.0, 2.0])])
    def test_arrays_are_refused(self, array):
        for operation in (
            lambda: array * recall(),
            lambda: recall() * array,
            lambda: array + recall(),
            lambda: recall() - array,
            lambda: recall() / array,
            lambda: recall() >= array,
            lambda: array >= recall(),
        ):
            with pytest.raises(TypeError, match="an array"):
                operation()

    @pytest.mark.parametrize("other", ["1", None, True, 1j, [1]])
    def test_what_is_no_number_is_refused(self, other):
        for operation in (
            lambda: recall() + other,
            lambda: other * recall(),
            lambda: recall() >= other,
            lambda: cost(fp=other),
            lambda: f_score(beta=other),
        ):
            with pytest.raises(TypeError, match="a single number"):
                operation()

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_numbers_are_finite(self, number):
        for operation in (
            lambda: recall() + number,
            lambda: number * recall(),
            lambda: recall() >= number,
            lambda: number >= recall(),
            lambda: positive_rate(by="a").gap() <= number,
            lambda: cost(fp=number),
            lambda: Rate({FP: number}),
            lambda: Rate({FP: 1}, number),
        ):
            with pytest.raises(ValueError, match="finite"):
                operation()

    def test_overflow_is_refused(self):
        with pytest.raises(ValueError, match="finite"):
            1e200 * (1e200 * recall())

    def test_division_by_zero(self):
        with pytest.raises(ZeroDivisionError):
            recall() / 0

    def test_immutable(self):
        rate = recall()
        with pytest.raises(AttributeError):
            rate.constant = 1.0
        with pytest.raises(TypeError):
            rate.terms[FP] = 1.0
        source = {FP: 1.0}
        built = Rate(source)
        source[FP] = 2.0
        assert built == cost(fp=1)


class TestEquality:
    def test_order_does_not_show(self):
        a = recall(on="x") + error_rate() + 0.5
        b = 0.5 + (error_rate() + recall(on="x"))
        assert a == b
        assert hash(a) == hash(b)
        assert str(a) == str(b)
        assert list(a.terms) == list(b.terms)

    def test_different_things_differ(self):
        things = [
            recall(),
            recall(on="x"),
            recall() + 0.5,
            2 * recall(),
            precision(),
            precision() >= 0.5,
            precision() <= 0.5,
            precision() >= 0.6,
            (precision() >= 0.6).named("p"),
            recall() >= 0.5,
            recall() >= positive_rate(),
            recall(by="a"),
            recall(by="b"),
            recall(by="a", allow_empty=True),
            recall(by="a").min(),
            recall(by="a").max(),
            recall(by="a").min() >= 0.5,
        ]
        assert len(set(things)) == len(things)
        assert all((x == y) == (i == j) for i, x in enumerate(things) for j, y in enumerate(things))
        assert recall() != "recall()"

    def test_equal_to_a_number_is_refused(self):
        for operation in (
            lambda: recall() == 0.5,
            lambda: recall() != 0.5,
            lambda: recall() == 1,
            lambda: np.float64(0.5) == recall(),
            lambda: recall() == np.ones(2),
            lambda: precision() == 0.5,
            lambda: recall(by="a").min() == 0.5,
        ):
            with pytest.raises(TypeError, match=r"between\(.*two inequalities"):
                operation()


class TestConstraints:
    def test_sides(self):
        goal = recall() >= 0.9
        assert (goal.left, goal.sense, goal.right) == (recall(), ">=", 0.9)
        assert goal == operator.le(0.9, recall())
        assert (recall() <= 1).right == 1.0
        assert math.copysign(1, (recall() >= -0.0).right) == 1
        between_rates = positive_rate(on="a") >= 0.8 * positive_rate(on="b")
        assert between_rates.right == 0.8 * positive_rate(on="b")

    def test_a_number_goes_to_the_right(self):
        number = 0 * recall() + 0.5
        assert (recall() >= number) == (recall() >= 0.5)
        assert (number >= recall()) == (recall() <= 0.5)

    def test_a_constant_stays_where_it_was_written(self):
        assert str(recall() + 0.1 >= 0.9) == "recall() + 0.1 >= 0.9"

    @pytest.mark.parametrize(
        "operation",
        [
            lambda: recall() + 0.1 >= recall(),
            lambda: recall() >= recall(),
            lambda: 0 * recall() <= 0.5,
            lambda: recall() - recall() <= 0 * error_rate(),
        ],
    )
    def test_sides_that_cancel(self, operation):
        with pytest.raises(ValueError, match="differ by a number"):
            operation()

    def test_label(self):
        goal = recall(on="audit") >= 0.9
        assert goal.label == goal.text == str(goal) == "recall(on=audit) >= 0.9"
        named = goal.named('say "so"')
        assert named.label == 'say "so"'
        assert named.text == goal.text
        assert str(named) == r'"say \"so\"": recall(on=audit) >= 0.9'
        assert named.named(goal.text) == goal

    @pytest.mark.parametrize("label", ["", "  ", None, 3])
    def test_no_label(self, label):
        with pytest.raises(ValueError, match="something in it"):
            (recall() >= 0.9).named(label)

    def test_between(self):
        assert between(recall(), 0.1, 0.3) == (recall() >= 0.1, recall() <= 0.3)
        assert between(precision(), 0.3, 0.3) == (precision() >= 0.3, precision() <= 0.3)
        with pytest.raises(ValueError, match="low bound first"):
            between(recall(), 0.3, 0.1)
        with pytest.raises(TypeError, match=r"min\(\) >= 0.1 and .*max\(\) <= 0.3"):
            between(recall(by="a"), 0.1, 0.3)
        with pytest.raises(TypeError, match="takes a rate"):
            between(0.1, recall(), 0.3)

    def test_strict_comparisons_are_refused(self):
        for operation in (
            lambda: recall() < 0.5,
            lambda: operator.gt(0.5, recall()),
            lambda: precision() < 1,
        ):
            with pytest.raises(TypeError, match="write <="):
                operation()
        for operation in (lambda: recall() > 0.5, lambda: np.float64(0.5) < recall()):
            with pytest.raises(TypeError, match="write >="):
                operation()

    def test_truth_is_refused(self):
        with pytest.raises(TypeError, match=r"between\(rate, 0.1, 0.3\)"):
            bool(recall() >= 0.5)
        with pytest.raises(TypeError, match=r"between\(rate, 0.1, 0.3\)"):
            0.1 <= recall() <= 0.3  # noqa: B015

    def test_unknown_sense(self):
        with pytest.raises(ValueError, match="<= or >="):
            Constraint(recall(), "==", 0.5)


class TestRatios:
    def test_division_makes_one(self):
        ratio = churn() / positive_rate(on="b")
        assert isinstance(ratio, RatioRate)
        assert (ratio.numerator, ratio.denominator) == (churn(), positive_rate(on="b"))
        assert win_rate() / loss_rate() == rates.win_loss_ratio()

    @pytest.mark.parametrize(
        "operation",
        [
            lambda: precision() + recall(),
            lambda: recall() - precision(),
            lambda: 2 * precision(),
            lambda: precision() / 2,
            lambda: np.float64(2) * precision(),
            lambda: recall() / precision(),
            lambda: -precision(),
            lambda: precision() + precision(),
        ],
    )
    def test_arithmetic_is_refused(self, operation):
        with pytest.raises(TypeError, match="compare it with a number"):
            operation()

    def test_compares_with_numbers_only(self):
        for operation in (
            lambda: precision() >= recall(),
            lambda: recall() >= precision(),
            lambda: precision() >= precision(on="b"),
        ):
            with pytest.raises(TypeError, match="compare each with a number"):
                operation()

    def test_denominator_that_can_be_negative(self):
        for below in (0.5 - positive_rate(), 1 - error_rate(), positive_rate() - 0.1):
            with pytest.raises(ValueError, match="could be negative"):
                recall() / below
        assert (recall() / (1 - positive_rate())).denominator == 1 - positive_rate()
        # Ten times 0.1 is a little above 1 in floating point.
        tenths = 1 - sum(0.1 * positive_rate(on=f"d{i}") for i in range(10))
        assert (recall() / tenths).denominator == tenths

    def test_parts_that_are_numbers(self):
        with pytest.raises(ValueError, match="divide by a number"):
            recall() / (0 * recall() + 2)
        with pytest.raises(ValueError, match=r"the numerator .* is the number 2"):
            (0 * recall() + 2) / recall()
        with pytest.raises(TypeError, match="cannot be divided by a rate"):
            1 / recall()

    def test_products_are_refused(self):
        with pytest.raises(TypeError, match="multiply by numbers"):
            recall() * recall()


class TestFamilies:
    def test_the_four_goals(self):
        family = recall(by=["a", "b"])
        for goal, kind, sense, bound in (
            (family.min() >= 0.5, "min", ">=", 0.5),
            (operator.le(0.5, family.min()), "min", ">=", 0.5),
            (family.max() <= 0.5, "max", "<=", 0.5),
            (family.gap() <= 0.0, "gap", "<=", 0.0),
            (np.float64(0.8) <= family.ratio(), "ratio", ">=", 0.8),
        ):
            assert (goal.left.kind, goal.sense, goal.right) == (kind, sense, bound)
            assert goal.left.family == family

    @pytest.mark.parametrize(
        ("operation", "remedy"),
        [
            (lambda f: f.min() <= 0.5, r"\.max\(\) <="),
            (lambda f: f.max() >= 0.5, r"\.min\(\) >="),
            (lambda f: f.gap() >= 0.5, r"\.gap\(\) <="),
            (lambda f: f.ratio() <= 0.5, r"\.ratio\(\) >="),
            (lambda f: f >= 0.5, r"\.min\(\) >= 0.5"),
            (lambda f: f <= 0.5, r"\.max\(\) <= 0.5"),
            (lambda f: operator.ge(0.5, f), r"\.max\(\) <= 0.5"),
            (lambda f: f + 1, r"\.min\(\) >="),
            (lambda f: recall() + f, r"\.min\(\) >="),
            (lambda f: recall() - f, r"\.min\(\) >="),
            (lambda f: 2 * f, r"\.min\(\) >="),
            (lambda f: -f, r"\.min\(\) >="),
            (lambda f: 2 * f.min(), "compare it with a number"),
            (lambda f: f.min() - f.max(), "compare it with a number"),
            (lambda f: f.min() >= recall(on="b"), "compare each with a number"),
            (lambda f: recall() >= f, "compare each with a number"),
        ],
    )
    def test_misuse(self, operation, remedy):
        with pytest.raises(TypeError, match=remedy):
            operation(recall(by="sex"))

    def test_bounds_out_of_range(self):
        with pytest.raises(ValueError, match="at least 0"):
            recall(by="a").gap() <= -0.1  # noqa: B015
        for bound in (0, -0.5, 1.25):
            with pytest.raises(ValueError, match="above 0 and at most 1"):
                recall(by="a").ratio() >= bound  # noqa: B015

    def test_ratio_rates_have_no_gap_or_ratio(self):
        family = precision(by="a")
        assert str(family.min() >= 0.5) == "precision(by=a).min() >= 0.5"
        for extreme in (family.gap, family.ratio):
            with pytest.raises(TypeError, match=r"\.min\(\) >= or \.max\(\) <="):
                extreme()

    def test_allow_empty_needs_by(self):
        with pytest.raises(TypeError, match=r'by="country"'):
            recall(allow_empty=True)

    @pytest.mark.parametrize("rate", [recall(), precision(), 2 * error_rate()])
    @pytest.mark.parametrize("kind", ["min", "max", "gap", "ratio"])
    def test_rates_without_groups_name_by(self, rate, kind):
        with pytest.raises(TypeError, match=rf'recall\(by="sex"\)\.{kind}\(\)'):
            getattr(rate, kind)()

    @pytest.mark.parametrize("by", ["a", ["a"], ("a",), np.array(["a"]), pd.Index(["a"])])
    def test_by_has_one_form(self, by):
        assert recall(by=by) == recall(by="a")

    @pytest.mark.parametrize("by", [3, [], [1], {"a"}, {"a": 1}])
    def test_what_is_no_column(self, by):
        with pytest.raises(TypeError, match="name of a column"):
            recall(by=by)

    def test_a_column_twice(self):
        with pytest.raises(ValueError, match="twice"):
            recall(by=["a", "a"])

    def test_a_family_is_one_entry(self):
        with pytest.raises(ValueError, match="one entry of the catalogue"):
            RatesByGroup(recall() + error_rate(), ("a",))


class TestArguments:
    @pytest.mark.parametrize("on", [None, 3, ""])
    def test_dataset_names(self, on):
        with pytest.raises(TypeError, match="name of a dataset"):
            recall(on=on)

    def test_positional_arguments_are_refused(self):
        with pytest.raises(TypeError, match="by name, as in recall"):
            recall("audit")

    def test_costs_of_nothing(self):
        with pytest.raises(ValueError, match="every cost is 0"):
            cost()

    @pytest.mark.parametrize("beta", [-1, math.nan, math.inf])
    def test_beta(self, beta):
        with pytest.raises(ValueError, match="beta"):
            f_score(beta=beta)

    def test_subsets_are_checked(self):
        for wrong in ({"label": "x"}, {"baseline": "x"}, {"per": "all"}):
            with pytest.raises(ValueError, match="not"):
                share(side="+", **wrong)
        with pytest.raises(ValueError, match="side"):
            share(side="positive")


class TestText:
    @pytest.mark.parametrize(
        ("expression", "text"),
        [
            (
                error_rate() + 0.5 * false_positive_rate(on="audit"),
                "error_rate() + 0.5 * false_positive_rate(on=audit)",
            ),
            (positive_rate(by="sex").ratio() >= 0.8, "positive_rate(by=sex).ratio() >= 0.8"),
            (
                recall(on="audit", where={"sex": "Female", "age": [2, 1]}, by="country").min()
                >= 0.85,
                "recall(on=audit, where={age: [1, 2], sex: Female}, by=country).min() >= 0.85",
            ),
            (accuracy(on="golden") >= 1.0, "accuracy(on=golden) >= 1"),
            (-recall(), "-recall()"),
            (1 - recall(), "1 - recall()"),
            (-recall() - 1, "-recall() - 1"),
            (positive_rate(on="b") - recall(), "positive_rate(on=b) - recall()"),
            (0 * recall(), "0"),
            (0 * recall() - 0.5, "-0.5"),
            (recall() + 1e300, "recall() + 1e+300"),
            (recall() - 1e15, "recall() - 1000000000000000.0"),
            (recall() - 1e14, "recall() - 100000000000000"),
            (recall() * 1e20, "1e+20 * recall()"),
            (cost(fp=1, fn=5), "cost(fp=1, fn=5)"),
            (error_rate() + accuracy(), "error_rate() + accuracy()"),
            (error_rate() + cost(tp=0.5), "cost(fp=1, fn=1, tp=0.5)"),
            (cost(fp=2, fn=2), "2 * error_rate()"),
            (cost(fp=2, fn=2, by="a"), "cost(fp=2, fn=2, by=a)"),
            (f_score(beta=0.3, on="b"), "f_score(beta=0.3, on=b)"),
            (f_score(beta=0), "precision()"),
            (recall() / (2 * error_rate()), "recall() / (2 * error_rate())"),
            ((recall() + 0.5) / accuracy(), "(recall() + 0.5) / accuracy()"),
            (
                rates.win_loss_ratio(by=["a", "b c"], allow_empty=True).max() <= 2,
                'win_loss_ratio(by=[a, "b c"], allow_empty=True).max() <= 2',
            ),
            (
                Rate({term("", "-", side="+"): 2.0}),
                '2 * share(baseline="-", per=rows, side="+")',
            ),
            (
                recall(where={"a": ["x", "x-y", "1", "True", "nan", "", 'q"', "\n"]}),
                'recall(where={a: ["", "\\n", "1", "True", "nan", "q\\"", x, "x-y"]})',
            ),
            (recall(where={"a": [1.5, True, "é"]}), "recall(where={a: [True, 1.5, é]})"),
        ],
    )
    def test_hand_cases(self, expression, text):
        assert str(expression) == text
        assert repr(expression) == text


# --- laws ---------------------------------------------------------------------------------------

# Sums and products of these are exact, so the laws of arithmetic hold to the last bit.
dyadic = st.integers(-64, 64).map(lambda n: n / 16)
wheres = st.dictionaries(
    st.sampled_from(["a", "b"]), st.lists(st.sampled_from([1, 2, "x"]), min_size=1), max_size=2
)
entries = st.builds(
    lambda name, on, where: CATALOGUE[name](on=on, where=where),
    st.sampled_from(["error_rate", "accuracy", "recall", "positive_rate", "churn", "win_rate"]),
    st.sampled_from(["train", "audit"]),
    wheres,
)
linear_rates = st.builds(
    lambda parts, constant: sum((c * r for c, r in parts), 0 * recall()) + constant,
    st.lists(st.tuples(dyadic, entries), max_size=4),
    dyadic,
)


class TestLaws:
    @given(linear_rates, linear_rates, linear_rates)
    def test_addition(self, a, b, c):
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert a + 0 == a
        assert a - a == 0 * a
        assert a - b == -(b - a)
        assert hash(a + b) == hash(b + a)
        assert list((a + b).terms) == list((b + a).terms)

    @given(linear_rates, linear_rates, dyadic, dyadic)
    def test_multiplication(self, a, b, s, t):
        assert s * (a + b) == s * a + s * b
        assert (s + t) * a == s * a + t * a
        assert s * (t * a) == (s * t) * a
        assert 1 * a == a
        assert a / 4 == 0.25 * a

    @given(linear_rates)
    def test_normal_form(self, a):
        assert all(a.terms.values())
        assert Rate(dict(reversed(a.terms.items())), a.constant) == a

    @given(linear_rates, wheres, wheres)
    def test_within(self, a, some, more):
        assert a.within(some).within(more) == a.within(more).within(some)
        assert a.within(some).within(some) == a.within(some)
        assert (a + a).within(some) == 2 * a.within(some)

    @given(linear_rates, linear_rates, wheres)
    def test_within_is_linear(self, a, b, where):
        assert (a + b).within(where) == a.within(where) + b.within(where)

    @given(linear_rates, linear_rates, dyadic)
    def test_copies(self, a, b, bound):
        things = [a, precision(by="g"), precision(by="g").max(), f_score(beta=2)]
        if a.terms:
            things += [a <= bound, (bound <= a).named("label")]
        if (a - b).terms:
            things.append(a >= b)
        for thing in things:
            for copied in (
                pickle.loads(pickle.dumps(thing)),
                copy.copy(thing),
                copy.deepcopy(thing),
            ):
                assert copied == thing
                assert hash(copied) == hash(thing)
                assert str(copied) == str(thing)
