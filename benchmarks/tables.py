"""The tables: which systems on which problem, how they are run, and how the results read.

Every system runs in a process of its own on the same rows, with as many threads and cores as were
asked for. *Cold* is the first call of a process that finds no compiled code (only ratebound keeps
any), *first* the first call otherwise, *warm* the median of the calls after it. *CPU* is the same
in seconds of processor time: where a machine is shared, and one thread is asked for, its ratios
(``clock="cpu"``) are the ones to believe.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.problems import adult, judged
from benchmarks.task import Task

ROOT = Path(__file__).resolve().parents[1]

_ALL = (
    "LIBLINEAR, no goal", "LIBSVM, no goal", "ratebound", "ratebound, alpha by CV",
    "fairlearn EG, LinearSVC", "fairlearn EG, LogisticRegression", "fairlearn ThresholdOptimizer",
    "cooper", "scikit-lego", "OxonFair", "TFCO",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A problem, what it is called, and the systems that are compared on it.

    ``floor`` is the system whose warm call is 1 in the column of ratios.
    """

    title: str
    problem: str
    systems: tuple[str, ...]
    floor: str = "LIBLINEAR, no goal"


TABLES: dict[str, Table] = {
    "ratio": Table("Adult: errors, positive rates of the sexes within 80 %", "ratio", _ALL),
    "parity": Table(
        "Adult: errors, positive rate of men at most that of women",
        "parity",
        (_ALL[0], *_ALL[2:]),
    ),
    "recall": Table(
        "Adult: false positive rate, recall at least 0.9",
        "recall",
        (_ALL[0], "LIBLINEAR, threshold moved", *_ALL[2:]),
    ),
    "six": Table("Adult: errors, six goals", "six", (_ALL[0], *_ALL[2:])),
    "convex": Table(
        "Adult: one convex problem (80 %, anchor zero, alpha = 1/n) to 1e-6",
        "convex",
        ("LIBLINEAR, no goal", "ratebound, convex problem", "cvxpy, Clarabel"),
    ),
    "path": Table(
        "Adult: ten alphas in five folds",
        "path",
        ("ratebound, 50 single fits", "ratebound, path to 1e-4", "ratebound, path to 1e-3"),
        "ratebound, 50 single fits",
    ),
}


@dataclass(frozen=True)
class Setting:
    """How systems are run.

    Attributes
    ----------
    repeats : calls after the first whose median is taken
    threads : threads, and cores, that a system may use
    budget : seconds after which no further call is begun
    limit : seconds after which a system is stopped
    pythons : by part of a system's name, the interpreter that has it
    prefix : words put in front of every command, such as nice
    clock : "wall" or "cpu", by which the ratios are
    rows : training rows, None for all
    """

    repeats: int = 5
    threads: int = 1
    budget: float = 600.0
    limit: float = 1800.0
    pythons: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    clock: str = "wall"
    rows: int | None = None


def run(name: str, setting: Setting, only: str = "") -> dict[str, Any]:
    """Run a table's systems one after the other; everything that is known about each."""
    table = TABLES[name]
    task = adult(table.problem, setting.rows)
    found = {
        system: _run_system(system, task, setting)
        for system in table.systems
        if only.lower() in system.lower()
    }
    return {
        "table": name,
        "title": table.title,
        "floor": table.floor,
        "rows": int(task.X.shape[0]),
        "setting": asdict(setting),
        "machine": _machine(),
        "systems": found,
    }


def _run_system(system: str, task: Task, setting: Setting) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        task.save(out / "task.npz")
        cold: dict[str, Any] = {}
        if system.startswith("ratebound") and task.problem != "path":
            # the kernels' compiled code is looked for here: nothing at first
            cache = {"NUMBA_CACHE_DIR": str(out / "compiled")}
            cold = _process(system, out, 0, setting, cache)
            said = _process(system, out, setting.repeats, setting, cache)
        else:
            said = _process(system, out, setting.repeats, setting, {})
        if "first" in cold:
            said["cold"] = cold["first"]
        answer = out / "answer.npz"
        if answer.exists():
            with np.load(answer) as arrays:
                given = dict(arrays)
            said |= {part: _judgement(task, given, part) for part in ("train", "test")}
    print(f"  {system}: {said['status']}", file=sys.stderr)
    return said


def _process(
    system: str, out: Path, repeats: int, setting: Setting, more: dict[str, str]
) -> dict[str, Any]:
    """Run the worker; what it told, and how it ended."""
    for name in ("times.json", "answer.npz"):
        (out / name).unlink(missing_ok=True)
    threads = str(setting.threads)
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
              "LOKY_MAX_CPU_COUNT", "BENCHMARK_THREADS", "RAYON_NUM_THREADS")  # fmt: skip
    environment = os.environ | dict.fromkeys(limits, threads) | more
    python = next((p for part, p in setting.pythons.items() if part in system), sys.executable)
    command = [
        *shlex.split(setting.prefix), python, "-m", "benchmarks.worker", system,
        str(out / "task.npz"), str(out), str(repeats), str(setting.budget),
    ]  # fmt: skip
    cores = sorted(os.sched_getaffinity(0))[: setting.threads]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    ended = ""
    try:
        _, errors = process.communicate(timeout=setting.limit)
        if process.returncode:
            last = errors.strip().splitlines()[-1:] or ["no message"]
            ended = f"failed: {last[0][:200]}"
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        ended = f"stopped after {setting.limit:g} s"
    told = out / "times.json"
    said: dict[str, Any] = json.loads(told.read_text()) if told.exists() else {}
    said["seconds"] = time.perf_counter() - began
    if ended:
        said["status"] = ended
    return said


