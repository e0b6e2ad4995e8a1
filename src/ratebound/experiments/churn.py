"""The paper's second experiment: errors and churn of a successor for a deployed model.

Errors on D1 plus false positives on D2 are minimised, subject to recall on D2 no lower than the
deployed model's and churn against it on D3 of at most a target.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ratebound import (
    Dataset,
    Goals,
    RateBoundSVC,
    churn,
    error_rate,
    false_positive_rate,
    recall,
)
from ratebound.experiments.drawing import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    RED,
    Series,
    draw_level,
    draw_means,
    legend_below,
    panels,
    titled,
)
from ratebound.experiments.experiment import Claim, Experiment, Record, Results
from ratebound.experiments.flights import Samples, draw
from ratebound.experiments.plain_models import cut_for_recall, plain_svm
from ratebound.experiments.writing import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

SPLITS = ("train", "test")
STEPS = 5  # of majorization, as in the paper
BINDING_PRICE = 1e-3  # a looser bound by 0.01 lowers the objective by 1e-5: the goal binds
WITHIN = 0.005  # of the target, as in the paper's top left panel
NOISE = 0.001  # of an error rate: of two draws of 7,294 test rows the standard error is 0.0035
ALPHA = 1e-4  #: the power of ten that `search_alpha` finds


@dataclass(frozen=True)
class Size:
    """How large the problem is.

    Attributes
    ----------
    rows : int, of D1, D2 and D3 together
    features : int, random ones
    targets : tuple of float, of churn
    """

    rows: int
    features: int
    targets: tuple[float, ...]


# up to a little below the churn of the baseline, beyond which a target would ask for nothing
FULL = Size(50_000, 500, tuple(round(0.0035 * k, 4) for k in range(1, 11)))
QUICK = Size(5_000, 60, (0.01, 0.03, 0.05))

#: Of a mapped matrix, the probability of a positive decision for each row.
Rule = Callable[[Any], Floats]


@dataclass(frozen=True)
class Above:
    """Decides for positive where the score is at least the cut."""

    model: RateBoundSVC
    cut: float

    def __call__(self, X: Any) -> Floats:
        """Return 0 and 1."""
        return np.asarray(self.model.decision_function(X) >= self.cut, dtype=np.float64)


def measure(run: int, quick: bool) -> list[Record]:
    """All methods on one draw of the datasets, on its training and test rows."""
    size = QUICK if quick else FULL
    train, test = draw(np.random.default_rng([5, run]), size.rows, size.features)
    asked = recall_of(positives(train.labelled.deployed), train.labelled.y)

    def records(method: str, target: float, rule: Rule, **more: float) -> list[Record]:
        return [
            {"method": method, "target": target, "split": name, **rates(rule, samples), **more}
            for name, samples in (("train", train), ("test", test))
        ]

    svm = baseline(train, ALPHA)
    cut = cut_for_recall(svm.decision_function(train.labelled.X), train.labelled.y, asked)
    found = records("baseline", 1.0, Above(svm, cut))
    found += records("svm at zero", 1.0, Above(svm, 0.0))
    for name, samples in (("train", train), ("test", test)):
        found.append(
            {"method": "deployed", "target": 1.0, "split": name, **deployed_rates(samples)}
        )
    for target in size.targets:
        clf = fit(train, asked, target)
        price = clf.report_.goals[1].price
        more = {"price": float("nan") if price is None else float(price)}
        found += records("deterministic", target, Above(clf, 0.0), **more)
        found += records("randomized", target, clf.positive_probability, **more)
    return found


def fit(train: Samples, asked: float, target: float) -> RateBoundSVC:
    """Fit by the paper's steps from zero; decisions are those of scores above zero."""
    first, second, third = train.chosen, train.labelled, train.unlabelled
    negatives = int(np.sum(second.y == -1))
    counts = len(first.y) * error_rate() + negatives * false_positive_rate(on="D2")
    goals = Goals(
        counts / (len(first.y) + len(second.y)),
        [recall(on="D2") >= asked, churn(on="D3") <= target],
    )
    clf = RateBoundSVC(goals, alpha=ALPHA, max_iter=STEPS, start="zero", threshold="zero")
    others = {
        "D2": Dataset(second.X, second.y),
        "D3": Dataset(third.X, baseline=third.deployed),
    }
    with warnings.catch_warnings():  # five steps are what the paper takes, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(first.X, first.y, datasets=others)
    return clf


