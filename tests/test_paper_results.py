"""The paper's theorems about cutting planes and ascent, on functions whose volumes are known.

Volumes and centres of mass are computed from vertices (scipy's Qhull), not by the code under test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial

from building import convex_problem
from ratebound.ramp import ConvexProblem
from ratebound.solvers.choosers import CenterOfMass, Maximization, Program
from ratebound.solvers.hinges import Hinges
from ratebound.solvers.oracles import answer_at
from ratebound.solvers.sdca import SDCA
from reference.convex import hinge_terms
from reference.instances import Instance, random_instance

E = math.e


class Cuts(NamedTuple):
    """min over s of values[s] + slopes[s] @ v on the box [0, highest]."""

    values: np.ndarray
    slopes: np.ndarray
    highest: np.ndarray

    def at(self, v: np.ndarray) -> float:
        return float(np.min(self.values + self.slopes @ v))

    def highest_point(self) -> tuple[np.ndarray, float]:
        m = len(self.highest)
        found = scipy.optimize.linprog(
            np.append(np.zeros(m), -1.0),
            A_ub=np.column_stack([-self.slopes, np.ones(len(self.values))]),
            b_ub=self.values,
            bounds=[*[(0, h) for h in self.highest], (None, None)],
        )
        return found.x[:m], float(found.x[m])


def vertices(rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Vertices of {x: rows @ x <= bounds}; none where it has no interior."""
    norms = np.linalg.norm(rows, axis=1)
    found = scipy.optimize.linprog(
        np.append(np.zeros(rows.shape[1]), -1.0),
        A_ub=np.column_stack([rows, norms]),
        b_ub=bounds,
        bounds=[*[(None, None)] * rows.shape[1], (0, None)],
    )
    if not found.success or found.x[-1] < 1e-9:
        return np.empty((0, rows.shape[1]))
    halfspaces = np.column_stack([rows, -bounds])
    return scipy.spatial.HalfspaceIntersection(halfspaces, found.x[:-1]).intersections


def mass(points: np.ndarray) -> tuple[float, np.ndarray]:
    """Volume and centre of mass of the hull of points, from a fan of simplices over its facets."""
    if not len(points):
        return 0.0, np.zeros(points.shape[1])
    facets = points[scipy.spatial.ConvexHull(points).simplices]
    tip = np.broadcast_to(points.mean(axis=0), (len(facets), 1, points.shape[1]))
    simplices = np.concatenate([tip, facets], axis=1)
    edges = simplices[:, 1:] - simplices[:, :1]
    volumes = np.abs(np.linalg.det(edges)) / math.factorial(points.shape[1])
    return float(volumes.sum()), volumes @ simplices.mean(axis=1) / volumes.sum()


def hypograph(cuts: Cuts, level: float) -> tuple[np.ndarray, np.ndarray]:
    """S_h(h, level) as rows @ (v, z) <= bounds."""
    m, one = len(cuts.highest), np.ones((len(cuts.values), 1))
    box = np.column_stack([np.vstack([np.eye(m), -np.eye(m)]), np.zeros(2 * m)])
    rows = np.vstack([np.hstack([-cuts.slopes, one]), box, np.append(np.zeros(m), -1.0)])
    return rows, np.concatenate([cuts.values, cuts.highest, np.zeros(m), [-level]])


def superlevel(cuts: Cuts, level: float) -> float:
    """Measure of S_l(h, level)."""
    m = len(cuts.highest)
    rows = np.vstack([-cuts.slopes, np.eye(m), -np.eye(m)])
    bounds = np.concatenate([cuts.values - level, cuts.highest, np.zeros(m)])
    if m > 1:
        return mass(vertices(rows, bounds))[0]
    ends = bounds / rows[:, 0]
    upper, lower = ends[rows[:, 0] > 0], ends[rows[:, 0] < 0]
    return float(max(0.0, upper.min() - lower.max()))