def _judgement(task: Task, answer: dict[str, np.ndarray], part: str) -> dict[str, Any]:
    report = judged(task, answer, part)
    strict = report.objective_strict
    return {
        "objective": report.objective_expected if strict is None else strict,
        "randomized": strict is None,
        "met": report.met,
        "goals": {
            goal.label: goal.expected if goal.strict is None else goal.strict
            for goal in report.goals
        },
        "rates": _rates_of_groups(task, answer, part),
        "worst": min((goal.slack for goal in report.goals), default=0.0),
    }


def _rates_of_groups(task: Task, answer: dict[str, np.ndarray], part: str) -> dict[str, float]:
    men = task.men if part == "train" else task.men_test
    decided = answer.get(f"{part}_probability", answer[part])
    return {name: float(np.mean(decided[rows])) for name, rows in (("men", men), ("women", ~men))}


def _machine() -> dict[str, Any]:
    packages = ("ratebound", "numpy", "scipy", "scikit-learn", "fairlearn", "cooper-optim",
                "scikit-lego", "oxonfair", "cvxpy", "clarabel", "torch")  # fmt: skip
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not here"
    return {"python": platform.python_version(), "machine": platform.machine(),
            "cores": os.cpu_count(), "versions": versions}  # fmt: skip


# --- as Markdown ----------------------------------------------------------------------------------

_COLUMNS = (
    "system", "cold s", "first s", "warm s", "CPU s", "calls", "x floor", "x ratebound", "peak MiB",
    "own MiB", "train obj.", "train goals", "test obj.", "test goals", "counts",
)  # fmt: skip


def markdown(result: dict[str, Any]) -> str:
    """The table of a result, with what it was run on below."""
    systems = result["systems"]
    clock = result["setting"]["clock"]
    floor = _warm(systems.get(result["floor"], {}), clock)
    ours = next(
        (_warm(said, clock) for name, said in systems.items() if name.startswith("ratebound")),
        None,
    )
    lines = [
        f"### {result['title']}",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    for name, said in systems.items():
        lines.append(f"| {' | '.join(_row(name, said, clock, floor, ours))} |")
    setting, machine = result["setting"], result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    threads = setting["threads"]
    lines += [
        "",
        f"{result['rows']} training rows; {threads} thread{'s' * (threads > 1)} on as many cores "
        f"of {machine['cores']}; median of up to {setting['repeats']} warm calls (fewer where "
        f"{setting['budget']:g} s were used up); ratios by {clock} time.",
        f"Python {machine['python']}; {versions}.",
        "~ marks expected values of decisions drawn at random; goals are the values that bounds "
        "are compared with, in the order of the problem, and the least slack.",
        "",
    ]
    return "\n".join(lines)


def _warm(said: dict[str, Any], clock: str) -> float | None:
    """Median of the warm calls, or the first where there is no other."""
    if "first" not in said:
        return None
    calls = said["processor"] if clock == "cpu" else [said["first"], *said["warm"]]
    return median(calls[1:] or calls)


def _row(
    name: str, said: dict[str, Any], clock: str, floor: float | None, ours: float | None
) -> list[str]:
    warm = _warm(said, clock)
    if warm is None:
        return [name, said.get("status", "not run"), *[""] * (len(_COLUMNS) - 2)]
    ending = "" if said["status"] == "done" else f" ({said['status']})"
    counts = {**said.get("counts", {})}
    if said.get("optimum") is not None:
        counts["optimum"] = said["optimum"]
    before = said.get("memory_before", 0.0)
    return [
        name + ending,
        _number(said.get("cold")),
        _number(said["first"]),
        _number(_warm(said, "wall")) if said["warm"] else "",
        _number(_warm(said, "cpu")),
        str(len(said["warm"])),
        "" if floor is None else f"{warm / floor:.2f}",
        "" if ours is None else f"{warm / ours:.2f}",
        f"{said['memory']:.0f}",
        f"{said['memory'] - before:.0f}",
        *_goals(said.get("train")),
        *_goals(said.get("test")),
        ", ".join(f"{key} {value:.8g}" for key, value in counts.items()),
    ]


def _goals(part: dict[str, Any] | None) -> list[str]:
    if part is None:
        return ["", ""]
    values = ", ".join("?" if v is None else f"{v:.4f}" for v in part["goals"].values())
    mark = "~" if part["randomized"] else ""
    verdict = "met" if part["met"] else "missed"
    goals = f"{mark}{values} {verdict} ({part['worst']:+.1e})" if part["goals"] else ""
    return [f"{mark}{part['objective']:.4f}", goals]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
