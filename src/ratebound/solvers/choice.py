"""Which solver a fit uses, and why: a name, or a configured solver, becomes a `Solver`."""

from __future__ import annotations

from dataclasses import replace

from ratebound.ramp import RampProblem
from ratebound.solvers.base import Solver
from ratebound.solvers.cutting_plane import CuttingPlane
from ratebound.solvers.interior_point import InteriorPoint
from ratebound.solvers.oracles import remembering
from ratebound.solvers.sdca import SDCA

__all__ = ["SOLVERS", "choose_solver"]

#: What `choose_solver` knows by name.
SOLVERS = ("auto", "interior-point", "cutting-plane")


def choose_solver(wanted: str | Solver, problem: RampProblem) -> tuple[Solver, str]:
    """Return the solver for all convex problems of a fit, and a line that names it and says why.

    Parameters
    ----------
    wanted : str or Solver
        One of `SOLVERS`, or a configured solver such as ``CuttingPlane(oracle=Libsvm())``. An
        oracle with a memory keeps it for the whole fit.
    problem : RampProblem
    """
    if not isinstance(wanted, str):
        return _for_a_fit(wanted), f"{wanted!r}: as configured"
    if wanted == "cutting-plane":
        return _for_a_fit(CuttingPlane(SDCA())), "cutting-plane with SDCA: asked for"
    if wanted == "interior-point":
        return InteriorPoint(), "interior-point: asked for"
    return InteriorPoint(), "interior-point: the default"


def _for_a_fit(solver: Solver) -> Solver:
    """A cutting plane's oracle remembers from one convex problem of the fit to the next."""
    if isinstance(solver, CuttingPlane):
        return replace(solver, oracle=remembering(solver.oracle))
    return solver
