"""Reports: what they say and how they print."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import pytest

from ratebound.compile import RateProblem, compile_goals
from ratebound.data import bind
from ratebound.goals import Goals
from ratebound.rates import error_rate, positive_rate, precision, recall, win_loss_ratio
from ratebound.report import Certificate, Report, build_report

Y = np.array([1, 1, 1, 0, 0, 0, 0, 0])
DECIDED = np.array([1, 1, 0, 1, 0, 0, 0, 0])
GOALS = Goals(
    error_rate(),
    [
        (recall() >= 0.9).named("the sick"),
        positive_rate(by="sex").ratio() >= 0.8,
        positive_rate() <= 0.375,
    ],
)


def problem_of(goals: Goals = GOALS) -> RateProblem:
    data = bind(
        np.zeros((8, 1)),
        Y,
        baseline=Y,
        columns={"sex": list("FFFMMMMM")},
        reads_labels=goals.reads_labels,
        reads_baseline=goals.reads_baseline,
    )
    return compile_goals(goals, data, attainable=False)


def full_report() -> Report:
    problem = problem_of()
    return build_report(
        problem,
        strict=problem.positives([DECIDED]),
        expected=problem.positives([0.25 + 0.5 * DECIDED]),
        prices={"positive_rate() <= 0.375": 0.1834},
        price_bounds={"the sick": 12.5},
        certificate=Certificate(0.162195, 0.162188, 4.3e-5, 0.0),
        status="converged",
        notes=["the threshold was moved"],
    )


def test_values_and_slack() -> None:
    report = full_report()
    sick, ratio, few = report.goals
    assert report.objective_strict == pytest.approx(2 / 8)
    assert report.objective_expected == pytest.approx(0.75 * 2 / 8 + 0.25 * 6 / 8)
    assert (sick.strict, sick.slack) == pytest.approx((2 / 3, 2 / 3 - 0.9))
    assert sick.expected == pytest.approx((0.75 * 2 + 0.25) / 3)
    assert ratio.groups == pytest.approx({"F": 2 / 3, "M": 1 / 5})
    assert ratio.strict == pytest.approx(3 / 10)
    assert few.slack == pytest.approx(0.0) and few.met
    assert [goal.met for goal in report.goals] == [False, False, True]
    assert not report.met


def test_text() -> None:
    assert str(full_report()).splitlines() == [
        "goal                                    bound  strict  expected    slack   price  met",
        "-------------------------------------------------------------------------------------",
        "minimize error_rate()                          0.2500    0.3750",
        "the sick                                ≥ 0.9  0.6667    0.5833  -0.2333  ≥ 12.5    ✗",
        "    recall() >= 0.9",
        "positive_rate(by=sex).ratio() >= 0.8    ≥ 0.8  0.3000    0.6000  -0.5000            ✗",
        "    lowest M 0.2000, highest F 0.6667",
        "positive_rate() <= 0.375              ≤ 0.375  0.3750    0.4375   0.0000  0.1834    ✓",
        "2 of 3 goals are not met",
        "status: converged",
        "price: loosening the bound by 0.01 lowers the objective by about price × 0.01",
        "price ≥ V: missed although a unit of violation costs V",
        "certificate: optimum of the last convex problem, regulariser included, between "
        "0.162188 and",
        "  0.162195, relative gap 4.3e-05",
        "note: the threshold was moved",
    ]


def test_text_of_goals_that_are_met() -> None:
    goals = Goals(error_rate(), [recall() >= 0.5])
    report = goals.evaluate(predictions=DECIDED, y=Y)
    assert str(report).splitlines() == [
        "goal                   bound  strict    slack  met",
        "--------------------------------------------------",
        "minimize error_rate()         0.2500",
        "recall() >= 0.5        ≥ 0.5  0.6667  +0.1667    ✓",
        "the goal is met",
    ]


def test_no_line_is_wider_than_a_terminal() -> None:
    long = recall(where={"sex": ["F", "M"], "another column": [*"abcdefghijklmnopqrstuvwxyz"]})
    goals = Goals(error_rate() + 0.25 * positive_rate() + positive_rate(where={"sex": "F"}))
    data: Any = dict(y=Y, columns={"sex": list("FFFMMMMM"), "another column": list("abcdefgh")})
    goals = Goals(goals.minimize, [positive_rate(by=["sex", "another column"]).gap() <= 1.0])
    report = goals.evaluate(predictions=DECIDED, **data)
    assert max(map(len, str(report).splitlines())) <= 100
    problem = problem_of(Goals(subject_to=[(recall() >= 0.5).named(str(long))]))
    text = str(build_report(problem, strict=problem.positives([DECIDED])))
    assert max(map(len, text.splitlines())) <= 100
    assert "abcdefg" in text.replace(", ", "").replace("\n", "").replace(" ", "")


def test_small_misses_do_not_look_like_zero() -> None:
    problem = problem_of(Goals(subject_to=[recall() >= 2 / 3 + 1e-6]))
    report = build_report(problem, strict=problem.positives([DECIDED]))
    assert not report.met
    assert "-1.0e-06" in str(report)


def test_met_means_a_violation_of_at_most_1e_9() -> None:
    for miss, met in [(5e-10, True), (2e-9, False)]:
        problem = problem_of(Goals(subject_to=[recall() >= 2 / 3 + miss]))
        assert build_report(problem, strict=problem.positives([DECIDED])).met is met


def test_html_is_escaped() -> None:
    problem = problem_of(Goals(subject_to=[(recall() >= 0.5).named("<script>alert(1)</script>")]))
    html = build_report(problem, strict=problem.positives([DECIDED]))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html and "recall() &gt;= 0.5" in html
    assert html.startswith("<table>") and html.count("<tr>") == 3


def test_frame() -> None:
    frame = full_report().to_frame()
    assert frame["label"].tolist()[0] == "the sick"
    assert frame["strict"].tolist() == pytest.approx([2 / 3, 0.3, 0.375])
    assert frame["price"].isna().tolist() == [True, True, False]
    assert frame["met"].tolist() == [False, False, True]
    problem = problem_of(Goals())
    assert build_report(problem, strict=problem.positives([DECIDED])).to_frame().empty


def test_frame_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        full_report().to_frame()


def test_json_is_stable_and_plain() -> None:
    report = full_report()
    assert report.to_json() == full_report().to_json()
    assert json.loads(report.to_json()) == report.to_dict()
    read = report.to_dict()
    assert read["objective"]["strict"] == pytest.approx(0.25)
    assert read["goals"][0]["price_bound"] == 12.5 and read["goals"][0]["price"] is None
    assert read["certificate"]["gap"] == 4.3e-5
    assert read["met"] is False and read["status"] == "converged"


def test_what_is_undefined_or_infinite() -> None:
    goals = Goals(subject_to=[precision() >= 0.5, win_loss_ratio() <= 9.0])
    problem = problem_of(goals)
    with pytest.warns(UserWarning, match=r"undefined \(0/0\)"):
        report = build_report(problem, strict=problem.positives([np.zeros(8)]))
    precise, wins = report.goals
    assert precise.met and math.isnan(precise.strict) and math.isnan(precise.slack)
    assert wins.strict == 0.0
    assert "undefined (0/0)" in str(report) and "undefined (0/0)" in report._repr_html_()
    assert report.to_dict()["goals"][0]["strict"] is None
    assert "note: precision() >= 0.5 is undefined (0/0) and counts as met" in str(report)
    json.loads(report.to_json())


def test_certificates_in_words() -> None:
    assert "at most 0.5, no lower bound known" in str(Certificate(0.5, -math.inf, math.inf, 0.0))
    assert "goals missed by up to 0.01" in str(Certificate(0.5, 0.4, 0.2, 0.01))


def test_a_report_needs_values() -> None:
    with pytest.raises(ValueError, match="strict or expected"):
        build_report(problem_of())
