"""Minimisers over (coef, intercept) for fixed multipliers: weighted support vector machines.

For multipliers v the Lagrangian of the convex problem (Equation 7 of the paper)::

    Psi = <cost + v @ constraints, H> + constant + alpha/2 ||coef||^2 - <bound, v>

is a support vector machine with a weight a term. An *oracle* (the paper's SVMOptimizer) minimises
it for the cutting plane over multipliers, and says how close to the minimum it came. Settings say
which oracle; what one call may leave to the next lies in a *session* (`remembering`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats
from ratebound.solvers.base import Stop

__all__ = ["Answer", "Remembers", "SVMOptimizer", "answer_at", "remembering"]


@dataclass(frozen=True)
class Answer:
    """A model for some multipliers, and how good it is there.

    As a function of the multipliers, Psi at this model is ``base + violations @ multipliers``: a
    cut, above the minimum over models at all multipliers.

    Attributes
    ----------
    coef : (d,)
    intercept : float
    base : float, objective of the model with regulariser and constant
    violations : (m,), its constraint values less their bounds
    upper : float, Psi at the model and the multipliers asked about
    lower : float, at most the minimum of Psi over models there; -inf where the oracle cannot say
    passes : float, passes over the rows that this took
    """

    coef: Floats
    intercept: float
    base: float
    violations: Floats
    upper: float
    lower: float
    passes: float


def answer_at(
    problem: ConvexProblem,
    multipliers: Floats,
    coef: Floats,
    intercept: float,
    lower: float,
    passes: float,
) -> Answer:
    """Evaluate a model exactly: its cut and its value at the multipliers."""
    hinges = problem.rows.hinge_sums(coef, intercept)
    violations = problem.violations(hinges)
    base = (
        float(np.sum(problem.cost * hinges))
        + problem.constant
        + 0.5 * problem.alpha * problem.rows.squared_norm(coef)
    )
    upper = base + float(violations @ multipliers)
    return Answer(coef, intercept, base, violations, upper, min(lower, upper), passes)


class SVMOptimizer(Protocol):
    """Minimises Psi over models to a given accuracy (SVMOptimizer in the paper's Algorithm 2)."""

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Return a model whose upper and lower differ by at most accuracy, where it can."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """An oracle whose next answer can start from its last."""

    def session(self) -> SVMOptimizer:
        """Return the same oracle with a memory, which is for one thread and one run."""
        ...


def remembering(oracle: SVMOptimizer) -> SVMOptimizer:
    """The oracle for many questions in a row: one with a memory where it offers that."""
    return oracle.session() if isinstance(oracle, Remembers) else oracle
