"""The frontier of a goal's bound: slopes, order of bounds, certificates, tables and the figure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
)
from ratebound.frontier import Frontier, frontier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 4))
Y = (X @ [1.2, 0.8, -0.5, 0.0] + RNG.logistic(size=500) > 0.3).astype(int)
RECALL = recall() >= 0.8
SVC = RateBoundSVC(Goals(false_positive_rate(), [RECALL]), alpha=0.1, tol=1e-6, threshold="zero")
BOUNDS = [0.6, 0.65, 0.7, 0.75, 0.8]


@pytest.fixture(scope="module")
def swept() -> Frontier:
    return frontier(SVC, RECALL, BOUNDS, X, Y)


def ramp_objective(svc: RateBoundSVC) -> float:
    """Regulariser included, from scores and labels alone."""
    q = np.clip(0.5 + X @ svc.coef_ + svc.intercept_, 0, 1)
    return float(np.mean(q[Y == 0]) + 0.5 * svc.alpha * svc.coef_ @ svc.coef_)


def test_every_point_meets_its_bound_and_is_certified(swept: Frontier) -> None:
    for point, bound in zip(swept.points, BOUNDS, strict=True):
        q = np.clip(0.5 + X @ point.estimator.coef_ + point.estimator.intercept_, 0, 1)
        assert point.bound == bound
        assert np.mean(q[Y == 1]) == pytest.approx(point.expected, abs=1e-9)
        assert point.expected >= bound - 1e-5
        assert np.mean(q[Y == 0]) == pytest.approx(point.objective_expected, abs=1e-9)
        assert point.gap <= 1e-6
        certificate = point.estimator.report_.certificate
        assert certificate.lower <= certificate.upper


def test_prices_are_slopes_of_the_frontier(swept: Frontier) -> None:
    values = [ramp_objective(point.estimator) for point in swept.points]
    prices = [point.price for point in swept.points]
    slopes = np.diff(values) / np.diff(BOUNDS)
    for slope, below, above in zip(slopes, prices[:-1], prices[1:], strict=True):
        # between the prices at the two ends, up to the tolerance of the fits
        assert min(below, above) - 1e-2 <= slope <= max(below, above) + 1e-2
    assert slopes.min() > 0.1


def test_points_are_as_good_as_single_fits(swept: Frontier) -> None:
    for point in swept.points:
        single = clone(point.estimator).fit(X, Y)
        assert ramp_objective(point.estimator) <= ramp_objective(single) * (1 + 1e-3)
    steps = sum(point.n_iter for point in swept.points[1:])
    singles = (clone(point.estimator).set_params(start="zero") for point in swept.points[1:])
    assert steps < sum(single.fit(X, Y).n_iter_ for single in singles)


def test_a_leap_after_a_small_step_is_no_worse_than_a_single_fit() -> None:
    swept = frontier(SVC, RECALL, [0.6, 0.601, 0.8], X, Y)
    last = swept.points[-1].estimator
    single = clone(last).fit(X, Y)
    assert ramp_objective(last) <= ramp_objective(single) * (1 + 1e-3)
    assert last.n_iter_ <= single.n_iter_ + 2


def test_the_order_in_which_bounds_are_given_does_not_matter(swept: Frontier) -> None:
    shuffled = frontier(SVC, "recall() >= 0.8", [BOUNDS[i] for i in (3, 0, 4, 1, 2)], X, Y)
    by_bound = {point.bound: point for point in shuffled.points}
    assert [point.bound for point in shuffled.points] == [0.75, 0.6, 0.8, 0.65, 0.7]
    for point in swept.points:
        np.testing.assert_array_equal(by_bound[point.bound].estimator.coef_, point.estimator.coef_)


def test_a_bound_from_above_on_another_dataset_with_other_goals() -> None:
    other = Dataset(X[:200] + 0.1)
    goals = Goals(
        error_rate(), [RECALL.named("keep"), (positive_rate(on="traffic") <= 0.7).named("cap")]
    )
    svc = RateBoundSVC(goals, alpha=0.1)
    swept = frontier(svc, "cap", [0.6, 0.7, 0.65], X, Y, datasets={"traffic": other})
    assert svc.goals is goals and not hasattr(svc, "coef_")
    for point in swept.points:
        decided = point.estimator.predict(other.X)
        assert np.mean(decided) == pytest.approx(point.strict, abs=1e-12)
        assert [goal.label for goal in point.estimator.goals.subject_to] == ["keep", "cap"]
        assert point.met == (
            point.strict <= point.bound + 1e-9 and point.estimator.report_.goals[0].met
        )
    assert swept.points[1].met


def test_a_missed_bound_is_a_point_that_says_so() -> None:
    goals = Goals(error_rate(), [recall() >= 0.9, positive_rate() <= 0.6])
    svc = RateBoundSVC(goals, alpha=0.1, max_iter=3, threshold="zero")
    swept = frontier(svc, "recall() >= 0.9", [0.5, 1.0], X[:, 3:], Y)
    tight = swept.points[1]
    assert not tight.met and "missed" in tight.estimator.status_.message
    assert "✗" in str(swept)


def test_a_group_ratio_is_swept() -> None:
    sex = np.where(X[:, 0] > 0, "f", "m")
    fair = positive_rate(by="sex").ratio() >= 0.5
    svc = RateBoundSVC(Goals(error_rate(), [fair]), alpha=0.1)
    swept = frontier(svc, fair, [0.4, 0.6], X, Y, columns={"sex": sex})
    for point in swept.points:
        rates = [np.mean(point.estimator.predict(X[sex == s])) for s in "fm"]
        assert min(rates) / max(rates) == pytest.approx(point.strict, abs=1e-12)
        assert point.met and point.strict >= point.bound - 1e-9


def test_tables(swept: Frontier) -> None:
    text = str(swept).splitlines()
    assert "along the bound of recall() >= 0.8" in text[0]
    assert len(text) == 3 + len(BOUNDS) and len({len(line) for line in text[1:]}) == 1
    frame = swept.to_frame()
    assert frame["bound"].tolist() == BOUNDS and frame["met"].dtype == bool
    html = swept._repr_html_()
    assert html.count("<tr>") == 1 + len(BOUNDS) and "recall() &gt;= 0.8" in html


@pytest.fixture
def pyplot() -> Iterator[Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_the_figure_says_what_it_shows(swept: Frontier, pyplot: Any) -> None:
    above, below = swept.plot()
    above.figure.canvas.draw()
    assert above.get_ylabel() == "false_positive_rate()"
    assert below.get_xlabel() == "bound of recall() >="
    drawn = next(line for line in above.lines if "expected" in line.get_label())
    np.testing.assert_array_equal(drawn.get_xdata(), BOUNDS)
    expected = [point.objective_expected for point in swept.points]
    np.testing.assert_array_equal(drawn.get_ydata(), expected)
    assert below.get_ylim()[0] == 0 and len(above.get_legend().get_texts()) == 2
    _, given = pyplot.subplots(1, 2)
    assert swept.plot(given)[0] is given[0]


def test_what_cannot_be_swept_is_named() -> None:
    with pytest.raises(ValueError, match=r'no goal "precision\(\)"'):
        frontier(SVC, "precision()", BOUNDS, X, Y)
    with pytest.raises(TypeError, match="not a Goals"):
        frontier(SVC.goals, RECALL, BOUNDS, X, Y)
    with pytest.raises(ValueError, match="at least one"):
        frontier(SVC, RECALL, [], X, Y)
    two = recall() >= positive_rate()
    with pytest.raises(ValueError, match="compares two rates"):
        frontier(RateBoundSVC(Goals(error_rate(), [two])), two, [0.1], X, Y)


def test_the_documented_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).resolve().parents[1] / "docs" / "selection.md").read_text()
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "docs/selection.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "all 2 goals are met" in printed and printed.count("✓") >= 6
