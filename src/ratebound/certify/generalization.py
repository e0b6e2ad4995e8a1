"""The paper's appendix on generalization, result by result, as functions of numbers.

With k datasets of n_i rows drawn independently, ``X >= ||x||``, multipliers at most V and ::

    B = sum_i ( α_i(0) + β_i(0) + V sum_j ( α_i(j) + β_i(j) ) )
    E = 1 + 4 X² B / λ + sqrt(8 ln(4k / δ))

no expected rate of any classifier that the algorithm can return exceeds its ramp rate on D_i by
more than ``E / sqrt(n_i)``, with probability 1 - δ. `coefficient_sum` is B, `function_class` and
`rademacher_bound` are the two lemmas, `rate_bound` is the theorem, `combination_bound` what follows
for the loss and for constraints; `ratebound.certify.bounds` takes the numbers from a fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class FunctionClass:
    """Linear functions <w, x> - b with ``||w|| <= norm``, ``|b| <= bias``, on ``||x|| <= X``.

    Attributes
    ----------
    norm, bias : float
    largest_norm : float
        X, which must hold for rows to come as well.
    """

    norm: float
    bias: float
    largest_norm: float

    @property
    def reach(self) -> float:
        """X * norm + bias, the largest |<w, x> - b|."""
        return self.largest_norm * self.norm + self.bias


def coefficient_sum(costs: ArrayLike, constraints: Any, multiplier_bound: float) -> float:
    """B = sum of all coefficients of rates, those of constraints V times.

    Parameters
    ----------
    costs : array-like of nonnegative coefficients of the objective
    constraints : array-like or sparse array of nonnegative coefficients of all constraints
    multiplier_bound : float
        V, the largest multiplier.

    Returns
    -------
    float

    Examples
    --------
    >>> coefficient_sum([[0.0, 0.5], [0.5, 0.0]], [[0.0, 0.0, 1.0, 0.0]], multiplier_bound=10)
    11.0
    """
    # an array without constraints has nothing to multiply
    bounded = (
        float(constraints.sum()) if hasattr(constraints, "sum") else float(np.sum(constraints))
    )
    return float(np.sum(costs)) + (multiplier_bound * bounded if bounded else 0.0)


def function_class(coefficients: float, *, largest_norm: float, alpha: float) -> FunctionClass:
    """``||w|| <= X B / λ`` and ``|b| <= 1/2 + X² B / λ``: all solutions, whatever the anchor.

    The paper's first lemma of the appendix, for optimal solutions of smallest ``|b|``.

    Parameters
    ----------
    coefficients : float
        B of `coefficient_sum`.
    largest_norm : float
        X.
    alpha : float
        λ.

    Returns
    -------
    FunctionClass
    """
    norm = largest_norm * coefficients / alpha
    return FunctionClass(norm, 0.5 + largest_norm * norm, largest_norm)


def rademacher_bound(functions: FunctionClass, size: float) -> float:
    """``E sup_f (1/n) Σ ε_i f(x_i) <= (X norm + bias) / sqrt(n)`` for random signs ε.

    For the class of `function_class` that is ``1 / (2 sqrt(n)) + 2 X² B / (λ sqrt(n))``, the
    paper's second lemma of the appendix.

    Parameters
    ----------
    functions : FunctionClass
    size : float
        n.

    Returns
    -------
    float

    Examples
    --------
    >>> rademacher_bound(function_class(1.0, largest_norm=1.0, alpha=4.0), size=100)
    0.1
    """
    return functions.reach / math.sqrt(size)


def rate_bound(functions: FunctionClass, size: float, *, datasets: int, delta: float) -> float:
    """``E / sqrt(n) = 2 R_n + sqrt(8 ln(4k / δ) / n)``: expected less ramp rate, uniformly.

    The paper's theorem of the appendix: with probability 1 - δ, at once for the positive and the
    negative rates of every dataset and for all functions of the class. (The step from the class to
    its ramp rates rests on the contraction lemma for the complexity without absolute value; the
    theorem cited in the paper, about one that is twice as large, would give 4 R_n.)

    Parameters
    ----------
    functions : FunctionClass
    size : float
        n, the rows of the dataset.
    datasets : int
        k.
    delta : float
        δ.

    Returns
    -------
    float
    """
    return 2 * rademacher_bound(functions, size) + math.sqrt(
        8 * math.log(4 * datasets / delta) / size
    )


def combination_bound(positive: ArrayLike, negative: ArrayLike, rate_bounds: ArrayLike) -> float:
    """``Σ_i (α_i + β_i) g_i``: how far a loss or a constraint's left side can be off.

    For the objective's coefficients it bounds the loss on new rows less the training loss; for a
    constraint that the training rows meet, its violation on new rows.

    Parameters
    ----------
    positive, negative : array-like of shape (k,)
        α and β, nonnegative.
    rate_bounds : array-like of shape (k,)
        Bound of each dataset.

    Returns
    -------
    float
    """
    return float((np.asarray(positive) + np.asarray(negative)) @ np.asarray(rate_bounds))
