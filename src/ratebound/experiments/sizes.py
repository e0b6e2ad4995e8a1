"""Held-out violation of goals that hold on the training rows, against how many these are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression

from ratebound import Goals, RateBoundSVC, churn, error_rate, positive_rate, recall
from ratebound.experiments.drawing import STYLES, draw_means, legend_below, panels, titled
from ratebound.experiments.experiment import Claim, Experiment, Record, Results
from ratebound.experiments.rows import all_rows, fit_quietly
from ratebound.experiments.writing import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (250, 500, 1000, 2000, 4000, 8000, 16000)
QUICK_SIZES = (250, 1000)
DEPLOYED_ROWS, HELD_OUT_ROWS = 1000, 30000
GOALS = {
    "recall": recall() >= 0.75,
    "ratio": positive_rate(by="sex").ratio() >= 0.8,
    "coverage": positive_rate() <= 0.15,
    "churn": churn() <= 0.02,
}


def measure(run: int, quick: bool) -> list[Record]:
    """Fit the first rows of a run's order of Adult, more and more of them, to one goal at a time.

    The held-out rows of a run are the same for all sizes.
    """
    everyone = all_rows("adult")
    everyone = everyone[np.random.default_rng(run).permutation(len(everyone.y))]
    first = everyone[:DEPLOYED_ROWS]
    deployed = LogisticRegression(max_iter=1000).fit(first.X, first.y)
    everyone = replace(everyone, baseline=deployed.predict(everyone.X))
    held_out = everyone[-HELD_OUT_ROWS:]
    records: list[Record] = []
    for size in QUICK_SIZES if quick else SIZES:
        train = everyone[DEPLOYED_ROWS : DEPLOYED_ROWS + size]
        for name, goal in GOALS.items():
            goals = Goals(error_rate(), [goal])
            svc = RateBoundSVC(goals)
            fit_quietly(svc, train)
            record: dict[str, str | int | float] = {"goal": name, "size": size}
            for part, rows in (("", train), ("test_", held_out)):
                decided = svc.predict(rows.X)
                report = goals.evaluate(
                    predictions=decided, y=rows.y, columns=rows.columns, baseline=rows.baseline
                )
                excess = -report.goals[0].slack
                record |= {
                    f"{part}objective": float(np.mean(decided != rows.y)),
                    f"{part}excess": excess,
                    f"{part}missed": max(0.0, excess),
                }
                if not part:
                    record["chance"] = _chance(name, rows.y, rows.columns["sex"], decided)
            records.append(record)
    return records


def _chance(goal: str, y: np.ndarray, sex: np.ndarray, decided: np.ndarray) -> float:
    """Standard error of the goal's rate over so many rows, were the model not fitted to them."""
    positive = decided == 1
    if goal == "recall":
        return _binomial(0.75, np.sum(y == 1))
    if goal == "coverage":
        return _binomial(0.15, len(y))
    if goal == "churn":
        return _binomial(0.02, len(y))
    # of a ratio of two shares, by the delta method
    groups = [positive[sex == value] for value in ("Female", "Male")]
    relative = [(1 - g.mean()) / max(g.sum(), 1) for g in groups]
    return 0.8 * math.sqrt(sum(relative))


def _binomial(rate: float, rows: float) -> float:
    return math.sqrt(rate * (1 - rate) / max(rows, 1))


# --- what came of it ----------------------------------------------------------------------------


def figures(results: Results) -> dict[str, Figure]:
    """A panel a goal: what it is missed by on held-out rows, and what chance alone would do."""
    figure, axes = panels(2, 2, size=(4.6, 3.4), sharex=True)
    for panel, (name, goal) in zip(axes.flat, GOALS.items(), strict=True):
        those = results.where(goal=name)
        sizes = np.array(those.values("size"))
        chance = np.array([those.where(size=size).mean("chance") for size in sizes])
        panel.fill_between(
            sizes,
            -chance,
            chance,
            color="0.85",
            linewidth=0,
            label="± one binomial standard error, ~ 1/√n",
        )
        panel.axhline(0, color="black", linewidth=0.8)
        for column, style, label in (
            ("test_excess", STYLES[1], "held-out rows (mean, standard deviation over runs)"),
            ("excess", STYLES[0], "training rows"),
        ):
            draw_means(panel, those, replace(style, label=label), by="size", x="size", y=column)
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=30)
        panel.minorticks_off()
        titled(panel, title=str(goal.text))
    for panel in axes[-1]:
        panel.set_xlabel("training rows")
    for panel in axes[:, 0]:
        panel.set_ylabel("missed by (below 0: room)")
    legend_below(figure, axes)
    return {"sizes": figure}


