"""The language of rates: the catalogue, and the expressions that goals are written with.

A rate is taken on a named dataset, over the rows where columns have given values, and says what
share of them a classifier decides in some way. Rates add up, multiply with numbers and compare:

>>> error_rate() + 0.5 * false_positive_rate(on="audit")
error_rate() + 0.5 * false_positive_rate(on=audit)
>>> recall(on="audit", where={"sex": "Female"}) >= 0.9
recall(on=audit, where={sex: Female}) >= 0.9
>>> positive_rate(by="sex").ratio() >= 0.8
positive_rate(by=sex).ratio() >= 0.8

Vocabulary: a row is *decided* positive ("+") or negative ("-"); its *label* is what is true of it;
its *baseline* is what another classifier decided. TP, FP, TN, FN are the true and false positive
and negative decisions, as shares of the labelled rows.

Every entry of the catalogue takes the same arguments:

on : str, default "train"
    The dataset. "train" is the `X, y` of `fit`.
where : mapping of column to value or list of values, optional
    Only rows in which each column holds (one of) its values.
by : str or sequence of str, optional
    Once per group, that is per combination of the values of these columns: a `RatesByGroup`.
allow_empty : bool, default False
    With `by`: drop groups without rows, with a warning. They are an error otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast, overload

from ratebound.constraints import Constraint
from ratebound.expressions import Rate, RatioRate, by_name, scalar
from ratebound.families import GroupExtreme, RatesByGroup, ScoreGap, group_columns
from ratebound.terms import (
    COST_ARGUMENTS,
    LINEAR_ENTRIES,
    RATIO_ENTRIES,
    TRAIN,
    Outcome,
    Subset,
    Term,
    conditions,
    f_score_outcomes,
    outcome_term,
)

__all__ = [
    "CALLABLE",
    "CATALOGUE",
    "Constraint",
    "GroupExtreme",
    "Rate",
    "RatesByGroup",
    "RatioRate",
    "ScoreGap",
    "Subset",
    "Term",
    "accuracy",
    "between",
    "churn",
    "cost",
    "coverage",
    "error_rate",
    "f_score",
    "false_discovery_rate",
    "false_negative_rate",
    "false_positive_rate",
    "loss_rate",
    "negative_predictive_value",
    "negative_rate",
    "positive_rate",
    "precision",
    "recall",
    "score_gap",
    "share",
    "specificity",
    "true_negative_rate",
    "true_positive_rate",
    "win_change_ratio",
    "win_loss_ratio",
    "win_rate",
]

Where = Mapping[str, Any] | None
By = str | Sequence[str] | None
OneRate = TypeVar("OneRate", Rate, RatioRate)
OneRate_co = TypeVar("OneRate_co", bound=Rate | RatioRate, covariant=True)


class Entry(Protocol[OneRate_co]):
    """The type of an entry of the catalogue: one rate, or with `by` a family."""

    @overload
    def __call__(
        self, *, on: str = ..., where: Where = ..., by: None = ..., allow_empty: bool = ...
    ) -> OneRate_co: ...
    @overload
    def __call__(
        self, *, on: str = ..., where: Where = ..., by: str | Sequence[str], allow_empty: bool = ...
    ) -> RatesByGroup: ...


def _linear(function: Callable[..., Rate | RatesByGroup]) -> Entry[Rate]:
    # a cast, because whether there is `by` decides the type of the result
    return cast(Entry[Rate], by_name(function))


def _ratio(function: Callable[..., RatioRate | RatesByGroup]) -> Entry[RatioRate]:
    return cast(Entry[RatioRate], by_name(function))


@_linear
def positive_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the rows that are decided positive; also called coverage."""
    return _linear_entry("positive_rate", on, where, by, allow_empty)


coverage = positive_rate


@_linear
def negative_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the rows that are decided negative."""
    return _linear_entry("negative_rate", on, where, by, allow_empty)


@_linear
def error_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the labelled rows that are decided wrongly: FP + FN."""
    return _linear_entry("error_rate", on, where, by, allow_empty)


