"""`RateBoundSVCCV`: the linear classifier that meets goals, with alpha chosen on held-out rows.

A fold is a weight of zero: the rows that it holds out stay where they are and count for nothing, so
data is read, validated and coded once for all folds and alphas. Every fold follows the alphas from
the largest down, each model from those before it (`ratebound.paths`), folds in parallel.

Held-out sums are pooled. Each row is decided by the model of a fold that has not seen it, and the
sums of these decisions over the cells are what goals and objective are evaluated on: a rate of few
rows is then one rate over all folds, and no mean of rates of a handful of rows each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from ratebound.compile import compile_goals
from ratebound.data import BoundData
from ratebound.goals import Goals
from ratebound.held_out import (
    HeldOut,
    dealt,
    decisions,
    held_out_sums,
    judged,
    objective_on,
    weighted,
)
from ratebound.paths import Stop, follow
from ratebound.problem import RateProblem
from ratebound.ramp import RampProblem
from ratebound.svc import RateBoundSVC

Floats = npt.NDArray[np.float64]
LARGEST_ALPHA = 1e3  # of the default alphas, as a multiple of the smallest
NEIGHBOURS = 5.0  # factor between alphas whose held-out objectives are smoothed together


class RateBoundSVCCV(ClassifierMixin, BaseEstimator):
    """`RateBoundSVC` with alpha chosen by cross-validation among a path of them.

    For every alpha and fold, `RateBoundSVC`'s problem is solved on the rows of the other folds, and
    the fold's own rows are decided. Of the alphas whose *held-out* goals hold within their sampling
    error, the one with the lowest held-out objective is taken, smoothed over neighbouring alphas
    (each fit's has an error of its own, by its local optimum and its cut); where no alpha's goals
    hold, the one that misses them by the fewest standard errors, with a warning. The classifier is
    then fitted anew, on all rows, by a single fit at that alpha: it is what
    ``RateBoundSVC(goals, alpha=alpha_)`` gives, whatever the path was.

    "Held-out" is by the rule that the fit is about: decisions of ``predict`` with
    ``threshold="repair"``, expected rates with ``threshold="zero"``.

    Parameters
    ----------
    goals : Goals, optional
        What to minimise, subject to what. None takes those of `svc`.
    alphas : int or array-like
        The regularisers to compare, or how many: from 1000/n to 1/n in equal ratios, n being the
        sum of the training rows' weights.
    cv : int, splitter or iterable of (train, test) indices
        Folds. A number deals the rows of every dataset into as many folds, cell by cell: every
        fold gets its share of each combination of label, group and baseline that some goal
        distinguishes. A splitter of scikit-learn or an iterable says it for the rows of `X`: all
        datasets in the stacked form. Separate datasets are then dealt into as many folds as it
        has. Held-out rows of *all* datasets take no part in a fold's fit, so that goals on any of
        them are judged on rows that no one has looked at.
    svc : RateBoundSVC, optional
        All other parameters of the fits; its own `alpha` is not used.
    path_tol : float
        `tol` of the fits that alphas are compared by, each certified to it: digits far below what
        held-out rows can tell apart are not worth their time. The last fit has the `tol` of `svc`.
    n_jobs : int, optional
        Folds at a time; None is one, -1 as many as there are cores. The result does not depend on
        it.

    Attributes
    ----------
    alpha_ : float
    alphas_ : ndarray of shape (n_alphas,), falling
    best_index_ : int
        Of `alpha_` in `alphas_`.
    cv_results_ : dict of ndarrays of shape (n_alphas,)
        ``param_alpha``, ``params``; ``test_objective`` and ``split<k>_test_objective`` (NaN where
        the fold's own rows do not define it); for every goal ``test_<label>``, the held-out value
        that its bound is compared with, ``violation_<label>``, by how much its worst normalised
        inequality is missed, and ``error_<label>``, the standard error of that, given how many
        rows there are in each cell; ``test_excess``, the largest violation in standard errors;
        ``test_met``, whether that is at most 1; ``smooth_objective``, of those alphas the
        ``test_objective`` on the line through all of them within a factor of 5 (NaN for the
        others), by which they are compared; ``rank_test``; ``n_iter``, majorization steps of
        all folds, ``newton_steps`` of all folds, ``gap``, the worst certified gap,
        ``fit_time``, seconds of all folds.
    best_estimator_ : RateBoundSVC
        Fitted on all rows. Its attributes are attributes of this estimator too: ``coef_``,
        ``intercept_``, ``report_``, ``classes_`` and all others.
    n_splits_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from ratebound import Goals, RateBoundSVCCV, positive_rate, recall
    >>> X, y = make_classification(300, n_features=5, random_state=0)
    >>> goals = Goals(minimize=positive_rate(), subject_to=[recall() >= 0.9])
    >>> clf = RateBoundSVCCV(goals, alphas=[1e-1, 1e-2, 1e-3], cv=3).fit(X, y)
    >>> clf.alpha_ in clf.alphas_ and clf.report_.met
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "goals": [Goals, None],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "svc": [RateBoundSVC, None],
        "path_tol": [Interval(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        goals: Goals | None = None,
        *,
        alphas: Any = 10,
        cv: Any = 5,
        svc: RateBoundSVC | None = None,
        path_tol: float = 1e-3,
        n_jobs: int | None = None,
    ) -> None:
        self.goals = goals
        self.alphas = alphas
        self.cv = cv
        self.svc = svc
        self.path_tol = path_tol
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.svc is not None and self.svc.kernel == "precomputed"
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        baseline: Any = None,
        columns: Any = None,
        datasets: Any = None,
    ) -> RateBoundSVCCV:
        """Choose alpha on held-out rows, and fit with it on all.

        Parameters
        ----------
        X, y, sample_weight, baseline, columns, datasets
            As in `RateBoundSVC.fit`, stacked or not.

        Returns
        -------
        RateBoundSVCCV
            Itself.
        """
        final = self._template()
        final._validate_params()
        svc = clone(final).set_params(tol=max(self.path_tol, final.tol))
        given = {"sample_weight": sample_weight, "baseline": baseline, "columns": columns}
        data, arrays = svc._bound(X, y, *given.values(), datasets)
        whole = compile_goals(svc._goals(), data)
        if whole.score_gaps:
            raise ValueError(
                "score_gap() is about the scores of one model, and held-out rows are scored by a "
                "model a fold: choose alpha by GridSearchCV(RateBoundSVC(goals), {'alpha': ...}, "
                "scoring=goals.scorer()) instead"
            )
        alphas = self._alphas(data)
        folds = list(self._folds(X, y, whole))
        # Threads of BLAS may round otherwise; one each keeps the answer the same for any n_jobs.
        with threadpool_limits(1, "blas"):
            parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_follow_alphas)(svc, whole, arrays, held_out, alphas, number, self._threads)
                for number, held_out in enumerate(folds)
            )
        results, best, met = _compare(svc, whole, folds, parts, alphas)
        fitted = final.set_params(alpha=float(alphas[best])).fit(X, y, **given, datasets=datasets)
        self.alphas_, self.alpha_, self.best_index_ = alphas, float(alphas[best]), best
        self.cv_results_ = results
        self.n_splits_ = len(folds)
        self.best_estimator_ = fitted
        if not met:
            warnings.warn(
                "RateBoundSVCCV: no alpha meets the goals on held-out rows within their sampling "
                f"error; alpha={self.alpha_:.3g} misses them by the fewest standard errors "
                f"({results['test_excess'][best]:.2g}). Leave room in the bounds, or compare other "
                "alphas (cv_results_ has each goal)",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _template(self) -> RateBoundSVC:
        svc: RateBoundSVC = RateBoundSVC() if self.svc is None else clone(self.svc)
        return svc if self.goals is None else svc.set_params(goals=self.goals)

    @property
    def _threads(self) -> int:
        return max(1, int(cpu_count()) // int(effective_n_jobs(self.n_jobs)))

    def _alphas(self, data: BoundData) -> Floats:
        if isinstance(self.alphas, Integral):
            least = 1.0 / float(data.datasets["train"].weight.sum())
            return np.geomspace(LARGEST_ALPHA * least, least, int(self.alphas))
        alphas = np.unique(np.asarray(self.alphas, dtype=np.float64).ravel())[::-1]
        if not len(alphas) or not np.all(np.isfinite(alphas) & (alphas > 0)):
            raise ValueError(f"alphas are positive numbers, at least one; got {self.alphas!r}")
        return alphas

    def _folds(self, X: Any, y: Any, whole: RateProblem) -> Iterator[HeldOut]:
        """Of every fold, the rows of each dataset that it holds out."""
        data = whole.data
        if isinstance(self.cv, Integral):
            count = int(self.cv)
            shared = {name: dealt(whole, name, count) for name in data.datasets}
            for number in range(count):
                yield {name: fold == number for name, fold in shared.items()}
            return
        n_rows = len(data.datasets["train"].weight)
        stacked = {name for name, bound in data.datasets.items() if bound.rows is not None}
        if stacked:
            n_rows = sum(data.datasets[name].n_rows for name in stacked)
        splits = list(check_cv(self.cv, y, classifier=True).split(np.zeros(n_rows), y))
        shared = {
            name: dealt(whole, name, len(splits))
            for name in data.datasets
            if name != "train" and name not in stacked
        }
        for number, (_, test) in enumerate(splits):
            out = np.zeros(n_rows, dtype=bool)
            out[test] = True
            held_out = {name: fold == number for name, fold in shared.items()}
            for name in {"train", *stacked}:
                rows = data.datasets[name].rows
                held_out[name] = out if rows is None else out[rows]
            yield held_out

    # ---- prediction --------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """What the classifier fitted on all rows has learned."""
        learned = name.endswith("_") and not name.startswith("_") and not name.endswith("__")
        if learned and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def decision_function(self, X: Any) -> Floats:
        """Scores; positive where ``predict`` says ``classes_[1]``.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._fitted().decision_function(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Decide by the sign of the score, the same answer every time.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,), labels
        """
        return self._fitted().predict(X)

    def positive_probability(self, X: Any) -> Floats:
        """Probability with which the randomized classifier decides for the positive label.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._fitted().positive_probability(X)

    def predict_randomized(
        self, X: Any, random_state: Any = None, keys: Any = None
    ) -> npt.NDArray[Any]:
        """Decide at random, as `RateBoundSVC.predict_randomized` does.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        random_state : int, RandomState or None
        keys : array-like of shape (n,), optional

        Returns
        -------
        ndarray of shape (n,), labels
        """
        return self._fitted().predict_randomized(X, random_state, keys)

    def _fitted(self) -> RateBoundSVC:
        check_is_fitted(self)
        fitted: RateBoundSVC = self.best_estimator_
        return fitted


# --- one fold -------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """What a fold found, an entry an alpha: its model's sums over its held-out rows, and costs."""

    sums: list[Floats]  # (5, cells) each, see held_out_sums
    objective: list[float]
    steps: list[int]
    newton_steps: list[int]
    gap: list[float]
    seconds: list[float]


def _follow_alphas(
    svc: RateBoundSVC,
    whole: RateProblem,
    arrays: Mapping[int, Any],
    held_out: HeldOut,
    alphas: Floats,
    number: int,
    threads: int,
) -> _Part:
    """Fit the alphas to the rows that the fold keeps, and decide those that it holds out."""
    data = whole.data
    goals = svc._goals()
    kept = {name: (~out).astype(np.float64) for name, out in held_out.items()}
    try:
        rates = compile_goals(goals, weighted(data, kept))
    except ValueError as error:
        raise type(error)(
            f"without the rows that fold {number + 1} holds out: {error}; take fewer folds (cv=)"
        ) from None
    first = clone(svc).set_params(alpha=float(alphas[0]))
    problem, source = first._ramp_problem(rates, rates.data, arrays)
    source.rows.threads = threads
    own = objective_on(goals, data, held_out)
    part = _Part([], [], [], [], [], [])
    began = time.perf_counter()
    for fit, cut, *_ in follow(svc, _stops(rates, problem, alphas)):
        threshold = 0.0 if svc.threshold == "zero" else cut.threshold
        score = source.scorer(fit.coef)
        decided = decisions(whole, arrays, score, fit.intercept, threshold, svc.threshold)
        part.sums.append(held_out_sums(whole, held_out, decided))
        part.objective.append(
            np.nan if own is None else own.objective_value(own.positives_by_dataset(decided))
        )
        part.steps.append(len(fit.history))
        part.newton_steps.append(sum(step.solver_iterations for step in fit.history))
        part.gap.append(fit.solution.gap)
        part.seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
    return part


def _stops(rates: RateProblem, problem: RampProblem, alphas: Floats) -> Iterable[Stop]:
    """The fold's problem at every alpha; the path is even in their logarithms."""
    for alpha in alphas:
        yield Stop(float(np.log(alpha)), rates, replace(problem, alpha=float(alpha)))


# --- comparing alphas -----------------------------------------------------------------------------


def _compare(
    svc: RateBoundSVC,
    whole: RateProblem,
    folds: list[HeldOut],
    parts: list[_Part],
    alphas: Floats,
) -> tuple[dict[str, Any], int, bool]:
    """The table of results, the index of the best alpha, and whether it meets the goals."""
    tested = {
        name: np.sum([held_out[name] for held_out in folds], axis=0).astype(np.float64)
        for name in whole.data.datasets
    }
    try:
        pooled = compile_goals(svc._goals(), weighted(whole.data, tested), attainable=False)
    except ValueError as error:
        raise type(error)(f"in the rows that the folds hold out: {error}") from None
    reached = min(len(part.sums) for part in parts)
    if not reached:
        raise ValueError("the fits were stopped before the first alpha; allow more time_limit")
    results: dict[str, Any] = {
        "param_alpha": alphas[:reached],
        "params": np.array([{"alpha": float(alpha)} for alpha in alphas[:reached]]),
    }
    sums = np.sum([part.sums[:reached] for part in parts], axis=0)
    results["test_objective"] = np.array([pooled.objective_value(s[1]) for s in sums])
    for number, part in enumerate(parts):
        results[f"split{number}_test_objective"] = np.array(part.objective[:reached])
    excess = np.full(reached, -np.inf)
    for goal in pooled.goals:
        lines = np.array([judged(pooled, goal, s) for s in sums])
        results[f"test_{goal.label}"] = np.array([goal.value(s[1]) for s in sums])
        results[f"violation_{goal.label}"] = lines[:, 0]
        results[f"error_{goal.label}"] = lines[:, 1]
        excess = np.maximum(excess, lines[:, 2])
    met = excess <= 1.0
    smooth = np.full(reached, np.nan)
    smooth[met] = smoothed(alphas[:reached][met], results["test_objective"][met])
    # those that hold come first, by objective; then the others, by how much they miss
    order = np.lexsort((np.where(met, smooth, excess), ~met))
    rank = np.empty(reached, dtype=np.int32)
    rank[order] = np.arange(1, reached + 1)
    results |= {
        "test_excess": excess, "test_met": met, "smooth_objective": smooth, "rank_test": rank,
    }  # fmt: skip
    for name, attribute in (
        ("n_iter", "steps"), ("newton_steps", "newton_steps"), ("fit_time", "seconds"),
    ):  # fmt: skip
        results[name] = np.sum([getattr(part, attribute)[:reached] for part in parts], axis=0)
    results["gap"] = np.max([part.gap[:reached] for part in parts], axis=0)
    best = int(order[0])
    return results, best, bool(met[best])


def smoothed(alphas: Floats, objective: Floats) -> Floats:
    """The objective at every alpha on the least-squares line, in log alpha, of its neighbours."""
    place = np.log(alphas)
    values = np.empty_like(objective)
    for i, here in enumerate(place):
        near = np.abs(place - here) <= np.log(NEIGHBOURS)
        degree = min(1, int(near.sum()) - 1)
        values[i] = np.polyfit(place[near] - here, objective[near], degree)[-1]
    return values
