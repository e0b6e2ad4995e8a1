"""Classifiers that meet real-world goals, with a proof of how close to optimal they are.

Goals are rates on named datasets; `RateBoundSVC` finds a linear or kernel classifier that meets
them::

    goals = Goals(
        minimize=error_rate(),
        subject_to=[
            recall(on="audit") >= 0.9,
            churn(on="traffic") <= 0.05,
            positive_rate(by="sex").ratio() >= 0.8,
        ],
    )
    clf = RateBoundSVC(goals).fit(X, y, columns=people, datasets={...})
    print(clf.report_)
"""

from __future__ import annotations

from ratebound.certify import compare, labels_needed, paper_bound
from ratebound.data import Dataset, Stacked, stack
from ratebound.goals import Goals, InfeasibleGoals
from ratebound.parse import parse_goal, parse_rate
from ratebound.rates import (
    Constraint,
    Rate,
    RatesByGroup,
    RatioRate,
    accuracy,
    between,
    churn,
    cost,
    coverage,
    error_rate,
    f_score,
    false_discovery_rate,
    false_negative_rate,
    false_positive_rate,
    loss_rate,
    negative_predictive_value,
    negative_rate,
    positive_rate,
    precision,
    recall,
    score_gap,
    specificity,
    true_negative_rate,
    true_positive_rate,
    win_change_ratio,
    win_loss_ratio,
    win_rate,
)
from ratebound.report import Report
from ratebound.svc import RateBoundSVC
from ratebound.svc_cv import RateBoundSVCCV

__version__ = "0.1.0"

__all__ = [
    "Constraint",
    "Dataset",
    "Goals",
    "InfeasibleGoals",
    "Rate",
    "RateBoundSVC",
    "RateBoundSVCCV",
    "RatesByGroup",
    "RatioRate",
    "Report",
    "Stacked",
    "accuracy",
    "between",
    "churn",
    "compare",
    "cost",
    "coverage",
    "error_rate",
    "f_score",
    "false_discovery_rate",
    "false_negative_rate",
    "false_positive_rate",
    "labels_needed",
    "loss_rate",
    "negative_predictive_value",
    "negative_rate",
    "paper_bound",
    "parse_goal",
    "parse_rate",
    "positive_rate",
    "precision",
    "recall",
    "score_gap",
    "specificity",
    "stack",
    "true_negative_rate",
    "true_positive_rate",
    "win_change_ratio",
    "win_loss_ratio",
    "win_rate",
]
