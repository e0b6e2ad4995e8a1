"""The command line: what it prints, how it ends, how little it loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ratebound import __version__
from ratebound.cli import main


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    for part in (
        "A deployed model",
        "[RateBoundSVC] step   1",
        "recall(on=audit) >= 0.97",
        "churn(on=traffic) <= 0.06",
        "all 3 goals are met",
        "certificate: optimum of the last convex problem, regulariser",
        "What to try next",
    ):
        assert part in printed
    assert max(map(len, printed.splitlines())) <= 110


def test_demo_of_another_split(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seed", "1"]) == 0
    assert "Report" in capsys.readouterr().out


@pytest.mark.slow
def test_demo_on_adult(
    data_file: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data_file("a9a.train.libsvm.gz")
    assert main(["demo", "--data", "adult"]) == 0
    assert "the goal is met" in capsys.readouterr().out


def test_adult_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise FileNotFoundError(f'dataset "{name}" is not on this machine')

    monkeypatch.setattr("ratebound.datasets.load", missing)
    assert main(["demo", "--data", "adult"]) == 2
    assert 'ratebound: dataset "adult" is not' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required"),
        (["demo", "--data", "iris"], "invalid choice"),
        (["demo", "--seed", "-1"], "between 0"),
        (["demo", "--seed", "x"], "invalid"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"ratebound {__version__}\n"


def test_importing_loads_no_compiler_and_no_pictures() -> None:
    # what scikit-learn itself loads is not counted
    code = """if True:
        import sys, sklearn.metrics
        before = set(sys.modules)
        import ratebound
        heavy = {"numba", "torch", "dask", "matplotlib", "pandas", "polars", "cvxpy"}
        print(sorted(heavy & (set(sys.modules) - before)))
    """
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert loaded.strip() == "[]"
