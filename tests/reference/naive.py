"""The paper's definitions as loops over rows.

Notation of the paper, in words: a score z = <w, x> - b, of which this project writes the
intercept -b with a plus; the strict decision is positive where z > 0; the randomized
classifier decides positively with probability ramp(z) = max(0, min(1, 1/2 + z)).

A row of a dataset is `(weight, label, baseline, score)`: label and baseline are +1, -1 or
None where there is none. D+ are the rows labelled +1, D+- those labelled +1 that the
baseline calls negative, and so on. `s+(D)` is the weight of the positive decisions on D
divided by the weight of D. Every rate takes the decision as a function of the score, so
that `strict` and `ramp` give its two faces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .instances import Instance

Decision = Callable[[float], float]


class Row(NamedTuple):
    """One row of a dataset as a rate sees it."""

    weight: float
    label: int | None
    baseline: int | None
    score: float


Rows = Sequence[Row]
Rate = Callable[[Rows, Decision], float]


# --------------------------------------------------------------------------- decisions


def strict(score: float) -> float:
    """1 where the deterministic classifier decides positively, else 0."""
    return 1.0 if score > 0.0 else 0.0


def ramp(score: float) -> float:
    """Probability that the randomized classifier decides positively."""
    if score <= -0.5:
        return 0.0
    if score >= 0.5:
        return 1.0
    return 0.5 + score


def positive_bound(score: float, anchor_score: float) -> float:
    """Convex bound on ramp(score), tight at the anchor's score."""
    if anchor_score <= 0.5:
        return max(0.0, 0.5 + score)
    return 1.0


def negative_bound(score: float, anchor_score: float) -> float:
    """Convex bound on ramp(-score), tight at the anchor's score."""
    return positive_bound(-score, -anchor_score)


# ------------------------------------------------------------------ counts, by weight


def positives_among(
    rows: Rows, decide: Decision, label: int | None = None, baseline: int | None = None
) -> float:
    """|D| s+(D), D the rows with this label and this baseline (None: any)."""
    total = 0.0
    for row in rows:
        if label is not None and row.label != label:
            continue
        if baseline is not None and row.baseline != baseline:
            continue
        total += row.weight * decide(row.score)
    return total


def negatives_among(
    rows: Rows, decide: Decision, label: int | None = None, baseline: int | None = None
) -> float:
    """|D| s-(D), D the rows with this label and this baseline (None: any)."""
    total = 0.0
    for row in rows:
        if label is not None and row.label != label:
            continue
        if baseline is not None and row.baseline != baseline:
            continue
        total += row.weight * (1.0 - decide(row.score))
    return total


def weight_of(rows: Rows, label: int | None = None) -> float:
    """|D|, D the rows with this label (None: any row)."""
    total = 0.0
    for row in rows:
        if label is None or row.label == label:
            total += row.weight
    return total


def labelled_weight(rows: Rows) -> float:
    """|D+| + |D-|."""
    return weight_of(rows, +1) + weight_of(rows, -1)


def true_positives(rows: Rows, decide: Decision) -> float:
    """|D+| s+(D+)."""
    return positives_among(rows, decide, label=+1)


def true_negatives(rows: Rows, decide: Decision) -> float:
    """|D-| s-(D-)."""
    return negatives_among(rows, decide, label=-1)


def false_positives(rows: Rows, decide: Decision) -> float:
    """|D-| s+(D-)."""
    return positives_among(rows, decide, label=-1)


def false_negatives(rows: Rows, decide: Decision) -> float:
    """|D+| s-(D+)."""
    return negatives_among(rows, decide, label=+1)


def changes(rows: Rows, decide: Decision) -> float:
    """Decisions unlike the baseline's; labels do not matter."""
    total = 0.0
    for row in rows:
        if row.baseline == -1:
            total += row.weight * decide(row.score)
        if row.baseline == +1:
            total += row.weight * (1.0 - decide(row.score))
    return total


def wins(rows: Rows, decide: Decision) -> float:
    """Right where the baseline is wrong: |D+-| s+(D+-) + |D-+| s-(D-+)."""
    return positives_among(rows, decide, +1, -1) + negatives_among(rows, decide, -1, +1)


def losses(rows: Rows, decide: Decision) -> float:
    """Wrong where the baseline is right: |D++| s-(D++) + |D--| s+(D--)."""
    return negatives_among(rows, decide, +1, +1) + positives_among(rows, decide, -1, -1)


def quotient(numerator: float, denominator: float) -> float:
    """numerator / denominator, NaN for 0/0 and infinite for the rest over 0."""
    if denominator == 0.0:
        return math.nan if numerator == 0.0 else math.copysign(math.inf, numerator)
    return numerator / denominator


# ------------------------------------------------------------------------------- rates


def positive_rate(rows: Rows, decide: Decision) -> float:
    """Share of all rows that is decided positively."""
    return positives_among(rows, decide) / weight_of(rows)


def negative_rate(rows: Rows, decide: Decision) -> float:
    """Share of all rows that is decided negatively."""
    return negatives_among(rows, decide) / weight_of(rows)


def error_rate(rows: Rows, decide: Decision) -> float:
    """Share of the labelled rows that is decided wrongly."""
    errors = false_positives(rows, decide) + false_negatives(rows, decide)
    return errors / labelled_weight(rows)


def accuracy(rows: Rows, decide: Decision) -> float:
    """Share of the labelled rows that is decided rightly."""
    right = true_positives(rows, decide) + true_negatives(rows, decide)
    return right / labelled_weight(rows)


def recall(rows: Rows, decide: Decision) -> float:
    """Share of the positive rows that is decided positively."""
    return true_positives(rows, decide) / weight_of(rows, +1)


