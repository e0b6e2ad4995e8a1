"""What a certified fit costs beside its peers: ratios of times measured in one run.

``python -m benchmarks.speed`` prints every measure below; names after it choose some of them
(``python -m benchmarks.speed majorization goals``). Times are medians; a ratio always has both of
its times from the same run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.adult import PROBLEMS
from ratebound import Goals, RateBoundSVC, error_rate, positive_rate
from ratebound.compile import compile_goals
from ratebound.data import bind
from ratebound.datasets import load

FEATURES = 50


def interleaved(
    functions: list[Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Median seconds of each; a disturbance of the machine then meets all alike."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, times in zip(functions, seconds, strict=True):
            began = clock()
            function()
            times.append(clock() - began)
    return [median(times) for times in seconds]


def convex_problem(
    goals: Goals, X: Any, y: Any, columns: Any, *, threads: int | None = None, merge: bool = True
) -> Any:
    """The convex bound of the goals at the zero model, with alpha = 1/n."""
    from ratebound.ramp import RampProblem
    from ratebound.rows.memory import MemoryRows
    from ratebound.rows.merge import merge_rows

    data = bind(
        X, y, sample_weight=None, baseline=None, columns=columns, datasets=None,
        pos_label=goals.pos_label, reads_labels=goals.reads_labels,
        reads_baseline=goals.reads_baseline, used=goals.datasets,
    )  # fmt: skip
    rates = compile_goals(goals, data)
    (block,) = rates.blocks
    rows = MemoryRows(
        [merge_rows(X, block.weight, block.cell) if merge else (X, block.weight, block.cell)],
        len(rates.cost),
        threads=threads,
    )
    problem = RampProblem.from_rates(
        rows, rates.cost, rates.cost_constant, rates.table, rates.offset, alpha=1 / len(y),
        multiplier_bound=1.0, fit_intercept=True,
    )  # fmt: skip
    problem = problem.priced(10 * problem.objective_range)
    return problem.convex_at(np.zeros(rows.n_features), 0.0)


def solve(problem: Any, tolerance: float) -> Any:
    from ratebound.solvers.interior_point import InteriorPoint

    return InteriorPoint().solve(problem, tolerance)


def synthetic(n: int, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows from a noisy linear rule, with a group of a third of them that it favours."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES), dtype=dtype)
    group = rng.random(n) < 1 / 3
    score = X[:, :10].sum(axis=1) + group + rng.standard_normal(n)
    X[:, 10] += group
    return X, (score > 1).astype(int), {"g": np.where(group, "a", "b")}


# ---- the measures ------------------------------------------------------------------------------


def majorization() -> None:
    """Adult, male <= female / 0.8: the whole fit against one LinearSVC."""
    adult = load("adult")
    goals = PROBLEMS["ratio 0.8"]
    fits = [
        RateBoundSVC(goals, start=start, threshold=threshold)
        for start in ("homotopy", "zero")
        for threshold in ("repair", "zero")
    ]
    floor = LinearSVC(loss="hinge", C=2, tol=1e-3)
    calls = [lambda: floor.fit(adult.X, adult.y)]
    calls += [lambda svc=svc: svc.fit(adult.X, adult.y, columns=adult.columns) for svc in fits]
    for call in calls:
        call()
    base, *seconds = interleaved(calls, 5)
    cpu_base, *cpu = interleaved(calls, 3, time.process_time)
    print(f"one LinearSVC(hinge, C=2, tol=1e-3): {base:.3f} s, of all cores {cpu_base:.3f} s")
    print(
        "start     threshold  x LinearSVC  of all cores  steps  newton  objective   gap"
        "      worst goal"
    )
    for svc, taken, cores in zip(fits, seconds, cpu, strict=True):
        last = svc.history_[-1]
        print(
            f"{svc.start:9s} {svc.threshold:9s} {taken / base:11.2f} {cores / cpu_base:13.2f} "
            f"{svc.n_iter_:6d} {sum(step.solver_iterations for step in svc.history_):7d} "
            f"{last.objective:10.5f} "
            f"{last.gap:9.1e} {last.violation:10.1e}   {svc.history_[0].homotopy}"
        )


def convex() -> None:
    """Adult, the same goal: one convex problem to 1e-6 against cvxpy with Clarabel."""
    import cvxpy as cp

    adult = load("adult")
    problem = convex_problem(PROBLEMS["ratio 0.8"], adult.X, adult.y, adult.columns)
    solve(problem, 1e-6)
    (ours,) = interleaved([lambda: solve(problem, 1e-6)], 5)
    solution = solve(problem, 1e-6)
    rows = problem.rows.matrix()
    coef, bias = cp.Variable(rows.X.shape[1]), cp.Variable()
    score = rows.X @ coef + bias
    used = rows.cell >= 0
    values: list[Any] = []
    for table in [problem.cost.ravel(), *problem.constraints.toarray()]:
        per_row = table.reshape(2, -1)[:, rows.cell] * rows.weight * used
        values.append(per_row[0] @ cp.pos(0.5 + score) + per_row[1] @ cp.pos(0.5 - score))
    objective = values[0] + problem.constant + problem.alpha / 2 * cp.sum_squares(coef)
    peer = cp.Problem(
        cp.Minimize(objective),
        [v <= b for v, b in zip(values[1:], problem.bound, strict=True)],
    )
    began = time.perf_counter()
    optimum = peer.solve(solver=cp.CLARABEL, tol_gap_rel=1e-6, tol_gap_abs=1e-6, tol_feas=1e-6)
    theirs = time.perf_counter() - began
    print(
        f"ours {ours:.3f} s ({solution.iterations} iterations, gap {solution.gap:.1e}, "
        f"{solution.upper:.7f}), cvxpy + Clarabel {theirs:.1f} s ({optimum:.7f}): "
        f"{theirs / ours:.0f} x"
    )


def goals() -> None:
    """Six goals against one, one convex problem from the same anchor to 1e-4."""
    adult = load("adult")
    named = [PROBLEMS["ratio 0.8"], PROBLEMS["six goals"]]
    _ratio(
        "one goal", "six goals",
        *[convex_problem(goals, adult.X, adult.y, adult.columns) for goals in named],
    )  # fmt: skip


def family() -> None:
    """A gap between 100 groups (9,900 pairs) against one between 2, one convex problem to 1e-4."""
    adult = load("adult")
    rng = np.random.default_rng(0)
    n = len(adult.y)
    columns = {"two": rng.integers(0, 2, n), "hundred": rng.integers(0, 100, n)}
    named = [Goals(error_rate(), [positive_rate(by=by).gap() <= 0.05]) for by in ("two", "hundred")]
    _ratio(
        "2 groups", "100 groups",
        *[convex_problem(g, adult.X, adult.y, columns, merge=False) for g in named],
    )  # fmt: skip


def _ratio(first: str, second: str, one: Any, other: Any, tolerance: float = 1e-4) -> None:
    a, b = solve(one, tolerance), solve(other, tolerance)
    calls = [lambda: solve(one, tolerance), lambda: solve(other, tolerance)]
    s, t = interleaved(calls, 5)
    u, v = interleaved(calls, 3, time.process_time)
    print(
        f"{first} {s:.3f} s, {a.iterations} iterations, {second} {t:.3f} s, {b.iterations} "
        f"iterations: {t / s:.2f} x, per iteration {t / b.iterations / (s / a.iterations):.2f} x; "
        f"of all cores {v / u:.2f} x, per iteration {v / b.iterations / (u / a.iterations):.2f} x"
    )


GOALS = Goals(error_rate(), [positive_rate(by="g").ratio() >= 0.8])


def threads(n: int = 10**6) -> None:
    """Two threads against one, a convex problem of dense rows to 1e-3."""
    X, y, columns = synthetic(n)
    one, two = (
        convex_problem(GOALS, X, y, columns, threads=count, merge=False) for count in (1, 2)
    )
    s, t = interleaved([lambda: solve(one, 1e-3), lambda: solve(two, 1e-3)], 2)
    print(f"{n} x {FEATURES}: one thread {s:.1f} s, two {t:.1f} s: {s / t:.2f} x")


def scaling(largest: int = 3 * 10**6) -> None:
    """Time of a fit against rows, and peak memory beyond X, each in a process of its own."""
    sizes = [n for n in (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7) if n <= largest]
    seconds = []
    for n in sizes:
        done = _in_process(f"from benchmarks.speed import _fit_rows; _fit_rows({n})")
        print(f"{n} x {FEATURES}: {done}")
        seconds.append(float(done.split()[0]))
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"log-log slope of time against rows: {slope:.2f}")


def _fit_rows(n: int) -> None:
    import resource

    X, y, columns = synthetic(n)
    RateBoundSVC(GOALS, max_iter=2, threshold="zero").fit(X[:5000], y[:5000], columns={
        "g": columns["g"][:5000]
    })  # fmt: skip  # compiled before the clock starts
    before = _resident()
    began = time.perf_counter()
    svc = RateBoundSVC(GOALS, start="homotopy", tol=1e-3).fit(X, y, columns=columns)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    newton = sum(step.solver_iterations for step in svc.history_)
    print(
        f"{seconds:.2f} s, {svc.n_iter_} steps, {newton} newton ({svc.history_[0].homotopy}), "
        f"peak beyond X {(peak - before) / X.nbytes:.2f} x X"
    )


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def first_call() -> None:
    """Import, and the first fit of Adult in a fresh process, without and with a cache on disk."""
    bare = "import sklearn.svm, sklearn.linear_model, scipy.sparse"
    clock = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
    floor = median(float(_in_process(clock.format(bare))) for _ in range(5))
    ours = median(float(_in_process(clock.format(f"{bare}; import ratebound"))) for _ in range(5))
    print(f"import: {ours:.2f} s, {ours - floor:.2f} s beyond scikit-learn's own")
    fit = (
        "from benchmarks.speed import *; adult = load('adult'); "
        "svc = RateBoundSVC(PROBLEMS['ratio 0.8'], start='{}'); "
        "began = time.perf_counter(); svc.fit(adult.X, adult.y, columns=adult.columns); "
        "print(time.perf_counter() - began)"
    )
    for start in ("zero", "homotopy"):
        with tempfile.TemporaryDirectory() as folder:
            cold, *warm = (
                float(_in_process(fit.format(start), NUMBA_CACHE_DIR=folder)) for _ in range(4)
            )
        print(f"first fit, start={start}: no cache {cold:.2f} s, warm cache {median(warm):.2f} s")


def _in_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.strip()


MEASURES = (majorization, convex, goals, family, threads, scaling, first_call)


def main() -> None:
    """Print the measures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    named = {measure.__name__: measure for measure in MEASURES}
    parser.add_argument("measures", nargs="*", choices=[*named, []], help="default: all")
    chosen = parser.parse_args().measures or list(named)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{os.cpu_count()} cores")
    for name in chosen:
        print(f"\n{name}: {(named[name].__doc__ or '').splitlines()[0]}")
        named[name]()


if __name__ == "__main__":
    main()
