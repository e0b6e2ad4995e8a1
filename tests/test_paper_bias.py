"""The paper's cutting plane over the bias: its choosers and its count, by geometry and by proof."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial

from building import convex_problem
from ratebound.solvers.bias import BiasCuttingPlane, Epigraph
from ratebound.solvers.sdca import Ascent
from reference.convex import hinge_terms
from reference.instances import random_instance


def random_epigraph(seed: int) -> Epigraph:
    """Cuts of a convex function with its minimum in the interval, and a level above them."""
    rng = np.random.default_rng(seed)
    slopes = np.append(rng.normal(size=6), [-1.0, 1.0])
    values = rng.normal(size=8)
    lowest = lowest_point(values, slopes, -2.0, 3.0)[1]
    return Epigraph(values, slopes, -2.0, 3.0, lowest + rng.uniform(0.2, 1.5))


def lowest_point(
    values: np.ndarray, slopes: np.ndarray, low: float, high: float
) -> tuple[float, float]:
    """Where the largest cut is smallest, by linear programming."""
    rows = np.column_stack([slopes, -np.ones(len(slopes))])
    bounds = [(low, high), (None, None)]
    found = scipy.optimize.linprog([0.0, 1.0], A_ub=rows, b_ub=-values, bounds=bounds)
    return float(found.x[0]), float(found.x[1])


@pytest.mark.parametrize("seed", range(6))
def test_the_minimiser_of_the_cuts(seed):
    """Definition 3."""
    known = random_epigraph(seed)
    point, height = lowest_point(known.values, known.slopes, known.low, known.high)
    assert known.minimizer() == pytest.approx(point, abs=1e-7)
    assert known.lower() == pytest.approx(height, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_centre_of_mass_over_the_bias(seed):
    """Definition 4: of {(b, z): h(b) <= z <= U}, here from its corners and a fan of triangles."""
    known = random_epigraph(seed)
    point, height = lowest_point(known.values, known.slopes, known.low, known.high)
    rows = np.column_stack([known.slopes, -np.ones(len(known.slopes)), known.values])
    box = [[0.0, 1.0, -known.upper], [1.0, 0.0, -known.high], [-1.0, 0.0, known.low]]
    inside = np.array([point, 0.5 * (height + known.upper)])
    corners = scipy.spatial.HalfspaceIntersection(np.vstack([rows, box]), inside).intersections
    corners = corners[scipy.spatial.ConvexHull(corners).vertices]
    fan = [corners[[0, i, i + 1]] for i in range(1, len(corners) - 1)]
    areas = np.array([abs(np.linalg.det(t[1:] - t[0])) / 2 for t in fan])
    centre = areas @ np.array([t.mean(axis=0) for t in fan]) / areas.sum()
    found = known.centre_of_mass()
    assert found is not None
    np.testing.assert_allclose(found, centre, atol=1e-9)
    # Lemma 7 as it should read: a sixth of the height at least
    accuracy = 0.5 * (known.upper - found[1])
    assert accuracy >= (known.upper - known.lower()) / 6 * (1 - 1e-9)


@pytest.mark.parametrize("index", range(4))
def test_as_few_ascents_as_the_bound_allows(index, monkeypatch):
    """Lemma 6, with the constants of its proof."""
    instance = random_instance(31, index)
    # an alpha that ascent is not slow on: what is counted is how often it is called
    alpha = 0.1 * float(np.mean(np.sum(instance.X**2, axis=1))) * instance.total_cost
    instance = replace(instance, alpha=max(alpha / len(instance.X), 1e-3))
    problem = convex_problem(instance)
    multipliers = np.ones(len(problem.bound))
    calls = []
    solve = Ascent.solve

    def counted(*arguments, **options):
        calls.append(options.get("held_at"))
        return solve(*arguments, **options)

    monkeypatch.setattr(Ascent, "solve", counted)
    terms = hinge_terms(instance)
    ceiling = terms.cost + multipliers @ terms.coefficients
    sides = [float(ceiling[terms.sign == sign].sum()) for sign in (1.0, -1.0)]
    spread = min(sides)  # u_0 - l_0: the value at w = 0, less that without hinges
    epsilon = 1e-2 * max(spread, 1e-6)
    answer = BiasCuttingPlane().minimize(problem, multipliers, epsilon)
    assert answer.upper - answer.lower <= epsilon * (1 + 1e-9)
    if not instance.fit_intercept or spread == 0:
        assert calls in ([None], [0.0])
        return
    norm = float(np.linalg.norm(instance.X, axis=1).max())
    interval = 1.0 + 2 * norm * math.sqrt(2 * spread / instance.alpha)
    factor = 16 / epsilon * spread * max(spread, sum(sides) * interval)
    assert 2 <= len(calls) <= 1 + math.log(factor / epsilon) / -math.log(1 - 1 / (2 * math.e))
