"""Two models on the same rows: wins, losses, churn, and whether the difference is one."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratebound.certify.binomial import Interval, check_share, clopper_pearson, tail
from ratebound.certify.tables import table
from ratebound.data import missing
from ratebound.data.arrays import distinct_values, listed, plural, row_count, vector


@dataclass(frozen=True)
class Comparison:
    """Model b against model a on the same rows.

    Attributes
    ----------
    rows : int
    wins, losses, ties : int
        Rows on which b alone is right, on which a alone is right, and on which they agree.
    confidence : float
        Of each interval.
    churn : float
        Share of rows on which they disagree.
    churn_interval : (float, float)
        Clopper-Pearson.
    win_share : float
        Share of wins among the disagreements; NaN where there are none.
    win_share_interval : (float, float)
        Clopper-Pearson, given the number of disagreements.
    accuracy_difference : float
        Accuracy of b less that of a, (wins - losses) / rows.
    accuracy_difference_interval : (float, float)
        All ``churn * (2 win_share - 1)`` of two Clopper-Pearson intervals at half the error each:
        it covers with at least `confidence` whatever the sizes, and is wider than approximate ones.
    p_two_sided : float
        Of the exact sign test of "neither is better".
    p_better : float
        Of the exact sign test of "b is not better".
    accuracy_a, accuracy_b : float or None
        None where rows on which the models agree have no label.
    """

    rows: int
    wins: int
    losses: int
    ties: int
    confidence: float
    churn: float
    churn_interval: Interval
    win_share: float
    win_share_interval: Interval
    accuracy_difference: float
    accuracy_difference_interval: Interval
    p_two_sided: float
    p_better: float
    accuracy_a: float | None = None
    accuracy_b: float | None = None

    @property
    def verdict(self) -> str:
        """What the two-sided sign test says at the confidence."""
        if self.p_two_sided > 1 - self.confidence:
            return "not decided"
        return "b is better" if self.wins > self.losses else "b is worse"

    def _values(self) -> list[tuple[str, float | None, Interval | None]]:
        return [
            ("churn", self.churn, self.churn_interval),
            ("win share of disagreements", self.win_share, self.win_share_interval),
            ("accuracy of b less a", self.accuracy_difference, self.accuracy_difference_interval),
            ("accuracy of a", self.accuracy_a, None),
            ("accuracy of b", self.accuracy_b, None),
        ]

    def __str__(self) -> str:
        rows = [("b against a", "value", f"{self.confidence:.4g} interval")]
        for name, value, interval in self._values():
            if value is None:
                continue
            number = "undefined (0/0)" if math.isnan(value) else f"{value:.4f}"
            between = "" if interval is None else f"[{interval[0]:.4f}, {interval[1]:.4f}]"
            rows.append((name, number, between))
        lines = table(rows)
        losses = plural(self.losses, "loss").replace("losss", "losses")
        lines.append(
            f"{plural(self.wins, 'win')}, {losses}, "
            f"{plural(self.ties, 'tie')} on {plural(self.rows, 'row')}"
        )
        lines.append(
            f"sign test: p = {self.p_two_sided:.3g} two-sided, {self.p_better:.3g} for b better: "
            f"{self.verdict} at confidence {self.confidence:.4g}"
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists; None for what is undefined."""
        plain = {**asdict(self), "verdict": self.verdict}
        if math.isnan(self.win_share):
            plain["win_share"] = None
        return {key: list(v) if isinstance(v, tuple) else v for key, v in plain.items()}

    def to_frame(self) -> Any:
        """Return the rates as a pandas DataFrame with columns value, low and high."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "Comparison.to_frame needs pandas: pip install pandas; Comparison.to_dict does not"
            ) from error
        nothing = (math.nan, math.nan)
        rows = {
            name: (math.nan if value is None else value, *(interval or nothing))
            for name, value, interval in self._values()
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["value", "low", "high"])


def compare(
    model_a: Any, model_b: Any, X: Any = None, y: Any = None, *, confidence: float = 0.95
) -> Comparison:
    """Test "wins and losses are equally likely" on the rows where two models disagree.

    Exact for rows drawn independently of both models: fresh ones, once for every comparison. Rows
    count once each, so there is no sample_weight. Labels may be missing (NaN, None) on rows where
    the models agree: they decide nothing. `labels_needed` says how many disagreements to label.

    Parameters
    ----------
    model_a, model_b : fitted models or array-likes of shape (n,)
        The deployed model and the candidate, or their predictions.
    X : rows for ``predict``
        May be None where both are predictions.
    y : array-like of shape (n,)
        Labels.
    confidence : float
        Of each interval.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> deployed, candidate = [0, 0, 0, 1, 1, 1, 0, 1], [1, 1, 1, 0, 0, 0, 0, 1]
    >>> result = compare(deployed, candidate, y=[1, 1, 1, 0, 0, 0, None, 1])
    >>> result.wins, result.losses, result.ties, result.p_two_sided
    (6, 0, 2, 0.03125)
    >>> print(result)
    b against a                  value      0.95 interval
    -----------------------------------------------------
    churn                       0.7500   [0.3491, 0.9681]
    win share of disagreements  1.0000   [0.5407, 1.0000]
    accuracy of b less a        0.7500  [-0.0357, 0.9779]
    6 wins, 0 losses, 2 ties on 8 rows
    sign test: p = 0.0312 two-sided, 0.0156 for b better: b is better at confidence 0.95
    """
    check_share(confidence, "confidence")
    if y is None:
        raise ValueError(
            "compare needs labels: pass y (None or NaN where the models agree will do)"
        )
    a, b, labels = _codes(
        _predictions(model_a, X, "model_a"), _predictions(model_b, X, "model_b"), vector(y, "y"), X
    )
    differ = a != b
    unlabelled = differ & (labels < 0)
    if unlabelled.any():
        raise ValueError(
            f"y has no label in {plural(int(unlabelled.sum()), 'row')} on which the models "
            f"disagree, the first is row {int(np.argmax(unlabelled))}; label these rows"
        )
    n, changed = len(labels), int(differ.sum())
    wins = int((differ & (b == labels)).sum())
    losses = changed - wins
    half = (1 + confidence) / 2
    low, high = clopper_pearson(changed, n, half)
    worst, best = (2 * share - 1 for share in clopper_pearson(wins, changed, half))
    known = bool((labels >= 0).all())
    return Comparison(
        rows=n,
        wins=wins,
        losses=losses,
        ties=n - changed,
        confidence=confidence,
        churn=changed / n,
        churn_interval=clopper_pearson(changed, n, confidence),
        win_share=wins / changed if changed else math.nan,
        win_share_interval=clopper_pearson(wins, changed, confidence),
        accuracy_difference=(wins - losses) / n,
        accuracy_difference_interval=(
            min(low * worst, high * worst), max(low * best, high * best),
        ),
        p_two_sided=min(1.0, 2 * tail(max(wins, losses), changed, 0.5)),
        p_better=tail(wins, changed, 0.5),
        accuracy_a=float((a == labels).mean()) if known else None,
        accuracy_b=float((b == labels).mean()) if known else None,
    )  # fmt: skip


def _predictions(model: Any, X: Any, name: str) -> NDArray[Any]:
    """What a model predicts for X, or the predictions themselves."""
    if hasattr(model, "predict"):
        if X is None:
            raise ValueError(f"{name} is a model and needs X, the rows to predict; pass X")
        model = model.predict(X)
    predicted = vector(model, f"the predictions of {name}")
    gone = missing(predicted)
    if gone.any():
        raise ValueError(
            f"{plural(int(gone.sum()), 'prediction')} of {name} are missing (NaN or None), the "
            f"first in row {int(np.argmax(gone))}; predict every row, or leave these rows out"
        )
    return predicted


def _codes(
    a: NDArray[Any], b: NDArray[Any], y: NDArray[Any], X: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Predictions and labels as the positions of their values, -1 where a label is missing."""
    lengths = {"the predictions of model_a": len(a), "the predictions of model_b": len(b)}
    lengths["y"] = len(y)
    if X is not None:
        lengths["X"] = row_count(X, "X")
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {count}" for name, count in lengths.items())
        raise ValueError(f"rows differ in number: {said}; pass one value a row, of the same rows")
    if not len(y):
        raise ValueError("there are no rows to compare; pass at least one")
    present = ~missing(y)
    parts = [a, b, y[present]]
    if not all(part.dtype.kind in "biuf" for part in parts):
        parts = [part.astype(object) for part in parts]
    values, codes = distinct_values(np.concatenate(parts), "y with the predictions")
    if len(values) > 2:
        raise ValueError(
            f"y and the predictions hold {len(values)} labels, {listed(values)}, where two classes "
            "are compared; pass labels rather than scores, the same two for both models and y"
        )
    labels = np.full(len(y), -1, dtype=np.intp)
    labels[present] = codes[2 * len(y) :]
    return codes[: len(y)], codes[len(y) : 2 * len(y)], labels
