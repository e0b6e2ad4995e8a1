"""Which solver a fit uses, and why: a name, or a configured solver, becomes a `Solver`."""

from __future__ import annotations

from dataclasses import replace

from ratebound.ramp import RampProblem
from ratebound.rows.gaps import RowsWithGaps
from ratebound.rows.kernel import KernelRows
from ratebound.rows.memory import LARGEST_GRAM, LARGEST_SPAN
from ratebound.solvers.alternating_directions import AlternatingDirections
from ratebound.solvers.augmented_lagrangian import AugmentedLagrangian
from ratebound.solvers.base import Solver
from ratebound.solvers.cutting_plane import CuttingPlane
from ratebound.solvers.growing_rank import GrowingRank
from ratebound.solvers.interior_point import InteriorPoint
from ratebound.solvers.oracles import remembering
from ratebound.solvers.sdca import SDCA

LARGEST_SPARSE_GRAM = 1000  # columns of a sparse X up to which exact steps are worth their price
FEWEST = 500  # rows up to which the interior point takes no time worth saving
STIFF = 20.0  # how far a row's dual variable can move its own score, where there are more columns
MOST_GOALS = 64  # constraints whose multipliers take Newton steps at every step of a solver
LONG_FACTOR = 0.05  # share of a kernel's trace, left by its first columns, that makes a factor long
LARGEST_MATRIX = 2.0  # GiB that a kernel matrix may take without being asked for
MOST_CUT_GOALS = 8  # constraints that a cutting plane on a kernel matrix is trusted with


def choose_solver(wanted: str | Solver, problem: RampProblem) -> tuple[Solver, str]:
    """Return the solver for all convex problems of a fit, and a line that names it and says why.

    Parameters
    ----------
    wanted : str or Solver
        A name that `RateBoundSVC` takes, or a configured solver such as
        ``CuttingPlane(oracle=Libsvm())``. An oracle with a memory keeps it for the whole fit.
    problem : RampProblem
    """
    if isinstance(wanted, type):
        name = wanted.__name__
        raise TypeError(f"solver is the class {name}: pass a configured one, solver={name}()")
    if isinstance(problem.rows, KernelRows):
        return _for_a_kernel(wanted, problem)
    if not isinstance(wanted, str):
        return _for_a_fit(wanted), f"{wanted!r}: as configured"
    if wanted == "auto" and isinstance(problem.rows, RowsWithGaps):
        return InteriorPoint(), "interior-point: the solver that knows score_gap()"
    if wanted == "cutting-plane":
        return _for_a_fit(CuttingPlane(SDCA())), "cutting-plane with SDCA: asked for"
    if wanted == "interior-point":
        return InteriorPoint(), "interior-point: asked for"
    if wanted == "augmented-lagrangian":
        return AugmentedLagrangian(), "augmented-lagrangian: asked for"
    if wanted == "alternating-directions":
        return AlternatingDirections(), "alternating-directions: asked for"
    return _auto(problem)


def _auto(problem: RampProblem) -> tuple[Solver, str]:
    """Whose factors and passes cost least, see docs/solvers.md for the measurements."""
    rows = problem.rows
    size = rows.n_features
    full = rows.entries >= 0.5 * rows.n_rows * size
    shape = f"{rows.n_rows:,} rows x {size:,} columns"
    if FEWEST < rows.n_rows <= min(size, LARGEST_SPAN) and len(problem.bound) <= MOST_GOALS:
        reach = rows.largest_norm**2 * problem.total_cost
        stiff = reach > STIFF * problem.alpha * rows.cell_weight.sum()
        if full or stiff or rows.n_rows <= LARGEST_SPARSE_GRAM:
            return AlternatingDirections(), (
                f"alternating-directions: of {shape}, XX' is factorised once and for all"
            )
    # the number of goals does not enter: to either a goal is a column in a border
    if min(rows.n_rows, size) <= (LARGEST_GRAM if full else LARGEST_SPARSE_GRAM):
        return InteriorPoint(), f"interior-point: of {shape}, X'DX is small enough to be factorised"
    spared = 8 * size**2 / 2**20
    return AugmentedLagrangian(), (
        f"augmented-lagrangian: of {shape}, X'DX ({spared:,.0f} MiB) costs more to factorise than "
        "many passes over X"
    )


def _for_a_kernel(wanted: str | Solver, problem: RampProblem) -> tuple[Solver, str]:
    """Columns come from a factor that grows; oracles of the cutting plane see the whole kernel."""
    if wanted == "auto":
        return _auto_for_a_kernel(problem)
    if wanted == "cutting-plane":
        return _for_a_fit(CuttingPlane(SDCA())), (
            "cutting-plane with SDCA on the kernel matrix: asked for"
        )
    if isinstance(wanted, InteriorPoint):
        return GrowingRank(wanted), f"{wanted!r} on a factor of the kernel: as configured"
    if not isinstance(wanted, str):
        return _for_a_fit(wanted), f"{wanted!r}: as configured"
    if wanted in ("augmented-lagrangian", "alternating-directions"):
        raise ValueError(
            f'solver="{wanted}" is for rows in memory with a linear kernel: use '
            '"interior-point" or "cutting-plane" with a kernel'
        )
    return GrowingRank(), "interior-point on a factor of the kernel: asked for"


def _auto_for_a_kernel(problem: RampProblem) -> tuple[Solver, str]:
    """A factor, unless what its first columns leave of the kernel says that it must be long.

    A factor needs a column for nearly every row at a kink, of which a kernel that falls off quickly
    has many; passes over the matrix do not mind, but memory and many goals they do.
    """
    rows = problem.rows
    assert isinstance(rows, KernelRows)
    gigabytes = 8 * rows.n_rows**2 / 2**30
    left = rows.factor.share_left
    goals = len(problem.bound)
    narrow = f"{rows.factor.rank} columns of a factor leave {left:.0%} of the kernel"
    if left <= LONG_FACTOR:
        return GrowingRank(), f"interior-point on a factor of the kernel: {narrow}"
    if goals > MOST_CUT_GOALS:
        reason = f"{goals} goals are many for a cutting plane"
    elif gigabytes > LARGEST_MATRIX:
        reason = f"the kernel matrix would take {gigabytes:.1f} GiB"
    else:
        return _for_a_fit(CuttingPlane(SDCA())), (
            f"cutting-plane with SDCA on the kernel matrix ({gigabytes:.2g} GiB): {narrow}"
        )
    return GrowingRank(), f"interior-point on a factor of the kernel: {narrow}, but {reason}"


def _for_a_fit(solver: Solver) -> Solver:
    """A cutting plane's oracle remembers from one convex problem of the fit to the next."""
    if isinstance(solver, CuttingPlane):
        return replace(solver, oracle=remembering(solver.oracle))
    return solver
