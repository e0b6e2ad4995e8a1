"""Does the local optimum matter? Where majorization starts, and where it then ends."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ratebound import Goals, RateBoundSVC, error_rate
from ratebound.compile import compile_goals
from ratebound.experiments.cases import CASES, Case, judge
from ratebound.experiments.drawing import STYLES, legend_below, panels, titled
from ratebound.experiments.experiment import Claim, Experiment, Record, Results
from ratebound.experiments.paired import Difference, difference
from ratebound.experiments.rows import Rows
from ratebound.experiments.writing import table
from ratebound.majorize import Majorization, random_model
from ratebound.outcome import Solved
from ratebound.paths import Stop, follow
from ratebound.solvers.base import Start
from ratebound.solvers.interior_point import InteriorPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINING_ROWS, HELD_OUT_ROWS = 3000, 20000
RESTARTS = 20
FULL_RUNS = 5  # that try all starts; the others compare the homotopy with zero, which costs little
LARGEST_ALPHA, ALPHAS = 1e3, 7  # of the annealing: the first, as a multiple of the last; how many
TICKS = (0.3, 1, 3, 10, 30)
MARGIN = 1e-3  # differences of rates that nobody would mind
QUICK = {"rows": 300, "restarts": 2, "cases": 2}


class Training:
    """The ramp problem of a case's training rows, to be solved from anywhere."""

    def __init__(self, case: Case, train: Rows, restarts: int, seed: int) -> None:
        self.restarts = restarts
        self.random = np.random.RandomState(seed)
        self.svc = RateBoundSVC(case.goals, start="zero", threshold="zero")
        self.given = (train.X, train.y, None, train.baseline, train.columns, None)
        data, arrays = self.svc._bound(*self.given)
        self.rates = compile_goals(case.goals, data)
        self.problem, self.source = self.svc._ramp_problem(self.rates, data, arrays)

    def zero(self) -> Iterator[Solved]:
        """The paper's start, where all decisions are even."""
        yield self.svc._solve(self.rates, self.problem)

    def homotopy(self) -> Iterator[Solved]:
        """The end of the path of a smoothed ramp."""
        yield clone(self.svc).set_params(start="homotopy")._solve(self.rates, self.problem)

    def hinge(self) -> Iterator[Solved]:
        """The plain SVM, which knows of no goals."""
        svc = RateBoundSVC(Goals(error_rate()))
        data, arrays = svc._bound(*self.given)
        plain, _ = svc._ramp_problem(compile_goals(svc._goals(), data), data, arrays)
        # the bound of the ramp at zero is the hinge
        svm = Majorization(InteriorPoint(), max_iter=1, first_gap=1e-3).run(plain)
        yield self._from(svm.coef, svm.intercept)

    def annealed(self) -> Iterator[Solved]:
        """Along falling alphas to the one asked for, each fit from those before it."""
        alphas = self.problem.alpha * np.geomspace(LARGEST_ALPHA, 1.0, ALPHAS)
        stops = (
            Stop(float(np.log(alpha)), self.rates, replace(self.problem, alpha=float(alpha)))
            for alpha in alphas
        )
        yield from follow(self.svc, stops)

    def random_starts(self) -> Iterator[Solved]:
        """Random directions with scores of the size at which the ramp bends."""
        for _ in range(self.restarts):
            yield self._from(random_model(self.problem.rows, self.random), 0.0)

    def repaired(self, solved: Solved) -> RateBoundSVC:
        """The fitted estimator whose decisions meet the goals, continued from a solution."""
        svc: RateBoundSVC = clone(self.svc).set_params(threshold="repair")
        svc._validated(self.given[0], reset=True)
        problem = self.problem.priced(solved.fit.problem.multiplier_bound)
        done = svc._solve(self.rates, problem, solved.fit.restart())
        svc._keep(self.rates, problem, done, self.source)
        return svc

    def _from(self, coef: Any, intercept: float) -> Solved:
        start = Start(coef, intercept, np.zeros(len(self.problem.bound)))
        return self.svc._solve(self.rates, self.problem, start)


#: By name, how solutions come about. The last of an annealing counts, of restarts the best.
STARTS: dict[str, Callable[[Training], Iterable[Solved]]] = {
    "zero": Training.zero,
    "homotopy": Training.homotopy,
    "plain SVM": Training.hinge,
    "annealed alpha": Training.annealed,
    "random restarts": Training.random_starts,
}


