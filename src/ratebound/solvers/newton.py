"""What the methods that take Newton steps share: units, and the bordered linear system.

Constraints and the intercept are a border of a few columns around the system of a plain support
vector machine, so goals cost next to nothing beside the first block.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse
from threadpoolctl import ThreadpoolController

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Curvature, Floats, Rows

REFINEMENTS = 1
MOST_PRODUCTS = 500  # of a system solved by iteration
CONSTRAINT_SHARE = 1e-3  # weight of a constraint in the barrier, as a share of that of all terms
SMALL_TABLE = 4096  # entries up to which a table is dense, as SciPy's sparse products take longer

Table = Floats | scipy.sparse.csr_array


def scaled_table(constraints: scipy.sparse.csr_array, scale: Floats) -> Table:
    """Constraint coefficients times a factor a constraint, dense where they are few."""
    table = scipy.sparse.csr_array(scipy.sparse.diags_array(scale) @ constraints)
    return table.toarray() if np.prod(table.shape) <= SMALL_TABLE else table


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> contextlib.AbstractContextManager[Any]:
    """Keep BLAS to one thread: blocks of rows are what runs in parallel.

    Threads inside products as small as a Newton system's do little but wait, and what they add up
    would depend on their number.
    """
    limits: contextlib.AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limits


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


class System(Protocol):
    """Solves the linear system of a Newton step, see `BorderedSystem`."""

    size: int
    diagonal: Floats  # of the first two rows and columns

    def solve(self, model: Floats, goals: Floats) -> tuple[Floats, Floats]:
        """Steps of model and multipliers for these right-hand sides."""
        ...

    def norm(self, model: Floats, goals: Floats) -> float:
        """Length of a residual in the metric of the system, which no scaling of columns changes."""
        ...


def newton_system(
    rows: Rows,
    sums: Curvature,
    alpha: float,
    table: Table,
    wanted: npt.NDArray[np.bool_],
    diagonal: Floats,
    fit_intercept: bool,
    accuracy: float,
    bias_ridge: float = 0.0,
) -> System:
    """The system of a Newton step: factorised where X'DX was formed, else solved by iteration.

    Parameters
    ----------
    rows : Rows, that measured the sums
    sums : Curvature, with cross sums of the wanted (side, cell) only
    alpha : float
    table : array or csr_array (m, 2 * cells), constraint coefficients
    wanted : (2, cells), which (side, cell) some constraint reads
    diagonal : (m,), what the constraints' own slacks add to the last block
    fit_intercept : bool
    accuracy : float
        Of the iteration: length of what is left of a right-hand side, as a share of it.
    bias_ridge : float
        Added to the bias's diagonal, for methods that may meet no curvature at all.
    """
    border = np.empty((rows.n_features + fit_intercept, len(diagonal)))
    border[: rows.n_features] = (table[:, wanted.ravel()] @ sums.cross).T
    if fit_intercept:
        border[rows.n_features] = table @ sums.cross_bias.ravel()
    if isinstance(table, np.ndarray):
        block = (table * sums.inverse.ravel()) @ table.T
    else:
        inverse = scipy.sparse.diags_array(sums.inverse.ravel())
        block = (table @ inverse @ table.T).toarray()
    block[np.diag_indices(len(diagonal))] += diagonal
    if sums.gram is not None:
        model = _model_block(sums, alpha, fit_intercept)
        if fit_intercept:
            model[-1, -1] += bias_ridge
        return BorderedSystem(model, border, block)
    size = rows.n_features
    plain = np.append(sums.diagonal + alpha, sums.bias + bias_ridge)[: size + fit_intercept]

    def product(vector: Floats) -> Floats:
        whole = vector if fit_intercept else np.append(vector, 0.0)
        out = rows.curvature_product(whole)[: len(vector)]
        out[:size] += alpha * vector[:size]
        out[size:] += bias_ridge * vector[size:]
        return out

    return IterativeSystem(product, plain, border, block, accuracy)


def _model_block(sums: Curvature, alpha: float, fit_intercept: bool) -> Floats:
    assert sums.gram is not None
    features = len(sums.gram)
    size = features + fit_intercept
    model = np.empty((size, size), order="F")
    model[:features, :features] = sums.gram
    model[np.arange(features), np.arange(features)] += alpha
    if fit_intercept:
        model[:features, features] = sums.border
        model[features, :features] = sums.border
        model[features, features] = sums.bias
    return model


class BorderedSystem:
    """The symmetric system of a Newton step in (model, multipliers), factorised::

        [ alpha I + X' D X    X' D 1    C'          ]
        [ 1' D X              1' D 1    c'          ]
        [ C                   c         -A N A' - d ]

    Parameters
    ----------
    model : (size, size), the first two rows and columns
    border : (size, m)
    block : (m, m), the last block without its sign
    """

    def __init__(self, model: Floats, border: Floats, block: Floats) -> None:
        self.size = len(model)
        self.diagonal = np.diagonal(model)
        self.model, self.border, self.block = model, border, block
        self.factor = _cholesky(model)
        self.half_border = scipy.linalg.solve_triangular(
            self.factor, border, lower=True, check_finite=False
        )
        if len(block):
            self.inner_factor = scipy.linalg.cho_factor(
                self.block + self.half_border.T @ self.half_border, lower=True, check_finite=False
            )

    def norm(self, model: Floats, goals: Floats) -> float:
        """Length of a residual in the metric of the system."""
        half = scipy.linalg.solve_triangular(self.factor, model, lower=True, check_finite=False)
        total = float(half @ half)
        if len(goals):
            total += float(goals @ scipy.linalg.cho_solve(self.inner_factor, goals))
        return float(np.sqrt(total))

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


class IterativeSystem:
    """The same system where X'DX is too large to be formed: conjugate gradients on ::

        (alpha I + X' D X + border block^-1 border') step = model + border block^-1 goals

    (the bias included), with this matrix's diagonal part and its few dense columns as
    preconditioner. Solutions start from the last one's.

    Parameters
    ----------
    product : callable, the first block times a vector
    plain : (size,), diagonal of the first block
    border, block : as in `BorderedSystem`
    accuracy : float
    """

    def __init__(
        self,
        product: Callable[[Floats], Floats],
        plain: Floats,
        border: Floats,
        block: Floats,
        accuracy: float,
    ) -> None:
        self.size = len(plain)
        self.diagonal = plain
        self.product, self.plain, self.border, self.block = product, plain, border, block
        self.accuracy = accuracy
        if len(block):
            self.block_factor = scipy.linalg.cho_factor(block)
            inner = block + border.T @ (border / plain[:, np.newaxis])
            self.inner_factor = scipy.linalg.cho_factor(inner)

    def _precondition(self, residual: Floats) -> Floats:
        scaled = residual / self.plain
        if len(self.block):
            inner = scipy.linalg.cho_solve(self.inner_factor, self.border.T @ scaled)
            scaled -= (self.border @ inner) / self.plain
        return np.asarray(scaled)

    def _apply(self, vector: Floats) -> Floats:
        out = self.product(vector)
        if len(self.block):
            out += self.border @ scipy.linalg.cho_solve(self.block_factor, self.border.T @ vector)
        return out

    def norm(self, model: Floats, goals: Floats) -> float:
        """Length of a residual in the metric of the preconditioner."""
        total = float(model @ (model / self.plain))
        if len(goals):
            total += float(goals @ scipy.linalg.cho_solve(self.inner_factor, goals))
        return float(np.sqrt(total))

    def solve(self, model: Floats, goals: Floats) -> tuple[Floats, Floats]:
        """Steps of model and multipliers for these right-hand sides."""
        with one_blas_thread():
            return self._solve(model, goals)

    def _solve(self, model: Floats, goals: Floats) -> tuple[Floats, Floats]:
        right = model
        if len(self.block):
            right = model + self.border @ scipy.linalg.cho_solve(self.block_factor, goals)
        step = self._conjugate_gradients(right)
        if not len(self.block):
            return step, np.zeros(0)
        return step, scipy.linalg.cho_solve(self.block_factor, self.border.T @ step - goals)

    def _conjugate_gradients(self, right: Floats) -> Floats:
        step = np.zeros(self.size)
        residual = right.copy()
        scaled = self._precondition(residual)
        product = float(residual @ scaled)
        goal = self.accuracy**2 * product
        direction = scaled
        for _ in range(MOST_PRODUCTS):
            if product <= goal or product <= 0.0:
                break
            image = self._apply(direction)
            length = product / float(direction @ image)
            step += length * direction
            residual -= length * image
            scaled = self._precondition(residual)
            before, product = product, float(residual @ scaled)
            direction = scaled + (product / before) * direction
        return step


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