@_linear
def accuracy(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the labelled rows that are decided rightly: TP + TN."""
    return _linear_entry("accuracy", on, where, by, allow_empty)


@_linear
def recall(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the positive rows that are decided positive: TP / (TP + FN)."""
    return _linear_entry("recall", on, where, by, allow_empty)


true_positive_rate = recall


@_linear
def false_negative_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the positive rows that are decided negative: FN / (TP + FN)."""
    return _linear_entry("false_negative_rate", on, where, by, allow_empty)


@_linear
def specificity(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the negative rows that are decided negative: TN / (TN + FP)."""
    return _linear_entry("specificity", on, where, by, allow_empty)


true_negative_rate = specificity


@_linear
def false_positive_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the negative rows that are decided positive: FP / (TN + FP)."""
    return _linear_entry("false_positive_rate", on, where, by, allow_empty)


@_linear
def churn(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the rows that are decided otherwise than by the baseline; reads no labels."""
    return _linear_entry("churn", on, where, by, allow_empty)


@_linear
def win_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the labelled rows that are decided rightly where the baseline was wrong."""
    return _linear_entry("win_rate", on, where, by, allow_empty)


@_linear
def loss_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> Rate | RatesByGroup:
    """Share of the labelled rows that are decided wrongly where the baseline was right."""
    return _linear_entry("loss_rate", on, where, by, allow_empty)


@overload
def cost(
    *,
    fp: float = ...,
    fn: float = ...,
    tp: float = ...,
    tn: float = ...,
    on: str = ...,
    where: Where = ...,
    by: None = ...,
    allow_empty: bool = ...,
) -> Rate: ...
@overload
def cost(
    *,
    fp: float = ...,
    fn: float = ...,
    tp: float = ...,
    tn: float = ...,
    on: str = ...,
    where: Where = ...,
    by: str | Sequence[str],
    allow_empty: bool = ...,
) -> RatesByGroup: ...
@by_name
def cost(
    *,
    fp: float = 0.0,
    fn: float = 0.0,
    tp: float = 0.0,
    tn: float = 0.0,
    on: str = TRAIN,
    where: Where = None,
    by: By = None,
    allow_empty: bool = False,
) -> Rate | RatesByGroup:
    """Mean cost of the labelled rows: fp FP + fn FN + tp TP + tn TN; a negative cost is a gain."""
    given = (scalar(number, "a cost") for number in (fp, fn, tp, tn))
    costs = dict(zip(COST_ARGUMENTS.values(), given, strict=True))
    rate = _rate(costs, on, where)
    if not rate.terms:
        raise ValueError("every cost is 0: give at least one, as in cost(fp=1, fn=5)")
    return _perhaps_by_group(rate, by, allow_empty)


@_ratio
def precision(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> RatioRate | RatesByGroup:
    """Share of the positive decisions that are right: TP / (TP + FP)."""
    return _ratio_entry("precision", on, where, by, allow_empty)


@_ratio
def false_discovery_rate(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> RatioRate | RatesByGroup:
    """Share of the positive decisions that are wrong: FP / (TP + FP)."""
    return _ratio_entry("false_discovery_rate", on, where, by, allow_empty)


@_ratio
def negative_predictive_value(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> RatioRate | RatesByGroup:
    """Share of the negative decisions that are right: TN / (TN + FN)."""
    return _ratio_entry("negative_predictive_value", on, where, by, allow_empty)


@_ratio
def win_loss_ratio(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> RatioRate | RatesByGroup:
    """Wins over losses against the baseline: win_rate / loss_rate."""
    return _ratio_entry("win_loss_ratio", on, where, by, allow_empty)


@_ratio
def win_change_ratio(
    *, on: str = TRAIN, where: Where = None, by: By = None, allow_empty: bool = False
) -> RatioRate | RatesByGroup:
    """Share of wins among wins and losses: win_rate / (win_rate + loss_rate)."""
    return _ratio_entry("win_change_ratio", on, where, by, allow_empty)


@overload
def f_score(
    *,
    beta: float = ...,
    on: str = ...,
    where: Where = ...,
    by: None = ...,
    allow_empty: bool = ...,
) -> RatioRate: ...
@overload
def f_score(
    *,
    beta: float = ...,
    on: str = ...,
    where: Where = ...,
    by: str | Sequence[str],
    allow_empty: bool = ...,
) -> RatesByGroup: ...
@by_name
def f_score(
    *,
    beta: float = 1.0,
    on: str = TRAIN,
    where: Where = None,
    by: By = None,
    allow_empty: bool = False,
) -> RatioRate | RatesByGroup:
    """Weighted harmonic mean of precision and recall, recall counting `beta` times as much.

    (1 + beta²) TP / ((1 + beta²) TP + beta² FN + FP).
    """
    weight = scalar(beta, "beta")
    if weight < 0.0:
        raise ValueError(f"beta is a number from 0 up, not {beta!r}")
    above, below = f_score_outcomes(weight)
    ratio = RatioRate(_rate(above, on, where), _rate(below, on, where))
    return _perhaps_by_group(ratio, by, allow_empty)


@by_name
def score_gap(
    *,
    by: By = None,
    on: str = TRAIN,
    where: Where = None,
    form: str = "linear",
    allow_empty: bool = False,
) -> ScoreGap:
    """Largest difference between two groups' mean scores, ``max |<coef, x̄_a - x̄_b>|``.

    Zafar et al.'s covariance, the baseline of the paper: `score_gap(by="sex") <= c`. It speaks of
    scores, not of decisions, so c says little of rates; `positive_rate(by="sex")` bounds those.
    The forms in which training holds ``d = <coef, x̄_a - x̄_b>`` and ``-d`` (the paper's appendix):

    ========  ====================================================  =======================
    "linear"  d <= c, as max(0, 1/2 + d) <= c + 1/2                 the same constraint
    "hinge"   max(0, 1 + d) <= c + 1                                the same constraint
    "ramp"    min(1, max(0, 1/2 + d / 4c)) <= 3/4, for c > 0        the same, not convex:
              majorized like a rate                                 it saturates at d = 2c
    ========  ====================================================  =======================

    Solvers reach c = 0 up to their tolerance, about 1e-7, and reports call that missed: to keep
    means equal ask for 1e-6.

    Examples
    --------
    >>> score_gap(by="sex", on="audit", form="ramp") <= 0.1
    score_gap(form=ramp, on=audit, by=sex) <= 0.1
    """
    if by is None:
        raise TypeError('score_gap compares groups: name their column, as in score_gap(by="sex")')
    groups = _linear_entry("positive_rate", on, where, by, allow_empty)
    return ScoreGap(cast(RatesByGroup, groups), form)


def share(
    *,
    side: str,
    label: str = "",
    baseline: str = "",
    per: str = "rows",
    on: str = TRAIN,
    where: Where = None,
    by: By = None,
    allow_empty: bool = False,
) -> Rate | RatesByGroup:
    """One term by itself, for what the catalogue has no name for; see `Subset` and `Term`.

    The catalogue is made of such terms: `recall()` is
    `share(side="+", label="+", per="positives")`.
    """
    rate = _rate({Outcome(label, baseline, per, side): 1.0}, on, where)
    return _perhaps_by_group(rate, by, allow_empty)


def between(rate: Rate | RatioRate, low: float, high: float) -> tuple[Constraint, Constraint]:
    """The two goals low <= rate <= high.

    Examples
    --------
    >>> between(positive_rate(), 0.1, 0.3)
    (positive_rate() >= 0.1, positive_rate() <= 0.3)
    """
    if isinstance(rate, GroupExtreme | RatesByGroup):
        family = rate.family if isinstance(rate, GroupExtreme) else rate
        raise TypeError(
            f"between takes one rate, not a family: write {family}.min() >= {low!r} and "
            f"{family}.max() <= {high!r}"
        )
    if not isinstance(rate, Rate | RatioRate):
        raise TypeError(f"between takes a rate, its low and its high bound, not {rate!r}")
    if scalar(low, "the bound of a rate") > scalar(high, "the bound of a rate"):
        raise ValueError(f"between takes the low bound first: {low!r} is above {high!r}")
    return rate >= low, rate <= high


# Rates by their names.
CATALOGUE: Mapping[str, Callable[..., Rate | RatioRate | RatesByGroup]] = {
    "positive_rate": positive_rate,
    "coverage": coverage,
    "negative_rate": negative_rate,
    "error_rate": error_rate,
    "accuracy": accuracy,
    "recall": recall,
    "true_positive_rate": true_positive_rate,
    "false_negative_rate": false_negative_rate,
    "specificity": specificity,
    "true_negative_rate": true_negative_rate,
    "false_positive_rate": false_positive_rate,
    "churn": churn,
    "win_rate": win_rate,
    "loss_rate": loss_rate,
    "cost": cost,
    "precision": precision,
    "false_discovery_rate": false_discovery_rate,
    "negative_predictive_value": negative_predictive_value,
    "win_loss_ratio": win_loss_ratio,
    "win_change_ratio": win_change_ratio,
    "f_score": f_score,
    "share": share,
}

# What text may call: the rates, and what is no rate.
CALLABLE: Mapping[str, Callable[..., Rate | RatioRate | RatesByGroup | ScoreGap]] = {
    **CATALOGUE,
    "score_gap": score_gap,
}


def _rate(outcomes: Mapping[Outcome, float], on: str, where: Where) -> Rate:
    if not isinstance(on, str) or not on:
        raise TypeError(f'on is the name of a dataset, as in on="audit", not {on!r}')
    rows = conditions(where)
    return Rate({outcome_term(o, str(on), rows): c for o, c in outcomes.items()})


def _linear_entry(
    name: str, on: str, where: Where, by: By, allow_empty: bool
) -> Rate | RatesByGroup:
    rate = _rate(dict.fromkeys(LINEAR_ENTRIES[name], 1.0), on, where)
    return _perhaps_by_group(rate, by, allow_empty)


def _ratio_entry(
    name: str, on: str, where: Where, by: By, allow_empty: bool
) -> RatioRate | RatesByGroup:
    above, below = (_rate(dict.fromkeys(part, 1.0), on, where) for part in RATIO_ENTRIES[name])
    return _perhaps_by_group(RatioRate(above, below), by, allow_empty)


def _perhaps_by_group(rate: OneRate, by: By, allow_empty: bool) -> OneRate | RatesByGroup:
    if by is not None:
        return RatesByGroup(rate, group_columns(by), allow_empty)
    if allow_empty:
        raise TypeError(
            "allow_empty drops groups without rows and there are none: name their column, "
            'as in recall(by="country", allow_empty=True)'
        )
    return rate
