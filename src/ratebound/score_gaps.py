"""Score gaps as rows: differences between the mean scores of groups, beside the rates of cells.

Zafar et al. constrain ``d = <coef, x̄_a - x̄_b>`` for two groups with mean rows x̄. That is the score
of one more row, ``x̄_a - x̄_b`` itself, which carries no bias (the biases of the two means cancel).
So every pair of groups becomes a row of its own, in a cell of its own, at some *scale* s::

    P[cell] = weight * (1/2 + s d)        d <= c  <=>  P / weight <= 1/2 + s c

and -d <= c is the same on the other side. With P linear in d the hinge bounds of training,
``max(0, 1/2 + s d) <= 1/2 + s c``, are these constraints exactly, for any s > 0: s = 1 is the form
"linear", s = 1/2 the paper's "hinge" (halved). The paper's "ramp", s = 1 / (4c), also clips P at 0
and at its weight, as a rate's rows do, and is majorized like them.

The row counts as much as all the rows that it is a mean of, so that it is no outlier among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GapCells:
    """The cells of one goal on a score gap, one per pair of groups.

    Attributes
    ----------
    first : int
        Its first cell; the others follow.
    means : csr_array, shape (groups, cells)
        Mean scores of the groups from the weighted sums of scores by cell.
    pairs : ndarray of intp, shape (pairs, 2)
        The two groups of each cell.
    weight : float
        Of each cell.
    scale : float
        s above.
    saturates : bool
        Whether training clips P (the ramp form).
    """

    first: int
    means: sparse.csr_array
    pairs: NDArray[np.intp]
    weight: float
    scale: float
    saturates: bool

    @property
    def cells(self) -> slice:
        """Its cells among all."""
        return slice(self.first, self.first + len(self.pairs))

    def positives(self, score_sums: Floats) -> Floats:
        """Return P of its cells, without clipping, from sums of weight * score by cell."""
        means = self.means @ score_sums
        gaps = means[self.pairs[:, 0]] - means[self.pairs[:, 1]]
        return np.asarray(self.weight * (0.5 + self.scale * gaps))

    def directions(self, blocks: Sequence[tuple[Any, Floats, NDArray[np.int32]]]) -> Floats:
        """Return the rows, ``s (x̄_a - x̄_b)`` per pair, from blocks of (X, weight, cell)."""
        means: Any = 0.0
        for X, weight, cell in blocks:
            rows = np.flatnonzero(cell >= 0)
            by_cell = sparse.csr_array(
                (weight[rows], (cell[rows], rows)), shape=(self.means.shape[1], len(cell))
            )
            part = (self.means @ by_cell) @ X
            means = means + (cast(Any, part).toarray() if sparse.issparse(part) else part)
        return np.asarray(self.scale * (means[self.pairs[:, 0]] - means[self.pairs[:, 1]]))
