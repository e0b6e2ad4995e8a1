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
#: Denominators up to this are 0 but for rounding.
NOTHING = 1e-12

#: Rounds of tightening without a better cut, where not even the expected rates meet the goals or
#: less is missed than a single row decides.
PATIENCE = 2


@dataclass(frozen=True)
class Cut:
    """A threshold on scores: positive where score > threshold.

    Attributes
    ----------
    threshold : float
    objective : float, as the user writes it
    violation : float, the largest of a normalised goal; met where at most 1e-9
    penalised : float, objective plus the price of the violation
    """

    threshold: float
    objective: float
    violation: float
    penalised: float

    @property
    def met(self) -> bool:
        """Whether every goal is met strictly."""
        return self.violation <= MET_TOLERANCE


def best_cut(problem: RateProblem, rows: ScoredRows, price: float) -> Cut:
    """Find the cut of scores that meets every goal at the lowest objective.

    Where none meets all goals, that of the lowest objective plus price times the largest violation.
    A cut that meets a goal by saying nothing (a ratio of 0/0; groups compared where all rows are
    decided alike) is taken only where the scores, all on one side of zero, say nothing either.

    Parameters
    ----------
    problem : RateProblem
    rows : ScoredRows
    price : float
        High enough, it makes the largest violation as small as it can be.

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
    if len(thresholds) > 2 and score[-1] <= 0.0 < score[0]:
        empty = np.any([_is_empty(goal, sums) for goal in problem.goals], axis=0)
        if not np.all(empty):
            violation[empty] = np.inf
    penalised = objective + price * np.where(violation <= MET_TOLERANCE, 0.0, violation)
    candidates = violation <= (MET_TOLERANCE if violation.min() <= MET_TOLERANCE else np.inf)
    candidates &= penalised <= penalised[candidates].min() + EQUAL
    index = np.flatnonzero(candidates)[::-1]  # of two as near to zero, the lower
    chosen = index[np.argmin(np.abs(thresholds[index]))]
    return Cut(
        float(thresholds[chosen]),
        float(objective[chosen]),
        float(violation[chosen]),
        float(penalised[chosen]),
    )


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


def _is_empty(goal: CompiledGoal, cuts: _Cuts) -> npt.NDArray[np.bool_]:
    """Whether every cut meets a goal, if it does, by saying nothing."""
    empty = np.zeros(int(cuts.is_cut.sum()), dtype=bool)
    if goal.kind in ("gap", "group ratio"):
        empty[[0, -1]] = True
    if goal.denominators is not None and goal.denominator_constants is not None:
        nothing = np.ones(len(empty), dtype=bool)
        for i, constant in enumerate(goal.denominator_constants):
            nothing &= constant + cuts.of(goal.denominators[[i]].toarray()[0]) <= NOTHING
        empty |= nothing
    return empty


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
    twice as hard each round. Where no round meets all goals, the least violated cut is returned, at
    the price that violation has in training: two groups' rates that cannot be equal are then as
    good as equal at a low objective, rather than closest of all at a high one.
    """
    price = max(problem.multiplier_bound, fit.problem.multiplier_bound)
    best = Repaired(fit, Cut(0.0, np.inf, np.inf, np.inf), 0)
    tightening = np.zeros(len(problem.bound))
    finest = _share_of_a_row(rates)
    for done in range(max_rounds + 1):
        cut = best_cut(rates, problem.rows.scored(fit.coef, fit.intercept), price)
        if _is_better(cut, best.cut):
            best = Repaired(fit, cut, done)
        late = deadline is not None and time.monotonic() > deadline
        in_vain = fit.violation > majorization.tol or cut.violation <= finest
        hopeless = in_vain and done >= best.rounds + PATIENCE
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


def _share_of_a_row(rates: RateProblem) -> float:
    """The most that the decision of one row of mean weight changes a goal by."""
    weight = np.concatenate([block.weight[block.cell >= 0] for block in rates.blocks])
    return float(np.max(np.abs(rates.table.data), initial=0.0) * np.mean(weight))


def _is_better(cut: Cut, other: Cut) -> bool:
    if cut.met != other.met:
        return cut.met
    return cut.penalised < other.penalised
