"""The repaired threshold against the paper's zero: goals on training and on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ratebound import RateBoundSVC
from ratebound.experiments.cases import CASES, judge
from ratebound.experiments.drawing import STYLES, legend_below, panels, titled
from ratebound.experiments.experiment import Claim, Experiment, Record, Results
from ratebound.experiments.paired import difference
from ratebound.experiments.rows import fit_quietly
from ratebound.experiments.writing import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINING_ROWS, HELD_OUT_ROWS = 8000, 20000
QUICK_ROWS, QUICK_CASES = 400, 3
RULES = ("zero", "repair")
MARGIN = 1e-3


def measure(run: int, quick: bool) -> list[Record]:
    """Fit every case of a run's split with both rules."""
    records: list[Record] = []
    for case in CASES[:QUICK_CASES] if quick else CASES:
        train, test = case.split(run, QUICK_ROWS if quick else TRAINING_ROWS, HELD_OUT_ROWS)
        for rule in RULES:
            svc = RateBoundSVC(case.goals, threshold=rule)
            began = time.process_time()
            fit_quietly(svc, train)
            seconds = time.process_time() - began
            objective, missed = judge(case.goals, svc.predict(train.X), train)
            test_objective, test_missed = judge(case.goals, svc.predict(test.X), test)
            records.append(
                {
                    "dataset": case.name,
                    "rule": rule,
                    "rows": len(train.y),
                    "objective": objective,
                    "missed": missed,
                    "met": int(svc.report_.met),
                    "test_objective": test_objective,
                    "test_missed": test_missed,
                    "shift": abs(svc.threshold_shift_),
                    "rounds": svc.status_.repair_rounds,
                    "seconds": seconds,
                }
            )
    return records


# --- what came of it ----------------------------------------------------------------------------

_PANELS = (
    ("missed", "goals missed on training rows by"),
    ("test_missed", "goals missed on held-out rows by"),
    ("test_objective", "held-out objective"),
)


def figures(results: Results) -> dict[str, Figure]:
    """Both rules on every dataset: worst violation on training and held-out rows, objective."""
    figure, axes = panels(1, 3, size=(4.0, 4.2), sharey=True)
    names = results.values("dataset")
    for k, (rule, style) in enumerate(zip(RULES, STYLES, strict=False)):
        heights = np.arange(len(names)) + 0.2 * (k - 0.5)
        for panel, (column, _) in zip(axes[0], _PANELS, strict=True):
            those = [results.where(dataset=name, rule=rule) for name in names]
            panel.errorbar(
                [each.mean(column) for each in those], heights,
                xerr=[each.spread(column) for each in those], color=style.colour,
                marker=style.marker, linestyle="none", label=f"threshold={rule!r}", markersize=5,
                elinewidth=1, capsize=2,
            )  # fmt: skip
    for panel, (_, title) in zip(axes[0], _PANELS, strict=True):
        titled(panel, title=title, x="rate")
    for panel in axes[0, :2]:
        panel.axvline(0, color="black", linewidth=0.8)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    legend_below(figure, axes)
    return {"repair": figure}


def claims(results: Results) -> list[Claim]:
    """Whether repair does what it promises, and what it costs on new rows."""
    repaired, zero = (results.where(rule=rule) for rule in ("repair", "zero"))
    missed = difference(repaired, zero, "test_missed", by="dataset")
    objective = difference(repaired, zero, "test_objective", by="dataset")
    return [
        Claim(
            "Repaired decisions meet every goal on the training rows",
            repaired.mean("met") == 1.0,
            f"in {repaired.mean('met'):.1%} of {len(repaired)} fits, with the threshold at zero in "
            f"{zero.mean('met'):.1%}; missed by {repaired.mean('missed'):.4f} and "
            f"{zero.mean('missed'):.4f} on average",
        ),
        Claim(
            "On held-out rows, goals are missed by no more than with the threshold at zero "
            f"(on average, within {MARGIN:g})",
            missed.no_more_than(MARGIN),
            f"repair − zero: {missed}; {repaired.mean('test_missed'):.4f} and "
            f"{zero.mean('test_missed'):.4f}",
        ),
        Claim(
            f"The held-out objective is no higher (within {MARGIN:g})",
            objective.no_more_than(MARGIN),
            f"repair − zero: {objective}; " + ", ".join(_by_dataset(results)),
        ),
    ]


def _by_dataset(results: Results) -> Iterator[str]:
    for name in results.values("dataset"):
        repaired, zero = (results.where(dataset=name, rule=rule) for rule in ("repair", "zero"))
        objective = difference(repaired, zero, "test_objective", by="dataset")
        missed = zero.mean("missed")
        where = f" (zero misses its goals on the training rows by {missed:.4f})"
        yield f"{name} {objective}{where * (missed > MARGIN)}"


def tables(results: Results) -> str:
    """Both rules on every dataset."""
    header = [
        "dataset", "threshold", "fits that meet all goals", "training objective",
        "training violation", "held-out objective", "held-out violation", "threshold shift",
        "rounds of tightening", "CPU s",
    ]  # fmt: skip
    lines = []
    for name in results.values("dataset"):
        for rule in RULES:
            those = results.where(dataset=name, rule=rule)
            values = [
                f"{those.mean(column):.4f} ± {those.spread(column):.4f}"
                for column in ("objective", "missed", "test_objective", "test_missed", "shift")
            ]
            met = f"{those.mean('met'):.0%}"
            ends = [f"{those.mean('rounds'):.1f}", f"{those.mean('seconds'):.2f}"]
            lines.append([name, rule, met, *values, *ends])
    return f"## Both rules (mean ± standard deviation over runs)\n\n{table(header, lines)}"


EXPERIMENT = Experiment(
    name="repair",
    title="The repaired threshold against zero",
    about=f"""
The paper decides by the sign of the score. The goals that were trained for are then met by the
*expected* rates of the randomized classifier, and missed or overshot by the deterministic one.
`threshold="repair"` searches the cuts of the training scores for the best that meets the goals
themselves, and tightens bounds where none does. Both rules on {len(CASES)} datasets with goals of
different kinds ({", ".join(case.name for case in CASES)}), {TRAINING_ROWS:,} training rows at most,
{HELD_OUT_ROWS:,} held-out rows at most, split anew in every run.

A violation is that of the worst goal, in the unit of its bound.
""",
    runs=10,
    quick_runs=2,
    measure=measure,
    figures=figures,
    claims=claims,
    tables=tables,
)