def random_cuts(seed: int, m: int) -> Cuts:
    """A concave function with its maximum inside the box."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(6, m))
    slopes = np.vstack([slopes, -slopes.sum(axis=0)])
    middle = rng.uniform(0.5, 1.5, size=m)
    return Cuts(1.0 + 0.3 * rng.random(7) - slopes @ middle, slopes, np.full(m, 2.0))


CASES = [(seed, m) for m in (1, 2) for seed in range(4)]


@pytest.mark.parametrize(("seed", "m"), CASES)
def test_brunn_minkowski(seed, m):
    """Theorem 2: the m-th root of the measure of superlevel sets is concave in the level."""
    cuts = random_cuts(seed, m)
    top = cuts.highest_point()[1]
    for a, b, share in itertools.product((0.05, 0.4), (0.6, 1.1), (0.2, 0.5, 0.9)):
        level = share * (top - a) + (1 - share) * (top - b)
        roots = [superlevel(cuts, at) ** (1 / m) for at in (level, top - a, top - b)]
        assert roots[0] >= share * roots[1] + (1 - share) * roots[2] - 1e-6


@pytest.mark.parametrize(("seed", "m"), CASES)
def test_simple_volume_bounds(seed, m):
    """Corollary 1, with the hypograph above the maximum less delta (printed: plus)."""
    cuts = random_cuts(seed, m)
    top = cuts.highest_point()[1]
    for delta in (0.1, 0.5, 1.2):
        flat = superlevel(cuts, top - delta)
        volume, _ = mass(vertices(*hypograph(cuts, top - delta)))
        assert delta / (m + 1) * flat <= volume * (1 + 1e-6)
        assert volume <= delta * flat * (1 + 1e-6)


def program_of(cuts: Cuts, lower: float) -> Program:
    maximizer, upper = cuts.highest_point()
    return Program(cuts.values, cuts.slopes, cuts.highest, maximizer, upper, lower, maximizer)


@pytest.mark.parametrize(("seed", "m"), CASES)
def test_centres_cut_off_their_share(seed, m):
    """Definition 2 and Theorem 3: no half-space on the chosen centre has less than 1/e."""
    cuts = random_cuts(seed, m)
    lower = cuts.highest_point()[1] - 0.7
    rows, bounds = hypograph(cuts, lower)
    volume, centre = mass(vertices(rows, bounds))
    point, accuracy = CenterOfMass().choose(program_of(cuts, lower))
    np.testing.assert_allclose(np.append(point, lower + 2 * accuracy), centre, atol=1e-6)
    rng = np.random.default_rng(seed)
    for normal in rng.normal(size=(20, m + 1)):
        half = vertices(np.vstack([rows, normal]), np.append(bounds, normal @ centre))
        assert mass(half)[0] >= ((m + 1) / (m + 2)) ** (m + 1) * volume * (1 - 1e-6)


class Step(NamedTuple):
    """One step of Algorithm 2 on a known function."""

    cuts: Cuts
    lower: float
    upper: float
    accuracy: float


def algorithm_2(truth: Cuts, u0: float, l0: float, epsilon: float, seed: int) -> Iterator[Step]:
    """Algorithm 2 as printed, from an oracle that is as inexact as it may be.

    It knows a maximum of linear functions as well as its own accuracy: u is above psi and l below
    it by random shares of epsilon_t, and the cut is one of psi's own, raised.
    """
    rng = np.random.default_rng(seed)
    cuts = Cuts(np.array([u0]), np.zeros((1, len(truth.highest))), truth.highest)
    lower = l0
    while True:
        program = program_of(cuts, lower)
        if program.upper - lower <= epsilon:
            return
        point, accuracy = CenterOfMass().choose(program)
        yield Step(cuts, lower, program.upper, accuracy)
        lowest = int(np.argmin(truth.values + truth.slopes @ point))
        above, below = accuracy * rng.dirichlet((1, 1, 1))[:2]
        cuts = Cuts(
            np.append(cuts.values, truth.values[lowest] + above),
            np.vstack([cuts.slopes, truth.slopes[lowest]]),
            truth.highest,
        )
        lower = max(lower, truth.at(point) - below)


@pytest.mark.parametrize(("seed", "m"), CASES)
def test_every_cut_takes_its_share_and_is_accurate_enough(seed, m):
    """Lemmas 3 and 5: volumes fall by 1 - 1/2e, accuracies stay above (U - L) / 2e(m + 1)."""
    truth = random_cuts(seed, m)
    steps = list(algorithm_2(truth, 3.0, truth.at(np.zeros(m)), 0.02, seed))
    assert len(steps) > 3
    volumes = [mass(vertices(*hypograph(step.cuts, step.lower)))[0] for step in steps]
    for before, after in itertools.pairwise(volumes):
        assert after <= (1 - 1 / (2 * E)) * before * (1 + 1e-6)
    for step in steps:
        assert step.accuracy >= (step.upper - step.lower) / (2 * E * (m + 1)) * (1 - 1e-6)


@pytest.mark.parametrize(("seed", "m"), CASES)
def test_as_few_cuts_as_the_bound_allows(seed, m):
    """Lemma 4 (and with it the outer count of Theorem 5), with the constants of its proof."""
    truth = random_cuts(seed, m)
    u0, l0, epsilon = 3.0, truth.at(np.zeros(m)), 0.02
    steps = len(list(algorithm_2(truth, u0, l0, epsilon, seed)))
    measure = np.prod(truth.highest) / superlevel(truth, l0)
    factor = (m + 1) * (2 / epsilon) ** m * (u0 - l0) ** (m + 1) * measure
    assert steps <= 1 + math.log(factor / epsilon) / -math.log(1 - 1 / (2 * E))


def test_a_cone_is_asked_for_less_than_lemma_7_says():
    """Lemma 7 prints eps >= (U - L) / 2e for one variable; over a cone it is (U - L) / 6.

    Mirrored here: a concave cone whose base is the lower bound. Lemma 5, with m + 1 = 2, holds.
    """
    cone = Cuts(np.array([0.0, 2.0]), np.array([[1.0], [-1.0]]), np.array([2.0]))
    _, accuracy = CenterOfMass().choose(program_of(cone, 0.0))
    assert accuracy == pytest.approx(1 / 6)
    assert 1 / (4 * E) <= accuracy < 1 / (2 * E)


def test_maximization_takes_the_highest_point_and_half_the_gap():
    """Definition 1."""
    cuts = random_cuts(0, 2)
    program = program_of(cuts, cuts.highest_point()[1] - 0.7)
    point, accuracy = Maximization().choose(program)
    assert cuts.at(point) == pytest.approx(cuts.highest_point()[1])
    assert accuracy == pytest.approx(0.35)


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-3])
def test_ascent_takes_no_more_steps_than_its_theorem(index, accuracy):
    """Theorem 4, with the constant 20 of the theorem that it cites (in expectation)."""
    instance = random_instance(3, index)
    problem = convex_problem(instance)
    multipliers = np.zeros(len(problem.bound))
    n = int(np.sum(instance.weight > 0))
    scale = (
        n * instance.weight * np.abs(instance.cost[instance.cell])
    )  # of losses that are averaged
    lipschitz = float(scale.max())
    norm = float(np.linalg.norm(instance.X, axis=1).max())
    answer = SDCA().minimize(problem, multipliers, accuracy)
    assert answer.upper - answer.lower <= accuracy
    ratio = (lipschitz * norm) ** 2 / instance.alpha
    steps = max(0.0, n * math.log(max(n / ratio, 1.0))) + n + 20 * ratio / accuracy
    assert answer.passes * n <= steps


# ---- the support vector machine inside (Equations 7 and 13 to 19) --------------------------------


def some_problems() -> Iterator[tuple[Instance, ConvexProblem, np.ndarray, np.random.Generator]]:
    for index in range(12):
        instance = random_instance(8, index)
        problem = convex_problem(instance)
        rng = np.random.default_rng(index)
        yield instance, problem, rng.exponential(size=len(problem.bound)), rng


def test_psi_is_that_of_the_referee():
    """Equation 7 with the objective's constant, which Appendix F.1 leaves out."""
    for instance, problem, multipliers, rng in some_problems():
        terms = hinge_terms(instance)
        coef, intercept = rng.normal(size=instance.X.shape[1]), float(rng.normal())
        hinges = np.maximum(0.0, 0.5 + terms.signed_rows @ coef + terms.sign * intercept)
        if not instance.fit_intercept:
            intercept = 0.0
        psi = (
            (terms.cost + multipliers @ terms.coefficients) @ hinges
            + terms.constant
            + instance.alpha / 2 * coef @ coef
            - multipliers @ terms.bounds
        )
        answer = answer_at(problem, multipliers, coef, intercept, -math.inf, 0.0)
        assert answer.upper == pytest.approx(psi, rel=1e-9, abs=1e-12)
        # a cut: linear in the multipliers, with the violations as its slope
        assert answer.base + answer.violations @ multipliers == pytest.approx(psi, rel=1e-9)


