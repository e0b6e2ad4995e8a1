"""Tiny problems answered by trying everything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .instances import Floats

Decisions = tuple[bool, ...]


class Cut(NamedTuple):
    """Decide positively where the score is above `threshold`."""

    threshold: float
    objective: float
    violation: float


def all_cuts(scores: Sequence[float]) -> list[float]:
    """One threshold for each way to cut the scores: midway between neighbours, and beyond both
    ends by one.
    """
    distinct = sorted(set(scores))
    middles = [low + (high - low) / 2.0 for low, high in itertools.pairwise(distinct)]
    return [distinct[0] - 1.0, *middles, distinct[-1] + 1.0]


def best_cut(
    scores: Sequence[float],
    objective: Callable[[Decisions], float],
    violation: Callable[[Decisions], float],
    tolerance: float = 1e-9,
) -> Cut:
    """The best objective among the cuts that violate nothing, else the least violated cut.

    Of cuts that are equal to 1e-12 the one nearest zero.
    """
    cuts = []
    for threshold in all_cuts(scores):
        decisions = tuple(score > threshold for score in scores)
        cuts.append(Cut(threshold, objective(decisions), max(0.0, violation(decisions))))
    met = [cut for cut in cuts if cut.violation <= tolerance]
    if met:
        best = min(cut.objective for cut in met)
        tied = [cut for cut in met if cut.objective <= best + 1e-12]
    else:
        least = min(cut.violation for cut in cuts)
        tied = [cut for cut in cuts if cut.violation <= least + 1e-12]
        best = min(cut.objective for cut in tied)
        tied = [cut for cut in tied if cut.objective <= best + 1e-12]
    return min(tied, key=lambda cut: abs(cut.threshold))


def linear_decisions(X: Floats) -> set[Decisions]:
    """Every vector of decisions <w, x> + b > 0 on rows with one or two columns.

    Any of them can be had with no row on the boundary, hence by each w of some open set. In
    one column w = 1 and w = -1 do. In two, the order of the rows along w changes only where w
    is at right angles to the difference of two rows: one direction between each two such
    angles is enough, with every cut of the scores along it.
    """
    if X.shape[1] == 1:
        directions: list[tuple[float, ...]] = [(1.0,), (-1.0,)]
    elif X.shape[1] == 2:
        turning = {0.0}
        for a, b in itertools.combinations(X.tolist(), 2):
            if a != b:
                angle = math.atan2(b[1] - a[1], b[0] - a[0]) + math.pi / 2.0
                turning.update((angle % (2.0 * math.pi), (angle + math.pi) % (2.0 * math.pi)))
        angles = sorted(turning)
        angles.append(angles[0] + 2.0 * math.pi)
        directions = [
            (math.cos(middle), math.sin(middle))
            for middle in ((low + high) / 2.0 for low, high in itertools.pairwise(angles))
        ]
    else:
        raise ValueError(f"one or two columns, not {X.shape[1]}")
    found: set[Decisions] = set()
    for direction in directions:
        # math.fsum rounds once, so that equal rows have equal scores.
        scores = [
            math.fsum(w * x for w, x in zip(direction, row, strict=True)) for row in X.tolist()
        ]
        for threshold in all_cuts(scores):
            found.add(tuple(score > threshold for score in scores))
    return found