def claims(results: Results) -> list[Claim]:
    """Whether goals hold on new rows about as well as chance allows, and better with more rows."""
    found = [
        Claim(
            "On the training rows every goal is met",
            bool(np.all(results.column("missed") <= 1e-9)),
            f"in {np.mean(results.column('missed') <= 1e-9):.1%} of {len(results)} fits",
        )
    ]
    for name in GOALS:
        those = results.where(goal=name)
        sizes = those.values("size")
        means = [those.where(size=size).mean("test_missed") for size in sizes]
        power = _power(sizes, means)
        excess = [those.where(size=size).mean("test_excess") for size in sizes]
        chance = [those.where(size=size).mean("chance") for size in sizes]
        found.append(
            Claim(
                f"The mean held-out violation of {GOALS[name].text} falls with the training rows "
                "at least like 1/√n (a power of −0.4 or below)",
                None if len(sizes) < 4 else power <= -0.4,
                f"power {power:.2f}; "
                + ", ".join(f"{n:,} rows: {m:.4f}" for n, m in zip(sizes, means, strict=True)),
            )
        )
        multiples = [e / c for e, c in zip(excess, chance, strict=True)]
        found.append(
            Claim(
                f"From 4,000 rows on, {GOALS[name].text} is missed by less than one binomial "
                "standard error on average",
                _all_below(sizes, multiples),
                "mean excess in standard errors: "
                + ", ".join(f"{n:,} rows: {m:+.2f}" for n, m in zip(sizes, multiples, strict=True)),
            )
        )
    return found


def _all_below(sizes: list[int], multiples: list[float]) -> bool | None:
    large = [multiple for size, multiple in zip(sizes, multiples, strict=True) if size >= 4000]
    return max(large) < 1.0 if large else None


def _power(sizes: list[int], means: list[float]) -> float:
    """Slope of the logarithms, over those sizes where anything is missed at all."""
    some = [(size, mean) for size, mean in zip(sizes, means, strict=True) if mean > 0]
    if len(some) < 2:
        return -math.inf
    logarithms = np.log(np.array(some))
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def tables(results: Results) -> str:
    """Every goal at every size."""
    header = [
        "goal", "training rows", "held-out excess", "held-out violation",
        "binomial standard error", "runs that miss it", "training error", "held-out error",
    ]  # fmt: skip
    lines = []
    for name, goal in GOALS.items():
        for size in results.values("size"):
            those = results.where(goal=name, size=size)
            lines.append([
                goal.text, f"{size:,}",
                f"{those.mean('test_excess'):+.4f} ± {those.spread('test_excess'):.4f}",
                f"{those.mean('test_missed'):.4f}", f"{those.mean('chance'):.4f}",
                f"{np.mean(those.column('test_missed') > 0):.0%}",
                f"{those.mean('objective'):.4f}", f"{those.mean('test_objective'):.4f}",
            ])  # fmt: skip
    return f"## Every size (mean ± standard deviation over runs)\n\n{table(header, lines)}"


EXPERIMENT = Experiment(
    name="sizes",
    title="How well goals hold on new rows, against how many were trained on",
    about=f"""
Errors on Adult (a9a encoding, both files shuffled together) subject to one goal at a time:
{"; ".join(f"`{goal.text}`" for goal in GOALS.values())}. Churn is against a logistic regression of
{DEPLOYED_ROWS:,} other rows. Fitted with all settings as they come (alpha = 1/n) to
{", ".join(f"{size:,}" for size in SIZES)} rows, and judged on {HELD_OUT_ROWS:,} others. The goals
hold exactly on the training rows; elsewhere rates differ by chance, by about the binomial standard
error of the training rate, and more where the model has fitted chance itself.

The excess is what a goal is missed by, negative where there is room; the violation is its positive
part.
""",
    runs=20,
    quick_runs=2,
    measure=measure,
    figures=figures,
    claims=claims,
    tables=tables,
)
