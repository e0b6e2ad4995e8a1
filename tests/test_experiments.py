"""Experiments: their runs can be ended and taken up again, and say what they found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ratebound import __version__
from ratebound.cli import main
from ratebound.experiments import NAMES, load
from ratebound.experiments.experiment import Claim, Experiment, Record, Results
from ratebound.experiments.progress import Progress, clock
from ratebound.experiments.running import claim_folder, make_runs, read_csv, write_csv
from ratebound.experiments.writing import reproduce


def measure(run: int, quick: bool) -> list[Record]:
    random = np.random.default_rng(run)
    points = (1.0, 2.0) if quick else (1.0, 1.5, 2.0)
    return [
        {"series": s, "bound": b, "value": float(random.normal())} for s in "ab" for b in points
    ]


def mean_of_value(results: Results) -> list[Claim]:
    return [Claim("a | b", None, f"{results.mean('value'):.3f} in {len(results)} records")]


TOY = Experiment(
    "toy", "A toy", "Numbers.", 3, 2, measure, lambda results: {}, mean_of_value
)  # fmt: skip


class TestRuns:
    def test_all_are_collected(self, tmp_path: Path) -> None:
        made = make_runs(TOY, tmp_path, runs=3, quick=False, jobs=1)
        expected = [{"run": run, **record} for run in range(3) for record in measure(run, False)]
        assert made.results.records == expected
        assert read_csv(tmp_path / "results.csv") == expected
        assert sorted(made.seconds) == [0, 1, 2] and made.new == 3

    def test_they_do_not_depend_on_jobs(self, tmp_path: Path) -> None:
        for jobs in (1, 2):
            make_runs(TOY, tmp_path / str(jobs), runs=3, quick=True, jobs=jobs)
        one, two = ((tmp_path / jobs / "results.csv").read_bytes() for jobs in "12")
        assert one == two

    def test_only_what_is_missing_is_made(self, tmp_path: Path) -> None:
        whole = make_runs(TOY, tmp_path, runs=3, quick=False, jobs=1)
        results = (tmp_path / "results.csv").read_bytes()
        kept = tmp_path / "runs" / "0000.csv"
        before = kept.stat().st_mtime_ns
        (tmp_path / "runs" / "0001.csv").unlink()
        (tmp_path / "runs" / "0002.csv").rename(tmp_path / "runs" / "0002.csv.unfinished")
        again = make_runs(TOY, tmp_path, runs=3, quick=False, jobs=1)
        assert again.new == 2 and again.results.records == whole.results.records
        assert (tmp_path / "results.csv").read_bytes() == results
        assert kept.stat().st_mtime_ns == before

    def test_more_and_fewer_runs_may_be_asked_for_later(self, tmp_path: Path) -> None:
        assert make_runs(TOY, tmp_path, runs=2, quick=False, jobs=1).new == 2
        assert make_runs(TOY, tmp_path, runs=3, quick=False, jobs=1).new == 1
        fewer = make_runs(TOY, tmp_path, runs=1, quick=False, jobs=1)
        assert fewer.new == 0 and fewer.results.values("run") == [0]

    @pytest.mark.parametrize(
        "other", [{"quick": True}, {"experiment": "other"}, {"version": __version__ + "0"}]
    )
    def test_a_folder_of_other_settings_is_refused(
        self, tmp_path: Path, other: dict[str, object]
    ) -> None:
        claim_folder(TOY, tmp_path, quick=False)
        settings = json.loads((tmp_path / "settings.json").read_text())
        (tmp_path / "settings.json").write_text(json.dumps(settings | other))
        with pytest.raises(ValueError, match=r"another folder \(--out\)"):
            make_runs(TOY, tmp_path, runs=1, quick=False, jobs=1)

    def test_a_folder_of_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("somebody's")
        with pytest.raises(ValueError, match="holds something else"):
            reproduce(TOY, tmp_path)
        assert (tmp_path / "README.md").read_text() == "somebody's"

    def test_an_error_of_a_run_is_told(self, tmp_path: Path) -> None:
        def fail(run: int, quick: bool) -> list[Record]:
            raise FileNotFoundError("no such data")

        failing = Experiment("f", "", "", 2, 1, fail, lambda r: {}, mean_of_value)
        with pytest.raises(FileNotFoundError, match="no such data"):
            make_runs(failing, tmp_path, runs=2, quick=False, jobs=1)
        assert not any((tmp_path / "runs").iterdir())


SLOW_RUNS = """if True:
    import sys, time
    from pathlib import Path
    from ratebound.experiments.experiment import Experiment
    from ratebound.experiments.running import make_runs

    def measure(run, quick):
        if run > 0:
            time.sleep(600)
        return [{"value": run}]

    make_runs(
        Experiment("slow", "", "", 4, 1, measure, dict, list),
        Path(sys.argv[1]), runs=4, quick=False, jobs=2,
    )
