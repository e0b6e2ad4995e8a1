"""How many labels a comparison of two models needs: the paper's arithmetic of churn, exactly.

Two models differ on the rows where they disagree alone, so only those need labels; each is a *win*
where the candidate is right and a *loss* where the deployed model is. Under "neither is better" a
disagreement is either with probability one half, which is the sign test.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from ratebound.certify.binomial import check_share, tail

_MOST_LABELS = 10**9


@dataclass(frozen=True)
class LabelsNeeded:
    """What to buy to show that a candidate is better.

    Attributes
    ----------
    wins, losses : float
        Shares of all rows, as assumed.
    confidence, power : float
    two_sided : bool
    disagreements : int
        Labels to buy where one stops at that many: from here on, every number of labelled
        disagreements gives the sign test at least this power.
    wins_needed : int
        Wins among them at which the test decides for the candidate.
    rows : int
        Rows of fresh traffic in which so many disagreements turn up, with probability `confidence`.
    labels : int
        Disagreements to expect in those rows (rounded up): labels to buy where all are labelled.
    """

    wins: float
    losses: float
    confidence: float
    power: float
    two_sided: bool
    disagreements: int
    wins_needed: int
    rows: int
    labels: int

    @property
    def churn(self) -> float:
        """Share of rows on which the models disagree."""
        return self.wins + self.losses

    def __str__(self) -> str:
        sides = "two-sided" if self.two_sided else "one-sided"
        text = (
            f"with wins on {self.wins:.4g} and losses on {self.losses:.4g} of all rows, "
            f"{self.disagreements:,} labelled disagreements show the candidate better (at "
            f"{self.wins_needed:,} wins or more: {sides} sign test, confidence "
            f"{self.confidence:g}, power {self.power:g}); draw {self.rows:,} rows, expect "
            f"{self.labels:,} disagreements"
        )
        return "\n".join(wrap(text, 100))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers by name."""
        return {**asdict(self), "churn": self.churn}


def labels_needed(
    *,
    wins: float,
    losses: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.8,
    two_sided: bool = True,
) -> LabelsNeeded:
    """Smallest n such that for all ``m >= n``, ``P(Bin(m, p) >= c_m) >= power``, p = wins / churn.

    c_m is the least number of wins among m disagreements at which the sign test rejects "neither is
    better": ``P(Bin(m, 1/2) >= c_m) <= (1 - confidence) / 2``, without the half where one-sided.
    All probabilities are exact. Power rises in teeth, as c_m is a whole number: n is where it
    stops falling below `power`, so a label more never hurts. Rows on which the models agree need
    no labels.

    Of the paper's two examples, candidates 5 % better than the deployed model, the one without
    losses needs 6 disagreements; 208 rows hold them with 95 % confidence, and 11 are to be expected
    there ("a dozen"). The one with wins on 30 % and losses on 25 % of the rows needs 981
    disagreements; 1,847 rows hold them, 1,016 are to be expected ("near 1,000").

    Parameters
    ----------
    wins : float
        Share of all rows on which the candidate alone is right.
    losses : float
        Share of all rows on which the deployed model alone is right, less than `wins`.
    confidence : float
        Of the test, and that `rows` hold as many disagreements as are needed.
    power : float
        Probability with which the labels show what is assumed here.
    two_sided : bool
        Whether the test could also find the candidate worse.

    Returns
    -------
    LabelsNeeded

    Examples
    --------
    >>> labels_needed(wins=0.05).labels
    11
    >>> print(labels_needed(wins=0.30, losses=0.25))
    with wins on 0.3 and losses on 0.25 of all rows, 981 labelled disagreements show the candidate
    better (at 522 wins or more: two-sided sign test, confidence 0.95, power 0.8); draw 1,847 rows,
    expect 1,016 disagreements
    """
    check_share(confidence, "confidence")
    check_share(power, "power")
    if not (losses >= 0 and wins > 0 and wins + losses <= 1 + 1e-12):
        raise ValueError(
            f"wins={wins!r} and losses={losses!r} must be shares of all rows: wins above 0, losses "
            "at least 0, together at most 1"
        )
    if wins <= losses:
        raise ValueError(
            f"wins={wins!r} must exceed losses={losses!r}: no number of labels shows a candidate "
            "better that is not"
        )
    churn = min(wins + losses, 1.0)
    share = wins / (wins + losses)
    level = (1 - confidence) / (2 if two_sided else 1)
    needed = _enough_trials(share, level, power)
    rows = _rows_holding(needed, churn, confidence)
    return LabelsNeeded(
        wins, losses, confidence, power, two_sided, needed, _critical(needed, level), rows,
        math.ceil(rows * churn - 1e-9),
    )  # fmt: skip


def _critical(trials: int, level: float) -> int:
    """Least c with P(Bin(trials, 1/2) >= c) <= level; trials + 1 where there is none."""
    few, enough = trials // 2, trials + 1
    # Hoeffding's inequality has such a c nearby
    enough = min(enough, math.ceil(trials / 2 + math.sqrt(trials * math.log(1 / level) / 2)) + 1)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if tail(middle, trials, 0.5) <= level else (middle, enough)
    return enough


def _enough_trials(share: float, level: float, power: float) -> int:
    """The trials from which on the sign test's power never falls below `power`."""
    # Hoeffding's inequality for the test's level and for its power: none fails from here on
    root = math.sqrt(math.log(1 / level) / 2) + math.sqrt(math.log(1 / (1 - power)) / 2)
    last = (root / (share - 0.5)) ** 2
    if last > _MOST_LABELS:
        raise ValueError(
            f"wins and losses are so near (wins are {share:.6g} of both) that more than a "
            "hundred million labels could be needed; compare models that differ more"
        )
    # c grows and Bin(m, p) grows with m: a block is safe if its first m reaches its last c
    blocks = [(1, math.ceil(last))]
    while blocks:
        low, high = blocks.pop()
        if tail(_critical(high, level), low, share) >= power:
            continue
        if low == high:
            return low + 1
        middle = (low + high) // 2
        blocks += [(low, middle), (middle + 1, high)]  # the later one is looked at first
    return 1


def _rows_holding(needed: int, churn: float, confidence: float) -> int:
    """Least N with P(Bin(N, churn) >= needed) >= confidence."""
    few, enough = needed - 1, needed
    while tail(needed, enough, churn) < confidence:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (
            (few, middle) if tail(needed, middle, churn) >= confidence else (middle, enough)
        )
    return enough