def baseline(train: Samples, alpha: float) -> RateBoundSVC:
    """Fit a plain SVM to D1 and D2 together."""
    X = np.concatenate([train.chosen.X, train.labelled.X])
    y = np.concatenate([train.chosen.y, train.labelled.y])
    return plain_svm(X, y, alpha)


def search_alpha() -> float:
    """Return the smallest power of ten at which the thresholded baseline errs as little as it can.

    As in the paper, what is best for the baseline is used for all methods. On the test rows of two
    draws of the datasets that are of no run, up to differences that are noise: the baseline errs as
    much at 1e-3 as at 1e-4 (0.2218 and 0.2222), but at 1e-3 the regulariser outweighs the price of
    violation, and the randomized rule's churn does not fall below 0.017 whatever is asked for.
    """
    error: dict[float, list[float]] = {}
    for draw_number in range(2):
        train, test = draw(np.random.default_rng([6, draw_number]), FULL.rows, FULL.features)
        asked = recall_of(positives(train.labelled.deployed), train.labelled.y)
        for power in range(-7, 0):
            svm = baseline(train, 10.0**power)
            cut = cut_for_recall(svm.decision_function(train.labelled.X), train.labelled.y, asked)
            error.setdefault(10.0**power, []).append(rates(Above(svm, cut), test)["error"])
    means = {alpha: fmean(errors) for alpha, errors in error.items()}
    return min(alpha for alpha, mean in means.items() if mean <= min(means.values()) + NOISE)


# --- rates --------------------------------------------------------------------------------------


def rates(rule: Rule, samples: Samples) -> dict[str, float]:
    """Expected churn on D3, error on D1 and D2 together, and recall on D2."""
    chosen, labelled = rule(samples.chosen.X), rule(samples.labelled.X)
    return _rates(chosen, labelled, rule(samples.unlabelled.X), samples)


def deployed_rates(samples: Samples) -> dict[str, float]:
    """The same of the deployed model."""
    parts = (samples.chosen, samples.labelled, samples.unlabelled)
    chosen, labelled, unlabelled = (positives(part.deployed) for part in parts)
    return _rates(chosen, labelled, unlabelled, samples)


def _rates(
    chosen: Floats, labelled: Floats, unlabelled: Floats, samples: Samples
) -> dict[str, float]:
    wrong = [
        np.abs(chosen - positives(samples.chosen.y)),
        np.abs(labelled - positives(samples.labelled.y)),
    ]
    changed = np.abs(unlabelled - positives(samples.unlabelled.deployed))
    return {
        "churn": float(changed.mean()),
        "error": float(np.concatenate(wrong).mean()),
        "recall": recall_of(labelled, samples.labelled.y),
    }


def positives(decisions: NDArray[Any]) -> Floats:
    """Decisions +1 and -1 as probabilities 1 and 0."""
    return np.asarray(decisions == 1, dtype=np.float64)


def recall_of(probability: Floats, y: NDArray[np.int64]) -> float:
    """Expected share of the positive rows that is decided positive."""
    return float(probability[y == 1].mean())


# --- what is made of them -----------------------------------------------------------------------

METHODS = {
    "deterministic": Series("proposed, deterministic", BLUE, "o"),
    "randomized": Series("proposed, randomized (expected)", RED, "s", "--"),
}
SVMS = {
    "baseline": Series("baseline: SVM thresholded to the recall", GREEN, "", "-."),
    "svm at zero": Series("the same SVM, not thresholded", ORANGE, "", "--"),
}
TARGET = Series("churn = target", BLACK, "", ":")


