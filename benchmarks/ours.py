"""ratebound itself, as the systems of the tables; like a peer, imported when it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.task import THREADS, Answer, Task, decided, of_scores

ALPHAS = np.geomspace(1e-2, 1e-5, 10)  # of the table of paths


def ratebound(task: Task) -> Any:
    from benchmarks.counting import counted
    from benchmarks.problems import columns, goals_of
    from ratebound import RateBoundSVC

    svc = RateBoundSVC(goals_of(task.problem))

    def fit() -> Any:
        return svc.fit(task.X, task.y, columns=columns(task.men))

    def answer(fitted: Any) -> Answer:
        found = decided(task, fitted)
        steps = fitted.history_
        found.counts = {
            "majorization steps": fitted.n_iter_,
            "Newton steps": sum(step.solver_iterations for step in steps),
        }
        with counted() as counts:
            fit()
        found.counts |= counts
        return found

    return fit, answer


def ratebound_alpha(task: Task) -> Any:
    """With alpha by cross-validation on the training rows, all settings as they come."""
    from benchmarks.problems import columns, goals_of
    from ratebound import RateBoundSVCCV

    cv = RateBoundSVCCV(goals_of(task.problem), n_jobs=THREADS)
    return (
        lambda: cv.fit(task.X, task.y, columns=columns(task.men)),
        lambda fitted: decided(task, fitted, {"alpha": fitted.alpha_}),
    )


def ratebound_convex(task: Task) -> Any:
    """One convex problem, anchored at zero, to a certified relative gap of 1e-6."""
    from benchmarks.counting import counted
    from benchmarks.problems import columns, goals_of
    from ratebound.compile import compile_goals
    from ratebound.data import bind
    from ratebound.ramp import RampProblem
    from ratebound.rows.memory import MemoryRows
    from ratebound.rows.merge import merge_rows
    from ratebound.solvers.interior_point import InteriorPoint

    goals = goals_of(task.problem)

    def fit() -> Any:
        data = bind(
            task.X, task.y, columns=columns(task.men), reads_labels=goals.reads_labels
        )  # fmt: skip
        rates = compile_goals(goals, data)
        blocks = [merge_rows(block.X, block.weight, block.cell) for block in rates.blocks]
        problem = RampProblem.from_rates(
            MemoryRows(blocks, len(rates.cost)), rates.cost, rates.cost_constant, rates.table,
            rates.offset, alpha=1 / len(task.y), multiplier_bound=100.0, fit_intercept=True,
        )  # fmt: skip
        zero = np.zeros(task.X.shape[1])
        return InteriorPoint().solve(problem.convex_at(zero, 0.0), 1e-6), problem.constant

    def answer(found: Any) -> Answer:
        solution, constant = found
        counts = {"Newton steps": solution.iterations, "gap": solution.gap}
        with counted() as more:
            fit()
        return of_scores(
            task, solution.coef, solution.intercept, counts | more, solution.upper + constant
        )

    return fit, answer


def _path(task: Task, path_tol: float) -> Any:
    """Ten alphas in five folds by `RateBoundSVCCV`, and the last fit."""
    from benchmarks.problems import columns, goals_of
    from ratebound import RateBoundSVCCV

    goals = goals_of(task.problem)
    cv = RateBoundSVCCV(goals, alphas=ALPHAS, cv=5, path_tol=path_tol, n_jobs=THREADS)

    def answer(fitted: Any) -> Answer:
        results = fitted.cv_results_
        counts = {"Newton steps": results["newton_steps"].sum(), "alpha": fitted.alpha_}
        return decided(task, fitted, counts | {"steps": results["n_iter"].sum()})

    return lambda: cv.fit(task.X, task.y, columns=columns(task.men)), answer


def path_default(task: Task) -> Any:
    return _path(task, 1e-3)


def path_tight(task: Task) -> Any:
    """With every fit of the path to the tolerance of a single fit."""
    return _path(task, 1e-4)


def path_single_fits(task: Task) -> Any:
    """Ten alphas in five folds as 50 fits of `RateBoundSVC`."""
    from benchmarks.problems import columns, goals_of
    from ratebound import RateBoundSVC

    fold = np.arange(len(task.y)) % 5

    def fit() -> Any:
        fits = []
        for number in range(5):
            kept = fold != number
            X, y, sexes = task.X[kept], task.y[kept], columns(task.men[kept])
            for alpha in ALPHAS:
                svc = RateBoundSVC(goals_of(task.problem), alpha=alpha)
                fits.append(svc.fit(X, y, columns=sexes))
        return fits

    def answer(fits: Any) -> Answer:
        newton = sum(step.solver_iterations for svc in fits for step in svc.history_)
        counts = {"Newton steps": newton, "steps": sum(svc.n_iter_ for svc in fits)}
        return decided(task, fits[5], counts)

    return fit, answer
