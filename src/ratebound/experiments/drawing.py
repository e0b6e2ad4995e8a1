"""What figures share: panels, colours and markers that everybody can tell apart, means with spread.

Figures are made without pyplot, so nothing is shown, kept open or configured for the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ratebound.experiments.experiment import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, whose colours differ to colour-blind eyes too.
BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"
ORANGE, PURPLE, SKY, BLACK = "#E69F00", "#CC79A7", "#56B4E9", "#000000"

PANEL = (5.0, 4.3)  # inches
SIZES = {"title": 12, "label": 11, "tick": 10, "legend": 9.5}


@dataclass(frozen=True)
class Series:
    """How one series is drawn, wherever it is.

    Attributes
    ----------
    label : str, in the legend
    colour : str
    marker : str
    line : str, "" for points alone
    """

    label: str
    colour: str
    marker: str = "o"
    line: str = "-"


#: Series without a meaning of their own that would ask for a colour.
STYLES = tuple(
    Series("", colour, marker)
    for colour, marker in zip(
        (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK), "os^Dv<P", strict=True
    )
)


def need_matplotlib() -> None:
    """Raise where matplotlib is missing: before runs that take long, not after them."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'figures need matplotlib: pip install "ratebound[plot]", then give the command again'
        ) from error


def panels(
    rows: int = 1, columns: int = 2, *, size: tuple[float, float] = PANEL, **shared: Any
) -> tuple[Figure, Any]:
    """Return a figure and its array (rows, columns) of axes.

    Parameters
    ----------
    rows, columns : int
    size : pair of float, inches of one panel
    **shared : `sharex`, `sharey` of `Figure.subplots`
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    for panel in axes.flat:
        panel.grid(alpha=0.3, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=SIZES["tick"])
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    return figure, axes


def titled(panel: Axes, *, title: str = "", x: str = "", y: str = "") -> None:
    """Set title and axis labels, in sizes that are legible in a page's width."""
    panel.set_title(title, fontsize=SIZES["title"])
    panel.set_xlabel(x, fontsize=SIZES["label"])
    panel.set_ylabel(y, fontsize=SIZES["label"])


def draw_means(
    panel: Axes, results: Results, series: Series, *, by: str, x: str, y: str, **more: Any
) -> None:
    """Draw the mean over runs at each point, with bars of one standard deviation.

    Parameters
    ----------
    panel : Axes
    results : Results
        Of one series.
    series : Series
    by : str
        Column that says which point a record is of; runs are averaged point by point.
    x, y : str
        Columns; where `x` is not `by`, it was measured too and has bars of its own.
    **more : for `Axes.errorbar`
    """
    points = [results.where(**{by: value}) for value in results.values(by)]
    drawn = panel.errorbar(
        [point.mean(x) for point in points],
        [point.mean(y) for point in points],
        yerr=[point.spread(y) for point in points],
        xerr=None if x == by else [point.spread(x) for point in points],
        color=series.colour, marker=series.marker, linestyle=series.line or "none",
        label=series.label, markersize=5, linewidth=1.4, elinewidth=0.9, capsize=2, **more,
    )  # fmt: skip
    _, caps, bars = drawn.lines
    for mark in (*caps, *bars):  # many points' bars lie on each other and on means
        mark.set_alpha(0.45)


def draw_level(panel: Axes, values: NDArray[np.float64], series: Series) -> None:
    """Draw a number that is the same along the x axis: its mean over runs and, shaded, spread."""
    level = float(np.mean(values))
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    panel.axhline(level, color=series.colour, linestyle=series.line, label=series.label)
    panel.axhspan(level - spread, level + spread, color=series.colour, alpha=0.15, linewidth=0)


def legend_below(figure: Figure, axes: Any, columns: int = 2) -> None:
    """One legend of all panels' series under them, each label once; means before lines."""
    found: dict[str, Any] = {}
    for means in (True, False):
        for panel in np.ravel(axes):
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                if means == hasattr(handle, "has_yerr"):
                    found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=columns,
        fontsize=SIZES["legend"], frameon=False,
    )  # fmt: skip
