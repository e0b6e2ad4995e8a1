"""What a fit, or a comparison of two models, says about rows that nobody has seen yet.

Three answers, from the most general to the most useful in practice:

`paper_bound` is the paper's appendix on generalization as numbers. With k datasets of n_i rows
drawn independently, ``X >= ||x||``, multipliers at most V and ::

    B = sum_i ( α_i(0) + β_i(0) + V sum_j ( α_i(j) + β_i(j) ) )
    E = 1 + 4 X² B / λ + sqrt(8 ln(4k / δ))

no expected rate of any classifier that the algorithm can return exceeds its ramp rate on D_i by
more than ``E / sqrt(n_i)``, with probability 1 - δ. Each step is a function: `coefficient_sum` (B),
`function_class`, `rademacher_bound`, `rate_bound`, `combination_bound` (loss and constraints).

`labels_needed` says how many disagreements of two models to label before a sign test can tell
which one is better, and `compare` makes that test on the labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, vstack
from scipy.special import betainc, betaincinv

from ratebound.data import missing
from ratebound.data.arrays import distinct_values, listed, plural, row_count, vector

if TYPE_CHECKING:
    from ratebound.problem import RateProblem
    from ratebound.ramp import RampProblem

__all__ = [
    "BoundLine",
    "Comparison",
    "Facts",
    "FunctionClass",
    "LabelsNeeded",
    "PaperBound",
    "clopper_pearson",
    "coefficient_sum",
    "combination_bound",
    "compare",
    "function_class",
    "labels_needed",
    "paper_bound",
    "rademacher_bound",
    "rate_bound",
    "small_class",
]

Floats = NDArray[np.float64]
Interval = tuple[float, float]

_RADIUS_STEP = 1.2  # of the grid of norms among which a fit finds its own
_PRICE_STEP = 10.0  # by which a fit changes V
_SHOWN = 30  # datasets in a printed table
_MOST_LABELS = 10**9


# --- the paper's generalization results, step by step ---------------------------------------------


@dataclass(frozen=True)
class FunctionClass:
    """Linear functions <w, x> - b with ``||w|| <= norm``, ``|b| <= bias``, on ``||x|| <= X``.

    Attributes
    ----------
    norm, bias : float
    largest_norm : float
        X, which must hold for rows to come as well.
    """

    norm: float
    bias: float
    largest_norm: float

    @property
    def reach(self) -> float:
        """X * norm + bias, the largest |<w, x> - b|."""
        return self.largest_norm * self.norm + self.bias


def coefficient_sum(costs: ArrayLike, constraints: Any, multiplier_bound: float) -> float:
    """B = sum of all coefficients of rates, those of constraints V times.

    Parameters
    ----------
    costs : array-like of nonnegative coefficients of the objective
    constraints : array-like or sparse array of nonnegative coefficients of all constraints
    multiplier_bound : float
        V, the largest multiplier.

    Returns
    -------
    float

    Examples
    --------
    >>> coefficient_sum([[0.0, 0.5], [0.5, 0.0]], [[0.0, 0.0, 1.0, 0.0]], multiplier_bound=10)
    11.0
    """
    # an array without constraints has nothing to multiply
    bounded = (
        float(constraints.sum()) if hasattr(constraints, "sum") else float(np.sum(constraints))
    )
    return float(np.sum(costs)) + (multiplier_bound * bounded if bounded else 0.0)


def function_class(coefficients: float, *, largest_norm: float, alpha: float) -> FunctionClass:
    """``||w|| <= X B / λ`` and ``|b| <= 1/2 + X² B / λ``: all solutions, whatever the anchor.

    The paper's first lemma of the appendix, for optimal solutions of smallest ``|b|``.

    Parameters
    ----------
    coefficients : float
        B of `coefficient_sum`.
    largest_norm : float
        X.
    alpha : float
        λ.

    Returns
    -------
    FunctionClass
    """
    norm = largest_norm * coefficients / alpha
    return FunctionClass(norm, 0.5 + largest_norm * norm, largest_norm)


def small_class(
    positive: float,
    negative: float,
    *,
    largest_norm: float,
    alpha: float,
    fit_intercept: bool = True,
) -> FunctionClass:
    """``||w|| <= min(X M / λ, sqrt(M / λ))`` with ``M = 2 min(B⁺, B⁻)``: the same solutions.

    B⁺ and B⁻ are the coefficients of positive and of negative rates in B, so M is at most B. The
    first bound is the paper's with Σps = 0, the bias's own optimality; the second compares with
    w = 0, where the hinges of one side vanish at b = ±1/2. Without a bias, M = B⁺ + B⁻.

    Parameters
    ----------
    positive, negative : float
        B⁺ and B⁻.
    largest_norm : float
        X.
    alpha : float
        λ.
    fit_intercept : bool

    Returns
    -------
    FunctionClass
    """
    mass = 2 * min(positive, negative) if fit_intercept else positive + negative
    norm = min(largest_norm * mass / alpha, math.sqrt(mass / alpha))
    return FunctionClass(norm, 0.5 + largest_norm * norm if fit_intercept else 0.0, largest_norm)


def rademacher_bound(functions: FunctionClass, size: float) -> float:
    """``E sup_f (1/n) Σ ε_i f(x_i) <= (X norm + bias) / sqrt(n)`` for random signs ε.

    For the class of `function_class` that is ``1 / (2 sqrt(n)) + 2 X² B / (λ sqrt(n))``, the
    paper's second lemma of the appendix.

    Parameters
    ----------
    functions : FunctionClass
    size : float
        n.

    Returns
    -------
    float

    Examples
    --------
    >>> rademacher_bound(function_class(1.0, largest_norm=1.0, alpha=4.0), size=100)
    0.1
    """
    return functions.reach / math.sqrt(size)


def rate_bound(functions: FunctionClass, size: float, *, datasets: int, delta: float) -> float:
    """``E / sqrt(n) = 2 R_n + sqrt(8 ln(4k / δ) / n)``: expected less ramp rate, uniformly.

    The paper's theorem of the appendix: with probability 1 - δ, at once for the positive and the
    negative rates of every dataset and for all functions of the class. (The step from the class to
    its ramp rates rests on the contraction lemma for the complexity without absolute value; the
    theorem cited in the paper, about one that is twice as large, would give 4 R_n.)

    Parameters
    ----------
    functions : FunctionClass
    size : float
        n, the rows of the dataset.
    datasets : int
        k.
    delta : float
        δ.

    Returns
    -------
    float
    """
    return 2 * rademacher_bound(functions, size) + math.sqrt(
        8 * math.log(4 * datasets / delta) / size
    )


def combination_bound(positive: ArrayLike, negative: ArrayLike, rate_bounds: ArrayLike) -> float:
    """``Σ_i (α_i + β_i) g_i``: how far a loss or a constraint's left side can be off.

    For the objective's coefficients it bounds the loss on new rows less the training loss; for a
    constraint that the training rows meet, its violation on new rows.

    Parameters
    ----------
    positive, negative : array-like of shape (k,)
        α and β, nonnegative.
    rate_bounds : array-like of shape (k,)
        Bound of each dataset.

    Returns
    -------
    float
    """
    return float((np.asarray(positive) + np.asarray(negative)) @ np.asarray(rate_bounds))


# --- the same for a fitted problem ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Facts:
    """What `paper_bound` needs of a fit: the paper's symbols as numbers.

    Attributes
    ----------
    names : tuple of str, length k
        The datasets D_i: the parts of the data that some goal distinguishes.
    sizes : ndarray of shape (k,)
        n_i; with weights, ``(Σ weights)² / Σ weights²``, for which all bounds hold as they are.
    costs : ndarray of shape (2, k)
        α(0) and β(0).
    constraints : csr_array of shape (m, 2 k)
        α(j) and β(j), side by side.
    goals : tuple of str, length m
        The goal that each constraint belongs to.
    largest_norm : float
        X, over the training rows.
    alpha : float
        λ.
    multiplier_bound : float
        V.
    coef_norm : float
        ``||w||`` of the fit.
    fit_intercept : bool
    price_step : int, optional
        Tenfold steps from V's start to V where the fit chose it, None where it was given.
    """

    names: tuple[str, ...]
    sizes: Floats
    costs: Floats
    constraints: csr_array
    goals: tuple[str, ...]
    largest_norm: float
    alpha: float
    multiplier_bound: float
    coef_norm: float
    fit_intercept: bool = True
    price_step: int | None = None

    def __post_init__(self) -> None:
        k, m = len(self.names), len(self.goals)
        shapes = {"sizes": (k,), "costs": (2, k), "constraints": (m, 2 * k)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"{name} has shape {getattr(self, name).shape}; {plural(k, 'name')} and "
                    f"{plural(m, 'goal')} need {shape}"
                )
        if k == 0 or self.sizes.min() <= 0:
            raise ValueError("sizes must be positive, at least one; leave out empty datasets")
        if self.costs.min() < 0 or (self.constraints.data < 0).any():
            raise ValueError("coefficients must be nonnegative; write -a s⁺ as a s⁻ - a")
        if not (self.alpha > 0 and self.largest_norm >= 0 and self.multiplier_bound >= 0):
            raise ValueError("alpha must be positive, largest_norm and multiplier_bound at least 0")

    @classmethod
    def of(
        cls,
        rates: RateProblem,
        problem: RampProblem,
        coef: Floats,
        *,
        first_price: float | None = None,
    ) -> Facts:
        """Read the facts of a fit.

        Parameters
        ----------
        rates : RateProblem
        problem : RampProblem
            As it was at the end, with the last V.
        coef : ndarray
            The fitted w.
        first_price : float, optional
            V at the start, where the fit was free to change it.

        Returns
        -------
        Facts
        """
        weight = problem.rows.cell_weight
        squares = np.zeros(len(weight))
        for block in rates.blocks:
            read = block.cell >= 0
            squares += np.bincount(block.cell[read], block.weight[read] ** 2, len(weight))
        kept = np.flatnonzero(weight > 0)
        both = np.concatenate([kept, len(weight) + kept])
        constraints = csr_array(problem.constraints @ diags_array(np.tile(weight, 2)))
        goals: list[str] = []
        for goal in rates.goals:
            goals += [goal.label] * len(goal.row_labels)
        step = None
        if first_price is not None:
            decades = abs(math.log(problem.multiplier_bound / first_price, _PRICE_STEP))
            step = math.ceil(decades - 1e-9)
        return cls(
            names=tuple(rates.cell_names[cell] for cell in kept),
            sizes=weight[kept] ** 2 / squares[kept],
            costs=(problem.cost * weight)[:, kept],
            constraints=csr_array(constraints[:, both]),
            goals=tuple(goals),
            largest_norm=float(problem.rows.largest_norm),
            alpha=problem.alpha,
            multiplier_bound=problem.multiplier_bound,
            coef_norm=math.sqrt(problem.rows.squared_norm(coef)),
            fit_intercept=problem.fit_intercept,
            price_step=step,
        )


@dataclass(frozen=True)
class BoundLine:
    """How far one rate, loss or goal can be off on new rows.

    Attributes
    ----------
    name : str
    kind : {"dataset", "objective", "goal"}
    size : float or None
        Rows of a dataset.
    paper, sharper, at_norm : float
        The bounds, see `PaperBound`.
    span : float
        The most that the quantity can vary at all: 1 for a rate. A bound of that size or more says
        nothing.
    """

    name: str
    kind: str
    size: float | None
    paper: float
    sharper: float
    at_norm: float
    span: float = 1.0

    def in_words(self, which: str = "paper") -> str:
        """Say what a bound says, or that it is vacuous."""
        bound: float = getattr(self, which)
        subject = {
            "dataset": "rates lie",
            "objective": "the loss lies",
            "goal": "the goal's left side lies",
        }
        if bound >= self.span:
            room = "[0, 1]" if self.span == 1.0 else f"a range of {self.span:.4g}"
            return f"vacuous: the bound is {bound:.3g}, {subject[self.kind]} in {room}"
        return f"within {bound:.3g}"


@dataclass(frozen=True)
class PaperBound:
    """Bounds on the rates of the randomized classifier on new rows, all at once, at 1 - delta.

    ===========  =================================================================================
    ``paper``    as printed in the paper: all that the algorithm could return
    ``sharper``  the same class bounded by `small_class`, deviations by McDiarmid's inequality
                 (``sqrt(ln(events / δ) / 2n)``), goals as one weighted sum of rows
    ``at_norm``  for the norm that the fit found: all functions of at most that norm, however they
                 were found; the price of choosing it is in the bound
    ===========  =================================================================================

    Attributes
    ----------
    lines : tuple of BoundLine
        Datasets, then the objective, then goals (of a family, the worst inequality).
    delta : float
        Each column holds with probability 1 - delta.
    coefficients : float
        B.
    paper_class, sharper_class : FunctionClass
    facts : Facts
    """

    lines: tuple[BoundLine, ...]
    delta: float
    coefficients: float
    paper_class: FunctionClass
    sharper_class: FunctionClass
    facts: Facts

    @property
    def vacuous(self) -> bool:
        """Whether the paper's bound says nothing about any line."""
        return all(line.paper >= line.span for line in self.lines)

    @property
    def alpha_needed(self) -> float | None:
        """The alpha from which the paper's bound is below 1 on every dataset; None if none is."""
        facts = self.facts
        smallest = float(facts.sizes.min())
        delta = self.delta * _price_share(facts.price_step)
        rest = math.sqrt(smallest) - 1 - math.sqrt(8 * math.log(4 * len(facts.names) / delta))
        return 4 * facts.largest_norm**2 * self.coefficients / rest if rest > 0 else None

    def __str__(self) -> str:
        datasets = [line for line in self.lines if line.kind == "dataset"]
        others = [line for line in self.lines if line.kind != "dataset"]
        rows = [("bound on", "rows", "paper", "sharper", "at norm")]
        for line in [*datasets[:_SHOWN], *others]:
            size = "" if line.size is None else f"{line.size:.6g}"
            paper, sharper, at_norm = (
                f"{bound:.3g}" for bound in (line.paper, line.sharper, line.at_norm)
            )
            rows.append((line.name, size, paper, sharper, at_norm))
        text = _table(rows)
        if len(datasets) > _SHOWN:
            text.append(f"and {len(datasets) - _SHOWN} more datasets, in to_dict()")
        for sentence in self._sentences():
            text += wrap(sentence, 100, subsequent_indent="  ")
        return "\n".join(text)

    def _sentences(self) -> list[str]:
        facts = self.facts
        said = [
            f"with probability {1 - self.delta:g} over the training rows, no expected rate on new "
            "rows differs from its training value by more; ||x|| of new rows must be at most "
            f"{facts.largest_norm:.4g}"
        ]
        norms = {
            "paper": f"||w|| up to {self.paper_class.norm:.3g}",
            "sharper": f"||w|| up to {self.sharper_class.norm:.3g}",
            "at_norm": f"||w|| = {facts.coef_norm:.3g}",
        }
        for which, norm in norms.items():
            best = min(self.lines, key=lambda line: getattr(line, which) / (line.span or 1.0))
            telling = sum(getattr(line, which) < line.span for line in self.lines)
            words = best.in_words(which)
            if telling:
                words = f"says something on {telling} of {len(self.lines)} lines; best {words}"
            said.append(f"{which.replace('_', ' ')} ({norm}): {words}")
        if any(line.paper >= line.span for line in self.lines):
            needed = self.alpha_needed
            said.append(
                "the paper's bound is below 1 on every dataset "
                + (
                    f"from alpha = {needed:.3g} on; here alpha = {facts.alpha:.3g}"
                    if needed is not None
                    else "at no alpha: the smallest dataset has too few rows"
                )
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers."""
        return {
            "delta": self.delta,
            "vacuous": self.vacuous,
            "alpha": self.facts.alpha,
            "alpha_needed": self.alpha_needed,
            "multiplier_bound": self.facts.multiplier_bound,
            "largest_norm": self.facts.largest_norm,
            "coefficients": self.coefficients,
            "coef_norm": self.facts.coef_norm,
            "paper_class": asdict(self.paper_class),
            "sharper_class": asdict(self.sharper_class),
            "lines": [{**asdict(line), "in_words": line.in_words("paper")} for line in self.lines],
        }


def paper_bound(fitted: Any, delta: float = 0.05) -> PaperBound:
    """``rate on new rows <= ramp rate on D_i + E / sqrt(n_i)``: the paper's theorem on a fit.

    It speaks of the *expected* rates of the randomized classifier (`positive_probability`), not of
    `predict`. Assumed are rows drawn independently of everything else within each dataset (a
    baseline that was trained on them spoils churn), and shares of datasets, labels and groups that
    are as they were. At alpha = 1/n the paper's bound grows with n: it is vacuous in practice, says
    so, and stands beside two that are tighter. A fresh sample and `compare` say more.

    Parameters
    ----------
    fitted : RateBoundSVC or Facts
        A fitted estimator, or the numbers themselves.
    delta : float
        Probability with which a bound may fail.

    Returns
    -------
    PaperBound

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> facts = Facts(
    ...     names=("positives", "negatives"), sizes=np.array([4e4, 4e4]),
    ...     costs=np.array([[0.0, 0.5], [0.5, 0.0]]), constraints=csr_array((0, 4)), goals=(),
    ...     largest_norm=1.0, alpha=1e-3, multiplier_bound=0.0, coef_norm=2.0,
    ... )
    >>> print(paper_bound(facts).lines[0].in_words())
    vacuous: the bound is 20, rates lie in [0, 1]
    """
    facts = fitted if isinstance(fitted, Facts) else getattr(fitted, "_facts", None)
    if not isinstance(facts, Facts):
        raise TypeError(
            f"paper_bound needs a fitted RateBoundSVC or Facts, got {type(fitted).__name__}; "
            "call fit first"
        )
    _check_share(delta, "delta")
    k, m = len(facts.names), len(facts.goals)
    price = facts.multiplier_bound
    sides = facts.costs.sum(axis=1)
    if m:
        by_column = facts.constraints.sum(axis=0)
        sides = sides + price * np.array([by_column[:k].sum(), by_column[k:].sum()])
    total = coefficient_sum(facts.costs, facts.constraints, price)
    paper = function_class(total, largest_norm=facts.largest_norm, alpha=facts.alpha)
    sharper = small_class(
        float(sides[0]), float(sides[1]), largest_norm=facts.largest_norm, alpha=facts.alpha,
        fit_intercept=facts.fit_intercept,
    )  # fmt: skip
    share = _price_share(facts.price_step)
    printed = np.array(
        [rate_bound(paper, size, datasets=k, delta=delta * share) for size in facts.sizes]
    )
    # two rates of every dataset, the loss and every constraint: so many events
    events = 2 * k + 1 + m
    reach_of_norm, share_of_norm = _reach_of_norm(facts)
    a_priori = _deviation(sharper.reach, events / (delta * share))
    at_norm = _deviation(reach_of_norm, events / (delta * share_of_norm))

    spread = 1 / np.sqrt(facts.sizes)
    lines = [
        BoundLine(name, "dataset", float(size), float(bound), a_priori * s, at_norm * s)
        for name, size, bound, s in zip(
            facts.names, facts.sizes, printed, spread.tolist(), strict=True
        )
    ]
    # a charge on one side is the same charge on the other with its sign turned, and a constant
    table = csr_array(vstack([csr_array(facts.costs.reshape(1, -1)), facts.constraints]))
    net = abs(csr_array(table[:, :k] - table[:, k:]))
    reach = np.sqrt(net.power(2) @ spread**2)
    columns = np.column_stack(
        [table @ np.tile(printed, 2), a_priori * reach, at_norm * reach, net @ np.ones(k)]
    )
    lines.append(BoundLine("objective", "objective", None, *columns[0].tolist()))
    for goal in dict.fromkeys(facts.goals):
        rows = 1 + np.flatnonzero([name == goal for name in facts.goals])
        lines.append(BoundLine(goal, "goal", None, *columns[rows].max(axis=0).tolist()))
    return PaperBound(tuple(lines), delta, total, paper, sharper, facts)


def _deviation(reach: float, odds: float) -> float:
    """2 reach + sqrt(ln(events / δ) / 2): times sqrt(Σ a²), the deviation of Σ a_i σ(z_i)."""
    return 2 * reach + math.sqrt(math.log(odds) / 2)


def _reach_of_norm(facts: Facts) -> tuple[float, float]:
    """Reach of the first class of a grid that contains the fit, and that class's share of delta."""
    scores = facts.largest_norm * facts.coef_norm
    step = max(0, math.ceil(math.log(max(scores, 1.0)) / math.log(_RADIUS_STEP) - 1e-9))
    largest = _RADIUS_STEP**step
    # a larger |b| decides every row alike, as ±(1/2 + X ||w||) does
    reach = 2 * largest + 0.5 if facts.fit_intercept else largest
    return reach, 1 / ((step + 1) * (step + 2))


def _price_share(step: int | None) -> float:
    """The share of delta for V being found at this step, up or down; all steps sum to one."""
    return 1.0 if step is None else 0.5 / ((step + 1) * (step + 2))


# --- how many labels a comparison needs -----------------------------------------------------------


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
    _check_share(confidence, "confidence")
    _check_share(power, "power")
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


def _tail(successes: int, trials: int, share: float) -> float:
    """P(Bin(trials, share) >= successes), exactly: the incomplete beta function."""
    if successes <= 0 or successes > trials:
        return float(successes <= 0)
    return float(betainc(successes, trials - successes + 1, share))


def _critical(trials: int, level: float) -> int:
    """Least c with P(Bin(trials, 1/2) >= c) <= level; trials + 1 where there is none."""
    few, enough = trials // 2, trials + 1
    # Hoeffding's inequality has such a c nearby
    enough = min(enough, math.ceil(trials / 2 + math.sqrt(trials * math.log(1 / level) / 2)) + 1)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if _tail(middle, trials, 0.5) <= level else (middle, enough)
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
        if _tail(_critical(high, level), low, share) >= power:
            continue
        if low == high:
            return low + 1
        middle = (low + high) // 2
        blocks += [(low, middle), (middle + 1, high)]  # the later one is looked at first
    return 1


def _rows_holding(needed: int, churn: float, confidence: float) -> int:
    """Least N with P(Bin(N, churn) >= needed) >= confidence."""
    few, enough = needed - 1, needed
    while _tail(needed, enough, churn) < confidence:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (
            (few, middle) if _tail(needed, middle, churn) >= confidence else (middle, enough)
        )
    return enough


# --- two models on the same rows ------------------------------------------------------------------


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
        lines = _table(rows)
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
    _check_share(confidence, "confidence")
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
        p_two_sided=min(1.0, 2 * _tail(max(wins, losses), changed, 0.5)),
        p_better=_tail(wins, changed, 0.5),
        accuracy_a=float((a == labels).mean()) if known else None,
        accuracy_b=float((b == labels).mean()) if known else None,
    )  # fmt: skip


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """All p for which ``P(Bin(trials, p) >= successes)`` and ``P(Bin(trials, p) <= successes)``
    are both above half the error.

    Parameters
    ----------
    successes, trials : int
    confidence : float

    Returns
    -------
    (float, float)
        It covers with at least `confidence`; (0, 1) where there are no trials.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    _check_share(confidence, "confidence")
    if not 0 <= successes <= trials:
        raise ValueError(f"successes={successes} must be between 0 and trials={trials}")
    error = (1 - confidence) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, error)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - error)) if failures else 1.0
    return low, high


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


# --- for all of them ------------------------------------------------------------------------------


def _check_share(value: Any, name: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name}={value!r} must lie strictly between 0 and 1, as 0.05 or 0.95 do")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table under its header; numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]
