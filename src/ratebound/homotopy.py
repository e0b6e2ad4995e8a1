"""Majorization along a smoothed hinge: the fast start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from ratebound.ramp import RampProblem
from ratebound.rows.base import Floats, Smooth
from ratebound.solvers.base import Start
from ratebound.solvers.newton import CONSTRAINT_SHARE, Units, newton_system

import os
FIRST_BARRIER = float(os.environ.get("FB","0.25"))
LAST_BARRIER = float(os.environ.get("LB","1e-3"))
ANCHORED = float(os.environ.get("AN","0.05"))  # barrier above which the anchor stays at zero
CENTRED = float(os.environ.get("CE","0.1"))
SHRINK = float(os.environ.get("SH","0.5"))
SHIFT = os.environ.get("SHIFT","1")=="1"
POWER = float(os.environ.get('PW','2'))
ST = float(os.environ.get('ST','0.25'))
MULTIPLIER_START = 0.1
ACCURACY = 1e-2
SLOPE = float(os.environ.get('SL','0.3'))
KEEP = float(os.environ.get('KEEP','0.1'))
DEBUG = os.environ.get("DBG")


@dataclass(frozen=True)
class Tracked:
    start: Start
    steps: int
    passes: int
    stalled: str


class Homotopy:
    def __init__(self, max_iter: int = 300) -> None:
        self.max_iter = max_iter

    def run(self, problem: RampProblem, stop=None) -> Tracked:
        return _Run(problem, stop, self.max_iter).run()


class _Run:
    def __init__(self, problem, stop, max_iter):
        self.problem, self.stop, self.max_iter = problem, stop, max_iter
        convex = problem.convex_at(np.zeros(problem.rows.n_features), 0.0)
        self.rows = problem.rows.compact()
        units = Units.of(convex, problem.rows.live_weight)
        self.units = units
        self.cost = problem.cost * units.cost
        self.alpha = problem.alpha * units.cost
        self.table = scipy.sparse.csr_array(
            scipy.sparse.diags_array(units.constraints) @ problem.constraints
        )
        self.highest = problem.multiplier_bound * units.multipliers
        self.terms_weight = float(problem.rows.live_weight.sum())
        self.weight = CONSTRAINT_SHARE * self.terms_weight
        touched = np.asarray(self.table.sum(axis=0)).reshape(self.cost.shape) > 0
        self.wanted = touched & (problem.rows.cell_weight > 0)
        self.coef = np.zeros(self.rows.n_features)
        self.intercept = 0.0
        self.barrier = FIRST_BARRIER
        self.multipliers = np.minimum(MULTIPLIER_START, 0.5 * self.highest)
        self.passes = 0
        self._anchor()

    def _anchor(self):
        dead = self.rows.choose_sides()
        self.bound = (self.problem.bound - self.problem.constraints @ dead.ravel()) * self.units.constraints

    def run(self):
        self.rows.set_anchor(self.coef, self.intercept)
        self._anchor()
        self.shift = np.zeros(len(self.bound))
        v = self.multipliers
        spread = self.weight * self.barrier
        self.slack, self.excess = spread / v, spread / (self.highest - v)
        sums = self._smooth(v, 0.0)
        if SHIFT:
            self.shift = self._residual(sums, v)
        count = self.problem.fit_intercept
        steps = 0
        while steps < self.max_iter:
            feat, bias = self.rows.smooth_gradient()
            gradient = np.append(feat + self.alpha * self.coef, bias)[: len(feat) + count]
            curv = self.rows.smooth_curvature(self.wanted)
            v, room = self.multipliers, self.highest - self.multipliers
            spread = self.weight * self.barrier
            residual = self._residual(sums, v)
            system = newton_system(self.rows, curv, self.alpha, self.table, self.wanted, self.slack / v + self.excess / room, count, ACCURACY)
            model, dv = system.solve(-gradient, -residual)
            steps += 1
            dslack = spread / v - self.slack - self.slack / v * dv
            dexcess = spread / room - self.excess + self.excess / room * dv
            decrement = float(-gradient @ model + residual @ dv)
            coef = model[: len(feat)]
            intercept = float(model[-1]) if count else 0.0
            self.rows.smooth_direction(coef, intercept)
            regular = (self.alpha * float(coef @ self.coef), self.alpha * float(coef @ coef))
            step, low, high, low_slope, high_slope = 1.0, 0.0, np.inf, -decrement, 0.0
            for trial in range(1, 12):
                v_new = np.clip(v + step * dv, KEEP * v, self.highest - KEEP * room)
                sums = self._smooth(v_new, step)
                slope = sums.slope + regular[0] + step * regular[1] - self._residual(sums, v_new) @ dv
                if slope <= SLOPE * decrement:
                    break
                high, high_slope = step, slope
                step = low + (high - low) * np.clip(-low_slope / (high_slope - low_slope), 0.1, 0.9)
            self.multipliers = v_new
            self.slack = np.maximum(self.slack + step * dslack, KEEP * self.slack)
            self.excess = np.maximum(self.excess + step * dexcess, KEEP * self.excess)
            self.coef = self.coef + step * coef
            self.intercept += step * intercept
            self.rows.smooth_move(step)
            centred = decrement / (self.barrier * self.terms_weight)
            if DEBUG: print(f"{steps:3d} mu {self.barrier:.2e} dec/muW {centred:.2e} dual part {residual @ dv/(self.barrier * self.terms_weight):.1e} step {step:.3f} trials {trial} passes {self.passes} v {np.round(self.multipliers,3)[:6]} slope {slope/decrement:.2f}")
            if centred <= CENTRED and step >= ST:
                if self.barrier <= LAST_BARRIER:
                    break
                self.barrier *= SHRINK
            if self.barrier < ANCHORED:
                self._anchor()
            sums = self._smooth(self.multipliers, 0.0)
        coef = self.rows.lift(self.coef)
        multipliers = np.clip(self.multipliers / self.units.multipliers, 0, self.problem.multiplier_bound)
        return Tracked(Start(coef, self.intercept, multipliers, self.barrier), steps, self.passes, "" if steps < self.max_iter else "no convergence")

    def _smooth(self, multipliers, step) -> Smooth:
        self.passes += 1
        ceiling = self.cost + (self.table.T @ multipliers).reshape(self.cost.shape)
        return self.rows.smooth(ceiling, self.barrier, step)

    def _residual(self, sums, v):
        value = self.table @ sums.hinges.ravel() - self.bound
        value += self.weight * self.barrier * (1 / v - 1 / (self.highest - v))
        return value - self.shift * (self.barrier / FIRST_BARRIER) ** POWER
