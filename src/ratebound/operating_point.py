"""Where to put the threshold of a deterministic rule: the exact search for a cut of given scores.

Sort the rows of all datasets by score once; every cut between two distinct scores is a
deterministic classifier, and as the cut falls from the top, rows join the positive side one after
the other, so a rate at all cuts is one cumulative sum. All goals are evaluated at every cut, at
O(rows) a group of a family (not a pair of groups), and no more than a few arrays of one number a
row are held.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ratebound.majorize import Callback, Majorization, Majorized
from ratebound.problem import MET_TOLERANCE, CompiledGoal, Floats, RateProblem
from ratebound.ramp import RampProblem
from ratebound.rows.base import ScoredRows

#: Scores closer than this, relative to their size, are one: only rounding tells them apart.
DISTINCT = 1e-10
#: Objectives closer than this are equal; the cut nearest zero is then taken.
EQUAL = 1e-12


#: Rounds of tightening without a better cut, where not even the expected rates meet the goals.
PATIENCE = 2


@dataclass(frozen=True)
class Cut:
    """A threshold on scores: positive where score > threshold.

    Attributes
    ----------
    threshold : float
    objective : float, as the user writes it
    violation : float, the largest of a normalised goal; met where at most 1e-9
    """

    threshold: float
    objective: float
    violation: float

    @property
    def met(self) -> bool:
        """Whether every goal is met strictly."""
        return self.violation <= MET_TOLERANCE


def best_cut(problem: RateProblem, rows: ScoredRows) -> Cut:
    """Find the cut of scores that meets every goal at the lowest objective.

    Where none meets all goals, the cut whose largest violation is smallest.

    Parameters
    ----------
    problem : RateProblem
    rows : ScoredRows

    Returns
    -------
    Cut
    """
    order = np.argsort(-rows.score, kind="stable")
    cell, weight, score = rows.cell[order], rows.weight[order], rows.score[order]
    closeness = DISTINCT * (1.0 + np.abs(score))
    # a cut may lie between a row and the next one; the first is above every row, the last below
    is_cut = np.concatenate([[True], score[:-1] - score[1:] > closeness[:-1], [True]])
    above = score[0] + max(1.0, closeness[0])
    below = score[-1] - max(1.0, closeness[-1])
    thresholds = np.concatenate([[above], 0.5 * (score[:-1] + score[1:]), [below]])[is_cut]
    fixed = np.zeros(len(problem.cost)) if rows.fixed is None else rows.fixed
    sums = _Cuts(cell, weight, is_cut, fixed)

    objective = problem.cost_constant + sums.of(problem.cost)
    violation = np.full(len(thresholds), -np.inf)
    for goal in problem.goals:
        np.maximum(violation, _violation(problem, goal, sums), out=violation)
    met = violation <= MET_TOLERANCE
    if met.any():
        best = objective[met].min()
        candidates = met & (objective <= best + EQUAL)
    else:
        least = violation.min()
        candidates = violation <= least + EQUAL
        candidates &= objective <= objective[candidates].min() + EQUAL
    index = np.flatnonzero(candidates)
    chosen = index[np.argmin(np.abs(thresholds[index]))]
    return Cut(float(thresholds[chosen]), float(objective[chosen]), float(violation[chosen]))


@dataclass(frozen=True)
class _Cuts:
    """Rows in falling order of score, which of the cuts 0..rows between them are allowed, and P of
    the cells that no cut changes.
    """

    cell: npt.NDArray[np.int32]
    weight: Floats
    is_cut: npt.NDArray[np.bool_]
    fixed: Floats

    def of(self, coefficients: Floats) -> Floats:
        """Return coefficients @ P at every allowed cut, for P the positive weight of every cell."""
        start = float(coefficients @ self.fixed)
        steps = np.concatenate([[start], self.weight * coefficients[self.cell]])
        return np.asarray(np.cumsum(steps)[self.is_cut])


def _violation(problem: RateProblem, goal: CompiledGoal, cuts: _Cuts) -> Floats:
    """The largest violation of a goal's normalised rows at every cut."""
    rows = range(goal.rows.start, goal.rows.stop)
    if goal.kind in ("gap", "group ratio") and len(rows) > len(goal.groups):
        lowest = np.full(int(cuts.is_cut.sum()), np.inf)
        highest = -lowest
        for i, constant in enumerate(goal.numerator_constants):
            rate = constant + cuts.of(goal.numerators[[i]].toarray()[0])
            np.minimum(lowest, rate, out=lowest)
            np.maximum(highest, rate, out=highest)
        if goal.kind == "gap":
            return np.asarray(highest - lowest - goal.bound)
        return np.asarray(goal.bound * highest - lowest)
    violation = np.full(int(cuts.is_cut.sum()), -np.inf)
    for row in rows:
        value = problem.offset[row] + cuts.of(problem.table[[row]].toarray()[0])
        np.maximum(violation, value, out=violation)
    return violation


@dataclass(frozen=True)
class Repaired:
    """A model and the cut of its scores that the deterministic rule uses.

    Attributes
    ----------
    fit : Majorized
    cut : Cut
    rounds : int, how often bounds were tightened and majorization continued
    """

    fit: Majorized
    cut: Cut
    rounds: int


def repair(
    rates: RateProblem,
    problem: RampProblem,
    majorization: Majorization,
    fit: Majorized,
    *,
    on_step: Callback | None = None,
    deadline: float | None = None,
    max_rounds: int = 6,
) -> Repaired:
    """Find a model and a cut whose deterministic decisions meet every goal on the training
    datasets.

    The best cut of the fitted scores where one meets all goals. Else every missed bound of the ramp
    problem is tightened by the difference between its strict and its expected value, majorization
    continues from where it ended, and the search is repeated; what is still missed is tightened
    twice as hard each round. Where no round meets all goals, the least violated cut is returned.
    """
    best = Repaired(fit, Cut(0.0, np.inf, np.inf), 0)
    tightening = np.zeros(len(problem.bound))
    for done in range(max_rounds + 1):
        cut = best_cut(rates, problem.rows.scored(fit.coef, fit.intercept))
        if _is_better(cut, best.cut):
            best = Repaired(fit, cut, done)
        late = deadline is not None and time.monotonic() > deadline
        hopeless = fit.violation > majorization.tol and done >= best.rounds + PATIENCE
        if cut.met or done == max_rounds or late or fit.stopped or hopeless:
            break
        rows = problem.rows
        strict = rates.violations(rows.decision_sums(fit.coef, fit.intercept - cut.threshold))
        expected = rates.violations(rows.ramp_sums(fit.coef, fit.intercept))
        missed = strict > MET_TOLERANCE
        tightening = np.where(missed, np.maximum(tightening, 0.0) + strict * 2.0**done, tightening)
        tightening = np.where(missed, np.maximum(tightening, strict - expected), tightening)
        fit = majorization.run(
            problem.priced(fit.problem.multiplier_bound).tightened(tightening),
            fit.restart(),
            on_step=on_step,
            deadline=deadline,
            earlier=fit.history,
        )
    return replace(best, fit=best.fit.after(fit.history))


def _is_better(cut: Cut, other: Cut) -> bool:
    if cut.met != other.met:
        return cut.met
    return cut.objective < other.objective if cut.met else cut.violation < other.violation
