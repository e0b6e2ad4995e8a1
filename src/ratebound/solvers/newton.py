"""What the methods that take Newton steps share: units, and the bordered linear system.

Constraints and the intercept are a border of a few columns around the system of a plain support
vector machine, so goals cost next to nothing beside the first block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Curvature, Floats

REFINEMENTS = 1
CONSTRAINT_SHARE = 1e-3  # weight of a constraint in the barrier, as a share of that of all terms


@dataclass(frozen=True)
class Units:
    """Factors that make a typical cost and a typical constraint coefficient 1.

    Without them the methods need about twice the iterations.

    Attributes
    ----------
    cost : float
    constraints : (m,)
    """

    cost: float
    constraints: Floats

    @classmethod
    def of(cls, problem: ConvexProblem, live_weight: Floats) -> Units:
        """Units of a convex problem, from the weight of its live terms, (2, cells)."""
        costly = (problem.cost > 0) & (live_weight > 0)
        total = float(np.sum((problem.cost * live_weight)[costly]))
        pattern = problem.constraints.copy()
        pattern.data = (pattern.data > 0).astype(float)
        touched = pattern @ live_weight.ravel()
        sums = problem.constraints @ live_weight.ravel()
        constraints = np.where(sums > 0, touched / np.where(sums > 0, sums, 1.0), 1.0)
        if total > 0:
            return cls(float(np.sum(live_weight[costly])) / total, constraints)
        # nothing to minimise but violation: its price is the unit
        smallest = float(np.min(constraints, initial=np.inf)) ** -1
        return cls(min(1.0 / (problem.multiplier_bound * max(smallest, 1e-300)), 1e12), constraints)

    @property
    def multipliers(self) -> Floats:
        """Factors from the problem's multipliers to those in these units."""
        return np.asarray(self.cost / self.constraints)


class BorderedSystem:
    """The symmetric system of a Newton step in (model, multipliers), factorised::

        [ alpha I + X' D X    X' D 1    C'          ]
        [ 1' D X              1' D 1    c'          ]
        [ C                   c         -A N A' - d ]

    Parameters
    ----------
    sums : Curvature, with cross sums of the wanted (side, cell) only
    alpha : float
    table : csr_array (m, 2 * cells), constraint coefficients
    wanted_table : csr_array (m, wanted), its columns for which there are cross sums
    diagonal : (m,), what the constraints' own slacks add to the last block
    fit_intercept : bool
    """

    def __init__(
        self,
        sums: Curvature,
        alpha: float,
        table: scipy.sparse.csr_array,
        wanted_table: scipy.sparse.csr_array,
        diagonal: Floats,
        fit_intercept: bool,
    ) -> None:
        features = len(sums.gram)
        self.size = features + fit_intercept
        model = np.empty((self.size, self.size), order="F")
        model[:features, :features] = sums.gram
        model[np.arange(features), np.arange(features)] += alpha
        border = np.empty((self.size, len(diagonal)))
        border[:features] = (wanted_table @ sums.cross).T
        if fit_intercept:
            model[:features, features] = sums.border
            model[features, :features] = sums.border
            model[features, features] = sums.bias
            border[features] = table @ sums.cross_bias.ravel()
        self.model, self.border = model, border
        self.factor = _cholesky(model)
        self.half_border = scipy.linalg.solve_triangular(
            self.factor, border, lower=True, check_finite=False
        )
        inverse = scipy.sparse.diags_array(sums.inverse.ravel())
        self.block = (table @ inverse @ table.T).toarray() + np.diag(diagonal)
        if len(diagonal):
            self.inner_factor = scipy.linalg.cho_factor(
                self.block + self.half_border.T @ self.half_border, lower=True, check_finite=False
            )

    def solve(self, model: Floats, goals: Floats) -> tuple[Floats, Floats]:
        """Steps of model and multipliers for these right-hand sides.

        Refinement undoes the shift of the factor, and what rounding loses where alpha is tiny.
        """
        step, multiplier_step = self._solve_once(model, goals)
        for _ in range(REFINEMENTS):
            more, multiplier_more = self._solve_once(
                model - self.model @ step - self.border @ multiplier_step,
                goals - self.border.T @ step + self.block @ multiplier_step,
            )
            step = step + more
            multiplier_step = multiplier_step + multiplier_more
        return step, multiplier_step

    def _solve_once(self, model: Floats, goals: Floats) -> tuple[Floats, Floats]:
        half = scipy.linalg.solve_triangular(self.factor, model, lower=True, check_finite=False)
        multiplier_step = np.zeros(0)
        if len(goals):
            multiplier_step = scipy.linalg.cho_solve(
                self.inner_factor, self.half_border.T @ half - goals, check_finite=False
            )
            half = half - self.half_border @ multiplier_step
        step = scipy.linalg.solve_triangular(
            self.factor, half, lower=True, trans="T", check_finite=False
        )
        return step, multiplier_step


def _cholesky(matrix: Floats) -> Floats:
    """Lower factor; rounding can push small pivots below zero when alpha is small beside the rows,
    so the diagonal is raised as little as is needed.
    """
    shift = 1e-15 * np.diagonal(matrix)
    while True:
        try:
            factor, _ = scipy.linalg.cho_factor(
                matrix + np.diag(shift), lower=True, overwrite_a=True, check_finite=False
            )
            return np.asarray(factor)
        except scipy.linalg.LinAlgError:
            shift = shift * 100.0
