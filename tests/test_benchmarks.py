"""The benchmark modules import without the peers they compare with, and tables read as they should.

Peers themselves are no part of the tests.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]

benchmarks = pytest.importorskip("benchmarks")


def names() -> list[str]:
    found = pkgutil.iter_modules(benchmarks.__path__, "benchmarks.")
    return sorted(module.name for module in found)


@pytest.mark.parametrize("name", names())
def test_modules_import_without_peers(name: str) -> None:
    peers = ("fairlearn", "cooper", "sklego", "oxonfair", "cvxpy", "torch", "tensorflow")
    before = {peer for peer in peers if peer in sys.modules}
    importlib.import_module(name)
    assert {peer for peer in peers if peer in sys.modules} == before


def task(problem: str = "six") -> benchmarks.task.Task:
    from benchmarks.problems import NUMBERS
    from benchmarks.task import Task

    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.normal(size=(40, 3)))
    y, men = rng.integers(0, 2, size=40), rng.random(40) < 0.5
    return Task(problem, X, y, men, X, y, men, NUMBERS[problem])


def test_a_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    from benchmarks.task import Task

    written = task()
    written.save(tmp_path / "task.npz")
    read = Task.read(tmp_path / "task.npz")
    assert read.problem == "six" and read.numbers == written.numbers
    assert (read.X != written.X).nnz == 0
    np.testing.assert_array_equal(read.men, written.men)


@pytest.mark.parametrize("problem", ["ratio", "parity", "recall", "six"])
def test_shares_say_what_the_goals_say(problem: str) -> None:
    """Peers are told the problem as shares, ratebound as goals: violations are the same."""
    from benchmarks.problems import judged

    given = task(problem)
    decided = np.random.default_rng(1).integers(0, 2, size=40)

    def value(shares: object) -> float:
        return shares.constant + sum(c * decided[rows].mean() for c, rows in shares.parts)

    report = judged(given, {"train": decided}, "train")
    assert value(given.objective) == pytest.approx(report.objective_strict)
    worst = max(value(shares) for shares in given.constraints)
    assert (worst <= 1e-9) == report.met
    if problem != "ratio":  # whose slack is of the ratio, not of the normalised form
        assert -worst == pytest.approx(min(goal.slack for goal in report.goals))


def test_a_system_that_is_not_there_is_in_the_table(tmp_path: Path) -> None:
    """A worker that cannot import its peer says so, and the table has a row that says so."""
    from benchmarks.tables import markdown

    task("ratio").save(tmp_path / "task.npz")
    code = (
        "import sys; sys.modules['fairlearn'] = None; "
        "sys.argv = ['worker', 'fairlearn EG, LinearSVC', *sys.argv[1:]]; "
        "from benchmarks.worker import main; main()"
    )
    arguments = [str(tmp_path / "task.npz"), str(tmp_path), "1", "1"]
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, check=True)
    said = json.loads((tmp_path / "times.json").read_text())
    assert said["status"].startswith("not installed: ")
    result = {
        "title": "T",
        "floor": "LIBLINEAR, no goal",
        "rows": 40,
        "setting": {"threads": 1, "repeats": 1, "budget": 1.0, "clock": "cpu"},
        "machine": {"cores": 1, "python": "3", "versions": {}},
        "systems": {"fairlearn EG, LinearSVC": said},
    }
    assert "| fairlearn EG, LinearSVC | not installed: " in markdown(result)


def test_errors_are_compared_at_the_ratio_that_a_peer_has_reached(tmp_path: Path) -> None:
    from benchmarks.equal_ratio import markdown, others

    def said(men: float, women: float) -> dict[str, object]:
        return {"test": {"objective": 0.2, "rates": {"men": men, "women": women}}}

    systems = {"LIBLINEAR, no goal": said(1, 1), "a": said(0.4, 0.3), "b": said(0.4, 0.1)}
    tables = {"ratio": {**systems, "c": {"status": "not installed"}}, "parity": {}}
    for name, found in tables.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"systems": found}))
    peers = others(tmp_path)
    assert [(name, round(ratio, 9)) for _, name, ratio, _ in peers] == [("a", 0.75), ("b", 0.25)]
    text = markdown([(1.0, 1e-3, 1.0, 0.18), (0.5, 1e-3, 0.5, 0.16)], peers)
    assert "| a | 0.750 | 0.2000 | 0.1700 |" in text
    assert "| b | 0.250 | 0.2000 | not reached |" in text


@pytest.mark.parametrize("changes", [{"convex": True}, {"goals": 6}, {"groups": 3, "density": 0.5}])
def test_a_point_of_a_study_is_measured(changes: dict[str, float]) -> None:
    from benchmarks.scaling import Point, measure

    point = Point(**{"rows": 600, "features": 4, "gap": 1e-3, **changes})
    found = measure(point, repeats=1, processor=True)
    assert found["gap"] <= point.gap
    assert found["newton"] >= 1 and found["seconds"] > 0
