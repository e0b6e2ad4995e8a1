"""What a fit, or a comparison of two models, says about rows that nobody has seen yet.

`paper_bound` is the paper's appendix on generalization as numbers, `labels_needed` says how many
disagreements of two models to label before a sign test can tell which one is better, and `compare`
makes that test on the labels. The last two say the most in practice.
"""

from __future__ import annotations

from ratebound.certify.binomial import clopper_pearson
from ratebound.certify.bounds import BoundLine, Facts, PaperBound, paper_bound
from ratebound.certify.comparison import Comparison, compare
from ratebound.certify.generalization import (
    FunctionClass,
    coefficient_sum,
    combination_bound,
    function_class,
    rademacher_bound,
    rate_bound,
)
from ratebound.certify.labels import LabelsNeeded, labels_needed

__all__ = [
    "BoundLine",
    "Comparison",
    "Facts",
    "FunctionClass",
    "LabelsNeeded",
    "PaperBound",
    "clopper_pearson",
    "coefficient_sum",
    "combination_bound",
    "compare",
    "function_class",
    "labels_needed",
    "paper_bound",
    "rademacher_bound",
    "rate_bound",
]