def test_the_conjugate_of_a_two_sided_hinge():
    """Equations 16, 17 and 19: l*(xi) as printed is the supremum, taken at a breakpoint."""
    for _, problem, multipliers, rng in some_problems():
        hinges = Hinges.of(problem, multipliers, problem.rows.matrix())
        above, below = hinges.high, -hinges.low
        xi = hinges.low + rng.random(len(above)) * (above + below)
        printed = 0.5 * np.abs(xi - above + below) - 0.5 * (above + below)
        supremum = np.maximum(-xi / 2 - below, xi / 2 - above)  # xi z - l(z) at z = -1/2 and 1/2
        np.testing.assert_allclose(printed, supremum, atol=1e-12)
        first, second = hinges.sides(xi)
        np.testing.assert_allclose(0.5 * (first + second), -printed, atol=1e-12)
        np.testing.assert_allclose(first - second, xi, atol=1e-12)
        assert np.all(first <= above) and np.all(second <= below)


def test_coefficients_of_the_machine():
    """Equations 13, 14, 15 and 17: live sides at the anchor, and what the dead ones leave."""
    for instance, problem, multipliers, _ in some_problems():
        hinges = Hinges.of(problem, multipliers, problem.rows.matrix())
        scores = instance.X @ instance.anchor_coef + instance.anchor_intercept
        cells = len(instance.cost)
        costs = np.array([np.maximum(instance.cost, 0), np.maximum(-instance.cost, 0)])
        table = instance.table.reshape(-1, cells)
        sides = np.array([np.maximum(table, 0), np.maximum(-table, 0)])
        ceiling = costs + np.einsum("j,sjc->sc", multipliers, sides)
        for i, (score, weight, cell) in enumerate(
            zip(scores, instance.weight, instance.cell, strict=True)
        ):
            if abs(abs(score) - 0.5) < 1e-9 or cell < 0:
                continue  # the anchor decides by rounding
            high = weight * ceiling[0, cell] if score <= 0.5 else 0.0
            low = weight * ceiling[1, cell] if score >= -0.5 else 0.0
            assert hinges.high[i] == pytest.approx(high, abs=1e-12)
            assert -hinges.low[i] == pytest.approx(low, abs=1e-12)
