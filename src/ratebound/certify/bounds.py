"""The paper's generalization bound on a fit, honest about where it says nothing.

`paper_bound` fills the paper's symbols (:mod:`ratebound.certify.generalization`) from a fitted
estimator. At the paper's λ = 1/n the bound on a rate is far above 1, so a second one stands beside
it, of the norm that the fit itself has.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, vstack

from ratebound.certify.binomial import check_share
from ratebound.certify.generalization import (
    FunctionClass,
    coefficient_sum,
    function_class,
    rate_bound,
)
from ratebound.certify.tables import table
from ratebound.data.arrays import plural

if TYPE_CHECKING:
    from ratebound.problem import RateProblem
    from ratebound.ramp import RampProblem

Floats = NDArray[np.float64]

_RADIUS_STEP = 1.2  # of the grid of norms among which a fit finds its own
_PRICE_STEP = 10.0  # by which a fit changes V
_SHOWN = 30  # datasets in a printed table


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
    paper, at_norm : float
        The bounds, see `PaperBound`.
    span : float
        The most that the quantity can vary at all: 1 for a rate. A bound of that size or more says
        nothing.
    """

    name: str
    kind: str
    size: float | None
    paper: float
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
    ``at_norm``  for the norm that the fit found: all functions of at most that norm, however they
                 were found. Deviations by McDiarmid's inequality (``sqrt(ln(events / δ) / 2n)``),
                 goals as one weighted sum of rows; the price of choosing the norm is in the bound
    ===========  =================================================================================

    Attributes
    ----------
    lines : tuple of BoundLine
        Datasets, then the objective, then goals (of a family, the worst inequality).
    delta : float
        Each column holds with probability 1 - delta.
    coefficients : float
        B.
    paper_class : FunctionClass
    facts : Facts
    """

    lines: tuple[BoundLine, ...]
    delta: float
    coefficients: float
    paper_class: FunctionClass
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
        rows = [("bound on", "rows", "paper", "at norm")]
        for line in [*datasets[:_SHOWN], *others]:
            size = "" if line.size is None else f"{line.size:.6g}"
            rows.append((line.name, size, f"{line.paper:.3g}", f"{line.at_norm:.3g}"))
        text = table(rows)
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
            "lines": [{**asdict(line), "in_words": line.in_words("paper")} for line in self.lines],
        }


def paper_bound(fitted: Any, delta: float = 0.05) -> PaperBound:
    """``rate on new rows <= ramp rate on D_i + E / sqrt(n_i)``: the paper's theorem on a fit.

    It speaks of the *expected* rates of the randomized classifier (`positive_probability`), not of
    `predict`. Assumed are rows drawn independently of everything else within each dataset (a
    baseline that was trained on them spoils churn), and shares of datasets, labels and groups that
    are as they were. At alpha = 1/n the paper's bound grows with n: it is vacuous in practice, says
    so, and stands beside one that is tighter. The paper's is about exact solutions of the convex
    problems, of which a fit is one up to its certified gap; the other is about any classifier of
    that norm. A fresh sample and `compare` say more.

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
    if facts is None and hasattr(fitted, "_facts"):
        raise ValueError(
            "the paper's theorem is about rates, and score_gap() is none: leave that goal out"
        )
    if not isinstance(facts, Facts):
        raise TypeError(
            f"paper_bound needs a fitted RateBoundSVC or Facts, got {type(fitted).__name__}; "
            "call fit first"
        )
    check_share(delta, "delta")
    k, m = len(facts.names), len(facts.goals)
    total = coefficient_sum(facts.costs, facts.constraints, facts.multiplier_bound)
    paper = function_class(total, largest_norm=facts.largest_norm, alpha=facts.alpha)
    share = _price_share(facts.price_step)
    printed = np.array(
        [rate_bound(paper, size, datasets=k, delta=delta * share) for size in facts.sizes]
    )
    # two rates of every dataset, the loss and every constraint: so many events
    events = 2 * k + 1 + m
    reach_of_norm, share_of_norm = _reach_of_norm(facts)
    at_norm = _deviation(reach_of_norm, events / (delta * share_of_norm))

    spread = 1 / np.sqrt(facts.sizes)
    lines = [
        BoundLine(name, "dataset", float(size), float(bound), at_norm * s)
        for name, size, bound, s in zip(
            facts.names, facts.sizes, printed, spread.tolist(), strict=True
        )
    ]
    # a charge on one side is the same charge on the other with its sign turned, and a constant
    both = csr_array(vstack([csr_array(facts.costs.reshape(1, -1)), facts.constraints]))
    net = abs(csr_array(both[:, :k] - both[:, k:]))
    reach = np.sqrt(net.power(2) @ spread**2)
    columns = np.column_stack([both @ np.tile(printed, 2), at_norm * reach, net @ np.ones(k)])
    lines.append(BoundLine("objective", "objective", None, *columns[0].tolist()))
    for goal in dict.fromkeys(facts.goals):
        rows = 1 + np.flatnonzero([name == goal for name in facts.goals])
        lines.append(BoundLine(goal, "goal", None, *columns[rows].max(axis=0).tolist()))
    return PaperBound(tuple(lines), delta, total, paper, facts)


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
