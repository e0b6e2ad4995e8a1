"""The runs of an experiment: in parallel, each kept in a file of its own as soon as it is done.

What a folder holds says what is left to do, so a command that was killed goes on where it was when
it is given again::

    DIR/settings.json   the experiment, whether quick, and the version: of all runs in the folder
    DIR/runs/0000.csv   what run 0 measured, and how long it took
    DIR/results.csv     what all runs measured, the same whenever and wherever they were made
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ratebound import __version__
from ratebound.experiments.experiment import Experiment, Record, Results
from ratebound.experiments.progress import Progress

SETTINGS = "settings.json"
SECONDS = "run_seconds"  # column of the runs' files


@dataclass(frozen=True)
class Made:
    """What came of the runs.

    Attributes
    ----------
    results : Results, of all runs
    seconds : dict, how long each run took
    new : int, how many were made now and not before
    jobs : int, how many of these at a time
    """

    results: Results
    seconds: dict[int, float]
    new: int
    jobs: int


def make_runs(
    experiment: Experiment, folder: Path, *, runs: int, quick: bool, jobs: int | None = None
) -> Made:
    """Make those runs that the folder does not have yet, and collect all of them.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Made where it is missing; one that holds anything but runs of the same settings is refused.
    runs : int
        Runs 0, ..., runs - 1 are made. Others that the folder has stay out of the results.
    quick : bool
    jobs : int, optional
        Runs at a time; by default the number of cores.
    """
    import joblib

    claim_folder(experiment, folder, quick)
    files = {run: folder / "runs" / f"{run:04d}.csv" for run in range(runs)}
    missing = [run for run, file in files.items() if not file.exists()]
    jobs = max(1, min(jobs or joblib.cpu_count(), len(missing)))
    with Progress(experiment.name, runs, runs - len(missing)) as progress:
        for run, records, seconds in _made(experiment, missing, quick, jobs):
            timed = ({"run": run, SECONDS: round(seconds, 3), **record} for record in records)
            write_csv(files[run], timed)
            progress.one_more()
    read = {run: read_csv(file) for run, file in files.items()}
    taken = {run: float(records[0][SECONDS]) for run, records in read.items()}
    results = Results(
        {name: value for name, value in record.items() if name != SECONDS}
        for records in read.values()
        for record in records
    )
    write_csv(folder / "results.csv", results)
    return Made(results, taken, len(missing), jobs)


def claim_folder(experiment: Experiment, folder: Path, quick: bool) -> None:
    """Make the folder, or refuse one that is not of the same settings."""
    settings = {"experiment": experiment.name, "quick": quick, "version": __version__}
    try:
        there = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = None
    remedy = "take another folder (--out), or remove this one"
    if there is None and folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} holds something else than runs of an experiment: {remedy}")
    if there not in (None, settings):
        raise ValueError(
            f"{folder} holds runs of {_said(there)}, not of {_said(settings)}: {remedy}"
        )
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    write_whole(folder / SETTINGS, json.dumps(settings, indent=2) + "\n")


def _said(settings: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _made(
    experiment: Experiment, runs: list[int], quick: bool, jobs: int
) -> Iterator[tuple[int, list[Record], float]]:
    """Yield each run with its records and seconds, in the order in which they are done."""
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(_one)(experiment, run, quick, jobs > 1) for run in runs)


def _one(
    experiment: Experiment, run: int, quick: bool, in_worker: bool
) -> tuple[int, list[Record], float]:
    from threadpoolctl import threadpool_limits

    if in_worker:  # one core a run: threads would only fight over cores
        os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # which joblib.cpu_count() answers from now on
    began = time.perf_counter()
    with threadpool_limits(1):
        records = experiment.measure(run, quick)
    if not records:
        raise ValueError(f"run {run} of {experiment.name} measured nothing")
    return run, records, time.perf_counter() - began


# --- files --------------------------------------------------------------------------------------


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(text, encoding="utf-8", newline="")
    os.replace(unfinished, path)


def write_csv(path: Path, records: Iterable[Record]) -> None:
    """Write records under the columns that any of them has; a value that one lacks stays empty."""
    records = list(records)
    columns = dict.fromkeys(name for record in records for name in record)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(record.get(name, "")) for name in columns] for record in records)
    write_whole(path, text.getvalue())


def read_csv(path: Path) -> list[Record]:
    """Read records: what looks like a number is one, and an empty field is no value."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            {name: _value(text) for name, text in row.items() if text != ""}
            for row in csv.DictReader(lines)
        ]


def _text(value: str | int | float) -> str:
    """A value as text that reads back equal, NumPy's numbers and booleans too."""
    if isinstance(value, str):
        return value
    number = float(value)
    return str(int(number)) if isinstance(value, int) or number.is_integer() else repr(number)


def _value(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
