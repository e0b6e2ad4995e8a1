"""Adult in the a9a encoding, split as the paper splits it and anew in every other run."""

from __future__ import annotations

import numpy as np

from ratebound.experiments.rows import Rows, all_rows

TRAINING_ROWS = 32561  # of the official split; random ones are of the same size, 67 %
QUICK_ROWS = 3000, 3000


def split(run: int, quick: bool = False) -> tuple[Rows, Rows]:
    """Training and test rows of a run: the official split for run 0, else a random one."""
    everyone = all_rows("adult")
    order = np.arange(len(everyone.y))
    if run > 0:
        order = np.random.default_rng(run).permutation(order)
    train, test = order[:TRAINING_ROWS], order[TRAINING_ROWS:]
    if quick:
        train, test = train[: QUICK_ROWS[0]], test[: QUICK_ROWS[1]]
    return everyone[train], everyone[test]
