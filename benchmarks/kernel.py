"""An RBF kernel on rows of Adult under a goal, both ways: time, gap, agreement and memory.

``python -m benchmarks.kernel`` solves the convex problem at the zero model, error rate subject to
male positive rate <= female positive rate / 0.8, to a certified gap of 1e-3, each way in a process
of its own: the interior point on a growing factor, and the cutting plane on the kernel matrix with
each oracle. Times are multiples of one ``SVC(kernel="rbf")`` fit of the same rows with the same
gamma and C = 2 / (n alpha) = 2 (whose objective is that of the problem without the goal). They are
given for the wall clock and for the processor's, as SVC uses one core. Memory is the largest
resident size of the process beyond that before the solve.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from typing import Any

import numpy as np
from sklearn.svm import SVC

from ratebound import Goals, RateBoundSVC, error_rate, positive_rate
from ratebound.compile import compile_goals
from ratebound.data import bind
from ratebound.datasets import load
from ratebound.kernel_functions import named_kernel
from ratebound.kernel_model import fit_rows
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows.kernel import KernelRows
from ratebound.solvers.base import Solver
from ratebound.solvers.cutting_plane import CuttingPlane
from ratebound.solvers.growing_rank import GrowingRank
from ratebound.solvers.off_the_shelf import Libsvm
from ratebound.solvers.oracles import remembering
from ratebound.solvers.sdca import SDCA

WOMEN, MEN = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))
GOALS = Goals(error_rate(), [MEN <= WOMEN / 0.8])
GAP = 1e-3
WAYS = ("factor", "matrix, SDCA", "matrix, LIBSVM", "SVC, CSR", "SVC, dense", "fit, auto")


def rows_of_adult(n: int) -> tuple[Any, Any, Any]:
    """The first rows, their labels and columns."""
    adult = load("adult")
    return adult.X[:n].astype(np.float64), adult.y[:n], adult.columns[:n]


def convex_problem(n: int, gamma: str) -> ConvexProblem:
    """The convex problem at the zero model."""
    X, y, columns = rows_of_adult(n)
    data = bind(
        X, y, sample_weight=None, baseline=None, columns=columns, datasets=None,
        pos_label=GOALS.pos_label, reads_labels=GOALS.reads_labels,
        reads_baseline=GOALS.reads_baseline, used=GOALS.datasets,
    )  # fmt: skip
    rates = compile_goals(GOALS, data)
    kernel = named_kernel("rbf", gamma, 3, 0.0, X, np.ones(n))
    rows = fit_rows(kernel, rates.blocks, len(rates.cost)).rows
    problem = RampProblem.from_rates(
        rows, rates.cost, rates.cost_constant, rates.table, rates.offset,
        alpha=1.0 / n, multiplier_bound=10.0, fit_intercept=True,
    )  # fmt: skip
    return problem.convex_at(np.zeros(rows.n_features), 0.0)


def solver_of(way: str) -> Solver:
    """The solver that a way is."""
    if way == "factor":
        return GrowingRank()
    return CuttingPlane(remembering(SDCA() if way.endswith("SDCA") else Libsvm()))


def measure(way: str, n: int, gamma: str) -> dict[str, Any]:
    """Seconds, bounds and memory of one way, compiled code warm."""
    warnings.simplefilter("ignore")
    if way in WAYS[:3]:
        solver_of(way).solve(convex_problem(600, gamma), GAP)
    X, y, columns = rows_of_adult(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    found: dict[str, Any] = {"way": way}
    if way.startswith("SVC"):
        SVC(kernel="rbf", gamma=gamma, C=2.0).fit(X if "CSR" in way else X.toarray(), y)
    elif way.startswith("fit"):
        clf = RateBoundSVC(GOALS, kernel="rbf", gamma=gamma, tol=GAP).fit(X, y, columns=columns)
        found |= {"steps": clf.n_iter_, "gap": clf.history_[-1].gap, "met": clf.report_.met}
        found["solver"] = clf.status_.solver.split(":")[0]
    else:
        problem = convex_problem(n, gamma)
        solution = solver_of(way).solve(problem, GAP)
        found |= {"upper": solution.upper, "lower": solution.lower, "gap": solution.gap}
        if way == "factor" and isinstance(problem.rows, KernelRows):
            found["rank"] = problem.rows.factor.rank
    found["wall"], found["cpu"] = time.perf_counter() - wall, time.process_time() - cpu
    found["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return found


def main() -> None:
    """Print a table for each gamma."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--gamma", default="auto,scale", help="of SVC's names, with commas")
    parser.add_argument("--only", default="", help="ways whose name contains this")
    given = parser.parse_args()
    spawned = multiprocessing.get_context("spawn")
    for gamma in given.gamma.split(","):
        found = []
        for way in WAYS:
            if given.only in way or way.startswith("SVC"):
                with spawned.Pool(1) as pool:
                    found.append(pool.apply(measure, (way, given.rows, gamma)))
        floor = next(one for one in found if one["way"] == "SVC, CSR")
        print(f'gamma="{gamma}", {given.rows} rows')
        for one in found:
            rest = "  ".join(
                f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in one.items()
                if name not in ("way", "wall", "cpu", "megabytes")
            )
            print(
                f"  {one['way']:15s} {one['wall']:6.1f} s  {one['wall'] / floor['wall']:5.2f} x  "
                f"(cpu {one['cpu']:5.1f} s {one['cpu'] / floor['cpu']:5.2f} x)  "
                f"{one['megabytes']:6.0f} MB  {rest}"
            )
        solved = [one for one in found if "upper" in one]
        agree = all(a["lower"] <= b["upper"] for a in solved for b in solved)
        print(f"  the bounds of all ways meet: {agree}")


if __name__ == "__main__":
    main()
