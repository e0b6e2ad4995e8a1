"""What an experiment leaves behind for readers: figures, and a summary that holds it to its claims.

`DIR/README.md` is the summary; forges show it where the folder is opened.
"""

from __future__ import annotations

import platform
import shlex
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from ratebound.experiments.experiment import Claim, Experiment
from ratebound.experiments.progress import clock
from ratebound.experiments.running import Made, make_runs, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "README.md"
_FOUND = {True: "met", False: "not met", None: "cannot tell"}
_DEPENDENCIES = ("ratebound", "numpy", "scipy", "scikit-learn", "numba", "joblib", "matplotlib")


def reproduce(
    experiment: Experiment,
    folder: Path,
    *,
    runs: int | None = None,
    quick: bool = False,
    jobs: int | None = None,
) -> list[Claim]:
    """Make the runs that are missing, then write results, figures and summary; print the claims.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
    runs : int, optional
        By default what the experiment says.
    quick : bool
    jobs : int, optional
        Runs at a time; by default the number of cores.
    """
    began = time.monotonic()
    if runs is None:
        runs = experiment.quick_runs if quick else experiment.runs
    made = make_runs(experiment, folder, runs=runs, quick=quick, jobs=jobs)
    claims = experiment.claims(made.results)
    drawn = experiment.figures(made.results)
    save_figures(drawn, folder)
    command = ["ratebound", "reproduce", experiment.name, "--runs", str(runs), "--out", str(folder)]
    text = summary(
        experiment, made, claims, list(drawn),
        command=shlex.join(command + ["--quick"] * quick), seconds=time.monotonic() - began,
    )  # fmt: skip
    write_whole(folder / SUMMARY, text)
    for claim in claims:
        for head, said in ((f"{_FOUND[claim.met]:>11s}: ", claim.text), ("", claim.found)):
            print(fill(said, 100, initial_indent=f"{head:13s}", subsequent_indent=" " * 13))
    print(f"see {folder / SUMMARY}")
    return claims


def save_figures(drawn: Mapping[str, Figure], folder: Path) -> None:
    """Save each figure as PNG and SVG, the same bytes for the same figure."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "ratebound"}):
        for name, figure in drawn.items():
            figure.savefig(folder / f"{name}.png", dpi=150)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def summary(
    experiment: Experiment,
    made: Made,
    claims: list[Claim],
    figures: list[str],
    *,
    command: str,
    seconds: float,
) -> str:
    """Return the summary as Markdown."""
    parts = [f"# {experiment.title}", experiment.about.strip()]
    if "--quick" in command:
        parts.append("**A quick run, on few rows and points: it shows that all works, no more.**")
    parts += ["## Claims", _claims_table(claims)]
    for name in figures:
        parts.append(f"![{name}]({name}.png)\n\nAs vectors: [{name}.svg]({name}.svg)")
    tables = experiment.tables(made.results).strip()
    if tables:
        parts.append(tables)
    parts += ["## How it was made", f"```\n{command}\n```", _how(made, seconds)]
    return "\n\n".join(parts) + "\n"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |" for row in lines)


def _claims_table(claims: list[Claim]) -> str:
    rows = [[claim.text, f"**{_FOUND[claim.met]}**", claim.found] for claim in claims]
    return table(["claim", "", "found"], rows)


def _how(made: Made, seconds: float) -> str:
    taken = list(made.seconds.values())
    lines = [
        f"- {len(taken)} runs of {clock(min(taken))} to {clock(max(taken))}, "
        f"{clock(sum(taken))} one after the other",
        f"- this command: {clock(seconds)}, for {made.new} runs that were not there before, "
        f"{made.jobs} at a time",
        f"- Python {platform.python_version()}, {sys.platform}, {platform.machine()}; "
        + ", ".join(f"{name} {_version(name)}" for name in _DEPENDENCIES),
        "- every run: [results.csv](results.csv)",
    ]
    return "\n".join(lines)


def _version(name: str) -> str:
    if name == "ratebound":
        from ratebound import __version__

        return __version__
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
