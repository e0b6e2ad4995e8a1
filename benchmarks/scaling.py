"""How time and memory grow: rows, features, goals, groups, certified gap, threads.

``python -m benchmarks.scaling --out FOLDER`` writes a figure (PNG and SVG) and the numbers (JSON)
of every study; ``--quick`` takes small sizes, minutes in all. Every point is a process of its own
that fits once for the compiled code and is then timed, so peak memory is that of one fit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Point:
    """One fit: a random problem and how it is solved.

    Rows are normal, labels logistic, groups unrelated to size. With ``density`` below 1 they are
    CSR with so many entries a row. There is always a recall goal; ``goals`` counts inequalities
    (recall and specificity by group, so many groups as are needed), and ``groups`` above 1 asks for
    rates of all pairs of groups within 80 %. ``convex`` solves the one convex problem at the anchor
    zero instead of fitting.
    """

    rows: int = 100_000
    features: int = 50
    density: float = 1.0
    goals: int = 1
    groups: int = 1
    gap: float = 1e-4
    threads: int = 1
    convex: bool = False

    @property
    def bytes(self) -> float:
        """Of X."""
        share = 1.5 * self.density if self.density < 1 else 1.0
        return 8.0 * self.rows * self.features * share


@dataclass(frozen=True)
class Study:
    """Points that differ in one field; several lines where another differs too."""

    name: str
    label: str
    field: str
    lines: dict[str, Point]
    values: tuple[float, ...]
    quick: tuple[float, ...]


BASE = Point()
STUDIES = (
    Study(
        "rows", "rows", "rows",
        {"50 dense features": BASE, "500 features, 10 entries a row": replace(
            BASE, features=500, density=0.02)},
        (1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7), (1e4, 3e4, 1e5),
    ),
    Study(
        "features", "features", "features",
        {"dense": replace(BASE, rows=20_000), "5 % of entries": replace(
            BASE, rows=20_000, density=0.05)},
        (10, 30, 100, 300, 1000, 4000), (10, 30, 100, 300),
    ),
    Study(
        "goals", "goals (inequalities)", "goals", {"100,000 × 50 dense": BASE},
        (1, 2, 6, 20, 60, 100, 300), (1, 6, 20),
    ),
    Study(
        "groups", "groups (all pairs within 80 %)", "groups", {"100,000 × 50 dense": BASE},
        (2, 5, 10, 20, 50, 100), (2, 5, 10),
    ),
    Study(
        "gap", "certified relative gap of a convex problem", "gap",
        {"100,000 × 50 dense": replace(BASE, convex=True)},
        (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8), (1e-2, 1e-4, 1e-6),
    ),
    Study(
        "threads", "threads", "threads",
        {"1,000,000 × 50 dense": replace(BASE, rows=1_000_000)}, (1, 2), (1, 2),
    ),
)  # fmt: skip

QUICK_ROWS = 200_000  # of a quick study at most


def points_of(study: Study, quick: bool) -> list[tuple[str, float, Point]]:
    """(line, value, point) of a study."""
    found = []
    for line, point in study.lines.items():
        kind = type(getattr(point, study.field))
        for value in study.quick if quick else study.values:
            at = replace(point, **{study.field: kind(value)})
            if quick:
                at = replace(at, rows=min(at.rows, QUICK_ROWS))
            said = (
                line if study.field == "rows" else line.replace(f"{point.rows:,}", f"{at.rows:,}")
            )
            found.append((said, value, at))
    return found


# --- in the process of a point --------------------------------------------------------------------


def problem_of(point: Point) -> tuple[Any, np.ndarray, dict[str, Any], Any]:
    """X, y, columns and goals."""
    import scipy.sparse as sp

    from ratebound import Goals, error_rate, positive_rate, recall, specificity

    rng = np.random.default_rng(0)
    slope = rng.normal(size=point.features) / np.sqrt(point.features)
    if point.density < 1:
        entries = max(1, round(point.density * point.features))
        indices = rng.integers(0, point.features, size=point.rows * entries, dtype=np.int32)
        indptr = np.arange(0, len(indices) + 1, entries, dtype=np.int64)
        shape = (point.rows, point.features)
        X = sp.csr_matrix((rng.normal(size=len(indices)), indices, indptr), shape=shape)
        X.sum_duplicates()
        slope *= np.sqrt(point.features / entries)
    else:
        X = rng.normal(size=(point.rows, point.features))
    scores = np.asarray(X @ slope).ravel()
    y = (2.0 * scores + rng.logistic(size=point.rows) > 0.5).astype(int)
    wanted = max(point.groups, -(-point.goals // 2) if point.goals > 2 else 1)
    group = rng.integers(0, wanted, size=point.rows)
    constraints = []
    if point.groups > 1:
        constraints.append(positive_rate(by="group").ratio() >= 0.8)
    elif point.goals > 2:
        constraints.append(recall(by="group").min() >= 0.6)
        constraints.append(specificity(by="group").min() >= 0.6)
    else:
        constraints += [recall() >= 0.7, specificity() >= 0.6][: point.goals]
    return X, y, {"group": group}, Goals(error_rate(), constraints)


def measure(point: Point, repeats: int, processor: bool) -> dict[str, float]:
    """Seconds (of processor time, or by the clock) and own memory of a fit."""
    import resource

    from ratebound import RateBoundSVC
    from ratebound.compile import compile_goals
    from ratebound.solvers.interior_point import InteriorPoint

    warnings.simplefilter("ignore")
    X, y, columns, goals = problem_of(point)
    svc = RateBoundSVC(goals, tol=point.gap, alpha=1e-4, threshold="zero")
    few = slice(min(2000, len(y)))
    svc.fit(X[few], y[few], columns={"group": columns["group"][few]})  # the compiled code

    def fit() -> dict[str, float]:
        if point.convex:
            data, arrays = svc._bound(X, y, None, None, columns, None)
            problem, _ = svc._ramp_problem(compile_goals(goals, data), data, arrays)
            start = problem.convex_at(np.zeros(point.features), 0.0)
            solution = InteriorPoint().solve(start, point.gap)
            return {"steps": 1, "newton": solution.iterations, "gap": solution.gap}
        svc.fit(X, y, columns=columns)
        newton = sum(step.solver_iterations for step in svc.history_)
        return {"steps": svc.n_iter_, "newton": newton, "gap": svc.history_[-1].gap}

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0

    clock = time.process_time if processor else time.perf_counter
    before, seconds = peak(), []
    for _ in range(repeats):
        began = clock()
        found = fit()
        seconds.append(clock() - began)
    return {
        **found,
        "seconds": median(seconds),
        "own_bytes": peak() - before,
        "x_bytes": point.bytes,
        "seconds_per_newton": median(seconds) / max(found["newton"], 1),
    }


# --- the studies ----------------------------------------------------------------------------------


def measured(point: Point, repeats: int, limit: float, clock: str) -> dict[str, Any]:
    """The numbers of a point from its process, or why there are none."""
    threads = str(point.threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
             "LOKY_MAX_CPU_COUNT")  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.scaling", "--point", json.dumps(asdict(point)),
               "--repeats", str(repeats), "--clock", clock]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | dict.fromkeys(names, threads),
            capture_output=True, text=True, timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"status": f"stopped after {limit:g} s"}
    if done.returncode:
        return {"status": f"failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}"}
    return {"status": "done", **json.loads(done.stdout.strip().splitlines()[-1])}


def slope(values: list[float], seconds: list[float]) -> float:
    """Of the line through the points in logarithms."""
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def draw(study: Study, results: list[dict[str, Any]], folder: Path) -> None:
    """Seconds, seconds a Newton step and own memory against what the study varies."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    quantities = (
        ("seconds", "seconds a fit", 1.0),
        ("seconds_per_newton", "milliseconds a Newton step", 1e3),
        ("own_bytes", "peak memory beyond X, MiB", 2.0**-20),
    )
    for line in dict.fromkeys(r["line"] for r in results):
        done = [r for r in results if r["line"] == line and r["status"] == "done"]
        x = [r["value"] for r in done]
        for panel, (name, label, unit) in zip(panels, quantities, strict=True):
            values = [max(r[name] * unit, 1e-3) for r in done]
            note = ""
            if name != "own_bytes" and study.field in ("rows", "features") and len(x) > 1:
                note = f" (slope {slope(x, values):.2f})"
            panel.plot(x, values, "o-", ms=5, label=line + note)
            panel.set_ylabel(label)
    for panel in panels:
        panel.set_xscale("linear" if study.field == "threads" else "log")
        if study.field not in ("rows", "gap"):  # few and small: each is named
            panel.set_xticks(sorted({r["value"] for r in results}))
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter(NullFormatter())
        low, high = panel.dataLim.intervaly
        if high > 10 * low:
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter(NullFormatter())
        else:
            panel.set_ylim(0, 1.25 * high)  # room for the legend
        if study.field == "gap":
            panel.invert_xaxis()
        panel.set_xlabel(study.label)
        panel.grid(alpha=0.3, which="both" if study.field != "threads" else "major")
        panel.legend(fontsize=8)
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{study.name}.{kind}", dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("studies", nargs="*", help=", ".join(study.name for study in STUDIES))
    parser.add_argument("--out", type=Path, default=Path("benchmark_results"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1800.0, help="s after which one is stopped")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB; larger points are left out")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu, processor time, for a machine that others use too")  # fmt: skip
    parser.add_argument("--point", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.point:
        point = Point(**json.loads(given.point))
        print(json.dumps(measure(point, given.repeats, given.clock == "cpu"), default=float))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for study in STUDIES:
        if given.studies and study.name not in given.studies:
            continue
        results = []
        for line, value, point in points_of(study, given.quick):
            # its state takes a few numbers a row besides X, and rows are made before they are read
            needed = 2 * point.bytes + 400.0 * point.rows
            if needed > given.memory * 2**30:
                said: dict[str, Any] = {"status": f"left out: needs {needed / 2**30:.1f} GiB"}
            else:
                said = measured(point, given.repeats, given.limit, given.clock)
            results.append({"line": line, "value": value, **said})
            print(study.name, line, f"{value:g}", _words(said), flush=True)
        (given.out / f"scaling_{study.name}.json").write_text(json.dumps(results, indent=1) + "\n")
        if any(result["status"] == "done" for result in results):
            draw(study, results, given.out)


def _words(said: dict[str, Any]) -> str:
    if said["status"] != "done":
        return str(said["status"])
    return (
        f"{said['seconds']:.3g} s, {said['newton']:.0f} Newton steps of "
        f"{1e3 * said['seconds_per_newton']:.3g} ms, own memory "
        f"{said['own_bytes'] / said['x_bytes']:.2f} of X"
    )


if __name__ == "__main__":
    main()
