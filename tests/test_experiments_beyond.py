"""Experiments beyond the paper: splits, judgements, what is measured, and claims that can fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ratebound import Goals, error_rate, false_positive_rate, recall
from ratebound.experiments import alphas, load, repair, sizes, starts
from ratebound.experiments.adult import split
from ratebound.experiments.cases import CASES, judge
from ratebound.experiments.experiment import Experiment, Results
from ratebound.experiments.paired import Difference, difference
from ratebound.experiments.rows import Rows

FILES = {
    "adult": "a9a.train.libsvm.gz",
    "bank": "bank_full.csv.gz",
    "compas": "compas_two_years.csv.gz",
    "elec2": "elec2.csv.gz",
    "german_credit": "german_credit.csv.gz",
    "mushrooms": "mushrooms.libsvm.gz",
    "w8a": "w8a.libsvm.gz",
}
QUICK = {"starts": starts, "repair": repair, "sizes": sizes, "alphas": alphas}
_measured: dict[str, Results] = {}


@pytest.fixture(params=QUICK)
def quick(request: pytest.FixtureRequest, data_file: Callable[[str], Path]) -> tuple[str, Results]:
    """The first quick run of each experiment, made once."""
    name = request.param
    for file in (FILES["adult"], "a9a.test.libsvm.gz", FILES["bank"], FILES["compas"]):
        data_file(file)
    if name not in _measured:
        records = QUICK[name].EXPERIMENT.measure(0, True)
        _measured[name] = Results({"run": 0, **record} for record in records)
    return name, _measured[name]


# --- paired differences -------------------------------------------------------------------------


def of(values: dict[tuple[int, str], float]) -> Results:
    return Results({"run": run, "case": case, "v": v} for (run, case), v in values.items())


def test_a_difference_is_paired_by_run_and_case() -> None:
    ours = of({(0, "a"): 1.0, (0, "b"): 5.0, (1, "a"): 2.0, (1, "b"): 9.0})
    other = of({(0, "a"): 0.0, (0, "b"): 4.0, (1, "a"): 0.0, (1, "b"): 4.0})
    # run 0: (1 + 1) / 2, run 1: (2 + 5) / 2; deviation of 1 and 3.5 is 1.25 sqrt 2
    assert difference(ours, other, "v", by="case") == Difference(2.25, 1.25)
    assert math.isnan(difference(ours.where(run=0), other.where(run=0), "v", by="case").error)


@pytest.mark.parametrize(
    ("mean", "error", "answer"),
    [(0.0, 0.4, True), (0.0, 0.6, None), (3.1, 1.0, False), (2.9, 1.0, None)],
)
def test_no_more_than_asks_for_two_standard_errors(
    mean: float, error: float, answer: bool | None
) -> None:
    assert Difference(mean, error).no_more_than(1.0) is answer


def test_one_run_cannot_tell() -> None:
    assert Difference(-5.0, math.nan).no_more_than(1.0) is None


# --- cases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_split_is_of_different_rows_and_scaled_by_the_training_rows(
    case: object, data_file: Callable[[str], Path]
) -> None:
    data_file(FILES[case.name])
    train, test = case.split(0, 500, 200)
    again, _ = case.split(0, 500, 200)
    other, _ = case.split(1, 500, 200)
    assert (train.X.shape[0], len(test.y)) == (500, 200)
    assert abs(train.X - again.X).max() == 0 and not np.array_equal(train.y, other.y)
    if isinstance(train.X, np.ndarray):
        assert np.abs(train.X.mean(axis=0)).max() < 1e-9 < np.abs(test.X.mean(axis=0)).max()
    assert (train.baseline is not None) == case.has_deployed
    assert set(np.unique(train.y)) == {-1, 1}


def test_two_thirds_at_most_are_for_training(data_file: Callable[[str], Path]) -> None:
    data_file(FILES["german_credit"])
    case = next(case for case in CASES if case.name == "german_credit")
    train, test = case.split(0, 10_000, 10_000)
    assert (len(train.y), len(test.y)) == (666, 334)


def test_judge_is_by_the_worst_goal() -> None:
    rows = Rows(np.zeros((5, 1)), np.array([1, 1, -1, -1, -1]), None)
    decided = np.array([1, -1, 1, 1, -1])
    goals = Goals(error_rate(), [recall() >= 0.6, false_positive_rate() <= 0.4])
    objective, missed = judge(goals, decided, rows)
    assert objective == pytest.approx(3 / 5)
    assert missed == pytest.approx(2 / 3 - 0.4)  # recall is missed by 0.1 only
    assert judge(Goals(error_rate(), [recall() >= 0.5]), decided, rows)[1] == 0.0


# --- what is measured ---------------------------------------------------------------------------


def test_starts_solve_one_problem_from_everywhere(quick: tuple[str, Results]) -> None:
    name, results = quick
    if name != "starts":
        pytest.skip("of the starts alone")
    for dataset in results.values("dataset"):
        those = results.where(dataset=dataset)
        assert [r["start"] for r in those] == list(starts.STARTS)
        assert np.all(those.column("ramp_missed") <= 1e-4)
        assert np.all(those.column("missed") <= 1e-9)
        # one problem: its local optima are not far from each other
        assert np.ptp(those.column("ramp")) < 0.05
        best, middle = (
            those.where(start="random restarts").mean(c) for c in ("ramp", "ramp_median")
        )
        assert best <= middle
        steps = {start: those.where(start=start).mean("newton_steps") for start in starts.STARTS}
        assert steps["random restarts"] > steps["zero"]


def test_goals_are_met_on_training_rows(quick: tuple[str, Results]) -> None:
    name, results = quick
    those = results.where(rule="repair") if name == "repair" else results
    assert np.all(those.column("missed") <= 1e-9)


def test_figures_have_labels_and_a_legend(quick: tuple[str, Results]) -> None:
    name, results = quick
    drawn = QUICK[name].EXPERIMENT.figures(results)
    assert set(drawn) == {name}
    figure = drawn[name]
    assert figure.legends and all(panel.get_title() for panel in figure.axes)
    assert any(panel.get_xlabel() for panel in figure.axes)


def test_claims_and_tables_speak_of_every_case(quick: tuple[str, Results]) -> None:
    name, results = quick
    experiment = load(name)
    assert isinstance(experiment, Experiment) and experiment.name == name
    assert all(claim.found for claim in experiment.claims(results))
    text = experiment.tables(results)
    for column in ("dataset", "goals"):
        assert all(value in text for value in results.values(column))


def test_alphas_are_chosen_on_training_rows_of_the_official_split(
    data_file: Callable[[str], Path],
) -> None:
    data_file(FILES["adult"])
    data_file("a9a.test.libsvm.gz")
    from ratebound.datasets import load as load_data

    adult = load_data("adult")
    train, test = split(0)
    np.testing.assert_array_equal(train.y, adult.y)
    np.testing.assert_array_equal(test.y, adult.test.y)
    train, test = split(1)
    assert (len(train.y), len(test.y)) == (len(adult.y), len(adult.test.y))
    assert np.any(train.y != adult.y)


# --- claims that fail -----------------------------------------------------------------------------


def of_starts(worse: float) -> Results:
    """Made-up results in which the homotopy ends higher by so much, with a little noise."""
    rng = np.random.default_rng(0)
    return Results(
        {
            "run": run, "dataset": dataset, "start": start, "newton_steps": 10, "stalled": 0,
            **{
                column: 0.2 + worse * (start == "homotopy") + 1e-5 * rng.normal()
                for column in ("ramp", "test_objective", "test_missed")
            },
        }
        for run in range(4)
        for dataset in ("one", "two")
        for start in starts.STARTS
    )  # fmt: skip


@pytest.mark.parametrize(("worse", "met"), [(0.0, True), (0.01, False)])
def test_a_homotopy_that_ends_higher_is_said_to(worse: float, met: bool) -> None:
    claims = starts.EXPERIMENT.claims(of_starts(worse))
    assert [claim.met for claim in claims[:3]] == [met, met, met]
    assert [claim.met for claim in claims[4:]] == [met] * 3  # then the others are lower


def of_sizes(power: float) -> Results:
    return Results(
        {
            "run": run, "goal": goal, "size": n, "missed": 0.0, "excess": 0.0,
            "test_missed": n**power, "test_excess": n**power, "chance": 0.5 / math.sqrt(n),
        }
        for run in range(2)
        for goal in sizes.GOALS
        for n in sizes.SIZES
    )  # fmt: skip


def test_a_violation_that_falls_too_slowly_is_said_to() -> None:
    falls = sizes.EXPERIMENT.claims(of_sizes(-0.5))
    assert [claim.met for claim in falls] == [True, *[True, False] * 4]  # two standard errors
    assert "power -0.50" in falls[1].found
    assert not any(claim.met for claim in sizes.EXPERIMENT.claims(of_sizes(-0.3))[1::2])
    assert sizes._power([1, 4, 16, 64], [8.0, 4.0, 2.0, 0.0]) == pytest.approx(-0.5)


def test_chance_is_binomial() -> None:
    y, sex = np.repeat([1, -1], [300, 700]), np.tile(["Female", "Male"], 500)
    decided = np.where(np.arange(1000) < 200, 1, -1)
    assert sizes._chance("recall", y, sex, decided) == pytest.approx(0.025)
    assert sizes._chance("coverage", y, sex, decided) == pytest.approx(math.sqrt(0.1275 / 1000))
    draws = np.random.default_rng(0).binomial(500, 0.2, size=(100_000, 2))
    spread = np.std(0.8 * draws[:, 0] / draws[:, 1])
    assert sizes._chance("ratio", y, sex, decided) == pytest.approx(spread, rel=0.03)


def test_a_rule_that_misses_goals_is_said_to() -> None:
    results = Results(
        {
            "run": run, "dataset": "one", "rule": rule, "met": int(run > 0), "missed": 0.1,
            "test_missed": 0.1 + 0.05 * (rule == "repair"), "test_objective": 0.2,
        }
        for run in range(3)
        for rule in repair.RULES
    )  # fmt: skip
    assert [claim.met for claim in repair.EXPERIMENT.claims(results)] == [False, False, True]


def test_an_alpha_with_more_test_errors_than_the_peers_is_said_to() -> None:
    results = Results(
        {
            "run": run, "split": "random" if run else "official", "goals": goals, "place": place,
            "alpha": 10.0**-place, "chosen": int(place == 0), "error": 0.1, "missed": 0.0,
            "test_error": 0.165 + 0.01 * (place == 1), "test_missed": 0.0,
        }
        for run in range(3)
        for goals in alphas.GOALS
        for place in (0, 1)
    )  # fmt: skip
    claims = alphas.EXPERIMENT.claims(results)
    assert [claim.met for claim in claims[:4]] == [False, True, False, True]
    assert all(claim.met for claim in claims[4:])
