"""Exact binomial probabilities: tails and intervals, from the incomplete beta function."""

from __future__ import annotations

from typing import Any

from scipy.special import betainc, betaincinv

Interval = tuple[float, float]


def tail(successes: int, trials: int, share: float) -> float:
    """P(Bin(trials, share) >= successes), exactly: the incomplete beta function."""
    if successes <= 0 or successes > trials:
        return float(successes <= 0)
    return float(betainc(successes, trials - successes + 1, share))


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """All p for which ``P(Bin(trials, p) >= successes)`` and ``P(Bin(trials, p) <= successes)``
    are both above half the error.

    Parameters
    ----------
    successes, trials : int
    confidence : float

    Returns
    -------
    (float, float)
        It covers with at least `confidence`; (0, 1) where there are no trials.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    check_share(confidence, "confidence")
    if not 0 <= successes <= trials:
        raise ValueError(f"successes={successes} must be between 0 and trials={trials}")
    error = (1 - confidence) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, error)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - error)) if failures else 1.0
    return low, high


def check_share(value: Any, name: str) -> None:
    """Raise where a value is no share strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name}={value!r} must lie strictly between 0 and 1, as 0.05 or 0.95 do")