def measure(run: int, quick: bool) -> list[Record]:
    """Solve every case of a run's split from every start, in later runs from two of them."""
    cases = CASES[: QUICK["cases"]] if quick else CASES
    rows = QUICK["rows"] if quick else TRAINING_ROWS
    tried = list(STARTS) if run < FULL_RUNS else ["zero", "homotopy"]
    records: list[Record] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for case in cases:
            train, test = case.split(run, rows, HELD_OUT_ROWS)
            training = Training(case, train, QUICK["restarts"] if quick else RESTARTS, run)
            next(iter(training.homotopy()))  # compiles what is to be timed
            records += [_record(case, training, start, train, test) for start in tried]
    return records


def _record(case: Case, training: Training, start: str, train: Rows, test: Rows) -> Record:
    began = time.process_time()
    found = list(STARTS[start](training))
    seconds = time.process_time() - began
    best = found[-1]
    if start == "random restarts":
        for other in found:
            if other.fit.better_than(best.fit, training.svc.tol):
                best = other
    svc = training.repaired(best)
    error, missed = judge(case.goals, svc.predict(train.X), train)
    test_error, test_missed = judge(case.goals, svc.predict(test.X), test)
    objectives = [solved.fit.objective + training.problem.constant for solved in found]
    return {
        "dataset": case.name,
        "start": start,
        "rows": len(train.y),
        "ramp": best.fit.objective + training.problem.constant,
        "ramp_missed": max(0.0, best.fit.violation),
        "ramp_median": float(np.median(objectives)),
        "objective": error,
        "missed": missed,
        "test_objective": test_error,
        "test_missed": test_missed,
        "steps": sum(len(solved.fit.history) for solved in found),
        "newton_steps": sum(map(_newton_steps, found)),
        "seconds": seconds,
        "stalled": int("stalled" in found[0].fit.history[0].homotopy),
    }


def _newton_steps(solved: Solved) -> int:
    """Of the convex problems, and those of the homotopy, which the history tells in words."""
    followed = [step.homotopy for step in solved.fit.history if step.homotopy]
    ahead = sum(int(words.split()[0]) for words in followed)
    return ahead + sum(step.solver_iterations for step in solved.fit.history)


# --- what came of it ----------------------------------------------------------------------------

_COLUMNS = (
    ("ramp", "training ramp objective"),
    ("test_objective", "held-out objective"),
    ("test_missed", "held-out violation"),
)


def _against_zero(results: Results, start: str, column: str, **where: Any) -> Difference:
    those = results.where(**where)
    return difference(those.where(start=start), those.where(start="zero"), column, by="dataset")


def _steps(results: Results, start: str, dataset: str) -> float:
    """Newton steps as a multiple of those from zero in the same runs."""
    those = results.where(dataset=dataset)
    ours, zero = those.where(start=start), those.where(start="zero")
    runs = ours.values("run")
    return ours.mean("newton_steps") / Results(r for r in zero if r["run"] in runs).mean(
        "newton_steps"
    )


def figures(results: Results) -> dict[str, Figure]:
    """Differences to the start at zero, dataset by dataset, and what each start takes."""
    figure, axes = panels(1, 4, size=(3.4, 4.6), sharey=True)
    names = results.values("dataset")
    starts = [start for start in STARTS if start != "zero"]
    for k, start in enumerate(starts):
        style = replace(STYLES[k], label=start)
        heights = np.arange(len(names)) + 0.16 * (k - 1.5)
        for panel, (column, _) in zip(axes[0], _COLUMNS, strict=False):
            found = [_against_zero(results, start, column, dataset=name) for name in names]
            panel.errorbar(
                [100 * each.mean for each in found], heights,
                xerr=[100 * each.error for each in found], color=style.colour,
                marker=style.marker, linestyle="none", label=start, markersize=5, elinewidth=1,
            )  # fmt: skip
        ratio = [_steps(results, start, name) for name in names]
        axes[0, 3].plot(ratio, heights, style.marker, color=style.colour, label=start)
    for panel, (_, title) in zip(axes[0], _COLUMNS, strict=False):
        panel.axvline(0, color="black", linewidth=0.8)
        titled(panel, title=title, x="difference to zero, % points")
    axes[0, 3].axvline(1, color="black", linewidth=0.8)
    axes[0, 3].set_xscale("log")
    axes[0, 3].set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes[0, 3].minorticks_off()
    titled(axes[0, 3], title="Newton steps", x="multiple of those from zero")
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    legend_below(figure, axes, columns=4)
    return {"starts": figure}


