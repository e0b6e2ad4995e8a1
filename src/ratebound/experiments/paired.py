"""Differences between two ways of doing the same run, with their standard error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratebound.experiments.experiment import Results


@dataclass(frozen=True)
class Difference:
    """A mean difference over runs.

    Attributes
    ----------
    mean : float
    error : float, one standard error over runs; NaN for a single run
    """

    mean: float
    error: float

    def __str__(self) -> str:
        error = "" if np.isnan(self.error) else f" ± {self.error:.4f}"
        return f"{self.mean:+.4f}{error}"

    def __neg__(self) -> Difference:
        return Difference(-self.mean, self.error)

    def no_more_than(self, margin: float) -> bool | None:
        """Whether it is below a margin by two standard errors; None where it may be either way."""
        if np.isnan(self.error):
            return None
        if self.mean + 2 * self.error <= margin:
            return True
        return False if self.mean - 2 * self.error > margin else None


def difference(ours: Results, other: Results, column: str, *, by: str) -> Difference:
    """Mean of a column of ours less that of the other, each run's mean over `by` counting once."""
    per_run = []
    for run in ours.values("run"):
        one, two = ours.where(run=run), other.where(run=run)
        per_run.append(
            np.mean([one.where(**{by: v}).mean(column) - two.where(**{by: v}).mean(column)
                     for v in one.values(by)])
        )  # fmt: skip
    error = np.std(per_run, ddof=1) / np.sqrt(len(per_run)) if len(per_run) > 1 else np.nan
    return Difference(float(np.mean(per_run)), float(error))