"""


@pytest.mark.skipif(os.name != "posix", reason="signals to groups of processes")
def test_ctrl_c_ends_all_and_leaves_whole_runs(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUNS, str(tmp_path)],
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    first = tmp_path / "runs" / "0000.csv"
    while not first.exists():
        assert running.poll() is None, running.stderr and running.stderr.read()
        time.sleep(0.05)
    began = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does, to workers too
    running.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert running.returncode != 0
    assert [file.name for file in (tmp_path / "runs").iterdir()] == ["0000.csv"]
    assert [record["value"] for record in read_csv(first)] == [0]


def test_records_read_back_as_they_were(tmp_path: Path) -> None:
    records: list[Record] = [
        {"name": 'a, "b"', "x": 0.1 + 0.2, "n": 3},
        {"name": "nan is a number", "x": float("inf"), "other": -1e-300},
        {"x": np.float64(1) / 3, "n": True},  # as NumPy and comparisons give them
    ]
    write_csv(tmp_path / "records.csv", records)
    assert read_csv(tmp_path / "records.csv") == records


def test_results_are_taken_apart() -> None:
    results = Results(
        [{"run": run, "s": s, "v": run + (s == "b")} for run in (0, 1, 2) for s in "ab"]
    )
    b = results.where(s="b")
    assert len(b) == 3 and results.values("s") == ["a", "b"]
    assert b.mean("v") == pytest.approx(2.0)
    assert b.spread("v") == pytest.approx(1.0)  # of 1, 2 and 3
    assert b.where(run=0).spread("v") == 0.0


@pytest.mark.parametrize(
    ("seconds", "said"), [(42.4, "42 s"), (185, "3 min 05 s"), (7621, "2 h 07 min")]
)
def test_clock(seconds: float, said: str) -> None:
    assert clock(seconds) == said


def test_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    monkeypatch.setattr("ratebound.experiments.progress.time.monotonic", lambda: now[0])
    with Progress("toy", 10, done=6) as progress:
        now[0] += 20.0
        progress.one_more()  # 20 s for the one made here, and three are left
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "toy: 6/10 runs, 0 s elapsed",
        "toy: 7/10 runs, 20 s elapsed, about 1 min 00 s left",
    ]


def test_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce(TOY, tmp_path, quick=True, jobs=1)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    mean = np.mean([record["value"] for run in (0, 1) for record in measure(run, True)])
    assert f"| a ∣ b | **cannot tell** | {mean:.3f} in 8 records |" in text
    assert f"ratebound reproduce toy --runs 2 --out {tmp_path} --quick" in text
    assert f"ratebound {__version__}" in text
    assert "cannot tell: a | b" in capsys.readouterr().out


def test_every_module_of_an_experiment_is_known() -> None:
    for name in NAMES:
        experiment = load(name)
        assert experiment.name == name
        assert experiment.runs >= 1 and experiment.quick_runs >= 1


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "invalid choice"),
        (["fairness", "--runs", "0"], "at least 1"),
        (["fairness", "--jobs", "x"], "invalid"),
        ([], "required"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", *arguments])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_data_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise FileNotFoundError(f'dataset "{name}" is not on this machine')

    monkeypatch.setattr("ratebound.experiments.adult.all_rows", missing)
    command = ["reproduce", "fairness", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert main(command) == 2
    assert 'ratebound: dataset "adult" is not' in capsys.readouterr().err


def test_without_matplotlib_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # so that importing it fails
    assert main(["reproduce", "fairness", "--out", str(tmp_path / "out")]) == 2
    assert 'pip install "ratebound[plot]"' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_all_goes_on_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load_one(name: str) -> Experiment:
        if name == "first":
            raise FileNotFoundError("its data is missing")
        return TOY

    monkeypatch.setattr("ratebound.experiments.NAMES", ("first", "second"))
    monkeypatch.setattr("ratebound.experiments.load", load_one)
    assert main(["reproduce", "all", "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 2
    assert "its data is missing" in capsys.readouterr().err
    assert (tmp_path / "second" / "README.md").is_file()


# --- fairness -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fairness(
    tmp_path_factory: pytest.TempPathFactory, data_file: Callable[[str], Path]
) -> tuple[Path, Callable[[Sequence[str]], int]]:
    """The folder of a quick run, and the command that made it, to be given more arguments."""
    data_file("a9a.train.libsvm.gz")
    data_file("a9a.test.libsvm.gz")
    folder = tmp_path_factory.mktemp("fairness")

    def again(more: Sequence[str]) -> int:
        return main(["reproduce", "fairness", "--quick", "--out", str(folder), *more])

    assert again(["--jobs", "2"]) == 0
    return folder, again


def test_fairness_leaves_what_it_should(
    fairness: tuple[Path, Callable[[Sequence[str]], int]],
) -> None:
    folder, _ = fairness
    for number in (1, 2, 3, 4):
        assert (folder / f"fairness-{number}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (folder / f"fairness-{number}.svg").read_text(encoding="utf-8")
    text = (folder / "README.md").read_text(encoding="utf-8")
    claims = [line for line in text.splitlines() if "**met**" in line or "**not met**" in line]
    assert len(claims) == 20
    results = Results(read_csv(folder / "results.csv"))
    assert results.values("run") == [0, 1]
    # what any trained fit must give: training rows obey the goal in expectation
    proposed = results.where(series="proposed")
    over = proposed.column("train_ratio_expected") / proposed.column("bound")
    assert np.all(over <= 1.002)
    svm = results.where(series="SVM", variant="with bias")
    assert svm.mean("train_error") < 0.2 and svm.mean("train_ratio") > 2.0


def test_errors_are_compared_at_equal_ratio() -> None:
    """By hand: between ratios 1 and 2 the proposed error is interpolated, beyond 2 it stays."""
    from ratebound.experiments.fairness import excess

    points = [("proposed", 1.0, 1.0, 0.20), ("proposed", 2.0, 2.0, 0.16)]
    points += [("Zafar et al.", 0.0, 1.25, 0.18), ("Zafar et al.", 0.5, 3.0, 0.17)]
    results = Results(
        # two runs, whose means are the points
        {"run": run, "series": s, "bound": b, "test_ratio": x + d, "test_error": e - d / 10}
        for run, d in ((0, -0.1), (1, 0.1))
        for s, b, x, e in points
    )
    assert excess(results, "test") == pytest.approx([0.01, -0.01])


def test_fairness_goes_on_after_a_run_and_in_other_jobs(
    fairness: tuple[Path, Callable[[Sequence[str]], int]],
) -> None:
    folder, again = fairness
    before = (folder / "results.csv").read_bytes()
    (folder / "runs" / "0001.csv").unlink()
    (folder / "results.csv").unlink()
    assert again(["--jobs", "1"]) == 0
    assert (folder / "results.csv").read_bytes() == before


def test_a_support_vector_machine_is_solved_to_the_end(
    data_file: Callable[[str], Path],
) -> None:
    """A series called SVM must be one: LIBLINEAR's objective with the same loss is no lower."""
    data_file("a9a.train.libsvm.gz")
    from sklearn.base import clone
    from sklearn.svm import LinearSVC

    from ratebound import RateBoundSVC
    from ratebound.experiments.adult import split
    from ratebound.experiments.plain_models import ToTheEnd

    train, _ = split(1, quick=True)
    n = len(train.y)
    svc = RateBoundSVC(start="zero", threshold="zero", fit_intercept=False, alpha=1 / n)
    convex = clone(svc).set_params(solver=ToTheEnd(1e-6), max_iter=1)
    with pytest.warns(match="max_iter"):
        convex.fit(train.X, train.y)

    # mean max(0, 1/2 - yz) + |w|²/2n is half of LIBLINEAR's at 2w with C = 2, over n
    liblinear = LinearSVC(
        loss="hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=10**6
    ).fit(train.X, train.y)  # fmt: skip

    def objective(coef: np.ndarray) -> float:
        hinges = np.maximum(0.0, 0.5 - train.y * (train.X @ coef))
        return float(hinges.mean() + coef @ coef / (2 * n))

    best = objective(liblinear.coef_[0] / 2)
    assert objective(convex.coef_) == pytest.approx(best, rel=1e-4)
