"""Thresholds on the scores of a plain model: what the methods of the experiments are held against.

A row is positive where its score is at least the cut.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cut_for_recall(score: Floats, y: NDArray[np.int64], recall: float) -> float:
    """Return the highest cut at which at least this share of the rows with y = 1 is positive."""
    positives = np.sort(score[y == 1])[::-1]
    needed = math.ceil(recall * len(positives) - 1e-9)
    return float(positives[needed - 1]) if needed > 0 else math.inf


def cut_for_coverage(score: Floats, coverage: float) -> float:
    """Return the lowest cut at which at most this share of rows is positive."""
    falling = np.sort(score)[::-1]
    allowed = math.floor(coverage * len(falling) + 1e-9)
    if allowed == len(falling):
        return -math.inf
    # rows that share the score of the first that must be negative are negative too
    return float(np.nextafter(falling[allowed], math.inf))
