"""The paper's experiments, and some beyond it, as commands: ``ratebound reproduce NAME``.

Each module but the first few is one `Experiment`: what one run measures, the figures, and the
claims that its results are held against. `running` repeats runs and keeps what they measured,
`writing` makes the summary and figures of it, `drawing` has what figures share.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ratebound.experiments.experiment import Experiment

#: Modules of this package by the name of their experiment; imported when they are asked for.
_MODULES = {
    "fairness": "fairness",
    "churn": "churn",
    "coverage": "coverage",
    "neyman-pearson": "neyman_pearson",
    "egregious": "egregious",
    "starts": "starts",
    "alphas": "alphas",
    "repair": "repair",
    "sizes": "sizes",
}

NAMES = tuple(_MODULES)
"""Names that ``load`` knows, in the order in which ``reproduce all`` takes them."""


def load(name: str) -> Experiment:
    """Return the experiment of that name."""
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
