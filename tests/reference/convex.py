"""The convex problem of an `Instance`, solved by cvxpy with Clarabel, and bracketed.

A (row, side) is live where its bound is a hinge, its weight is positive and some cost or
constraint has a coefficient there; call the live ones k, with row i(k), sign s_k, cost
c_k and coefficients A_jk. What is not live adds a constant to the objective and lowers
the right-hand sides to gamma. Then

    primal   min_{w,b}  constant + sum_k c_k h_k + alpha/2 |w|^2 + V sum_j max(0, (A h - gamma)_j)
                        with h_k = max(0, 1/2 + s_k (<w, x_i(k)> + b))
    dual     max_{p,v}  constant + 1/2 sum_k p_k - |sum_k p_k s_k x_i(k)|^2 / (2 alpha) - gamma . v
                        with 0 <= p <= c + A^T v,  sum_k p_k s_k = 0 (where b is free),  0 <= v <= V

The solver is believed in nothing: its w, b are put into the first line and its p, v,
made to obey the second, into the second, and what is returned are these two numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from . import naive
from .instances import Floats, Instance


class ReferenceFailure(RuntimeError):
    """The reference has no answer that it can vouch for."""


@dataclass(frozen=True)
class HingeTerms:
    """The convex problem as the module docstring writes it.

    `signed_rows` holds s_k x_i(k), `sign` s_k, or 0 for all k where there is no intercept.
    """

    signed_rows: Floats
    sign: Floats
    cost: Floats
    coefficients: Floats
    bounds: Floats
    constant: float


@dataclass(frozen=True)
class ConvexReference:
    """The optimum of the elastic problem lies in [optimum_lower, optimum_upper].

    The multipliers are those of the lower bound, coef and intercept those of the upper;
    `violation` is the largest left_j - right_j there (-inf without constraints).
    `constant` is contained in both optima.
    """

    optimum_lower: float
    optimum_upper: float
    multipliers: Floats
    coef: Floats
    intercept: float
    violation: float
    constant: float
    status: str

    @property
    def optimum(self) -> float:
        """The middle of the bracket."""
        return 0.5 * (self.optimum_lower + self.optimum_upper)

    def relative_width(self, instance: Instance) -> float:
        """Width of the bracket, relative as the project's certificates are."""
        width = self.optimum_upper - self.optimum_lower
        return width / instance.relative_to(self.optimum_upper)


def hinge_terms(instance: Instance) -> HingeTerms:
    """Sort every row and side into live terms, the constant and the bounds."""
    n, d = instance.X.shape
    m = len(instance.offset)
    anchor = instance.anchor_coef.tolist()
    rows, signs, costs, columns = [], [], [], []
    constant = [0.0]
    bounds = [[-float(instance.offset[j])] for j in range(m)]
    for i in range(n):
        weight, cell = float(instance.weight[i]), int(instance.cell[i])
        anchor_score = naive.score_of(instance, i, anchor, instance.anchor_intercept)
        for j in range(m):
            bounds[j].append(weight * max(-instance.table[j, cell], 0.0))
        for s in (+1.0, -1.0):
            cost = weight * max(s * instance.cost[cell], 0.0)
            column = [weight * max(s * instance.table[j, cell], 0.0) for j in range(m)]
            if s * anchor_score > 0.5:
                constant.append(cost)
                for j in range(m):
                    bounds[j].append(-column[j])
            elif cost > 0.0 or any(a > 0.0 for a in column):
                rows.append(s * instance.X[i])
                signs.append(s if instance.fit_intercept else 0.0)
                costs.append(cost)
                columns.append(column)
    return HingeTerms(
        signed_rows=np.array(rows).reshape(len(rows), d),
        sign=np.array(signs),
        cost=np.array(costs),
        coefficients=np.array(columns).reshape(len(rows), m).T.copy(),
        bounds=np.array([math.fsum(parts) for parts in bounds]),
        constant=math.fsum(constant),
    )


