"""Solvers of the convex problem, each to a certificate; the oracles and choosers of Algorithm 2."""

from ratebound.solvers.alternating_directions import AlternatingDirections
from ratebound.solvers.augmented_lagrangian import AugmentedLagrangian
from ratebound.solvers.bias import BiasCuttingPlane
from ratebound.solvers.choosers import CenterOfMass, Level, Maximization
from ratebound.solvers.cutting_plane import CuttingPlane
from ratebound.solvers.exact import Inner
from ratebound.solvers.growing_rank import GrowingRank
from ratebound.solvers.interior_point import InteriorPoint
from ratebound.solvers.off_the_shelf import Liblinear, Libsvm
from ratebound.solvers.sdca import SDCA

__all__ = [
    "SDCA",
    "AlternatingDirections",
    "AugmentedLagrangian",
    "BiasCuttingPlane",
    "CenterOfMass",
    "CuttingPlane",
    "GrowingRank",
    "Inner",
    "InteriorPoint",
    "Level",
    "Liblinear",
    "Libsvm",
    "Maximization",
]
