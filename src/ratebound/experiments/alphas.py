"""Alpha by cross-validation with goals, as a user would choose it, on Adult."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ratebound import (
    Goals,
    RateBoundSVC,
    RateBoundSVCCV,
    error_rate,
    false_positive_rate,
    positive_rate,
    recall,
    true_positive_rate,
)
from ratebound.experiments.adult import split
from ratebound.experiments.cases import judge
from ratebound.experiments.drawing import STYLES, draw_means, legend_below, panels, titled
from ratebound.experiments.experiment import Claim, Experiment, Record, Results
from ratebound.experiments.paired import difference
from ratebound.experiments.rows import fit_quietly
from ratebound.experiments.writing import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUICK_ROWS, QUICK_ALPHAS = 1500, 4
ALPHAS = 10
MARGIN = 2e-3
_WOMEN, _MEN = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))
GOALS = {
    "80 % rule": Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.8]),
    "parity": Goals(error_rate(), [_MEN <= _WOMEN]),
    "six goals": Goals(
        error_rate(),
        [
            recall() >= 0.6,
            positive_rate() <= 0.25,
            true_positive_rate(by="sex").gap() <= 0.02,
            false_positive_rate(by="sex").gap() <= 0.02,
        ],
    ),
}
#: Lowest test error that a peer has been seen to reach on the official split, and which.
PEERS = {
    "80 % rule": (0.164, "a linear model trained by cooper"),
    "parity": (0.170, "fairlearn's ThresholdOptimizer, which needs the group to decide"),
    "six goals": (0.161, "the mixture of TFCO"),
}


def measure(run: int, quick: bool) -> list[Record]:
    """Choose alpha on a run's training rows; error and goals of every alpha on its test rows.

    Run 0 has the official split, the others random ones of the same sizes.
    """
    train, test = split(run)
    if quick:
        train = train[:QUICK_ROWS]
    records: list[Record] = []
    for name, goals in GOALS.items():
        cv = RateBoundSVCCV(goals, alphas=QUICK_ALPHAS if quick else ALPHAS)
        fit_quietly(cv, train)
        found = cv.cv_results_
        for place, alpha in enumerate(found["param_alpha"]):
            svc = cv.best_estimator_
            if place != cv.best_index_:
                svc = RateBoundSVC(goals, alpha=float(alpha))
                fit_quietly(svc, train)
            error, missed = judge(goals, svc.predict(train.X), train)
            test_error, test_missed = judge(goals, svc.predict(test.X), test)
            records.append(
                {
                    "split": "random" if run else "official",
                    "goals": name,
                    "place": place,
                    "alpha": float(alpha),
                    "chosen": int(place == cv.best_index_),
                    "held_out": float(found["test_objective"][place]),
                    "held_out_met": int(found["test_met"][place]),
                    "error": error,
                    "missed": missed,
                    "test_error": test_error,
                    "test_missed": test_missed,
                }
            )
    return records


# --- what came of it ----------------------------------------------------------------------------


def _chosen(results: Results) -> Results:
    return results.where(chosen=1)


def figures(results: Results) -> dict[str, Figure]:
    """A panel of goals: error against alpha, as cross-validation and as the test rows see it."""
    figure, axes = panels(1, len(GOALS), size=(4.2, 4.0))
    for panel, (name, (peer, _)) in zip(axes[0], PEERS.items(), strict=True):
        those = results.where(goals=name)
        for column, style, label in (
            ("test_error", STYLES[1], "test rows (standard deviation over runs)"),
            ("held_out", STYLES[0], "held-out training rows"),
        ):
            draw_means(panel, those, replace(style, label=label), by="place", x="alpha", y=column)
        official = _chosen(those).where(split="official")
        if len(official):
            panel.plot(
                official.column("alpha"), official.column("test_error"), "*", color="black",
                markersize=12, label="chosen, official split: test rows", zorder=5,
            )  # fmt: skip
        panel.axhline(
            peer, color="0.3", linestyle="--", linewidth=1.2,
            label="lowest of the peers, official split: test rows",
        )  # fmt: skip
        panel.set_xscale("log")
        titled(panel, title=name, x="alpha", y="error" if name == "80 % rule" else "")
    legend_below(figure, axes)
    return {"alphas": figure}


def claims(results: Results) -> list[Claim]:
    """Whether the chosen alpha is as good as the peers, as 1/n, and as the best in hindsight."""
    found = []
    for name, (peer, whose) in PEERS.items():
        official = _chosen(results.where(goals=name, split="official"))
        error = official.mean("test_error")
        found.append(
            Claim(
                f"{name}, official split: test error no higher than {peer:.3f}, of {whose}",
                error <= peer,
                f"{error:.4f} at alpha {official.mean('alpha'):.1e} (training error "
                f"{official.mean('error'):.4f}); goals missed on test rows by "
                f"{official.mean('test_missed'):.4f}",
            )
        )
    missed = results.column("missed")
    found.append(
        Claim(
            "The decisions of every fit meet the goals on the training rows",
            bool(np.all(missed <= 1e-9)),
            f"{np.mean(missed <= 1e-9):.1%} of {len(missed)} fits, the others by at most "
            f"{missed.max():.4f}",
        )
    )
    for name in GOALS:
        those = results.where(goals=name)
        least = difference(
            _chosen(those), those.where(place=max(those.values("place"))), "test_error", by="goals"
        )
        best = Results(
            min(those.where(run=run), key=lambda record: record["test_error"])
            for run in those.values("run")
        )
        regret = difference(_chosen(those), best, "test_error", by="goals")
        found += [
            Claim(
                f"{name}: the test error of the alpha chosen is no higher than that of 1/n",
                least.no_more_than(0.0),
                f"chosen − 1/n: {least}",
            ),
            Claim(
                f"{name}: it is within {MARGIN:g} of the best alpha in hindsight",
                regret.no_more_than(MARGIN),
                f"chosen − best: {regret}",
            ),
        ]
    return found


def tables(results: Results) -> str:
    """What was chosen in each run, and every alpha on the official split."""
    choices = [
        [
            str(r["run"]), str(r["split"]), str(r["goals"]), f"{r['alpha']:.1e}",
            f"{r['held_out']:.4f}", f"{r['error']:.4f}", f"{r['test_error']:.4f}",
            f"{r['test_missed']:.4f}",
        ]
        for r in _chosen(results)
    ]  # fmt: skip
    header = [
        "run", "split", "goals", "alpha", "held-out error", "training error", "test error",
        "test violation",
    ]  # fmt: skip
    return f"## Chosen\n\n{table(header, choices)}"


EXPERIMENT = Experiment(
    name="alphas",
    title="Alpha by cross-validation with goals",
    about="""
`RateBoundSVCCV` with all settings as they come (ten alphas from 1000/n to 1/n, five folds) chooses
alpha on the training rows of Adult (a9a encoding) alone. Run 0 has the official split, the others
random ones of the same sizes. Three sets of goals: the 80 % rule (positive rates of the sexes, both
pairs), parity (the positive rate of men at most that of women, the paper's inequality at κ = 1:
rates equal to the last row are those of no cut but the trivial ones), and six goals (recall at
least 0.6, coverage at most 0.25, gaps of true and false positive rates by sex at most 0.02).

The numbers of peers are the lowest test errors that any has been seen to reach on the official
split. `python -m benchmarks ratio parity six` runs those that are installed on the same rows.
""",
    runs=5,
    quick_runs=1,
    measure=measure,
    figures=figures,
    claims=claims,
    tables=tables,
)