def figures(results: Results) -> dict[str, Figure]:
    """The paper's four panels: churn and error, training and test, against the target."""
    figure, axes = panels(2, 2, sharex=True, sharey="row")
    for column, split in enumerate(SPLITS):
        where = {"train": "training", "test": "test"}[split]
        of_split = results.where(split=split)
        for row, (name, of) in enumerate((("churn", "D3"), ("error", "D1 and D2"))):
            panel = axes[row][column]
            for method, series in METHODS.items():
                drawn = of_split.where(method=method)
                draw_means(panel, drawn, series, by="target", x="target", y=name)
            for method, series in SVMS.items():
                draw_level(panel, of_split.where(method=method).column(name), series)
            if name == "churn":
                targets = of_split.where(method="deterministic").values("target")
                panel.plot(
                    targets, targets, color=TARGET.colour, linestyle=TARGET.line,
                    label=TARGET.label, zorder=0,
                )  # fmt: skip
                panel.set_ylim(bottom=0)
            titled(
                panel, title=f"{name}, {where} rows", x="churn target" if row else "",
                y="" if column else f"{name} rate on {of}",
            )  # fmt: skip
    legend_below(figure, axes)
    return {"churn": figure}


def claims(results: Results) -> list[Claim]:
    """Hold the results against the paper's claims, and against a stronger baseline."""
    return [
        _no_higher(
            results, "churn", "baseline",
            "Decisions of the proposed method churn less than the baseline's at every target, on "
            "training and on test rows",
        ),
        _no_higher(
            results, "error", "baseline",
            "That costs no accuracy: they err no more than the baseline's at any target",
        ),
        _tracks(results),
        _keeps_recall(results),
        _beats_at_zero(results),
    ]  # fmt: skip


def _means(results: Results, name: str) -> dict[float, float]:
    """Of the decisions of the proposed method, at each target."""
    ours = results.where(method="deterministic")
    return {target: ours.where(target=target).mean(name) for target in ours.values("target")}


def _no_higher(results: Results, name: str, other: str, text: str) -> Claim:
    """Means over runs of a rate against another method's, at each target and on both splits."""
    parts, met = [], True
    for split in SPLITS:
        there = results.where(split=split)
        theirs = there.where(method=other).mean(name)
        ours = _means(there, name)
        higher = [target for target, value in ours.items() if value > theirs]
        met = met and not higher
        part = f"{split}: {_range(ours)}, {other} {theirs:.4f}"
        if higher:
            part += f"; higher at {_listed(higher)}"
            if name == "churn" and min(higher) > theirs:
                part += " (which ask for no less than the baseline has)"
            if name == "error":
                deployed = there.where(method="deployed").mean(name)
                part += f" (the deployed model, which no churn repeats, {deployed:.4f})"
        parts.append(part)
    return Claim(text, met, "; ".join(parts))


def _tracks(results: Results) -> Claim:
    text = (
        f"Where the churn goal binds, the randomized rule's training churn is within {WITHIN:g} of "
        "its target"
    )
    drawn = results.where(method="randomized", split="train")
    binding = [r for r in drawn if float(r["price"]) > BINDING_PRICE]
    if not binding:
        return Claim(text, None, "the goal binds nowhere")
    off = np.array([abs(float(r["churn"]) - float(r["target"])) for r in binding])
    relative = off / np.array([float(r["target"]) for r in binding])
    found = (
        f"{len(binding)} of {len(drawn)} fits bind; largest distance {off.max():.5f}, mean "
        f"{off.mean():.5f}; relative to the target, largest {relative.max():.1%}, mean "
        f"{relative.mean():.1%}, within 0.5 % in {np.sum(relative <= 0.005)} of them"
    )
    return Claim(text, bool(off.max() <= WITHIN), found)


def _keeps_recall(results: Results) -> Claim:
    parts, met = [], True
    for split in SPLITS:
        there = results.where(split=split)
        deployed = there.where(method="deployed").mean("recall")
        ours = _means(there, "recall")
        met = met and min(ours.values()) >= deployed
        parts.append(f"{split}: {_range(ours)}, deployed model {deployed:.4f}")
    text = "Decisions of the proposed method keep the deployed model's recall at every target"
    return Claim(text, met, "; ".join(parts))


