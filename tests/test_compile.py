"""Compiled goals against loops over rows, and against numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratebound import rates as catalogue
from ratebound.compile import InfeasibleGoals, RateProblem, compile_goals
from ratebound.data import Dataset, bind, stack
from ratebound.rates import (
    Constraint,
    Rate,
    RatioRate,
    Term,
    accuracy,
    churn,
    cost,
    error_rate,
    f_score,
    false_positive_rate,
    loss_rate,
    positive_rate,
    precision,
    recall,
    win_loss_ratio,
    win_rate,
)


@dataclass
class Rows:
    """Rows of one dataset as plain lists; labels and baselines are +1, -1 or None."""

    weight: list[float]
    label: list[int | None]
    baseline: list[int]
    columns: dict[str, list[Any]]


def compiled(
    subject_to: Any = (), minimize: Rate | None = None, **given_to_bind: Any
) -> RateProblem:
    if isinstance(subject_to, Constraint):
        subject_to = (subject_to,)
    goals = SimpleNamespace(minimize=minimize or positive_rate(), subject_to=tuple(subject_to))
    attainable = given_to_bind.pop("attainable", True)
    parts = [goals.minimize, *goals.subject_to]
    data = bind(
        reads_labels=frozenset().union(*(p.reads_labels for p in parts)),
        reads_baseline=frozenset().union(*(p.reads_baseline for p in parts)),
        used=frozenset().union(*(p.datasets for p in parts)),
        **given_to_bind,
    )
    return compile_goals(goals, data, attainable=attainable)


# --- by loops over rows ---------------------------------------------------------------------------


def term_by_loops(term: Term, data: dict[str, Rows], q: dict[str, list[float]]) -> float:
    """One term, straight from its definition; q is the probability of a positive decision."""
    rows, subset = data[term.dataset], term.subset
    above = below = 0.0
    for i, weight in enumerate(rows.weight):
        label = rows.label[i]
        if not all(rows.columns[name][i] in values for name, values in subset.where):
            continue
        if subset.per == "labelled" and label is None:
            continue
        if subset.per == "positives" and label != 1:
            continue
        if subset.per == "negatives" and label != -1:
            continue
        below += weight
        if subset.label and label != (1 if subset.label == "+" else -1):
            continue
        if subset.baseline and rows.baseline[i] != (1 if subset.baseline == "+" else -1):
            continue
        above += weight * (q[term.dataset][i] if term.side == "+" else 1 - q[term.dataset][i])
    return above / below


def rate_by_loops(
    rate: Rate | RatioRate, data: dict[str, Rows], q: dict[str, list[float]]
) -> float:
    if isinstance(rate, RatioRate):
        above = rate_by_loops(rate.numerator, data, q)
        below = rate_by_loops(rate.denominator, data, q)
        return above / below if abs(below) > 1e-12 else math.nan
    terms = (c * term_by_loops(term, data, q) for term, c in rate.terms.items())
    return rate.constant + sum(terms)


def some(values: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=size, max_size=size)


@st.composite
def some_rows(draw: st.DrawFn) -> Rows:
    """Rows in which every label occurs in every sex, so that no rate is a share of nothing."""
    n = draw(st.integers(0, 12))
    labels = [1, -1, 1, -1, *draw(some(st.sampled_from([1, -1, None]), n))]
    sexes = ["F", "F", "M", "M", *draw(some(st.sampled_from("FM"), n))]
    m = n + 4
    weights = [0.5, 1.0, 2.0, 1.5]
    weights += draw(some(st.sampled_from([0.0, 0.25, 1.0, 3.0]), n))
    return Rows(
        weights,
        labels,
        draw(some(st.sampled_from([1, -1]), m)),
        {"sex": sexes, "age": draw(some(st.integers(1, 3), m))},
    )


def to_dataset(rows: Rows) -> Dataset:
    return Dataset(
        np.zeros((len(rows.weight), 2)),
        np.array([math.nan if label is None else float(label) for label in rows.label]),
        sample_weight=rows.weight,
        baseline=[float(b) for b in rows.baseline],
        columns={"sex": np.array(rows.columns["sex"]), "age": np.array(rows.columns["age"])},
    )


LINEAR = [
    "positive_rate",
    "negative_rate",
    "error_rate",
    "accuracy",
    "recall",
    "false_negative_rate",
    "specificity",
    "false_positive_rate",
    "churn",
    "win_rate",
    "loss_rate",
]
RATIOS = [
    "precision",
    "false_discovery_rate",
    "negative_predictive_value",
    "f_score",
    "win_loss_ratio",
    "win_change_ratio",
]
PLACES = st.fixed_dictionaries(
    {
        "on": st.sampled_from(["audit", "traffic"]),
        "where": st.sampled_from([None, {"sex": "F"}, {"sex": ["F", "M"]}]),
    }
)


@st.composite
def linear_rates(draw: st.DrawFn) -> Rate:
    rate = draw(st.floats(-1, 1)) + Rate({}, 0.0)
    for _ in range(draw(st.integers(1, 3))):
        entry = getattr(catalogue, draw(st.sampled_from(LINEAR)))(**draw(PLACES))
        rate = rate + draw(st.sampled_from([-2.0, -1.0, 0.5, 1.0])) * entry
    return rate + cost(fp=2.0, fn=0.25, on="audit")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_everything_is_as_loops_over_rows_say(source: st.DataObject) -> None:
    draw = source.draw
    data = {"audit": draw(some_rows()), "traffic": draw(some_rows())}
    objective, rate = draw(linear_rates()), draw(linear_rates())
    ratio = getattr(catalogue, draw(st.sampled_from(RATIOS)))(**draw(PLACES))
    family = getattr(catalogue, draw(st.sampled_from(LINEAR)))(by="sex", on="audit")
    ratios = getattr(catalogue, draw(st.sampled_from(RATIOS)))(by="sex", on="traffic")
    bound = draw(st.floats(0.01, 1))
    goals = [
        rate >= bound,
        rate - 0.25 <= bound * objective,
        ratio <= bound,
        family.min() >= bound,
        family.gap() <= bound,
        family.ratio() >= bound,
        ratios.max() <= bound,
    ]
    problem = compiled(
        goals,
        objective,
        X=np.zeros((2, 2)),
        y=[-1.0, 1.0],
        datasets={name: to_dataset(rows) for name, rows in data.items()},
        attainable=False,
    )
    probability = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    q = {name: draw(some(probability, len(r.weight))) for name, r in data.items()}
    P = problem.positives_by_dataset(q)

    def value(rate: Rate | RatioRate) -> float:
        return rate_by_loops(rate, data, q)

    close = dict(rel=1e-9, abs=1e-9, nan_ok=True)
    assert problem.objective_value(P) == pytest.approx(value(objective), **close)
    in_blocks = [np.zeros(2), q["audit"], q["traffic"]]
    np.testing.assert_allclose(problem.positives(in_blocks), P, atol=1e-12)

    first, second, third, least, gap, proportion, most = problem.goals
    violations = problem.violations(P)
    assert first.value(P) == pytest.approx(value(rate), **close)
    assert violations[first.rows] == pytest.approx([bound - value(rate)], **close)
    difference = value(rate) - 0.25 - bound * value(objective)
    assert second.bound == pytest.approx(0.0)
    assert second.value(P) == pytest.approx(difference, **close)
    assert violations[second.rows] == pytest.approx([difference], **close)
    if not math.isinf(third.value(P)):
        assert third.value(P) == pytest.approx(value(ratio), **close)
    normalised = value(ratio.numerator) - bound * value(ratio.denominator)
    assert violations[third.rows] == pytest.approx([normalised], **close)

    of_sex = {sex: value(family.rate.within({"sex": sex})) for sex in "FM"}
    low, high = min(of_sex.values()), max(of_sex.values())
    assert least.values(P) == pytest.approx(of_sex, **close)
    assert least.value(P) == pytest.approx(low, **close)
    assert violations[least.rows] == pytest.approx([bound - r for r in of_sex.values()], **close)
    assert gap.value(P) == pytest.approx(high - low, **close)
    ordered = [("F", "M"), ("M", "F")]
    assert violations[gap.rows] == pytest.approx(
        [of_sex[a] - of_sex[b] - bound for a, b in ordered], **close
    )
    assert violations[proportion.rows] == pytest.approx(
        [bound * of_sex[b] - of_sex[a] for a, b in ordered], **close
    )
    if high > 1e-9:
        assert proportion.value(P) == pytest.approx(low / high, **close)
    for group, numerator, denominator in most.forms:
        assert denominator is not None
        narrowed = ratios.rate.within({"sex": group})
        assert numerator.value(P) == pytest.approx(value(narrowed.numerator), **close)
        assert denominator.value(P) == pytest.approx(value(narrowed.denominator), **close)


# --- by hand --------------------------------------------------------------------------------------

#: label, baseline, decision, weight; the third letter is the decision.
BY_HAND = [
    ("+", "+", "+", 1.0),
    ("+", "+", "-", 2.0),
    ("+", "-", "+", 3.0),
    ("+", "-", "-", 4.0),
    ("-", "+", "+", 5.0),
    ("-", "+", "-", 6.0),
    ("-", "-", "+", 7.0),
    ("-", "-", "-", 8.0),
]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (positive_rate(), 16 / 36),
        (catalogue.coverage(), 16 / 36),
        (catalogue.negative_rate(), 20 / 36),
        (error_rate(), (2 + 4 + 5 + 7) / 36),
        (accuracy(), (1 + 3 + 6 + 8) / 36),
        (recall(), 4 / 10),
        (catalogue.true_positive_rate(), 4 / 10),
        (catalogue.false_negative_rate(), 6 / 10),
        (catalogue.specificity(), 14 / 26),
        (catalogue.true_negative_rate(), 14 / 26),
        (false_positive_rate(), 12 / 26),
        (cost(fp=2, fn=3), (2 * 12 + 3 * 6) / 36),
        # With the truth first and the baseline second, after DESIGN's errata: changes are
        # (+-)+, (--)+, (++)-, (-+)-; wins (+-)+ and (-+)-; losses (++)- and (--)+.
        (churn(), (3 + 7 + 2 + 6) / 36),
        (win_rate(), (3 + 6) / 36),
        (loss_rate(), (2 + 7) / 36),
    ],
)
def test_linear_rates_by_hand(rate: Rate, expected: float) -> None:
    goal, P = by_hand(rate)
    assert goal.value(P) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (precision(), 4 / 16),
        (catalogue.false_discovery_rate(), 12 / 16),
        (catalogue.negative_predictive_value(), 14 / 20),
        (f_score(), 2 * 4 / (2 * 4 + 6 + 12)),
        (f_score(beta=2), 5 * 4 / (5 * 4 + 4 * 6 + 12)),
        (win_loss_ratio(), 9 / 9),
        (catalogue.win_change_ratio(), 9 / 18),
    ],
)
def test_ratio_rates_by_hand(rate: RatioRate, expected: float) -> None:
    goal, P = by_hand(rate)
    assert goal.value(P) == pytest.approx(expected)


def by_hand(rate: Rate | RatioRate) -> tuple[Any, np.ndarray]:
    label, baseline, decision, weight = zip(*BY_HAND, strict=True)
    problem = compiled(
        rate <= 9.0, X=np.zeros((8, 1)), y=label, baseline=baseline, sample_weight=weight,
        pos_label="+",
    )  # fmt: skip
    return problem.goals[0], problem.positives([[d == "+" for d in decision]])


def test_egregious_negatives_ask_for_negative_decisions() -> None:
    goal = catalogue.specificity(on="golden") >= 1.0
    golden = Dataset(np.zeros((3, 1)), [0, 0, 1])
    problem = compiled(goal, X=np.zeros((2, 1)), y=[0, 1], datasets={"golden": golden})
    assert problem.violations(problem.positives_by_dataset({"train": [0, 0], "golden": [0, 0, 1]}))[
        0
    ] == pytest.approx(0.0)
    P = problem.positives_by_dataset({"train": [0, 0], "golden": [1, 0, 1]})
    assert problem.violations(P)[0] == pytest.approx(0.5)


def test_labelled_rates_run_over_labelled_rows_only() -> None:
    traffic = Dataset(np.zeros((4, 1)), [1, None, None, 0])
    problem = compiled(
        [error_rate(on="traffic") <= 0.6, positive_rate(on="traffic") >= 0.2],
        X=np.zeros((2, 1)), y=[0, 1], datasets={"traffic": traffic},
    )  # fmt: skip
    P = problem.positives_by_dataset({"train": [0, 0], "traffic": [0, 1, 1, 0]})
    assert problem.goals[0].value(P) == pytest.approx(1 / 2)
    assert problem.goals[1].value(P) == pytest.approx(2 / 4)


# --- cells and blocks -----------------------------------------------------------------------------

X4 = np.zeros((4, 1))
Y4 = [0, 1, 0, 1]


def test_cells_are_what_goals_distinguish() -> None:
    problem = compiled(recall() >= 0.5, X=X4, y=Y4, columns={"sex": list("FFMM")})
    assert problem.cell_names == ("train: label -", "train: label +")
    problem = compiled(recall(where={"sex": "F"}) >= 0.5, X=X4, y=Y4, columns={"sex": list("FFMM")})
    assert set(problem.cell_names) == {
        "train: label -, sex = another value",
        "train: label -, sex = F",
        "train: label +, sex = another value",
        "train: label +, sex = F",
    }
    assert problem.cell_weight.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_values_that_no_goal_tells_apart_share_a_cell() -> None:
    goal = positive_rate(where={"age": [1, 2]}) >= 0.1
    problem = compiled(goal, accuracy(), X=X4, y=Y4, columns={"age": [1, 2, 3, 1]})
    assert sorted(problem.cell_weight.tolist()) == [1.0, 1.0, 2.0]


def test_rows_that_no_goal_reads_are_in_no_cell() -> None:
    problem = compiled(
        recall(where={"sex": "F"}) >= 0.5, recall(where={"sex": "F"}),
        X=X4, y=Y4, sample_weight=[1, 1, 1, 1], columns={"sex": list("FFMM")},
    )  # fmt: skip
    assert problem.blocks[0].cell.tolist() == [-1, 0, -1, -1]
    assert problem.blocks[0].cell.dtype == np.int32


def test_rows_of_weight_zero_are_in_no_cell() -> None:
    problem = compiled(recall() >= 0.5, X=X4, y=Y4, sample_weight=[1, 1, 1, 0])
    assert problem.blocks[0].cell[3] == -1
    assert problem.blocks[0].weight.tolist() == [1, 1, 1, 0]


def test_datasets_that_share_an_x_do_not_copy_it() -> None:
    problem = compiled(
        [recall(on="a") >= 0.5, positive_rate(on="b") <= 0.9],
        X=X4, y=Y4,
        datasets={"a": Dataset(X4, Y4, sample_weight=[2, 2, 2, 2]), "b": Dataset(X4)},
    )  # fmt: skip
    assert all(block.X is X4 for block in problem.blocks)
    P = problem.positives_by_dataset({"train": [0, 0, 0, 0], "a": [0, 1, 0, 0], "b": [1, 1, 1, 0]})
    assert [goal.value(P) for goal in problem.goals] == [0.5, 0.75]
    assert problem.objective_value(P) == 0.0


def test_stacked_and_separate_data_are_one_problem() -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(15, 2))
    y = np.tile([0, 1], 10)
    traffic = Dataset(Z, baseline=np.tile([0, 1, 1], 5), columns={"k": np.tile(["a", "b", "c"], 5)})
    goals = [recall() >= 0.5, churn(on="traffic", by="k").max() <= 0.5]
    separate = compiled(goals, error_rate(), X=X, y=y, datasets={"traffic": traffic})
    train = Dataset(X, y, columns={"k": np.tile(["a", "b"], 10)})
    X2, y2, weight, baseline, columns = stack(train=train, traffic=traffic)
    stacked = compiled(
        goals, error_rate(), X=X2, y=y2, sample_weight=weight, baseline=baseline, columns=columns,
        datasets="dataset",
    )  # fmt: skip
    assert stacked.cell_names == separate.cell_names
    np.testing.assert_array_equal(stacked.table.toarray(), separate.table.toarray())
    np.testing.assert_array_equal(stacked.offset, separate.offset)
    q = rng.random(35)
    np.testing.assert_allclose(stacked.positives([q]), separate.positives([q[:20], q[20:]]))


def test_a_weight_of_two_is_the_row_twice() -> None:
    rng = np.random.default_rng(1)
    X, y, sex = np.zeros((30, 1)), np.tile([0, 1], 15), np.repeat(["F", "M", "F"], 10)
    times = rng.integers(1, 4, 30)
    goals = [precision(by="sex").min() >= 0.2, positive_rate(by="sex").gap() <= 0.5]
    weighted = compiled(goals, X=X, y=y, sample_weight=times, columns={"sex": sex})
    repeated = compiled(
        goals,
        X=np.repeat(X, times, 0),
        y=np.repeat(y, times),
        columns={"sex": np.repeat(sex, times)},
    )
    np.testing.assert_allclose(weighted.table.toarray(), repeated.table.toarray())
    np.testing.assert_allclose(weighted.offset, repeated.offset)
    q = rng.random(30)
    np.testing.assert_allclose(weighted.positives([q]), repeated.positives([np.repeat(q, times)]))


def test_row_order_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    n = 40
    y, k = np.tile([0, 1], 20), rng.choice(np.array(["x", "y", "z"], dtype=object), n)
    goals = [recall(by="k").ratio() >= 0.5]
    order = rng.permutation(n)
    one = compiled(goals, X=np.zeros((n, 1)), y=y, columns={"k": k})
    other = compiled(goals, X=np.zeros((n, 1)), y=y[order], columns={"k": k[order]})
    assert one.cell_names == other.cell_names
    np.testing.assert_array_equal(one.table.toarray(), other.table.toarray())


def test_a_hundred_groups_compile_to_a_sparse_table() -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    columns = {"site": rng.integers(0, 100, n), "kind": rng.choice(["a", "b"], n)}
    goals = [
        positive_rate(by="site").gap() <= 0.5,
        recall(by=["site", "kind"]).ratio() >= 0.1,
    ]
    problem = compiled(goals, X=np.zeros((n, 1)), y=rng.integers(0, 2, n), columns=columns)
    assert len(problem.cell_weight) == 400
    assert problem.table.shape == (100 * 99 + 200 * 199, 400)
    # Each row reads the cells of two groups: 4 each where labels and kinds split them, 1 in recall.
    assert problem.table.nnz == 100 * 99 * 8 + 200 * 199 * 2
    q = rng.random(n)
    groups = problem.goals[0].values(problem.positives([q]))
    for site in (0, 57, 99):
        assert groups[str(site)] == pytest.approx(q[columns["site"] == site].mean())
    assert problem.goals[1].groups[0] == "site=0, kind=a"
    assert problem.goals[0].row_labels[0] == (
        "positive_rate(where={site: 0}) - positive_rate(where={site: 1}) <= 0.5"
    )
    assert problem.goals[1].row_labels[0] == (
        "recall(where={kind: a, site: 0}) >= 0.1 * recall(where={kind: b, site: 0})"
    )


def test_a_group_by_itself_has_nothing_to_be_compared_with() -> None:
    goals = [positive_rate(by="k").gap() <= 0.0, positive_rate(by="k").ratio() >= 1.0]
    with pytest.warns(UserWarning, match="compares groups, and there is one only, a") as caught:
        problem = compiled(goals, X=X4, y=Y4, columns={"k": ["a"] * 4})
    assert len(caught) == 2  # one a goal
    assert problem.table.shape[0] == 0
    P = problem.positives([[1, 0, 0, 0]])
    assert [goal.value(P) for goal in problem.goals] == [0.0, 1.0]


def test_columns_of_every_kind_are_groups() -> None:
    dates = np.array(["2024-01-01", "2024-02-01"] * 2, dtype="datetime64[ns]")
    columns = {
        "flag": np.array([True, False, True, False]),
        "size": np.array([1.0, 2.5, 1.0, 2.5]),
        "mixed": np.array([1, "a", 1, "a"], dtype=object),
        "day": dates,
    }
    for name, groups in {
        "flag": ("False", "True"),
        "size": ("1.0", "2.5"),
        "mixed": ("1", "a"),
        "day": ("2024-01-01", "2024-02-01"),
    }.items():
        problem = compiled(positive_rate(by=name).min() >= 0.0, X=X4, y=Y4, columns=columns)
        assert problem.goals[0].groups == groups
        P = problem.positives([[1, 0, 1, 0]])
        assert sorted(problem.goals[0].values(P).values()) == [0.0, 1.0]


def test_conditions_on_the_column_of_groups_choose_among_them() -> None:
    goal = positive_rate(where={"k": ["a", "b"]}, by="k").min() >= 0.1
    problem = compiled(goal, X=X4, y=Y4, columns={"k": list("abcc")})
    assert problem.goals[0].groups == ("a", "b")


# --- what cannot be compiled ----------------------------------------------------------------------


def test_a_value_that_no_row_has_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"'X' in column 'sex'; its values are 'F', 'M'"):
        compiled(recall(where={"sex": "X"}) >= 0.5, X=X4, y=Y4, columns={"sex": list("FFMM")})


def test_a_share_of_no_rows_names_goal_and_subset() -> None:
    message = (
        r"goal 'recall\(where=\{sex: F\}\) >= 0.5': dataset 'train' has no positively labelled"
    )
    with pytest.raises(ValueError, match=message):
        compiled(
            recall(where={"sex": "F"}) >= 0.5, X=X4, y=[0, 0, 1, 1], columns={"sex": [*"FFMM"]}
        )
    with pytest.raises(ValueError, match="the objective: dataset 'train' has no positively"):
        compiled((), recall(where={"sex": "F"}), X=X4, y=[0, 0, 1, 1], columns={"sex": [*"FFMM"]})


def test_an_empty_group_is_an_error_unless_allowed() -> None:
    given_to_bind = dict(X=X4, y=[0, 0, 1, 1], columns={"sex": [*"FFMM"]})
    with pytest.raises(ValueError, match="allow_empty=True drops such groups"):
        compiled(recall(by="sex").min() >= 0.5, **given_to_bind)
    with pytest.warns(UserWarning, match="dropped groups without rows to measure: F"):
        problem = compiled(recall(by="sex", allow_empty=True).min() >= 0.5, **given_to_bind)
    assert problem.goals[0].groups == ("M",)


def test_a_group_of_weight_zero_is_empty() -> None:
    given_to_bind = dict(X=X4, y=Y4, sample_weight=[0, 0, 1, 1], columns={"sex": [*"FFMM"]})
    with pytest.raises(ValueError, match="sex = 'F'"):
        compiled(positive_rate(by="sex").gap() <= 0.5, **given_to_bind)
    with pytest.warns(UserWarning, match="dropped groups"):
        compiled(positive_rate(by="sex", allow_empty=True).gap() <= 0.5, **given_to_bind)


def test_groups_that_are_all_empty_are_an_error_even_where_allowed() -> None:
    unlabelled = Dataset(X4, [1, None, None, None], columns={"k": [*"abbb"]})
    goal = false_positive_rate(on="u", by="k", allow_empty=True).max() <= 0.5
    with pytest.raises(ValueError, match=r"every group is empty \(a, b\)"):
        compiled(goal, X=X4, y=Y4, datasets={"u": unlabelled})


@pytest.mark.parametrize(
    "column", [np.array([1.0, math.nan, 2.0, 2.0]), np.array(["a", None, "b", "b"], dtype=object)]
)
def test_missing_groups_are_an_error_with_the_remedy(column: np.ndarray) -> None:
    with pytest.raises(
        ValueError, match=r"1 row of .* without a value in column 'k'; fill the missing"
    ):
        compiled(positive_rate(by="k").gap() <= 0.5, X=X4, y=Y4, columns={"k": column})


def test_missing_values_meet_no_condition() -> None:
    column = np.array(["a", None, "a", "b"], dtype=object)
    problem = compiled(positive_rate(where={"k": "a"}) >= 0.5, X=X4, y=Y4, columns={"k": column})
    assert problem.goals[0].value(problem.positives([[1, 1, 0, 1]])) == pytest.approx(0.5)


def test_values_that_cannot_be_groups() -> None:
    column = np.empty(4, dtype=object)
    column[:] = [[1], [2], [1], [2]]
    with pytest.raises(TypeError, match="column 'k' of dataset 'train' holds values that cannot"):
        compiled(positive_rate(by="k").gap() <= 0.5, X=X4, y=Y4, columns={"k": column})


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (recall() >= 1.5, r"no classifier can meet recall\(\) >= 1.5 .*1 is the best"),
        (win_rate() >= 0.9, r"0.25 is the best that any classifier reaches"),
        ((win_rate() >= 0.9).named("better"), r"\(goal 'better'\)"),
        (f_score() >= 1.5, "every classifier misses it by 0.5 or more"),
        (positive_rate() >= 1.25 + recall(), "no classifier can meet"),
    ],
)
def test_goals_that_no_classifier_meets(goal: Constraint, message: str) -> None:
    given_to_bind = dict(X=X4, y=Y4, baseline=[1, 1, 0, 1], columns={"k": [*"aabb"]})
    with pytest.raises(InfeasibleGoals, match=message):
        compiled(goal, **given_to_bind)
    compiled(goal, attainable=False, **given_to_bind)


def test_a_goal_just_attainable_is_not_refused() -> None:
    n = 7
    y = np.array([0, 1, 0, 1, 0, 1, 1])
    weight = np.full(n, 0.1)
    problem = compiled(accuracy() >= 1.0, X=np.zeros((n, 1)), y=y, sample_weight=weight)
    assert problem.violations(problem.positives([y]))[0] <= 1e-9


def test_nothing_over_nothing_is_undefined_and_something_over_nothing_infinite() -> None:
    problem = compiled(
        [precision() >= 0.6, win_loss_ratio() >= 2.0], X=X4, y=Y4, baseline=[1, 1, 1, 1]
    )
    nobody = problem.positives([[0, 0, 0, 0]])
    assert math.isnan(problem.goals[0].value(nobody))
    assert problem.violations(nobody)[0] <= 0.0
    right = problem.positives([[0, 1, 0, 1]])
    assert problem.goals[1].value(right) == math.inf


def test_an_objective_that_reads_nothing() -> None:
    problem = compiled((), Rate({}, 0.25), X=X4, y=Y4)
    assert len(problem.cell_weight) == 0
    P = problem.positives([[1, 0, 1, 0]])
    assert problem.objective_value(P) == 0.25
    assert problem.violations(P).shape == (0,)


def test_many_columns_combine_without_overflow() -> None:
    rng = np.random.default_rng(4)
    n = 3_000
    columns = {f"c{i}": rng.integers(0, 200, n) for i in range(9)}
    goals = [positive_rate(by=name).min() >= 0.0 for name in columns]
    problem = compiled(goals, X=np.zeros((n, 1)), y=np.tile([0, 1], n // 2), columns=columns)
    q = rng.random(n)
    P = problem.positives([q])
    for goal, (_, column) in zip(problem.goals, columns.items(), strict=True):
        assert goal.values(P)["17"] == pytest.approx(q[column == 17].mean())
