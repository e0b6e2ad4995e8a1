"""Passes over the rows and floating-point operations of a fit: what a noisy clock cannot hide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def _entries(rows: Any) -> tuple[float, float]:
    """Stored entries of all rows, and the sum over rows of their square."""
    linear = square = 0.0
    for chunk in rows.chunks:
        if hasattr(chunk.X, "indptr"):
            counts = np.diff(chunk.X.indptr[chunk.first : chunk.last + 1]).astype(float)
        else:
            counts = np.full(chunk.last - chunk.first, float(rows.n_features))
        linear += float(counts.sum())
        square += float((counts * counts).sum())
    return linear, square


@contextmanager
def counted() -> Iterator[dict[str, float]]:
    """Count what `MemoryRows` does inside the block: one multiplication and addition are two."""
    from ratebound.rows.memory import MemoryRows

    counts = {"passes": 0.0, "Mflop": 0.0}
    before = {name: getattr(MemoryRows, name) for name in _WORK}

    def counting(name: str) -> Any:
        def method(self: Any, *args: Any) -> Any:
            linear, square = _entries(self)
            counts["passes"] += 1
            counts["Mflop"] += 1e-6 * _WORK[name](linear, square, args)
            return before[name](self, *args)

        return method

    for name in _WORK:
        setattr(MemoryRows, name, counting(name))
    try:
        yield counts
    finally:
        for name, method in before.items():
            setattr(MemoryRows, name, method)


# what multiplies rows with something, and its operations by entries and squares of entries
_WORK: dict[str, Any] = {
    "_compute_scores": lambda linear, square, args: 2 * linear,
    "_transpose": lambda linear, square, args: 2 * linear * len(args[0]),
    "_gram": lambda linear, square, args: square + 2 * linear,
    "_by_cell": lambda linear, square, args: 2 * linear * len(args[0]),
}