def claims(results: Results) -> list[Claim]:
    """Whether the homotopy may be the default, and whether other starts are worth their time."""
    homotopy = {column: _against_zero(results, "homotopy", column) for column, _ in _COLUMNS}
    steps = _steps_ratio(results, "homotopy")
    found = [
        Claim(
            "From the homotopy's end, the training ramp objective is no higher than from zero "
            f"(on average over datasets, within {MARGIN:g})",
            homotopy["ramp"].no_more_than(MARGIN),
            f"homotopy − zero: {homotopy['ramp']}; {_by_dataset(results, 'homotopy', 'ramp')}",
        ),
        Claim(
            f"Nor is the held-out objective (within {MARGIN:g})",
            homotopy["test_objective"].no_more_than(MARGIN),
            f"homotopy − zero: {homotopy['test_objective']}; "
            + _by_dataset(results, "homotopy", "test_objective"),
        ),
        Claim(
            "Nor are goals missed by more on held-out rows (within 0.005)",
            homotopy["test_missed"].no_more_than(5 * MARGIN),
            f"homotopy − zero: {homotopy['test_missed']}",
        ),
        Claim(
            "It takes fewer Newton steps",
            steps < 1,
            f"{steps:.2f} times those from zero (geometric mean over datasets)",
        ),
    ]
    for start in ("random restarts", "annealed alpha", "plain SVM"):
        those = results.where(start=start)
        ramp, test = (
            difference(those, results.where(start="homotopy"), column, by="dataset")
            for column in ("ramp", "test_objective")
        )
        found.append(
            Claim(
                f"Against the homotopy, {start} lower the held-out objective by less than "
                f"{2 * MARGIN:g}",
                (-test).no_more_than(2 * MARGIN),
                f"{start} − homotopy: held-out objective {test}, training ramp objective {ramp}, "
                f"{_steps_ratio(results, start) / steps:.1f} times the Newton steps",
            )
        )
    return found


def _steps_ratio(results: Results, start: str) -> float:
    ratios = [_steps(results, start, name) for name in results.values("dataset")]
    return float(np.exp(np.mean(np.log(ratios))))


def _by_dataset(results: Results, start: str, column: str) -> str:
    return ", ".join(
        f"{name} {_against_zero(results, start, column, dataset=name)}"
        for name in results.values("dataset")
    )


def tables(results: Results) -> str:
    """Every start on every dataset."""
    header = [
        "dataset", "start", "ramp objective", "− zero", "median of its starts", "ramp violation",
        "training objective", "held-out objective", "− zero", "held-out violation",
        "Newton steps", "CPU s",
    ]  # fmt: skip
    lines = []
    for name in results.values("dataset"):
        for start in STARTS:
            those = results.where(dataset=name, start=start)
            lines.append([
                name, start, f"{those.mean('ramp'):.4f}",
                str(_against_zero(results, start, "ramp", dataset=name)),
                f"{those.mean('ramp_median'):.4f}", f"{those.mean('ramp_missed'):.1e}",
                f"{those.mean('objective'):.4f}", f"{those.mean('test_objective'):.4f}",
                str(_against_zero(results, start, "test_objective", dataset=name)),
                f"{those.mean('test_missed'):.4f}", f"{those.mean('newton_steps'):.0f}",
                f"{those.mean('seconds'):.2f}",
            ])  # fmt: skip
    stalled = results.where(start="homotopy")
    text = (
        f"Zero and homotopy in {len(results.values('run'))} runs, the other starts in the first "
        f"{FULL_RUNS}; differences are between the same runs. The homotopy stalled in "
        f"{stalled.mean('stalled'):.0%} of its fits."
    )
    return f"## All starts\n\n{table(header, lines)}\n\n{text}"


EXPERIMENT = Experiment(
    name="starts",
    title="Does the local optimum matter?",
    about=f"""
Majorization ends at a local optimum, so where it starts can matter; the paper starts at zero. On
{len(CASES)} datasets with goals of different kinds ({", ".join(case.name for case in CASES)}), each
split anew in every run ({TRAINING_ROWS:,} training rows at most, {HELD_OUT_ROWS:,} held out at
most), the same ramp problem (alpha = 1/n) is solved from zero, from the end of the homotopy, from
the solution of the plain SVM, along alphas that fall from 1000/n to 1/n, and from {RESTARTS} random
models, of which the lowest training objective is kept. All starts take part in the first
{FULL_RUNS} runs; later ones compare the homotopy with zero alone.

The ramp objective is that of the problem solved (expected rates, with the regulariser). Training
and held-out objectives are of the decisions of `predict` after its threshold has been repaired.
Differences are paired: same split, same goals; ± is one standard error over runs.
""",
    runs=30,
    quick_runs=2,
    measure=measure,
    figures=figures,
    claims=claims,
    tables=tables,
)
