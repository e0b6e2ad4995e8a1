"""Choosers of the cutting plane: what they promise, with volumes computed otherwise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

from ratebound.solvers.choosers import CenterOfMass, CutChooser, Level, Maximization, Program

Floats = NDArray[np.float64]

SHRINKS = 1 - 1 / (2 * math.e)


class Concave:
    """A concave function on a box: the minimum of random tangents of a paraboloid."""

    def __init__(self, m: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.highest = rng.uniform(0.5, 5.0, size=m)
        self.centre = rng.uniform(-0.2, 1.2, size=m) * self.highest
        self.bend = rng.uniform(0.1, 3.0, size=m)
        self.top = rng.normal()
        self.rng = rng

    def value(self, v: Floats) -> float:
        return self.top - float(np.sum(self.bend * (v - self.centre) ** 2))

    def cut(self, v: Floats, accuracy: float) -> tuple[float, Floats, float]:
        """An inexact oracle: a cut through (v, u), and a lower bound with u - lower <= accuracy."""
        above = self.rng.uniform(0.0, 1.0) * accuracy
        slope = -2 * self.bend * (v - self.centre)
        u = self.value(v) + above
        return u - float(slope @ v), slope, u - accuracy

    def start(self) -> Program:
        """The flat cut of the paper's u_0, and its l_0."""
        values, slopes = np.array([self.top + 1.0]), np.zeros((1, len(self.highest)))
        lower = min(
            self.value(np.where(corner, self.highest, 0.0))
            for corner in np.ndindex(*(2,) * len(self.highest))
        )
        return solved(values, slopes, self.highest, lower - 1.0)


def solved(values: Floats, slopes: Floats, highest: Floats, lower: float) -> Program:
    m = len(highest)
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.column_stack([-slopes, np.ones(len(values))]),
        b_ub=values,
        bounds=[*((0, top) for top in highest), (None, None)],
    )
    return Program(values, slopes, highest, found.x[:m], float(found.x[m]), lower, found.x[:m])


def after(program: Program, value: float, slope: Floats, lower: float) -> Program:
    return solved(
        np.append(program.values, value),
        np.vstack([program.slopes, slope]),
        program.highest,
        max(program.lower, lower),
    )


def volume(program: Program) -> float:
    """Volume of {(v, z): lower <= z <= h(v)} by half-spaces and a convex hull."""
    m = len(program.highest)
    one, zero = np.eye(m), np.zeros((m, 1))
    rows = np.vstack(
        [
            np.column_stack([-program.slopes, np.ones(len(program.values)), -program.values]),
            np.column_stack([one, zero, -program.highest]),
            np.column_stack([-one, zero, np.zeros(m)]),
            np.append(np.zeros(m), [-1.0, program.lower]),
        ]
    )
    norms = np.linalg.norm(rows[:, :-1], axis=1)
    deepest = linprog(
        np.append(np.zeros(m + 1), -1.0),
        A_ub=np.column_stack([rows[:, :-1], norms]),
        b_ub=-rows[:, -1],
        bounds=[(None, None)] * (m + 1) + [(0, None)],
    )
    if deepest.x is None or deepest.x[-1] < 1e-9:
        return 0.0
    corners = HalfspaceIntersection(rows, deepest.x[:-1]).intersections
    return float(ConvexHull(corners).volume)


@settings(max_examples=15)
@given(st.integers(1, 2), st.integers(0, 10_000))
def test_centre_of_mass_takes_its_share_of_the_volume(m: int, seed: int) -> None:
    function = Concave(m, seed)
    program = function.start()
    before = volume(program)
    for _ in range(6):
        point, accuracy = CenterOfMass().choose(program)
        assert (point >= 0).all() and (point <= program.highest).all()
        assert accuracy > 0
        # Lemma: the accuracy is no smaller than this share of the gap
        assert accuracy >= (program.upper - program.lower) / (2 * math.e * (m + 1)) * (1 - 1e-9)
        program = after(program, *function.cut(point, accuracy))
        now = volume(program)
        assert now <= SHRINKS * before * (1 + 1e-6)
        before = now


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_exact_centre_of_one_multiplier_is_that_of_a_fine_grid(seed: int) -> None:
    function = Concave(1, seed)
    program = function.start()
    for _ in range(3):
        point, accuracy = CenterOfMass().choose(program)
        grid = (np.arange(200_000) + 0.5) / 200_000 * program.highest[0]
        depth = np.min(program.values[:, None] + program.slopes * grid, axis=0) - program.lower
        depth = np.maximum(depth, 0.0)
        assert point[0] == pytest.approx(np.sum(grid * depth) / np.sum(depth), rel=1e-4)
        height = 0.5 * np.sum(depth**2) / np.sum(depth)
        assert accuracy == pytest.approx(0.5 * height, rel=1e-4)
        program = after(program, *function.cut(point, accuracy))


def test_sampled_centre_is_near_the_exact_one() -> None:
    """A box under a roof in three dimensions, whose centre is known."""
    program = solved(
        np.array([0.0, 2.0]),
        np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]),
        np.array([2.0, 1, 4]),
        0.0,
    )
    point, accuracy = CenterOfMass(walk=2000).choose(program)
    np.testing.assert_allclose(point / program.highest, 0.5, atol=0.03)
    assert 2 * accuracy == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("chooser", [Maximization(), Level(), Level(0.2, 0.05), CenterOfMass()])
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_choosers_reach_the_maximum(chooser: CutChooser, seed: int) -> None:
    function = Concave(2, seed)
    best = function.value(np.clip(function.centre, 0.0, function.highest))
    program = function.start()
    for _ in range(60):
        point, accuracy = chooser.choose(program)
        assert (point >= 0).all() and (point <= program.highest).all()
        assert program.height(point) >= program.lower - 1e-9
        program = after(program, *function.cut(point, accuracy))
        centre = point if program.lower > best else program.centre
        program = replace(program, centre=centre)
        assert program.lower <= best + 1e-9
        assert program.upper >= best - 1e-7
        if program.upper - program.lower < 1e-2:
            break
    assert program.upper - program.lower < 1e-2


def test_level_is_the_nearest_point_of_its_level() -> None:
    program = replace(
        solved(
            np.array([0.0, 4.0]), np.array([[1.0, 0.5], [-1.0, 0.0]]), np.array([3.0, 2.0]), 0.0
        ),
        centre=np.array([0.0, 0.0]),
    )
    point, _ = Level(share=0.5).choose(program)
    level = 0.5 * program.upper
    # nearest to the origin on v1 + v2 / 2 = level
    np.testing.assert_allclose(point, level * np.array([1.0, 0.5]) / 1.25, rtol=1e-9)


def test_maximization_is_definition_one() -> None:
    program = solved(np.array([0.0, 4.0]), np.array([[1.0], [-1.0]]), np.array([3.0]), 0.5)
    point, accuracy = Maximization().choose(program)
    assert point[0] == pytest.approx(2.0)
    assert accuracy == pytest.approx((2.0 - 0.5) / 2)
