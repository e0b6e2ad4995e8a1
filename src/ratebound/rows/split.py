"""Scores and their copies, for alternating directions over few rows: the `SplitTerms` protocol.

Every row keeps a copy z of its score, which bears the charge, and a dual variable xi that draws the
score to its copy. With ``stiffness_i = share * alpha / ||x_i||^2`` the model that fits the targets
``t = z - xi / stiffness`` best,

    minimise over coef = X' a and intercept:
        alpha/2 ||coef||^2 + sum stiffness_i/2 (score_i - t_i)^2,

solves ``(X X' + diag(||x_i||^2) / share) a = t - intercept``, ``sum a = 0``: a matrix that depends
neither on alpha nor on costs, goals and anchors, and whose condition is about the share times the
largest number of rows that are alike. So it is factorised once, in single precision: each fit
solves for what the last one lacks, and scores are now and then taken from the rows themselves, so
that the error falls with the steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from ratebound import kernels
from ratebound.rows.base import DualPoint, Floats, Split
from ratebound.rows.products import products_of_rows

if TYPE_CHECKING:
    from ratebound.rows.memory import MemoryRows

MOST_ROWS = 20_000  # the factor of as many takes 1.6 GB
SOFTER = 4.0  # what the share is divided by where the factor fails
SHORTEST = 1e-3  # squared length of a row, relative to the mean, below which it counts as that long


class MemorySplitTerms:
    """The copies of the scores of rows in memory, and the factor."""

    def __init__(self, rows: MemoryRows) -> None:
        self.rows = rows
        self.used = np.flatnonzero(rows.cell >= 0)
        if len(self.used) > MOST_ROWS:
            raise ValueError(
                f"alternating directions factorise a matrix of rows x rows, and {len(self.used):,} "
                f'rows are more than {MOST_ROWS:,}: use solver="auto"'
            )
        self.weight: Floats = rows.weight[self.used]
        self.cell = rows.cell[self.used]
        count = len(self.used)
        self.squares = np.zeros(count)
        self.wanted = self.share = 0.0
        self.stiffness = np.ones(count)
        self.copy = np.zeros(count)
        self.dual = np.zeros(count)
        self.scores = np.zeros(count)
        self.combination = np.zeros(count)
        self.intercept = 0.0
        self._begun = False
        self._constant = np.zeros(count)
        self._factor: Any = None

    @property
    def live(self) -> Any:
        """Which sides the anchor left live."""
        return self.rows.live[self.used]

    # ---- the factor --------------------------------------------------------------------------

    def stiffen(self, share: float, alpha: float) -> None:
        """Take this share for the stiffness of all rows, at this alpha."""
        if share != self.wanted:
            self.wanted = self.share = share
            self._factorise()
        self.stiffness = self.share * alpha / self.squares

    def _factorise(self) -> None:
        matrix = products_of_rows(self.rows, self.used, np.float32)
        squares = np.diagonal(matrix).astype(np.float64)
        if not np.isfinite(squares).all():
            raise ValueError("X has rows too long for single precision: scale its columns")
        mean = float(np.mean(squares)) if len(squares) else 0.0
        self.squares = np.maximum(squares, SHORTEST * mean) if mean > 0 else np.ones(len(squares))
        diagonal = np.arange(len(squares))
        matrix[diagonal, diagonal] += (self.squares / self.share).astype(np.float32)
        # the transpose is Fortran-ordered: LAPACK works in its place
        self._factor, failed = scipy.linalg.lapack.spotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
        if failed:  # rows too much alike for so little beside them
            self.share /= SOFTER
            self._factorise()
            return
        self._constant = self._solve(np.ones(len(squares)))

    def _solve(self, right: Floats) -> Floats:
        # two triangular solves of one vector take a quarter of the time of LAPACK's potrs
        step = right.astype(np.float32)
        if len(step):
            step = scipy.linalg.blas.strsv(self._factor, step, lower=0, trans=1, overwrite_x=1)
            step = scipy.linalg.blas.strsv(self._factor, step, lower=0, overwrite_x=1)
        return step.astype(np.float64)

    # ---- steps -------------------------------------------------------------------------------

    def begin(self, coef: Floats, intercept: float, *, afresh: bool) -> None:
        """Afresh, put the copies at this model's scores, with duals of 0; else leave all as is."""
        if afresh or not self._begun:
            self._begun = True
            self.dual[:] = 0.0
            self.combination[:] = 0.0
            self.intercept = 0.0
            self.scores[:] = 0.0
            scores = self.rows._compute_scores(coef, intercept, np.empty(self.rows.n_rows))
            self.copy = scores[self.used]

    def fit(self, relaxation: float, fit_intercept: bool) -> None:
        """Fit the model to the copies, and draw from its scores the targets of the next copies."""
        ridge = self.squares / self.share
        targets = self.copy - self.dual / self.stiffness
        missing = targets - self.scores - ridge * self.combination
        change = self._solve(missing)
        if fit_intercept and len(change):
            imbalance = float(np.sum(self.combination) + np.sum(change))
            more = imbalance / float(np.sum(self._constant))
            change -= more * self._constant
            self.intercept += more
        self.combination = self.combination + change
        self.scores = self.scores + missing - ridge * change
        drawn = relaxation * self.scores + (1.0 - relaxation) * self.copy
        self._targets = drawn + self.dual / self.stiffness

    def split(self, ceiling: Floats) -> Split:
        """Where the copies go at these ceilings, and what that costs."""
        hinges, bends = np.zeros((2, self.rows.n_cells)), np.zeros((3, self.rows.n_cells))
        self._places = np.empty(len(self.used))
        value = kernels.split_terms(
            self._targets, self.stiffness, self.weight, self.cell, self.live, ceiling,
            self._places, hinges, bends,
        )  # fmt: skip
        return Split(float(value), hinges, bends)

    def move(self) -> tuple[float, float]:
        """Let the copies go there; how far scores and copies are apart, and how far these went."""
        self.dual = self.stiffness * (self._targets - self._places)
        apart = self.scores - self._places
        moved = self._places - self.copy
        self.copy = self._places
        return (
            float(np.sqrt(np.sum(self.stiffness * apart * apart))),
            float(np.sqrt(np.sum(self.stiffness * moved * moved))),
        )

    # ---- what the bounds are made of ---------------------------------------------------------

    def model(self) -> Floats:
        """Coefficients of the model last fitted; its scores are then exact."""
        whole = np.zeros((1, self.rows.n_rows))
        whole[0, self.used] = self.combination
        coef = np.asarray(self.rows._transpose(whole)[0])
        scores = self.rows._compute_scores(coef, self.intercept, np.empty(self.rows.n_rows))
        self.scores = scores[self.used]
        return coef

    def shifted(self, shift: float) -> tuple[Floats, Floats]:
        """Hinge sums (2, cells) with the intercept moved so far, and their slopes by it."""
        scores = self.scores + shift
        live = self.live
        hinges, slopes = np.zeros((2, self.rows.n_cells)), np.zeros((2, self.rows.n_cells))
        for side, sign in ((0, 1.0), (1, -1.0)):
            charge = 0.5 + sign * scores
            bent = np.flatnonzero((charge > 0) & (live & (1 + side) > 0))
            cell, weight = self.cell[bent], self.weight[bent]
            count = self.rows.n_cells
            hinges[side] = np.bincount(cell, weights=weight * charge[bent], minlength=count)
            slopes[side] = sign * np.bincount(cell, weights=weight, minlength=count)
        return hinges, slopes

    def dual_point(self, ceiling: Floats, fit_intercept: bool) -> DualPoint:
        """Sums of the dual variables, clipped to their boxes and, for an intercept, balanced."""
        live = self.live
        high = np.where(live & 1, self.weight * ceiling[0, self.cell], 0.0)
        low = np.where(live & 2, self.weight * ceiling[1, self.cell], 0.0)
        dual = np.clip(self.dual, -low, high)
        if fit_intercept:
            positive, negative = float(dual[dual > 0].sum()), -float(dual[dual < 0].sum())
            if positive > negative:
                dual[dual > 0] *= negative / positive
            elif negative > positive:
                dual[dual < 0] *= positive / negative
        # of all ways to split xi = p0 - p1 over the sides the one with the largest p0 + p1
        first = np.clip(np.where(dual >= high - low, high, dual + low), 0.0, high)
        point = np.zeros((2, self.rows.n_rows))
        point[0, self.used] = first
        point[1, self.used] = np.clip(first - dual, 0.0, low)
        return DualPoint(self.rows._transpose(point), np.sum(point, axis=1))
