"""The referees referee each other."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from reference import naive
from reference.convex import (
    HingeTerms,
    hinge_terms,
    lower_bound,
    solve_convex,
    upper_bound,
)
from reference.enumeration import all_cuts, best_cut, linear_decisions
from reference.instances import Instance, bounds_of, random_instance, random_instances

SCORES = st.floats(-3.0, 3.0) | st.sampled_from([-0.5, 0.0, 0.5])

# ---------------------------------------------------------------------------- naive.py


def test_ramp_and_strict_at_their_corners() -> None:
    assert [naive.ramp(z) for z in (-2.0, -0.5, 0.0, 0.25, 0.5, 2.0)] == [0, 0, 0.5, 0.75, 1, 1]
    assert [naive.strict(z) for z in (-1.0, 0.0, 1e-300)] == [0, 0, 1]


@given(score=SCORES, anchor=SCORES)
def test_convex_bounds_are_above_the_ramp_and_touch_it_at_the_anchor(
    score: float, anchor: float
) -> None:
    assert naive.positive_bound(score, anchor) >= naive.ramp(score)
    assert naive.negative_bound(score, anchor) >= naive.ramp(-score)
    assert naive.positive_bound(anchor, anchor) == naive.ramp(anchor)
    assert naive.negative_bound(anchor, anchor) == naive.ramp(-anchor)


# Weight, label, baseline, score; by strict decisions the counts below are sums of weights.
EIGHT_ROWS = [
    naive.Row(1.0, +1, +1, 2.0),  # true positive
    naive.Row(2.0, +1, -1, 1.0),  # true positive, a win
    naive.Row(4.0, +1, +1, -1.0),  # false negative, a loss
    naive.Row(8.0, +1, -1, 0.0),  # false negative: a score of 0 is negative
    naive.Row(16.0, -1, +1, 3.0),  # false positive
    naive.Row(32.0, -1, -1, 1.0),  # false positive, a loss
    naive.Row(64.0, -1, +1, -2.0),  # true negative, a win
    naive.Row(128.0, None, +1, -2.0),  # unlabelled, a change
]


@pytest.mark.parametrize(
    ("rate", "by_hand"),
    [
        (naive.positive_rate, 51 / 255),
        (naive.negative_rate, 204 / 255),
        (naive.error_rate, 60 / 127),
        (naive.accuracy, 67 / 127),
        (naive.recall, 3 / 15),
        (naive.false_negative_rate, 12 / 15),
        (naive.specificity, 64 / 112),
        (naive.false_positive_rate, 48 / 112),
        (naive.churn, (2 + 4 + 32 + 64 + 128) / 255),
        (naive.win_rate, 66 / 127),
        (naive.loss_rate, 36 / 127),
        (naive.precision, 3 / 51),
        (naive.false_discovery_rate, 48 / 51),
        (naive.negative_predictive_value, 64 / 76),
        (naive.f_score, 6 / 66),
        (naive.win_loss_ratio, 66 / 36),
        (naive.win_change_ratio, 66 / 102),
    ],
)
def test_rates_counted_by_hand(rate: naive.Rate, by_hand: float) -> None:
    assert rate(EIGHT_ROWS, naive.strict) == pytest.approx(by_hand, rel=1e-15)


def test_cost_and_f_score_take_their_parameters() -> None:
    value = naive.cost(EIGHT_ROWS, naive.strict, fp=2.0, fn=3.0, tp=5.0, tn=7.0)
    assert value == pytest.approx((2 * 48 + 3 * 12 + 5 * 3 + 7 * 64) / 127)
    assert naive.f_score(EIGHT_ROWS, naive.strict, beta=2.0) == pytest.approx(15 / (15 + 48 + 48))


def test_a_quotient_of_nothings_is_undefined() -> None:
    assert math.isnan(naive.quotient(0.0, 0.0))
    assert naive.quotient(1.0, 0.0) == math.inf


@pytest.mark.parametrize("decide", [naive.strict, naive.ramp])
@pytest.mark.parametrize("seed", range(5))
def test_rates_obey_their_identities(decide: naive.Decision, seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        naive.Row(rng.uniform(0.1, 2.0), rng.choice([-1, 1]), rng.choice([-1, 1]), rng.gauss(0, 1))
        for _ in range(60)
    ]

    def value(rate: naive.Rate) -> float:
        return rate(rows, decide)

    assert value(naive.accuracy) == pytest.approx(1 - value(naive.error_rate))
    assert value(naive.negative_rate) == pytest.approx(1 - value(naive.positive_rate))
    assert value(naive.false_negative_rate) == pytest.approx(1 - value(naive.recall))
    assert value(naive.specificity) == pytest.approx(1 - value(naive.false_positive_rate))
    assert value(naive.churn) == pytest.approx(value(naive.win_rate) + value(naive.loss_rate))
    assert value(naive.false_discovery_rate) == pytest.approx(1 - value(naive.precision))
    harmonic = 2 / (1 / value(naive.precision) + 1 / value(naive.recall))
    assert value(naive.f_score) == pytest.approx(harmonic)
    baseline = [row._replace(score=float(row.baseline or 0)) for row in rows]
    better = value(naive.accuracy) - naive.accuracy(baseline, naive.strict)
    assert value(naive.win_rate) - value(naive.loss_rate) == pytest.approx(better)


# ------------------------------------------------------------------------ instances.py


def test_an_instance_can_be_made_again_alone() -> None:
    in_order = list(random_instances(7, 30))
    for index in (29, 3, 11):
        alone = random_instance(7, index)
        for field in dataclasses.fields(Instance):
            ours, theirs = getattr(alone, field.name), getattr(in_order[index], field.name)
            assert np.array_equal(ours, theirs), field.name
    assert not np.array_equal(random_instance(8, 3).cost, in_order[3].cost)


@pytest.mark.parametrize("count", [100, 405])
def test_a_quarter_of_the_instances_is_of_each_kind(count: int) -> None:
    instances = list(random_instances(0, count))
    for kind in ("degenerate", "n < d", "infeasible", "small alpha", "feasible"):
        assert sum(kind in instance.kinds for instance in instances) >= count / 4, kind


def test_instances_are_what_their_kinds_say() -> None:
    seen: set[str] = set()
    for instance in random_instances(1, 405):
        seen |= instance.kinds
        n, d = instance.X.shape
        m, cells = instance.table.shape
        assert 3 <= n <= 60
        assert 1 <= d <= 40
        assert m <= 8
        assert 1 <= cells <= 8
        assert instance.weight.min() >= 0.0
        assert instance.total_cost == pytest.approx(1.0)
        assert 1e-8 <= instance.alpha <= 1e2
        assert instance.fit_intercept or instance.anchor_intercept == 0.0
        right = bounds_of(instance.table, instance.offset, instance.weight, instance.cell)
        if "n < d" in instance.kinds:
            assert n < d
        if "small alpha" in instance.kinds:
            assert instance.alpha < 1e-5
        if "constant column" in instance.kinds and "duplicate columns" not in instance.kinds:
            # But for zero rows; and a copied column may have overwritten it.
            filled = instance.X[np.any(instance.X != 0.0, axis=1)]
            assert filled.size == 0 or np.any(np.ptp(filled, axis=0) == 0.0)
        if "duplicate columns" in instance.kinds and d > 1:
            assert len(np.unique(instance.X, axis=1).T) < d
        if "duplicate rows" in instance.kinds:
            assert len(np.unique(instance.X, axis=0)) < n
        if "one-sided costs" in instance.kinds:
            assert instance.cost.min() >= 0.0 or instance.cost.max() <= 0.0
        if "no interior" in instance.kinds:
            assert np.any(right == 0.0)
    assert len(seen) == 4 + 6 + 1  # the four kinds, the degeneracies and "feasible"


def smallest_total_violation(instance: Instance, terms: HingeTerms) -> float:
    """A linear program: what the constraints cost when nothing else does."""
    d, K, m = instance.X.shape[1], len(terms.cost), len(terms.bounds)
    solution = linprog(
        np.concatenate([np.zeros(d + 1 + K), np.ones(m)]),
        A_ub=np.block(
            [
                [terms.signed_rows, terms.sign[:, None], -np.eye(K), np.zeros((K, m))],
                [np.zeros((m, d + 1)), terms.coefficients, -np.eye(m)],
            ]
        ),
        b_ub=np.concatenate([np.full(K, -0.5), terms.bounds]),
        bounds=[(None, None)] * (d + 1) + [(0.0, None)] * (K + m),
        method="highs",
    )
    assert solution.status == 0
    return float(solution.fun or 0.0)


def test_feasible_and_infeasible_instances_are_so_by_linear_programming() -> None:
    for instance in random_instances(2, 160):
        if instance.kinds & {"feasible", "infeasible"} and len(instance.offset):
            violation = smallest_total_violation(instance, hinge_terms(instance))
            if "infeasible" in instance.kinds:
                assert violation > 1e-3
            else:
                assert violation <= 1e-7


# --------------------------------------------------------------------------- convex.py


def test_the_bracket_is_tight_and_its_upper_end_is_the_naive_value() -> None:
    for index, instance in enumerate(random_instances(3, 120)):
        solution = solve_convex(instance)
        scale = instance.relative_to(solution.optimum_upper)
        assert -1e-12 <= solution.relative_width(instance) <= 1e-7, index
        value = naive.convex_value(instance, solution.coef.tolist(), solution.intercept)
        assert abs(value - solution.optimum_upper) <= 1e-11 * scale, index
        sides = naive.bound_sides(instance, solution.coef.tolist(), solution.intercept)
        largest = max(naive.violations(instance, *sides), default=-math.inf)
        assert solution.violation == pytest.approx(largest, abs=1e-10), index
        # At its own anchor the bound is tight, so the ramp problem's value there is no lower.
        anchor = instance.anchor_coef.tolist(), instance.anchor_intercept
        assert naive.ramp_value(instance, *anchor) == pytest.approx(
            naive.convex_value(instance, *anchor), rel=1e-12
        )
        ramp = naive.ramp_value(instance, solution.coef.tolist(), solution.intercept)
        assert ramp <= value + 1e-12 * scale, index


@pytest.mark.slow
def test_how_tight_the_brackets_are_on_two_thousand_instances() -> None:
    widths = np.array(
        [solve_convex(instance).relative_width(instance) for instance in random_instances(0, 2000)]
    )
    assert widths.max() <= 1e-6
    assert np.mean(widths <= 1e-7) >= 0.995
    assert np.mean(widths <= 1e-9) >= 0.98


def test_no_point_is_below_the_bracket_and_no_dual_point_above() -> None:
    rng = np.random.default_rng(0)
    for instance in random_instances(4, 60):
        solution, terms = solve_convex(instance), hinge_terms(instance)
        slack = 1e-10 * instance.relative_to(solution.optimum_upper)
        for size in (1e-6, 1e-3, 1.0):
            coef = solution.coef + size * rng.normal(size=solution.coef.shape)
            intercept = solution.intercept
            if instance.fit_intercept:
                intercept += size * rng.normal()
            value = upper_bound(terms, instance, coef, intercept)
            assert value >= solution.optimum_lower - slack
            p = rng.exponential(size=terms.cost.shape) * (terms.cost + size)
            multipliers = solution.multipliers + size * rng.normal(size=terms.bounds.shape)
            bound = lower_bound(terms, instance, p, multipliers, value)
            assert bound <= solution.optimum_upper + slack


def value_where_all_rows_are_zero(instance: Instance) -> float:
    """The elastic optimum where X = 0: piecewise linear in b, so the best of its corners."""
    zeros = [0.0] * instance.X.shape[1]

    def missed(b: float) -> list[float]:
        return naive.violations(instance, *naive.bound_sides(instance, zeros, b))

    corners = [-0.5, 0.5]
    if not instance.fit_intercept:
        corners = [0.0]
    else:
        # Each violation is linear on each of three pieces; find where it is zero.
        for left, right in itertools.pairwise([-50.0, -0.5, 0.5, 50.0]):
            for at_left, at_right in zip(missed(left), missed(right), strict=True):
                if at_left * at_right < 0.0:
                    corners.append(left + (right - left) * at_left / (at_left - at_right))
    return min(naive.convex_value(instance, zeros, b) for b in corners)


def test_answers_known_exactly_where_all_rows_are_zero() -> None:
    for instance in random_instances(5, 60):
        flat = dataclasses.replace(
            instance, X=np.zeros_like(instance.X), anchor_coef=np.zeros(instance.X.shape[1])
        )
        known = value_where_all_rows_are_zero(flat)
        solution = solve_convex(flat)
        assert abs(solution.optimum - known) <= 1e-8 * flat.relative_to(known)


def test_multipliers_are_the_price_of_the_bounds() -> None:
    compared = 0
    for instance in random_instances(6, 120):
        if not instance.alpha > 1e-3:
            continue
        solution = solve_convex(instance)
        for j in range(len(instance.offset)):
            step = np.zeros_like(instance.offset)
            step[j] = 1e-4
            tighter, looser = (
                solve_convex(dataclasses.replace(instance, offset=instance.offset + s)).optimum
                for s in (step, -step)
            )
            # The optimum is convex in the offset: the multiplier lies between both slopes.
            above, below = (tighter - solution.optimum) / 1e-4, (solution.optimum - looser) / 1e-4
            tolerance = 1e-3 * max(1.0, abs(above))
            assert below - tolerance <= solution.multipliers[j] <= above + tolerance
            compared += 1
    assert compared > 50


# ---------------------------------------------------------------------- enumeration.py


def test_cuts_of_scores() -> None:
    assert all_cuts([2.0, 0.0, 2.0, 1.0]) == [-1.0, 0.5, 1.5, 3.0]


def test_best_cut_prefers_met_goals_then_the_objective_then_zero() -> None:
    scores = [-2.0, -1.0, 1.0, 2.0]
    labels = [False, True, False, True]

    def errors(decisions: tuple[bool, ...]) -> float:
        return sum(d != y for d, y in zip(decisions, labels, strict=True))

    def missed_recall(decisions: tuple[bool, ...]) -> float:
        return 1.0 - sum(d and y for d, y in zip(decisions, labels, strict=True)) / 2

    assert best_cut(scores, errors, lambda _: 0.0).objective == 1.0
    assert best_cut(scores, errors, missed_recall).threshold == -1.5
    assert best_cut(scores, errors, lambda decisions: 3.0 + sum(decisions)).threshold == 3.0
    assert best_cut(scores, lambda _: 0.0, lambda _: 0.0).threshold == 0.0


def test_linear_decisions_on_a_line_and_in_the_plane() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 8):
        # Cover's count of the dichotomies of n points in general position.
        assert len(linear_decisions(rng.normal(size=(n, 1)))) == 2 * n
        assert len(linear_decisions(rng.normal(size=(n, 2)))) == n * n - n + 2
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    found = linear_decisions(square)
    assert len(found) == 14
    assert (True, False, False, True) not in found  # exclusive or
    assert (False, True, True, False) not in found
    assert linear_decisions(np.zeros((2, 2))) == {(True, True), (False, False)}