def upper_bound(terms: HingeTerms, instance: Instance, coef: Floats, intercept: float) -> float:
    """The primal at any point."""
    u = 0.5 + terms.signed_rows @ coef + terms.sign * intercept
    h = np.maximum(0.0, u)
    excess = np.maximum(0.0, terms.coefficients @ h - terms.bounds)
    return math.fsum(
        [
            terms.constant,
            *(terms.cost * h),
            *(0.5 * instance.alpha * coef**2),
            *(instance.multiplier_bound * excess),
        ]
    )


def lower_bound(
    terms: HingeTerms, instance: Instance, p: Floats, multipliers: Floats, upper: float
) -> float:
    """The dual at any p and multipliers, after making them obey its constraints.

    Scaling the heavier sign down leaves sum_k p_k s_k = delta of rounding size only, which
    is worth at most |delta| B: a minimiser has alpha/2 |w|^2 <= upper, hence scores within
    max|x| sqrt(2 upper / alpha) of b, and moving b inward past the last breakpoint raises
    no hinge, so that one with |b| <= B = 1/2 + max|x| sqrt(2 upper / alpha) exists.
    """
    v = np.clip(multipliers, 0.0, instance.multiplier_bound)
    p = np.clip(p, 0.0, terms.cost + terms.coefficients.T @ v)
    up, down = math.fsum(p[terms.sign > 0.0]), math.fsum(p[terms.sign < 0.0])
    if up > down:
        p = np.where(terms.sign > 0.0, p * (down / up), p)
    elif down > up:
        p = np.where(terms.sign < 0.0, p * (up / down), p)
    delta = math.fsum(p * terms.sign)
    longest = float(np.max(np.linalg.norm(terms.signed_rows, axis=1), initial=0.0))
    reach = 0.5 + longest * math.sqrt(2.0 * max(upper, 0.0) / instance.alpha)
    resultant = np.array([math.fsum(column) for column in (p[:, None] * terms.signed_rows).T])
    return math.fsum(
        [
            terms.constant,
            *(0.5 * p),
            *(-(resultant**2) / (2.0 * instance.alpha)),
            *(-terms.bounds * v),
            -reach * abs(delta),
        ]
    )


class Guess(NamedTuple):
    """A point of the primal and one of the dual, believed in nothing."""

    coef: Floats
    intercept: float
    p: Floats
    multipliers: Floats
    status: str


def solve_convex(
    instance: Instance, *, wanted_width: float = 1e-10, accepted_width: float = 1e-6
) -> ConvexReference:
    """Bracket the optimum of the elastic problem to `wanted_width`, relatively.

    The primal and the dual are given to Clarabel in several scalings until the best upper
    and the best lower bound seen are that close; the last word is `ReferenceFailure` where
    they are not even within `accepted_width`.
    """
    terms = hinge_terms(instance)
    routes: list[Callable[[], list[Guess]]] = [
        lambda: trivial_guesses(terms, instance),
        lambda: [solve_primal(terms, instance, scale=1.0, tolerance=1e-13)],
        lambda: [solve_dual(terms, instance, tolerance=1e-10)],
        lambda: [solve_primal(terms, instance, scale=math.sqrt(instance.alpha), tolerance=1e-10)],
        lambda: [solve_dual(terms, instance, tolerance=1e-13)],
        lambda: [solve_primal(terms, instance, scale=1.0, tolerance=1e-10)],
    ]
    best_upper, best_lower = math.inf, -math.inf
    for route in routes:
        for guess in route():
            upper = upper_bound(terms, instance, guess.coef, guess.intercept)
            if upper < best_upper:
                best_upper, primal_guess = upper, guess
            lower = lower_bound(terms, instance, guess.p, guess.multipliers, best_upper)
            if lower > best_lower:
                best_lower, dual_guess = lower, guess
        width = (best_upper - best_lower) / instance.relative_to(best_upper)
        if width <= wanted_width:
            break
    if not width <= accepted_width:
        raise ReferenceFailure(
            f"bracket [{best_lower}, {best_upper}] of relative width {width:.1e}; "
            f"statuses {primal_guess.status} and {dual_guess.status}"
        )
    h = np.maximum(
        0.0, 0.5 + terms.signed_rows @ primal_guess.coef + terms.sign * primal_guess.intercept
    )
    return ConvexReference(
        optimum_lower=best_lower,
        optimum_upper=best_upper,
        multipliers=np.clip(dual_guess.multipliers, 0.0, instance.multiplier_bound),
        coef=primal_guess.coef,
        intercept=primal_guess.intercept,
        violation=float(np.max(terms.coefficients @ h - terms.bounds, initial=-math.inf)),
        constant=terms.constant,
        status=f"{primal_guess.status} above, {dual_guess.status} below",
    )