def false_negative_rate(rows: Rows, decide: Decision) -> float:
    """Share of the positive rows that is decided negatively."""
    return false_negatives(rows, decide) / weight_of(rows, +1)


def specificity(rows: Rows, decide: Decision) -> float:
    """Share of the negative rows that is decided negatively."""
    return true_negatives(rows, decide) / weight_of(rows, -1)


def false_positive_rate(rows: Rows, decide: Decision) -> float:
    """Share of the negative rows that is decided positively."""
    return false_positives(rows, decide) / weight_of(rows, -1)


def churn(rows: Rows, decide: Decision) -> float:
    """Share of all rows that is decided unlike the baseline."""
    return changes(rows, decide) / weight_of(rows)


def win_rate(rows: Rows, decide: Decision) -> float:
    """Share of the labelled rows on which only the baseline is wrong."""
    return wins(rows, decide) / labelled_weight(rows)


def loss_rate(rows: Rows, decide: Decision) -> float:
    """Share of the labelled rows on which only the baseline is right."""
    return losses(rows, decide) / labelled_weight(rows)


def cost(
    rows: Rows,
    decide: Decision,
    fp: float = 0.0,
    fn: float = 0.0,
    tp: float = 0.0,
    tn: float = 0.0,
) -> float:
    """Average price of a decision on the labelled rows."""
    total = fp * false_positives(rows, decide) + fn * false_negatives(rows, decide)
    total += tp * true_positives(rows, decide) + tn * true_negatives(rows, decide)
    return total / labelled_weight(rows)


def precision(rows: Rows, decide: Decision) -> float:
    """Share of the positive decisions on labelled rows that is right."""
    right = true_positives(rows, decide)
    return quotient(right, right + false_positives(rows, decide))


def false_discovery_rate(rows: Rows, decide: Decision) -> float:
    """Share of the positive decisions on labelled rows that is wrong."""
    wrong = false_positives(rows, decide)
    return quotient(wrong, wrong + true_positives(rows, decide))


def negative_predictive_value(rows: Rows, decide: Decision) -> float:
    """Share of the negative decisions on labelled rows that is right."""
    right = true_negatives(rows, decide)
    return quotient(right, right + false_negatives(rows, decide))


def f_score(rows: Rows, decide: Decision, beta: float = 1.0) -> float:
    """Weighted harmonic mean of precision and recall, as counts."""
    right = (1.0 + beta * beta) * true_positives(rows, decide)
    wrong = beta * beta * false_negatives(rows, decide) + false_positives(rows, decide)
    return quotient(right, right + wrong)


def win_loss_ratio(rows: Rows, decide: Decision) -> float:
    """Wins per loss."""
    return quotient(wins(rows, decide), losses(rows, decide))


def win_change_ratio(rows: Rows, decide: Decision) -> float:
    """Wins per labelled change."""
    won = wins(rows, decide)
    return quotient(won, won + losses(rows, decide))


# ---------------------------------------------------------- the two problems, penalised


def score_of(instance: Instance, row: int, coef: Sequence[float], intercept: float) -> float:
    """<w, x_i> + b."""
    return math.fsum([w * x for w, x in zip(coef, instance.X[row], strict=True)] + [intercept])


def penalised_value(
    instance: Instance, positive: Sequence[float], negative: Sequence[float], coef: Sequence[float]
) -> float:
    """Objective, regulariser and price of the violations, given both sides of every row."""
    weight, cell = instance.weight, instance.cell
    parts = [instance.alpha / 2.0 * w * w for w in coef]
    for i in range(len(weight)):
        c = instance.cost[cell[i]]
        parts.append(weight[i] * (max(c, 0.0) * positive[i] + max(-c, 0.0) * negative[i]))
    for violation in violations(instance, positive, negative):
        parts.append(instance.multiplier_bound * max(0.0, violation))
    return math.fsum(parts)


def violations(
    instance: Instance, positive: Sequence[float], negative: Sequence[float]
) -> list[float]:
    """left_j - right_j of every constraint; the goal is missed where it is above zero."""
    weight, cell = instance.weight, instance.cell
    missed = []
    for j in range(len(instance.offset)):
        parts = [instance.offset[j]]
        for i in range(len(weight)):
            s = instance.table[j, cell[i]]
            parts.append(weight[i] * (max(s, 0.0) * positive[i] + max(-s, 0.0) * negative[i]))
            parts.append(-weight[i] * max(-s, 0.0))
        missed.append(math.fsum(parts))
    return missed


def ramp_sides(
    instance: Instance, coef: Sequence[float], intercept: float
) -> tuple[list[float], list[float]]:
    """ramp(z) and ramp(-z) of every row."""
    scores = [score_of(instance, i, coef, intercept) for i in range(len(instance.weight))]
    return [ramp(z) for z in scores], [ramp(-z) for z in scores]


def bound_sides(
    instance: Instance, coef: Sequence[float], intercept: float
) -> tuple[list[float], list[float]]:
    """The convex bounds on ramp(z) and ramp(-z) of every row."""
    positive, negative = [], []
    for i in range(len(instance.weight)):
        z = score_of(instance, i, coef, intercept)
        anchor = score_of(instance, i, instance.anchor_coef.tolist(), instance.anchor_intercept)
        positive.append(positive_bound(z, anchor))
        negative.append(negative_bound(z, anchor))
    return positive, negative


def ramp_value(instance: Instance, coef: Sequence[float], intercept: float) -> float:
    """Penalised value of the ramp problem."""
    return penalised_value(instance, *ramp_sides(instance, coef, intercept), coef)


def convex_value(instance: Instance, coef: Sequence[float], intercept: float) -> float:
    """Elastic value of the convex problem."""
    return penalised_value(instance, *bound_sides(instance, coef, intercept), coef)
