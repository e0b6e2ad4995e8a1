"""Certificates against independent answers: known optima of Adult, and random convex problems.

``python -m benchmarks.certificates optima`` prints the convex problems on Adult whose optima are
known, with the bounds and multipliers found and the price by finite differences;
``python -m benchmarks.certificates random --count 2000`` solves random problems of the tests' fixed
generator, stopped after 1, 3, 10 and all iterations, beside cvxpy with Clarabel.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ratebound import Goals, Rate, error_rate, false_positive_rate, positive_rate, recall
from ratebound.compile import compile_goals
from ratebound.data import bind
from ratebound.datasets import load
from ratebound.ramp import RampProblem
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.base import Solution
from ratebound.solvers.interior_point import InteriorPoint

TESTS = Path(__file__).resolve().parents[1] / "tests"
ITERATIONS = (1, 3, 10, 100)

WOMEN, MEN = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))
BOTH = positive_rate(by="sex").ratio() >= 0.8
#: What to minimise, subject to what; the known optimum and multipliers.
KNOWN: list[tuple[str, Rate, list[Any], float, tuple[float, ...]]] = [
    ("no goal", error_rate(), [], 0.1754898, ()),
    ("ratio 0.5", error_rate(), [MEN <= WOMEN / 0.5], 0.2031466, (0.04802,)),
    ("ratio 0.8", error_rate(), [MEN <= WOMEN / 0.8], 0.2089237, (0.08348,)),
    ("ratio 1", error_rate(), [MEN <= WOMEN], 0.2125157, (0.10876,)),
    ("both pairs 0.8", error_rate(), [BOTH], 0.2132210, (0.11724, 0.06119)),
    ("coverage 0.1", error_rate(), [positive_rate() <= 0.1], 0.1979160, (0.36687,)),
    ("recall 0.9", false_positive_rate(), [recall() >= 0.9], 0.3374556, (1.76375,)),
]


def optima() -> None:
    """Print the problems with a known optimum."""
    adult = load("adult")
    print("problem         optimum    lower - it  upper - it  iterations  multipliers (off by)")
    for name, minimize, subject_to, optimum, multipliers in KNOWN:
        goals = Goals(minimize, subject_to)
        data = bind(
            adult.X, adult.y, sample_weight=None, baseline=None, columns=adult.columns,
            datasets=None, pos_label=None, reads_labels=goals.reads_labels,
            reads_baseline=frozenset(), used=goals.datasets,
        )  # fmt: skip
        rates = compile_goals(goals, data)
        rows = MemoryRows([(b.X, b.weight, b.cell) for b in rates.blocks], len(rates.cost))
        problem = RampProblem.from_rates(
            rows, rates.cost, rates.cost_constant, rates.table, rates.offset,
            alpha=1 / len(adult.y), multiplier_bound=10.0, fit_intercept=True,
        )  # fmt: skip
        found = at_zero(problem, np.zeros(len(problem.bound)), 1e-7)
        ours = np.sort(found.multipliers)[::-1]
        apart = [f"{a:.5f} ({a - b:+.0e})" for a, b in zip(ours, multipliers, strict=True)]
        print(
            f"{name:14s} {optimum:.7f}  {found.lower - optimum:+11.1e} "
            f"{found.upper - optimum:+11.1e}  {found.iterations:10d}  {', '.join(apart)}"
        )
        for j in range(len(problem.bound)):
            print(f"    {price_line(problem, j, found)}")


def at_zero(problem: RampProblem, tightened: np.ndarray, tolerance: float) -> Solution:
    """The convex problem at the anchor zero."""
    anchored = problem.tightened(tightened).convex_at(np.zeros(problem.rows.n_features), 0.0)
    return InteriorPoint().solve(anchored, tolerance)


def price_line(problem: RampProblem, j: int, found: Solution) -> str:
    """A multiplier beside the difference quotient of the optimum."""
    amount = 1e-3
    change = np.zeros(len(problem.bound))
    change[j] = amount
    tighter, looser = (at_zero(problem, sign * change, 1e-8) for sign in (1.0, -1.0))
    slope = 0.5 * (tighter.upper - looser.lower) / amount
    return f"price {found.multipliers[j]:.5f}, by differences of +-{amount:g}: {slope:.5f}"


def check(index: int) -> tuple[list[str], float, str, str]:
    """Wrong bounds of an instance, its last gap and status, and its kinds."""
    sys.path.insert(0, str(TESTS))
    from building import convex_problem
    from reference.convex import solve_convex
    from reference.instances import random_instance

    instance = random_instance(0, index)
    reference = solve_convex(instance)
    problem = convex_problem(instance, sparse=index % 2 == 1)
    allowed = 1e-7 * instance.relative_to(reference.optimum_upper)
    wrong = []
    for limit in ITERATIONS:
        solution = InteriorPoint(limit).solve(problem, 1e-6)
        if solution.lower > reference.optimum_upper + allowed:
            wrong.append(f"lower after {limit}")
        if solution.upper < reference.optimum_lower - allowed:
            wrong.append(f"upper after {limit}")
    return wrong, solution.gap, solution.status.name, "+".join(sorted(instance.kinds))


def random_problems(count: int) -> None:
    """Print how the bounds of random problems compare with cvxpy."""
    results = joblib.Parallel(-1)(joblib.delayed(check)(index) for index in range(count))
    kinds = Counter(kind for *_, kinds in results for kind in kinds.split("+"))
    print(f"{count} random convex problems; of a kind: {dict(kinds)}")
    wrong = [f"{i}: {', '.join(found[0])}" for i, found in enumerate(results) if found[0]]
    print(
        f"bounds on the wrong side of cvxpy's optimum, after {ITERATIONS} iterations: {len(wrong)}"
    )
    print("\n".join(wrong[:20]))
    gaps = np.array([gap for _, gap, _, _ in results])
    print(f"relative gap <= 1e-6 in {np.sum(gaps <= 1e-6)} of {count}; the rest:")
    for i in np.flatnonzero(gaps > 1e-6):
        print(f"    {i}: gap {gaps[i]:.1e}, {results[i][2]}, {results[i][3]}")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("optima", "random"))
    parser.add_argument("--count", type=int, default=2000)
    given = parser.parse_args()
    if given.what == "optima":
        optima()
    else:
        random_problems(given.count)


if __name__ == "__main__":
    main()
