"""Problems of the library made from what the referees and the language of rates say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ratebound.compile import RateProblem, compile_goals
from ratebound.data import Dataset, bind
from ratebound.goals import Goals
from ratebound.ramp import ConvexProblem, RampProblem
from ratebound.rows.memory import MemoryRows
from ratebound.solvers.base import Solution, Start, Stop
from ratebound.solvers.interior_point import InteriorPoint
from reference.instances import Instance


def ramp_problem(instance: Instance, *, sparse: bool = False, threads: int = 1) -> RampProblem:
    """The ramp problem of a referee's instance, over dense or CSR rows."""
    X = sp.csr_array(instance.X) if sparse else instance.X
    cells = len(instance.cost)
    return RampProblem.from_rates(
        MemoryRows([(X, instance.weight, instance.cell)], cells, threads=threads),
        instance.cost,
        instance.cost_constant,
        sp.csr_array(instance.table.reshape(-1, cells)),
        instance.offset,
        alpha=instance.alpha,
        multiplier_bound=instance.multiplier_bound,
        fit_intercept=instance.fit_intercept,
    )


def convex_problem(instance: Instance, *, sparse: bool = False) -> ConvexProblem:
    """The convex bound of a referee's instance at its anchor."""
    problem = ramp_problem(instance, sparse=sparse)
    return problem.convex_at(instance.anchor_coef, instance.anchor_intercept)


def solve(
    instance: Instance,
    tolerance: float = 1e-6,
    *,
    sparse: bool = False,
    max_iter: int = 100,
    start: Start | None = None,
    stop: Stop | None = None,
) -> Solution:
    """The interior point's answer to a referee's instance."""
    problem = convex_problem(instance, sparse=sparse)
    return InteriorPoint(max_iter).solve(problem, tolerance, start, stop)


def compiled(
    goals: Goals,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    baseline: Any = None,
    columns: Any = None,
    datasets: Mapping[str, Dataset] | None = None,
) -> RateProblem:
    """Goals on data, through the public language."""
    data = bind(
        X,
        y,
        sample_weight=sample_weight,
        baseline=baseline,
        columns=columns,
        datasets=datasets,
        pos_label=goals.pos_label,
        reads_labels=goals.reads_labels,
        reads_baseline=goals.reads_baseline,
        used=goals.datasets,
    )
    return compile_goals(goals, data)


def ramp_problem_of_rates(
    rates: RateProblem, *, alpha: float, multiplier_bound: float, fit_intercept: bool = True
) -> RampProblem:
    """The ramp problem of compiled goals."""
    rows = MemoryRows(
        [(block.X, block.weight, block.cell) for block in rates.blocks], len(rates.cell_weight)
    )
    return RampProblem.from_rates(
        rows,
        rates.cost,
        rates.cost_constant,
        rates.table,
        rates.offset,
        alpha=alpha,
        multiplier_bound=multiplier_bound,
        fit_intercept=fit_intercept,
    )


def instance_of_rates(
    rates: RateProblem, *, alpha: float, multiplier_bound: float, fit_intercept: bool = True
) -> Instance:
    """Compiled goals on dense rows, as the referees read a problem, at the anchor zero."""
    X = np.vstack([np.asarray(block.X, dtype=np.float64) for block in rates.blocks])
    weight = np.concatenate([block.weight for block in rates.blocks])
    cell = np.concatenate([block.cell for block in rates.blocks])
    used = cell >= 0
    return Instance(
        X=X[used],
        weight=weight[used],
        cell=cell[used].astype(np.intp),
        cost=rates.cost,
        cost_constant=rates.cost_constant,
        table=rates.table.toarray(),
        offset=rates.offset,
        alpha=alpha,
        multiplier_bound=multiplier_bound,
        anchor_coef=np.zeros(X.shape[1]),
        anchor_intercept=0.0,
        fit_intercept=fit_intercept,
    )
