"""The cutting plane with every oracle and chooser, beside the interior point, on census rows.

``python -m benchmarks.cutting_planes`` prints, for the convex problem at the anchor zero of "male
rate <= female rate / 0.8" and for that of six goals, at relative gaps of 1e-3 and 1e-5: the calls
of the oracle, all cuts (combinations of models are cuts too), passes over the rows, CPU seconds,
the certified gap, and the seconds as a multiple of the interior point's. A solve is stopped after
``--limit`` seconds, or at the end of the call that is under way then (one call of LIBSVM takes
minutes here, so that it is left out unless ``--oracles`` names it); its gap says how far it came.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.adult import PROBLEMS
from ratebound.compile import compile_goals
from ratebound.data import bind
from ratebound.datasets import RealData, load
from ratebound.goals import Goals
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows.memory import MemoryRows
from ratebound.solvers import (
    SDCA,
    BiasCuttingPlane,
    CenterOfMass,
    CuttingPlane,
    Inner,
    InteriorPoint,
    Level,
    Liblinear,
    Libsvm,
    Maximization,
)
from ratebound.solvers.base import Solution, Solver
from ratebound.solvers.cutting_plane import Progress

ORACLES: dict[str, Any] = {
    "SDCA": SDCA(),
    "Inner": Inner(),
    "Liblinear": Liblinear(),
    "Algorithm 3, mass": BiasCuttingPlane(),
    "Algorithm 3, minimum": BiasCuttingPlane(chooser="minimization"),
    "Libsvm": Libsvm(),
}
CHOOSERS: dict[str, Any] = {
    "Level": Level(),
    "Maximization": Maximization(),
    "CenterOfMass": CenterOfMass(),
}


def convex(adult: RealData, goals: Goals) -> ConvexProblem:
    """The convex problem at the anchor zero, alpha = 1/n, violation at the price of 10."""
    data = bind(
        adult.X, adult.y, columns=adult.columns, reads_labels=goals.reads_labels,
        used=goals.datasets,
    )  # fmt: skip
    rates = compile_goals(goals, data)
    blocks = [(block.X, block.weight, block.cell) for block in rates.blocks]
    problem = RampProblem.from_rates(
        MemoryRows(blocks, len(rates.cost), threads=1), rates.cost, rates.cost_constant,
        rates.table, rates.offset,
        alpha=1 / len(adult.y), multiplier_bound=10.0, fit_intercept=True,
    )  # fmt: skip
    return problem.convex_at(np.zeros(adult.X.shape[1]), 0.0)


def solved(
    solver: Solver, problem: ConvexProblem, gap: float, limit: float
) -> tuple[Solution, float]:
    """The solution, and its CPU seconds."""
    began = time.process_time()
    solution = solver.solve(problem, gap, stop=lambda: time.process_time() - began > limit)
    return solution, time.process_time() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--problems", nargs="*", default=["ratio 0.8", "six goals"])
    parser.add_argument("--gaps", nargs="*", type=float, default=[1e-3, 1e-5])
    parser.add_argument("--oracles", nargs="*", default=list(ORACLES)[:-1])
    given = parser.parse_args()
    adult = load("adult")
    print("problem    asked  oracle                chooser        calls  cuts  passes       s  gap")
    for name in given.problems:
        problem = convex(adult, PROBLEMS[name])
        InteriorPoint().solve(problem, 0.1)  # kernels compiled
        for gap in given.gaps:
            found, floor = solved(InteriorPoint(), problem, gap, given.limit)
            print(
                f"{name:10s} {gap:5.0e}  interior point                  {found.iterations:12d}"
                f"               {floor:7.2f}  {found.gap:.1e}",
                flush=True,
            )
            for oracle in given.oracles:
                for chooser, rule in CHOOSERS.items():
                    seen: list[Progress] = []
                    solver = CuttingPlane(ORACLES[oracle], rule, trace=seen.append)
                    found, seconds = solved(solver, problem, gap, given.limit)
                    print(
                        f"{name:10s} {gap:5.0e}  {oracle:20s}  {chooser:13s} "
                        f"{found.iterations:6d} {seen[-1].lines:5d} {seen[-1].passes:7.0f} "
                        f"{seconds:7.2f}  {found.gap:.1e} {seconds / floor:7.1f} x",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
