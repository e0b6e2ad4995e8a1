"""Kernels by name: the inner products ``k(a, b) = <phi(a), phi(b)>`` of rows in feature space.

A kernel must be positive semidefinite, or there is no such space and the convex problem is not
convex: what shows the contrary, a pivot below zero beyond rounding, raises and names the kernel.
The sigmoid kernel is refused for that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

Floats = npt.NDArray[np.float64]

NAMES = ("linear", "rbf", "poly", "precomputed")
DENSE_ENTRIES = 2**24  # of a CSR block: up to this many it is multiplied as a dense array
ROUNDING = 1e-8  # share of the largest k(x, x) below which what is negative is rounding


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters::

        linear   <a, b>                 poly   (gamma <a, b> + coef0)^degree
        rbf      exp(-gamma ||a - b||^2)

    Parameters
    ----------
    kind : {"linear", "rbf", "poly", "precomputed", "callable"}
    gamma, degree, coef0 : float
    function : callable, optional
        Of two arrays of rows, (a, d) and (b, d), the (a, b) kernel values.
    """

    kind: str
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0
    function: Callable[[Any, Any], Any] | None = None

    @property
    def name(self) -> str:
        """What an error calls it."""
        if self.kind == "rbf":
            return f'"rbf" (gamma={self.gamma:g})'
        if self.kind == "poly":
            return f'"poly" (gamma={self.gamma:g}, degree={self.degree:g}, coef0={self.coef0:g})'
        if self.function is not None:
            return getattr(self.function, "__name__", repr(self.function))
        return f'"{self.kind}"'

    def between(self, A: Any, B: Any) -> Floats:
        """Kernel values of all rows of A with all rows of B, (a, b)."""
        if self.function is not None:
            return self._called(A, B)
        if self.kind == "rbf":
            # one product with -gamma ||a||^2 and -gamma ||b||^2 in two columns more
            values = _products(_with_norms(A, self.gamma, 0), _with_norms(B, self.gamma, 1))
            np.minimum(values, 0.0, out=values)
            return np.asarray(np.exp(values, out=values))
        values = _products(A, B)
        if self.kind == "poly":
            values *= self.gamma
            values += self.coef0
            return np.asarray(np.power(values, self.degree, out=values))
        return values

    def diagonal(self, A: Any) -> Floats:
        """k(a, a) of every row of A."""
        if self.function is not None:
            rows = range(A.shape[0])
            return np.array([self._called(A[[i]], A[[i]])[0, 0] for i in rows])
        if self.kind == "rbf":
            return np.ones(A.shape[0])
        squares = _squares(A)
        if self.kind == "poly":
            return np.asarray((self.gamma * squares + self.coef0) ** self.degree)
        return squares

    def _called(self, A: Any, B: Any) -> Floats:
        assert self.function is not None
        values = np.asarray(self.function(A, B), dtype=np.float64)
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"kernel {self.name} returned shape {values.shape} for {A.shape[0]} and "
                f"{B.shape[0]} rows; it must return one value for every pair, "
                f"({A.shape[0]}, {B.shape[0]})"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"kernel {self.name} returned values that are not finite")
        return values

    def refuse_indefinite(self, pivot: float, scale: float) -> None:
        """Raise where a pivot (or a squared norm) of this scale is negative beyond rounding."""
        if pivot < -ROUNDING * scale:
            raise ValueError(
                f"kernel {self.name} is not positive semidefinite on these rows: a pivot of its "
                f"Cholesky factor is {pivot:.3g} where k(x, x) is up to {scale:.3g}. With such a "
                "kernel there is no convex problem to solve; choose another, or add a positive "
                "constant to its diagonal"
            )


def named_kernel(
    kernel: Any, gamma: float | str, degree: float, coef0: float, X: Any, weight: Floats
) -> Kernel:
    """The kernel that an estimator's parameters name, on rows X with these weights.

    ``gamma="scale"`` is 1 / (n_features * variance of all entries of X), a row of weight 2 counting
    twice; ``gamma="auto"`` is 1 / n_features.
    """
    if kernel == "sigmoid":
        raise ValueError(
            'kernel="sigmoid" is not offered: it is not positive semidefinite (a pivot of its '
            "Cholesky factor can be negative), so that there is no convex problem to certify; "
            'use "rbf" or "poly"'
        )
    if callable(kernel):
        return Kernel("callable", function=kernel)
    if kernel not in NAMES:
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, NAMES))} or a callable; got {kernel!r}"
        )
    if kernel in ("linear", "precomputed"):
        return Kernel(kernel)
    if isinstance(gamma, str):
        scale = _variance(X, weight) if gamma == "scale" else 1.0
        gamma = 1.0 / (X.shape[1] * scale) if scale > 0 else 1.0
    return Kernel(kernel, float(gamma), degree, float(coef0))


def _variance(X: Any, weight: Floats) -> float:
    """Variance of all entries."""
    if _is_sparse(X):
        sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    else:
        sums = np.asarray(X).sum(axis=1, dtype=np.float64)
    count = float(weight.sum()) * X.shape[1]
    mean = float(weight @ sums) / count
    square = float(weight @ _squares(X)) / count
    return float(max(0.0, square - mean * mean))


def _squares(A: Any) -> Floats:
    """||a||^2 of every row."""
    if _is_sparse(A):
        return np.asarray(A.multiply(A).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("ij,ij->i", A, A, dtype=np.float64))


def _products(A: Any, B: Any) -> Floats:
    """A @ B.T, dense, in double precision."""
    if _is_sparse(A) or _is_sparse(B):
        if max(A.shape[0], B.shape[0]) * A.shape[1] > DENSE_ENTRIES:
            product = scipy.sparse.csr_array(A, dtype=np.float64) @ scipy.sparse.csc_array(B.T)
            return np.asarray(product.toarray(), dtype=np.float64)
        A, B = dense(A), dense(B)
    return np.asarray(
        A.astype(np.float64, copy=False) @ B.astype(np.float64, copy=False).T, dtype=np.float64
    )


def _is_sparse(A: Any) -> bool:
    return bool(scipy.sparse.issparse(A))


def is_small(A: Any) -> bool:
    """Whether rows may be turned into a dense array."""
    return bool(A.shape[0] * A.shape[1] <= DENSE_ENTRIES)


def dense(A: Any) -> Any:
    """Rows as an array."""
    return A.toarray() if _is_sparse(A) else A


def _with_norms(A: Any, gamma: float, side: int) -> Any:
    """Rows such that a product of side 0 with side 1 is -gamma ||a - b||^2."""
    columns = [np.ones((A.shape[0], 1)), -gamma * _squares(A)[:, None]]
    if side == 0:
        columns.reverse()
    if _is_sparse(A):
        if A.shape[0] * A.shape[1] > DENSE_ENTRIES:
            parts: list[Any] = [A.astype(np.float64) * np.sqrt(2.0 * gamma), *columns]
            return scipy.sparse.csr_array(scipy.sparse.hstack(parts))
        A = dense(A)
    return np.hstack([np.sqrt(2.0 * gamma) * A.astype(np.float64, copy=False), *columns])