def _beats_at_zero(results: Results) -> Claim:
    """Whether some target has both less churn and fewer errors than the SVM left at zero."""
    parts, met = [], True
    for split in SPLITS:
        there = results.where(split=split)
        svm = there.where(method="svm at zero")
        changed, wrong = _means(there, "churn"), _means(there, "error")
        better = [
            t for t in changed if changed[t] < svm.mean("churn") and wrong[t] <= svm.mean("error")
        ]
        met = met and bool(better)
        parts.append(
            f"{split}: at {_listed(better) or 'no target'} (the SVM churns "
            f"{svm.mean('churn'):.4f}, errs {svm.mean('error'):.4f}, recall "
            f"{svm.mean('recall'):.4f})"
        )
    return Claim(
        "Beyond the paper: some target has both less churn and no more errors than the same SVM "
        "without its threshold moved",
        met,
        "; ".join(parts),
    )


def _range(values: dict[float, float]) -> str:
    return f"{min(values.values()):.4f} to {max(values.values()):.4f}"


def _listed(targets: list[float]) -> str:
    return ", ".join(f"{target:g}" for target in targets)


def tables(results: Results) -> str:
    """Every method on both splits, mean over runs and standard deviation."""
    rows = []
    for method in ("deployed", "baseline", "svm at zero", *METHODS):
        of_method = results.where(method=method)
        for target in of_method.values("target"):
            cells = [method, f"{target:g}" if method in METHODS else ""]
            for split in SPLITS:
                drawn = of_method.where(target=target, split=split)
                cells += [
                    f"{drawn.mean(name):.4f} ± {drawn.spread(name):.4f}"
                    for name in ("churn", "error", "recall")
                ]
            rows.append(cells)
    header = ["method", "target"]
    header += [f"{name}, {split}" for split in SPLITS for name in _RATES]
    return "## Means over runs ± standard deviation\n\n" + table(header, rows)


_RATES = ("churn (D3)", "error (D1, D2)", "recall (D2)")

EXPERIMENT = Experiment(
    name="churn",
    title="Churn against a deployed model, at its recall",
    about="""
Errors on D1 plus false positives on D2 are minimised, while recall on D2 is at least the deployed
model's and churn against it on D3 is at most each of ten targets. The paper's data is proprietary;
this is flights from New York in 2013 (file `flights13_jan_sep`), positive where a flight arrives
more than 15 minutes late.

| | paper | here |
|---|---|---|
| rows of D1, D2, D3 | 131,840, 53,877, 68,892 | 25,890, 10,580, 13,528 |
| split | 80 % training, 20 % test | the same |
| D1 | active sampling | rows nearest to zero by the scores of a pilot model |
| raw columns | 31 | 28 |
| Φ | about 30,000 features | 528: the raw columns, 500 random Fourier features |
| deployed model | in production | logistic regression on January to March |
| steps of majorization | 5, from a feasible start | 5, from zero, at a price of violation |
| convex problems | cutting planes and SDCA | interior point, to a certified gap |
| λ, best for the baseline | 1e-7 | 1e-4, likewise of the powers of ten (`search_alpha`) |
| runs | 10 | as below |

All datasets are of April to September, a fifth of the paper's rows in the paper's proportions (the
file has 166,826 such flights; what two cores do in minutes set the limit). Each run draws them
anew; Φ and the deployed model stay.

*Deterministic* is the sign of the score, as in the paper; *randomized* is the expected value, exact
and not sampled. The baseline is an SVM of D1 and D2 whose threshold is moved to the deployed
model's recall on D2. Before that it has more recall than was asked for and fewer errors on D1 and
D2, so it is drawn without its threshold moved as well.
""",
    runs=10,
    quick_runs=2,
    measure=measure,
    figures=figures,
    claims=claims,
    tables=tables,
)
