"""Oracles that leave the support vector machine to scikit-learn: LIBLINEAR and LIBSVM.

With T0 and T1 the ceilings of a row's two hinges, and coef = w / 2, the oracle's problem is::

    min over coef, b   sum T0 max(0, 1/2 + z) + T1 max(0, 1/2 - z) + alpha/2 ||coef||^2
    = alpha/4 times
    min over w, b'     1/2 ||w||^2 + sum C max(0, 1 - y (<w, x> + b')),   C = 2 T / alpha

the last sum over *examples*: a row with both ceilings is two of them, one of each label y (side 0
charges positive scores, so its label is -1). C is given as the weight of the example. A dual
variable a in [0, C] of that program is p = alpha a / 2 of this one; those of a row's two examples
are taken together as xi = p0 - p1, whose best split is used (`Hinges.sides`).

Bounds are this project's own: the exact best intercept for the scores found, and the repaired value
of a dual point, whatever the library says of its convergence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.optimize

from ratebound.ramp import ConvexProblem
from ratebound.rows.base import DualPoint, Floats
from ratebound.solvers.base import Stop
from ratebound.solvers.hinges import Hinges
from ratebound.solvers.oracles import Answer, SVMOptimizer, answer_at
from ratebound.solvers.sdca import SDCA, Ascent

__all__ = ["Liblinear", "Libsvm"]

LOOSEST, TIGHTEST = 0.1, 1e-12  # tolerances worth asking LIBSVM for
EASED = 10.0  # how much looser than what surely suffices a first fit is
WIDEST, NARROWEST = 3.0, 1e-4  # smoothing of the hinge that is tried, in scores
SMOOTHINGS = 12  # of these that are tried


@dataclass(frozen=True)
class Libsvm:
    """Minimise Psi with LIBSVM (`sklearn.svm.SVC`), whose bias is free and unregularised.

    The lower bound is the repaired value of ``dual_coef_``. What a tolerance of LIBSVM is worth is
    not known beforehand, so that fits are repeated at a tenth of it until the bounds are within the
    accuracy asked for. Slow above some ten thousand rows; exact with kernels.

    Parameters
    ----------
    cache_size : float
        Megabytes that LIBSVM may keep of the kernel.
    max_iter : int
        Steps of LIBSVM at most in a fit: with a small alpha it may otherwise never end.
    """

    cache_size: float = 500.0
    max_iter: int = 1_000_000

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Return a model whose upper and lower differ by at most accuracy, where LIBSVM can."""
        return self.session().minimize(problem, multipliers, accuracy, stop)

    def session(self) -> SVMOptimizer:
        """Return this oracle with the rows prepared once for many questions."""
        return _Session(self._minimize)

    def _minimize(
        self,
        ascent: Ascent,
        problem: ConvexProblem,
        hinges: Hinges,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None,
    ) -> Answer:
        from sklearn.svm import SVC

        if not problem.fit_intercept:
            raise ValueError(
                "LIBSVM always fits an intercept: with fit_intercept=False take the oracle SDCA() "
                "or Liblinear()"
            )
        stored = ascent.stored
        examples = _Examples.of(hinges)
        X, is_gram = stored.matrix.X, stored.is_gram
        rows = X[np.ix_(examples.row, examples.row)] if is_gram else _rows_of(X, examples)
        tolerance = EASED * 2.0 * accuracy / float(np.sum(examples.ceiling))
        tolerance = min(max(tolerance, TIGHTEST), LOOSEST)
        best: Answer | None = None
        lower, passes = -np.inf, 0.0
        while True:
            svc = SVC(
                kernel="precomputed" if is_gram else "linear", C=1.0, tol=tolerance,
                cache_size=self.cache_size, max_iter=self.max_iter,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a limit reached: the bounds say how far it got
                svc.fit(rows, examples.label, sample_weight=2.0 / hinges.alpha * examples.ceiling)
            share = np.zeros(len(examples.row))
            found: Any = svc.dual_coef_
            found = found if isinstance(found, np.ndarray) else found.toarray()
            share[svc.support_] = 0.5 * hinges.alpha * np.ravel(found)
            # dual_coef_ is positive for the label +1, xi for side 0
            dual = np.zeros(stored.n_rows)
            np.subtract.at(dual, examples.row, share)
            passes += float(np.max(np.atleast_1d(svc.n_iter_))) / max(1, len(examples.row)) + 2.0
            answer = _of_dual(ascent, problem, hinges, multipliers, dual, passes)
            lower = max(lower, answer.lower)
            if best is None or answer.upper < best.upper:
                best = answer
            done = best.upper - lower <= accuracy or tolerance <= TIGHTEST
            limited = int(np.max(np.atleast_1d(svc.n_iter_))) >= self.max_iter
            if done or limited or (stop is not None and stop()):
                return answer_at(problem, multipliers, best.coef, best.intercept, lower, passes)
            tolerance = max(0.1 * tolerance, TIGHTEST)


@dataclass(frozen=True)
class Liblinear:
    """Minimise Psi with LIBLINEAR (`sklearn.svm.LinearSVC`), the bias then set exactly.

    LIBLINEAR regularises the bias and keeps its dual variables to itself. Its coefficients are
    completed by the exact best intercept for their scores; the dual point is made of the scores::

        p = T/2 (1 + T u / (2 mu + rho)),   u = 1/2 ± z,   rho = sqrt(T^2 u^2 + 4 mu^2)

    the smoothed hinge's derivative, at the mu of a few that makes the largest bound, each with the
    intercept at which the two signs balance. Where that bound is looser than asked, passes of dual
    ascent from it follow, and where these do not suffice, as many from nothing.

    Parameters
    ----------
    bound : {"ascent", "scores", "none"}
        "ascent" as described; "scores" leaves out the passes of ascent; "none" says ``lower =
        -inf``, as of an oracle of which only the model is known.
    ascent : SDCA
        The ascent that may follow; its ``max_epochs`` is how much of it.
    max_iter : int
        Passes of LIBLINEAR at most.
    seed : int
    """

    bound: Literal["ascent", "scores", "none"] = "ascent"
    ascent: SDCA = SDCA(max_epochs=300)  # noqa: RUF009  (frozen)
    max_iter: int = 10000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.bound not in ("ascent", "scores", "none"):
            raise ValueError(
                f"bound={self.bound!r} of Liblinear is none of 'ascent', 'scores' and 'none'"
            )

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Return a model, and as good a lower bound of Psi as can be had for it."""
        return self.session().minimize(problem, multipliers, accuracy, stop)

    def session(self) -> SVMOptimizer:
        """Return this oracle with the rows prepared once for many questions."""
        return _Session(self._minimize, self.ascent)

    def _minimize(
        self,
        ascent: Ascent,
        problem: ConvexProblem,
        hinges: Hinges,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None,
    ) -> Answer:
        from sklearn.svm import LinearSVC

        stored = ascent.stored
        if stored.is_gram:
            raise ValueError("LIBLINEAR has no kernels: take the oracle Libsvm() or SDCA()")
        examples = _Examples.of(hinges)
        tolerance = EASED * 2.0 * accuracy / float(np.sum(examples.ceiling))
        typical = float(np.sqrt(np.mean(stored.squared_norms[examples.row])))
        svc = LinearSVC(
            loss="hinge", C=1.0, tol=min(max(tolerance, 1e-6), LOOSEST),
            fit_intercept=problem.fit_intercept, intercept_scaling=max(1.0, typical),
            max_iter=self.max_iter, random_state=self.seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a limit reached: the bounds say how far it got
            svc.fit(
                _rows_of(stored.matrix.X, examples), examples.label,
                sample_weight=2.0 / hinges.alpha * examples.ceiling,
            )  # fmt: skip
        passes = float(np.max(np.atleast_1d(svc.n_iter_)))
        coef = 0.5 * np.ravel(svc.coef_)
        scores = stored.scores(coef)
        near = 0.5 * float(np.ravel(svc.intercept_)[0]) if problem.fit_intercept else 0.0
        intercept = hinges.best_intercept(scores, near) if problem.fit_intercept else 0.0
        answer = answer_at(problem, multipliers, coef, intercept, -np.inf, passes + 2.0)
        if self.bound == "none":
            return answer
        dual, best = _smoothed(ascent, problem, hinges, multipliers, scores, answer)
        answer = better(answer, best)
        if self.bound == "scores" or answer.upper - answer.lower <= accuracy:
            return answer
        ascent.start_at(hinges, dual, answer.intercept)
        for anew in (False, True):  # with a small alpha the scores can be worse than no start
            if anew:
                ascent.forget()
            found = ascent.solve(problem, multipliers, accuracy, stop)
            risen = answer_at(
                problem, multipliers, found.coef, found.intercept, found.lower, found.passes
            )
            answer = better(answer, risen)
            if answer.upper - answer.lower <= accuracy or (stop is not None and stop()):
                break
        return answer


# ---- what both do --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Examples:
    """The terms with a ceiling as examples with a label and a weight.

    Attributes
    ----------
    row : (e,), the row of every example
    label : (e,), -1 for side 0 and 1 for side 1
    ceiling : (e,), T
    """

    row: npt.NDArray[np.intp]
    label: npt.NDArray[np.int64]
    ceiling: Floats

    @classmethod
    def of(cls, hinges: Hinges) -> _Examples:
        sides = [np.flatnonzero(hinges.high > 0), np.flatnonzero(hinges.low < 0)]
        label = np.repeat([-1, 1], [len(side) for side in sides])
        ceiling = np.concatenate([hinges.high[sides[0]], -hinges.low[sides[1]]])
        row = np.concatenate(sides)
        order = np.argsort(row, kind="stable")  # in the order of X, which is then read in turn
        return cls(row[order], label[order], ceiling[order])


def _rows_of(X: Any, examples: _Examples) -> Any:
    """The rows of the examples, sparse ones with the 32-bit indices that the libraries want."""
    rows: Any = X[examples.row]
    if not isinstance(rows, np.ndarray):
        rows.indptr = rows.indptr.astype(np.int32)
        rows.indices = rows.indices.astype(np.int32)
    return rows


class _Session:
    """Rows prepared for coordinate ascent and for sums, kept from question to question."""

    def __init__(self, function: Callable[..., Answer], ascent: SDCA | None = None) -> None:
        self.function = function
        self.settings = ascent or SDCA()
        self.ascent: Ascent | None = None

    def minimize(
        self,
        problem: ConvexProblem,
        multipliers: Floats,
        accuracy: float,
        stop: Stop | None = None,
    ) -> Answer:
        """Answer in closed form where only one sign is charged, else by the library."""
        if self.ascent is None or self.ascent.stored.rows is not problem.rows:
            self.ascent = Ascent(problem.rows, self.settings)
        hinges = self.ascent.hinges_of(problem, multipliers)
        if hinges.lighter_side <= 0:  # a library wants two labels
            found = self.ascent.solve(problem, multipliers, accuracy, stop)
            return answer_at(
                problem, multipliers, found.coef, found.intercept, found.lower, found.passes
            )
        return self.function(self.ascent, problem, hinges, multipliers, accuracy, stop)


def better(one: Answer, other: Answer) -> Answer:
    """The lower of two models with the higher of their bounds."""
    model = one if one.upper <= other.upper else other
    lower = min(max(one.lower, other.lower), model.upper)
    total = one.passes + other.passes
    return Answer(
        model.coef, model.intercept, model.base, model.violations, model.upper, lower, total
    )


def _of_dual(
    ascent: Ascent,
    problem: ConvexProblem,
    hinges: Hinges,
    multipliers: Floats,
    dual: Floats,
    passes: float,
) -> Answer:
    """The model and the bound of a dual point, clipped to its box."""
    stored = ascent.stored
    sides = hinges.sides(np.clip(dual, hinges.low, hinges.high))
    point = DualPoint(stored.features(sides), np.sum(sides, axis=1))
    coef = (point.features[1] - point.features[0]) / hinges.alpha
    scores = stored.scores(coef)
    intercept = hinges.best_intercept(scores, 0.0) if problem.fit_intercept else 0.0
    reach = hinges.charge(scores + intercept) + 0.5 * hinges.alpha * (
        problem.rows.squared_norm(coef)
    )
    lower = problem.dual_bound(multipliers, point, min(reach, hinges.lighter_side))
    return answer_at(problem, multipliers, coef, intercept, lower, passes)


def _smoothed(
    ascent: Ascent,
    problem: ConvexProblem,
    hinges: Hinges,
    multipliers: Floats,
    scores: Floats,
    model: Answer,
) -> tuple[Floats, Answer]:
    """The best dual point of smoothed hinges at these scores, and its model and bound."""
    best: Answer | None = None
    dual = np.zeros(len(scores))
    typical = float(np.mean((hinges.high - hinges.low)[hinges.high > hinges.low]))
    for width in np.geomspace(WIDEST, NARROWEST, SMOOTHINGS):
        barrier = width * typical
        point = _balanced(hinges, scores, barrier, model.intercept, problem.fit_intercept)
        found = _of_dual(ascent, problem, hinges, multipliers, point, 2.0)
        if best is None or found.lower > best.lower:
            dual = point
        elif found.lower < best.lower - 0.5 * (model.upper - best.lower):
            best = better(best, found)
            break  # past the best smoothing
        best = found if best is None else better(best, found)
    assert best is not None
    return dual, best


def _balanced(
    hinges: Hinges, scores: Floats, barrier: float, near: float, fit_intercept: bool
) -> Floats:
    """The xi of hinges smoothed by this barrier, at the intercept where it adds up to 0."""

    def at(intercept: float) -> Floats:
        z = scores + intercept
        return _slope(hinges.high, 0.5 + z, barrier) - _slope(-hinges.low, 0.5 - z, barrier)

    if not fit_intercept:
        return at(0.0)
    width = 0.5
    while float(np.sum(at(near - width))) > 0 or float(np.sum(at(near + width))) < 0:
        width *= 4.0
    root = scipy.optimize.brentq(
        lambda b: float(np.sum(at(b))), near - width, near + width, xtol=1e-12, rtol=1e-12
    )
    return at(float(root))


def _slope(ceiling: Floats, u: Floats, barrier: float) -> Floats:
    """The smoothed hinge's derivative in u, between 0 and its ceiling, without cancellation."""
    pull = ceiling * u
    root = np.sqrt(pull * pull + 4.0 * barrier * barrier)
    rising = 0.5 * ceiling * (1.0 + pull / (2.0 * barrier + root))
    small = 2.0 * barrier + 4.0 * barrier * barrier / (root + np.abs(pull))
    falling = 0.5 * ceiling * small / (2.0 * barrier + root)
    return np.where(u < 0, falling, rising)
