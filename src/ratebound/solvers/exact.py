"""The interior point as an oracle of the cutting plane: few Newton steps for any multipliers.

With the multipliers held, the problem without goals whose costs are the ceilings is the oracle's
whole problem, so that any `Solver` of convex problems is an oracle too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import Floats
from ratebound.solvers.base import Solver, Stop
from ratebound.solvers.interior_point import InteriorPoint
from ratebound.solvers.oracles import Answer, answer_at

__all__ = ["Inner"]


@dataclass(frozen=True)
class Inner:
    """Minimise Psi over models with a solver of convex problems, by default the interior point.

    Its passes depend neither on the size of the multipliers nor much on the accuracy, which is
    where coordinate ascent is slow; each costs a square of the number of columns (or of rows where
    they are fewer).

    Parameters
    ----------
    solver : Solver
    """

    solver: Solver = field(default_factory=InteriorPoint)

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Solve the problem that these multipliers leave, to an upper - lower of accuracy."""
        ceiling = np.maximum(problem.ceiling(multipliers), 0.0)
        fixed = problem.constant - float(problem.bound @ multipliers)
        # at coef = intercept = 0 every hinge is 1/2: the unit in which accuracy is relative
        unit = max(0.5 * float(np.sum(ceiling * problem.rows.live_weight)), np.finfo(float).tiny)
        held = replace(
            problem,
            cost=ceiling,
            constraints=problem.constraints[:0],
            bound=np.zeros(0),
            constant=0.0,
            total_cost=1e3 * unit,
        )
        found = self.solver.solve(held, accuracy / unit, None, stop)
        return answer_at(
            problem, multipliers, found.coef, found.intercept, found.lower + fixed,
            2.0 * found.iterations,
        )  # fmt: skip
