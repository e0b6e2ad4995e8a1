"""What a fit says of itself: how it ended, multipliers and prices by goal, and notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ratebound.problem import CompiledGoal, RateProblem
from ratebound.report import Report

if TYPE_CHECKING:
    from ratebound.majorize import Majorized
    from ratebound.operating_point import Cut

Floats = npt.NDArray[np.float64]


class Solved(NamedTuple):
    """A ramp problem solved: the model, the cut of its scores, and how it was found.

    Attributes
    ----------
    fit : Majorized
    cut : Cut
    rounds : int, how often bounds were tightened to meet the goals strictly
    solver : str, the solver that was used, and why
    """

    fit: Majorized
    cut: Cut
    rounds: int
    solver: str


@dataclass(frozen=True)
class FitStatus:
    """How a fit ended.

    Attributes
    ----------
    converged : bool
        The last relative decrease and the certified gap of the last convex problem are within tol.
    goals_met : bool
        Every goal is met on the training datasets by the rule that ``predict`` uses.
    message : str
    solver : str
        The solver that was used, and why.
    start : str
        Where majorization started: what the homotopy did, or "zero".
    multiplier_bound : float
        The last price of a unit of violation.
    conflict_radius : float
        Proof for the last convex bound: no coefficients of smaller norm meet it. 0 where nothing is
        proven. It says nothing of the ramp problem at other anchors.
    repair_rounds : int
        How often bounds were tightened to meet the goals strictly.
    """

    converged: bool
    goals_met: bool
    message: str
    solver: str
    start: str
    multiplier_bound: float
    conflict_radius: float
    repair_rounds: int

    def __str__(self) -> str:
        return self.message


def fit_status(solved: Solved, report: Report, rule: str, tol: float) -> FitStatus:
    """How a fit ended, in words too; `rule` is the estimator's ``threshold``."""
    fit = solved.fit
    said = [fit.why]
    # with the paper's rule it is the expected rates that the fit is about
    met = report.met if rule == "repair" else fit.violation <= tol
    if not met:
        missed = [line.label for line in report.goals if not line.met]
        kind = "strictly" if rule == "repair" else "in expectation"
        said.append(
            f"goals missed {kind}: {', '.join(missed) or 'within tol only'}; loosen one "
            "(report_ shows each slack and price), try n_starts=10, or lower alpha"
        )
        if fit.conflict_radius > 0:
            said.append(
                "the last convex bound is met by no coefficients of norm below "
                f"{fit.conflict_radius:.3g} (which does not rule out other classifiers)"
            )
    elif solved.rounds:
        said.append(f"goals met strictly after {solved.rounds} rounds of tightening")
    elif not (fit.converged or fit.stopped):
        said.append("raise max_iter or tol")
    return FitStatus(
        fit.converged, met, "; ".join(said), solved.solver,
        fit.history[0].homotopy or "zero", fit.problem.multiplier_bound,
        fit.conflict_radius, solved.rounds,
    )  # fmt: skip


def goal_multipliers(goal: CompiledGoal, multipliers: Floats) -> float | dict[str, float]:
    """The multiplier of a goal; of a family, by inequality."""
    values = multipliers[goal.rows]
    if not goal.is_family:
        return float(values[0])
    return dict(zip(goal.row_labels, values.tolist(), strict=True))


def goal_prices(
    rates: RateProblem, fit: Majorized, expected: Floats
) -> tuple[dict[str, float], dict[str, float]]:
    """Price of every goal per unit of its bound; of those whose convex bound is missed, V instead.

    V is what the violation of the worst missed inequality costs, per unit of the goal's bound too.
    """
    prices, unknown = {}, {}
    for goal in rates.goals:
        multipliers = fit.solution.multipliers[goal.rows]
        # what a unit of the user's bound is worth in the normalised row
        scale = np.ones(len(multipliers))
        if goal.kind == "group ratio":
            scale = goal.rates(expected)[goal.pairs[:, 1]]
        elif goal.denominators is not None and goal.denominator_constants is not None:
            below = goal.denominators @ expected + goal.denominator_constants
            scale = below[goal.pairs[:, 0]]
        missed = fit.convex_violations[goal.rows]
        if np.max(missed, initial=0.0) > 1e-6:
            worst = int(np.argmax(missed))
            unknown[goal.label] = fit.problem.multiplier_bound * float(scale[worst])
        else:
            prices[goal.label] = float(np.sum(multipliers * scale))
    return prices, unknown


def notes(rates: RateProblem, strict: Floats) -> tuple[str, ...]:
    """What a reader of the report should know besides its numbers."""
    of_rows = slice(rates.gap_cells.start)
    total = float(rates.cell_weight[of_rows].sum())
    positive = float(strict[of_rows].sum())
    if positive <= 0 or positive >= total:
        which = "negatively" if positive <= 0 else "positively"
        return (f"every training row is decided {which}: of the cuts, only such a one will do",)
    return ()
