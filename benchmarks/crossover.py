"""Which solver is faster where: one convex problem over rows, columns and entries a row.

``python -m benchmarks.crossover`` solves the first convex bound of "fewest errors with recall of at
least 0.9 and coverage of at most half" on made rows to a certified gap of 1e-3, with every solver
in turn, and prints seconds (the median of ``--repeats`` warm solves) and iterations. Rows are
Gaussian where they are full, and one-hot in blocks of equal size where they are sparse.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse

from ratebound.ramp import RampProblem
from ratebound.rows.memory import LARGEST_SPAN, MemoryRows
from ratebound.solvers import (
    SDCA,
    AlternatingDirections,
    AugmentedLagrangian,
    CuttingPlane,
    InteriorPoint,
)
from ratebound.solvers.oracles import remembering

TOLERANCE = 1e-3


def made_rows(n: int, d: int, filled: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows with ``filled`` entries each, and noisy labels of a linear rule, 30 % positive."""
    rng = np.random.default_rng(seed)
    if filled == d:
        X: Any = rng.normal(size=(n, d)) / np.sqrt(d)
    else:
        block = d // filled
        # few values of a block are frequent and many are rare, as in real categories
        places = np.floor(block * rng.random((n, filled)) ** 3).astype(np.int32)
        places += block * np.arange(filled, dtype=np.int32)
        ends = np.arange(0, n * filled + 1, filled)
        X = scipy.sparse.csr_matrix((np.ones(n * filled), places.ravel(), ends), shape=(n, d))
    scores = X @ rng.normal(size=d)
    scores += 0.5 * np.std(scores) * rng.normal(size=n)
    return X, scores > np.quantile(scores, 0.7)


def made_problem(n: int, d: int, filled: int) -> RampProblem:
    """Fewest errors with recall >= 0.9 and coverage <= 1/2."""
    X, positive = made_rows(n, d, filled)
    share = float(np.mean(positive))
    rows = MemoryRows([(X, np.ones(n), positive.astype(np.int32))], 2)
    # cells: negative, positive; recall >= 0.9 is 0.9 - P[1]/positives <= 0
    table = scipy.sparse.csr_array(np.array([[0.0, -1.0 / (share * n)], [1.0 / n, 1.0 / n]]))
    return RampProblem.from_rates(
        rows, np.array([1.0, -1.0]) / n, share, table, np.array([0.9, -0.5]),
        alpha=1 / n, multiplier_bound=10.0, fit_intercept=True,
    )  # fmt: skip


def timed(
    solver: Any, problem: RampProblem, limit: float, repeats: int, clock: Callable[[], float]
) -> str:
    """Seconds and iterations of a solve; the gap reached where it ran into the limit."""
    seconds = []
    for _ in range(repeats):
        convex = problem.convex_at(np.zeros(problem.rows.n_features), 0.0)
        began = clock()
        end = began + limit
        solution = solver.solve(convex, TOLERANCE, None, lambda end=end: clock() > end)
        seconds.append(clock() - began)
        if seconds[-1] > limit:
            return f"> {limit:.0f} ({solution.gap:.0e})"
    return f"{median(seconds):.3f} ({solution.iterations})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="cpu: of all threads"
    )
    given = parser.parse_args()
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    print(
        "| rows | columns | entries a row | interior point | augmented Lagrangian | cutting plane "
        "| alternating directions |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    solvers = [
        InteriorPoint(),
        AugmentedLagrangian(),
        CuttingPlane(remembering(SDCA())),
        AlternatingDirections(),
    ]
    for d, filled in ((10, 10), (100, 10)):  # compiled before any clock runs
        for solver in solvers:
            timed(solver, made_problem(300, d, filled), 1e6, 1, time.perf_counter)
    columns = [(10, 10), (100, 100), (100, 10), (1000, 10), (2000, 10), (10_000, 10)]
    wide = [(2000, 2000), (10_000, 100)]
    for n in (1_000, 3_000, 10_000, 100_000):
        few = n <= LARGEST_SPAN
        for d, filled in columns + wide if few else columns:
            problem = made_problem(n, d, filled)
            cells = [
                timed(solver, problem, given.limit, given.repeats, clock)
                if few or not isinstance(solver, AlternatingDirections)
                else "too many rows"
                for solver in solvers
            ]
            print(f"| {n:,} | {d:,} | {filled} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
