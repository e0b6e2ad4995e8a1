"""Flights from New York in 2013 as the three datasets of the paper's second experiment.

The paper's data is proprietary. Here a row is a flight at its departure, positive where it arrives
more than 15 minutes late: 28 numbers, mapped by a fixed random-feature map to more. The deployed
model is a logistic regression of these 28 numbers on January to March; all rows of the experiment
are of April to September.

D1 is labelled and chosen by active sampling: of the rows that are left after the other two were
drawn, those whose scores by a pilot model (trained on 2,000 further rows) are nearest to zero. D2,
labelled, and D3, whose labels nobody reads, are drawn uniformly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from ratebound.datasets import RealData, load
from ratebound.experiments.rows import Rows

#: Rows of the paper's D1, D2 and D3.
PAPER_SIZES = (131_840, 53_877, 68_892)
PILOT_ROWS = 2_000
LAST_EARLY_MONTH = 3  # the deployed model has seen no later one
TRAIN_SHARE = 0.8
BANDWIDTH = 0.3  # standard deviation of the random frequencies

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """The training or the test rows of one dataset.

    Attributes
    ----------
    X : (n, features) float32, mapped
    y : (n,), +1 and -1
    deployed : (n,), decisions of the deployed model, +1 and -1
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    deployed: NDArray[np.int64]


@dataclass(frozen=True)
class Samples:
    """D1, D2 and D3 of one run, the training or the test rows of each."""

    chosen: Part
    labelled: Part
    unlabelled: Part


def sizes(total: int) -> tuple[int, int, int]:
    """Rows of D1, D2 and D3 in the paper's proportions."""
    whole = sum(PAPER_SIZES)
    first, second, third = (total * size // whole for size in PAPER_SIZES)
    return first, second, third


def draw(random: np.random.Generator, total: int, features: int) -> tuple[Samples, Samples]:
    """Draw the datasets of one run and split each; return their training and their test rows.

    Parameters
    ----------
    random : Generator
    total : int
        Rows of the three datasets together.
    features : int
        Random features of Φ, which has the raw columns besides.
    """
    late, deployed = _flights()
    n_chosen, n_labelled, n_unlabelled = sizes(total)
    order = random.permutation(len(late.y))
    ends = np.cumsum([n_labelled, n_unlabelled, PILOT_ROWS])
    labelled, unlabelled, seen, rest = np.split(order, ends)
    if len(rest) < n_chosen:
        raise ValueError(f"there are too few flights to choose {n_chosen} from {len(rest)}")
    pilot = LogisticRegression(max_iter=1000).fit(late.X[seen], late.y[seen])
    nearest = np.argsort(np.abs(pilot.decision_function(late.X[rest])), kind="stable")
    chosen = random.permutation(rest[nearest[:n_chosen]])
    phi = FeatureMap.of(late.X.shape[1], features)

    def part(rows: NDArray[np.intp]) -> Part:
        return Part(phi(late.X[rows]), late.y[rows], deployed.predict(late.X[rows]))

    halves = [
        np.split(rows, [round(TRAIN_SHARE * len(rows))]) for rows in (chosen, labelled, unlabelled)
    ]
    train, test = (Samples(*(part(half[i]) for half in halves)) for i in (0, 1))
    return train, test


@dataclass(frozen=True)
class FeatureMap:
    """Φ: the raw columns, and random Fourier features of a Gaussian kernel beside them.

    The same for all runs, as the paper's is fixed.
    """

    frequencies: NDArray[np.float32]

    @classmethod
    def of(cls, raw: int, features: int) -> FeatureMap:
        """Draw the map from a fixed seed."""
        drawn = np.random.default_rng(0).normal(scale=BANDWIDTH, size=(raw, features // 2))
        return cls(drawn.astype(np.float32))

    def __call__(self, X: Floats) -> NDArray[np.float32]:
        """Map rows."""
        raw, half = self.frequencies.shape
        narrow = X.astype(np.float32)
        angles = narrow @ self.frequencies
        waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(half)
        # no block shall outweigh the other: a row's squared norm is about one in each
        return np.concatenate([narrow / np.sqrt(raw), waves], axis=1, dtype=np.float32)


# --- the raw columns ----------------------------------------------------------------------------


@cache
def _flights() -> tuple[Rows, Any]:
    """Flights of the late months, and the model deployed after the early ones."""
    data = load("flights13")
    X = raw_columns(data)
    departed = ~np.isnan(X[:, 0])
    has_label = ~np.isnan(data.y)
    early = data.columns["month"] <= LAST_EARLY_MONTH
    known = departed & has_label
    # what is not known is taken to be as usual; scales are those of the early months too
    usual = np.nanmedian(X[known & early], axis=0)
    X = np.where(np.isnan(X), usual, X)
    is_number = np.array([len(np.unique(column)) > 2 for column in X.T])
    centre = np.where(is_number, X[known & early].mean(axis=0), 0.0)
    scale = np.where(is_number, X[known & early].std(axis=0), 1.0)
    X = (X - centre) / scale
    before, after = known & early, known & ~early
    deployed = LogisticRegression(max_iter=1000).fit(X[before], data.y[before].astype(np.int64))
    return Rows(X[after], data.y[after].astype(np.int64)), deployed


def raw_columns(data: RealData) -> Floats:
    """What is known of a flight as it departs, 28 numbers: delay, time of day, distance, weather,
    carrier and airport. Month, day, flight, aircraft and destination are left out.
    """
    text = _attributes(data)
    delay = _numbers(text["dep_delay"])
    clock = _numbers(text["sched_dep_time"])
    angle = 2 * np.pi * (clock // 100 * 60 + clock % 100) / (24 * 60)
    weather = ("temp", "wind_speed", "precip", "pressure", "visib")
    return np.column_stack(
        [
            np.sign(delay) * np.log1p(np.abs(delay)),
            np.sin(angle),
            np.cos(angle),
            *(_numbers(text[name]) for name in ("distance", *weather)),
            *(text["carrier"] == value for value in np.unique(text["carrier"])),
            *(text["origin"] == value for value in np.unique(text["origin"])),
        ]
    )


def _attributes(data: RealData) -> dict[str, NDArray[Any]]:
    """The text of each attribute, from one column for each of its values."""
    places = data.X.indices.reshape(len(data.y), -1)  # one value of each attribute a row
    names, values = zip(*(name.split("=", 1) for name in data.feature_names), strict=True)
    value = np.array(values, dtype=object)
    return {names[column[0]]: value[column] for column in places.T}


def _numbers(values: NDArray[Any]) -> Floats:
    return np.array([float(value) if value else np.nan for value in values])