def trivial_guesses(terms: HingeTerms, instance: Instance) -> list[Guess]:
    """The exact answers where hinges of one sign only (or none) are live.

    Then w = 0 and b at the breakpoint make all of them zero, and only the constraints
    whose bound is negative are missed.
    """
    d = instance.X.shape[1]
    missed = np.where(terms.bounds < 0.0, instance.multiplier_bound, 0.0)
    intercepts = (-0.5, 0.5) if instance.fit_intercept else (0.0,)
    return [
        Guess(np.zeros(d), intercept, np.zeros(len(terms.cost)), missed, "closed form")
        for intercept in intercepts
    ]


def solve_primal(terms: HingeTerms, instance: Instance, *, scale: float, tolerance: float) -> Guess:
    """The primal as a quadratic program in scale * w."""
    K, d = terms.signed_rows.shape
    m = len(terms.bounds)
    scaled_coef, intercept = cp.Variable(d), cp.Variable()
    hinge, excess = cp.Variable(K, nonneg=True), cp.Variable(m, nonneg=True)
    scores = (terms.signed_rows / scale) @ scaled_coef + terms.sign * intercept
    above_score = hinge >= 0.5 + scores
    above_miss = excess >= terms.coefficients @ hinge - terms.bounds
    objective = (
        terms.cost @ hinge
        + 0.5 * instance.alpha / scale**2 * cp.sum_squares(scaled_coef)
        + instance.multiplier_bound * cp.sum(excess)
    )
    status = _solve(cp.Problem(cp.Minimize(objective), [above_score, above_miss]), tolerance)
    return Guess(
        coef=_value(scaled_coef.value, d) / scale,
        intercept=float(_value(intercept.value, 1)[0]) if instance.fit_intercept else 0.0,
        p=_value(above_score.dual_value, K),
        multipliers=_value(above_miss.dual_value, m),
        status=f"primal {status}",
    )


def solve_dual(terms: HingeTerms, instance: Instance, *, tolerance: float) -> Guess:
    """The dual as a quadratic program in p, v and -sqrt(alpha) w."""
    K, d = terms.signed_rows.shape
    m = len(terms.bounds)
    root = math.sqrt(instance.alpha)
    p, scaled = cp.Variable(K, nonneg=True), cp.Variable(d)
    multipliers = cp.Variable(m, nonneg=True)
    balance = terms.sign @ p == 0.0
    constraints = [
        p <= terms.cost + terms.coefficients.T @ multipliers,
        multipliers <= instance.multiplier_bound,
        root * scaled == terms.signed_rows.T @ p,
        balance,
    ]
    objective = 0.5 * cp.sum(p) - 0.5 * cp.sum_squares(scaled) - terms.bounds @ multipliers
    status = _solve(cp.Problem(cp.Maximize(objective), constraints), tolerance)
    coef = -_value(scaled.value, d) / root
    # The intercept is the balance's own multiplier, up to the sign convention.
    size = float(_value(balance.dual_value, 1)[0]) if instance.fit_intercept else 0.0
    intercept = min(size, -size, key=lambda b: upper_bound(terms, instance, coef, b))
    return Guess(
        coef, intercept, _value(p.value, K), _value(multipliers.value, m), f"dual {status}"
    )


def _solve(problem: cp.Problem, tolerance: float) -> str:
    """Run Clarabel as tightly as asked; "inaccurate" is allowed, for we check ourselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(
                solver=cp.CLARABEL,
                tol_gap_abs=tolerance,
                tol_gap_rel=tolerance,
                tol_feas=tolerance,
                max_iter=500,
            )
        except cp.SolverError:
            return "failed"
    return str(problem.status)


def _value(value: object, size: int) -> Floats:
    """What the solver left in a variable, zeros where it left nothing."""
    if value is None or size == 0:
        return np.zeros(size)
    return np.asarray(value, dtype=np.float64).reshape(size)
