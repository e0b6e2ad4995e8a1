"""`RateBoundSVC`: the linear classifier that meets goals, as a scikit-learn estimator."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ratebound.compile import compile_goals
from ratebound.data import BoundData, bind, warn_of_bad_scaling
from ratebound.goals import Goals
from ratebound.problem import CompiledGoal, RateProblem
from ratebound.ramp import RampProblem, ramp
from ratebound.randomized import draw
from ratebound.report import Certificate, Report, build_report
from ratebound.terms import quoted

if TYPE_CHECKING:
    from ratebound.majorize import Majorization, Majorized, Step
    from ratebound.operating_point import Cut
    from ratebound.solvers.base import Solver

Floats = npt.NDArray[np.float64]

_STARTING_PRICE = 10.0  # of a unit of violation, in ranges of the objective


@dataclass(frozen=True)
class FitStatus:
    """How a fit ended.

    Attributes
    ----------
    converged : bool
        The last relative decrease and the certified gap of the last convex problem are within tol.
    goals_met : bool
        Every goal is met on the training datasets by the rule that ``predict`` uses.
    message : str
    solver : str
        The solver that was used, and why.
    multiplier_bound : float
        The last price of a unit of violation.
    conflict_radius : float
        Proof for the last convex bound: no coefficients of smaller norm meet it. 0 where nothing is
        proven. It says nothing of the ramp problem at other anchors.
    repair_rounds : int
        How often bounds were tightened to meet the goals strictly.
    """

    converged: bool
    goals_met: bool
    message: str
    solver: str
    multiplier_bound: float
    conflict_radius: float
    repair_rounds: int

    def __str__(self) -> str:
        return self.message


class RateBoundSVC(ClassifierMixin, BaseEstimator):
    """Linear classifier with as few errors as possible, subject to goals on named datasets.

    Minimises, over scores ``z = <coef, x> + intercept``, the *expected* rates of the classifier
    that
    decides for the positive label with probability ``σ(z) = min(1, max(0, 1/2 + z))``::

        minimise    objective(σ(z)) + alpha/2 ||coef||^2
        subject to  every goal, in expected rates

    by majorization-minimization: a sequence of convex problems, each solved to a certificate. The
    deterministic rule of ``predict``, positive where ``z + threshold_shift > 0``, is then made to
    meet the goals itself on the training datasets (``threshold="repair"``). The intercept is not
    regularised.

    Parameters
    ----------
    goals : Goals, optional
        What to minimise, subject to what. None minimises the error rate.
    alpha : float, optional
        Weight of the regulariser, the paper's λ; None is 1 / (sum of the training rows' weights).
    solver : {"auto", "interior-point", "augmented-lagrangian", "cutting-plane"} or Solver
        How one convex problem is solved: a name, or a configured solver such as
        ``CuttingPlane(oracle=Liblinear())`` of `ratebound.solvers`.
    tol : float
        Relative decrease at which majorization stops, and the certified relative gap of its last
        convex problem.
    max_iter : int
        Majorization steps at most.
    multiplier_bound : float, optional
        Price of a unit of violation of a goal. None finds one: it starts at ten times the range of
        the objective and grows, at most to 1e6, while goals are missed.
    fit_intercept : bool
    start : {"zero"}
        Where majorization starts; "zero" is the paper's.
    threshold : {"repair", "zero"}
        "repair" searches the cuts of the training scores exactly for the best that meets every goal
        strictly, and tightens bounds and continues where none does; "zero" is the paper's rule.
    n_starts : int
        Number of starts, the first as ``start`` says, the others random; the best fit is kept.
    random_state : int, RandomState or None
        For the random starts only: a fit with one start is deterministic.
    callback : callable, optional
        Called with a `Step` after each majorization step; returning True stops the fit, which then
        keeps what it has.
    verbose : int
        1 prints which solver is used and why, and a line a step.
    time_limit : float, optional
        Seconds after which the best iterate so far is returned, with a warning.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
        ``decision_function(X) = X @ coef_ + intercept_`` is positive where ``predict`` says
        ``classes_[1]``.
    threshold_shift_ : float
        The part of ``intercept_`` that repairs the threshold. ``positive_probability`` and
        ``predict_randomized`` do without it.
    classes_ : ndarray of shape (2,)
    multipliers_ : dict
        By goal label, the multiplier of the last convex problem; a dict by inequality for a family.
    history_ : tuple of Step
    status_ : FitStatus
    report_ : Report
        Goal by goal, on the training datasets.
    n_iter_ : int
        Majorization steps.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from ratebound import Goals, RateBoundSVC, positive_rate, recall
    >>> X, y = make_classification(300, n_features=5, random_state=0)
    >>> goals = Goals(minimize=positive_rate(), subject_to=[recall() >= 0.95])
    >>> clf = RateBoundSVC(goals).fit(X, y)
    >>> clf.report_.met
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "goals": [Goals, None],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "solver": [
            StrOptions({"auto", "interior-point", "augmented-lagrangian", "cutting-plane"}),
            HasMethods("solve"),
        ],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "multiplier_bound": [Interval(Real, 0, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "start": [StrOptions({"zero"})],
        "threshold": [StrOptions({"repair", "zero"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __new__(cls, *args: Any, **parameters: Any) -> RateBoundSVC:
        """Refuse ``class_weight`` with the name of what does its work."""
        if "class_weight" in parameters:
            raise TypeError(
                "RateBoundSVC has no class_weight: say what an error costs in the goals, as in "
                "Goals(minimize=cost(fp=1, fn=5)), or weight rows with fit(sample_weight=)"
            )
        instance: RateBoundSVC = super().__new__(cls)
        return instance

    def __init__(
        self,
        goals: Goals | None = None,
        *,
        alpha: float | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-4,
        max_iter: int = 50,
        multiplier_bound: float | None = None,
        fit_intercept: bool = True,
        start: str = "zero",
        threshold: str = "repair",
        n_starts: int = 1,
        random_state: Any = None,
        callback: Callable[[Step], Any] | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.goals = goals
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.multiplier_bound = multiplier_bound
        self.fit_intercept = fit_intercept
        self.start = start
        self.threshold = threshold
        self.n_starts = n_starts
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.time_limit = time_limit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        baseline: Any = None,
        columns: Any = None,
        datasets: Any = None,
    ) -> RateBoundSVC:
        """Fit to the goals.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
            The rows of the dataset "train"; in the stacked form, of all datasets.
        y : array-like of shape (n,)
            Labels, two classes. NaN is an error: rows without a label belong in a `Dataset` of
            their own or in a stacked dataset whose labels no goal reads.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 is the row twice.
        baseline : array-like of shape (n,), optional
            A deployed model's predictions for these rows, for churn, wins and losses.
        columns : dataframe or mapping of arrays, optional
            What ``where=`` and ``by=`` of the goals refer to, a value a row. The columns of a
            dataframe X serve as well.
        datasets : mapping of str to Dataset, or str, optional
            The other datasets by name, or the name of the column that says which dataset each row
            of X belongs to (see `stack`).

        Returns
        -------
        RateBoundSVC
            Itself.
        """
        if X is None or y is None:
            name, what = ("X", "the rows") if X is None else ("y", "the labels of X")
            raise ValueError(
                f"RateBoundSVC requires {name} to be passed, but the target {name} is None: "
                f"pass {what}"
            )
        before = dict(vars(self))
        try:
            self._fit(X, y, sample_weight, baseline, columns, datasets)
        except BaseException:  # a refit that fails or is interrupted leaves the fit as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, baseline: Any, columns: Any, datasets: Any
    ) -> None:
        goals = self.goals if self.goals is not None else Goals()
        arrays = {id(X): self._validated(X, reset=True)}
        data = bind(
            X, y, sample_weight=sample_weight, baseline=baseline, columns=columns,
            datasets=datasets, pos_label=goals.pos_label, reads_labels=goals.reads_labels,
            reads_baseline=goals.reads_baseline, used=goals.datasets,
        )  # fmt: skip
        for name, dataset in data.datasets.items():
            block = data.blocks[dataset.block]
            if id(block) not in arrays:
                arrays[id(block)] = self._validated_as(name, block)
        warn_of_bad_scaling(arrays[id(X)], getattr(self, "feature_names_in_", None))
        rates = compile_goals(goals, data)
        problem = self._ramp_problem(rates, data, arrays)
        fit, cut, rounds = self._solve(rates, problem)
        self._keep(rates, problem, fit, cut, rounds)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X as a numeric array or CSR matrix, its columns checked against those of the first X."""
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def _validated_as(self, name: str, X: Any) -> Any:
        """The same for another dataset, which is named by what is said of it."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                array = self._validated(X, reset=False)
            except ValueError as error:
                raise ValueError(f"X of dataset {quoted(name)}: {error}") from None
        for warning in caught:
            text = f"X of dataset {quoted(name)}: {warning.message}"
            warnings.warn(text, warning.category, stacklevel=6)
        return array

    def _ramp_problem(
        self, rates: RateProblem, data: BoundData, arrays: dict[int, Any]
    ) -> RampProblem:
        # deferred, as it loads the compiler: `import ratebound` stays light
        from ratebound.rows.memory import MemoryRows
        from ratebound.rows.merge import merge_rows

        rows = MemoryRows(
            [
                merge_rows(arrays[id(block.X)], block.weight, block.cell)
                for block in rates.blocks
                if np.any(block.cell >= 0)
            ],
            len(rates.cost),
        )
        problem = RampProblem.from_rates(
            rows, rates.cost, rates.cost_constant, rates.table, rates.offset,
            alpha=self._alpha(data), multiplier_bound=1.0, fit_intercept=bool(self.fit_intercept),
        )  # fmt: skip
        if self.multiplier_bound is not None:
            return problem.priced(float(self.multiplier_bound))
        return problem.priced(_STARTING_PRICE * (problem.objective_range or 1.0))

    def _alpha(self, data: BoundData) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        weight = data.datasets["train"].weight
        total = float(weight.sum())
        if total < 2.0 < 0.1 * len(weight):
            warnings.warn(
                f"the weights of the {len(weight)} training rows sum to {total:.3g}, so alpha=None "
                f"is {1 / total:.3g} and regularises much; pass alpha=, or weights that average 1",
                UserWarning,
                stacklevel=5,
            )
        return 1.0 / total

    def _solve(self, rates: RateProblem, problem: RampProblem) -> tuple[Majorized, Cut, int]:
        from ratebound.majorize import Majorization
        from ratebound.operating_point import Cut, repair
        from ratebound.solvers.choice import choose_solver

        solver, self._solver_text = choose_solver(self.solver, problem)
        if self.verbose:
            print(f"[RateBoundSVC] {self._solver_text}")
        majorization = Majorization(
            solver, self.tol, self.max_iter, adapt_price=self.multiplier_bound is None
        )
        deadline = None if self.time_limit is None else time.monotonic() + self.time_limit
        fit = self._best_start(problem, majorization, deadline)
        if self.threshold == "zero":
            return fit, Cut(0.0, float("nan"), float("nan")), 0
        done = repair(rates, problem, majorization, fit, on_step=self._on_step, deadline=deadline)
        return done.fit, done.cut, done.rounds

    def _best_start(
        self, problem: RampProblem, majorization: Majorization, deadline: float | None
    ) -> Majorized:
        from ratebound.solvers.base import Start

        best = majorization.run(problem, on_step=self._on_step, deadline=deadline)
        random = check_random_state(self.random_state)
        for _ in range(1, self.n_starts):
            if best.stopped:
                break
            # random directions with scores of the size at which the ramp bends
            coef = random.normal(size=problem.rows.n_features)
            coef *= random.exponential() / max(problem.rows.largest_norm, np.finfo(float).tiny)
            start = Start(coef, 0.0, np.zeros(len(problem.bound)))
            fit = majorization.run(problem, start, on_step=self._on_step, deadline=deadline)
            if fit.better_than(best, self.tol):
                best = fit
        return best

    def _on_step(self, step: Step) -> bool:
        if self.verbose:
            print(f"[RateBoundSVC] {step}")
        return bool(self.callback(step)) if self.callback is not None else False

    # ---- what a fit leaves -------------------------------------------------------------------

    def _keep(
        self, rates: RateProblem, problem: RampProblem, fit: Majorized, cut: Cut, rounds: int
    ) -> None:
        """Copy the fit into attributes, in the signs and labels of the outside."""
        classes = rates.data.classes
        sign = 1.0 if rates.data.pos_label == classes[1] else -1.0
        rows = problem.rows
        strict = rows.decision_sums(fit.coef, fit.intercept - cut.threshold)
        expected = rows.ramp_sums(fit.coef, fit.intercept)
        self.classes_ = classes
        self.coef_ = sign * fit.coef
        self.threshold_shift_ = -sign * cut.threshold
        self.intercept_ = sign * fit.intercept + self.threshold_shift_
        self._sign = sign
        self.history_ = fit.history
        self.n_iter_ = len(fit.history)
        self.multipliers_ = {
            goal.label: _multipliers(goal, fit.solution.multipliers) for goal in rates.goals
        }
        prices, unknown = _prices(rates, fit, expected)
        solution = fit.solution
        certificate = Certificate(
            solution.upper + problem.constant,
            solution.lower + problem.constant,
            solution.gap,
            solution.violation,
        )
        report = build_report(
            rates, strict=strict, expected=expected, prices=prices, price_bounds=unknown,
            certificate=certificate, notes=_notes(rates, strict),
        )  # fmt: skip
        self.status_ = self._status(fit, report, rounds)
        self.report_ = Report(
            report.objective_text, report.objective_strict, report.objective_expected,
            report.goals, report.certificate, str(self.status_), report.notes,
        )  # fmt: skip
        if not (fit.converged and self.status_.goals_met):
            warnings.warn(f"RateBoundSVC: {self.status_}", ConvergenceWarning, stacklevel=5)

    def _status(self, fit: Majorized, report: Report, rounds: int) -> FitStatus:
        said = [fit.why]
        # with the paper's rule it is the expected rates that the fit is about
        met = report.met if self.threshold == "repair" else fit.violation <= self.tol
        if not met:
            missed = [line.label for line in report.goals if not line.met]
            kind = "strictly" if self.threshold == "repair" else "in expectation"
            said.append(
                f"goals missed {kind}: {', '.join(missed) or 'within tol only'}; loosen one "
                "(report_ shows each slack and price), try n_starts=10, or lower alpha"
            )
            if fit.conflict_radius > 0:
                said.append(
                    "the last convex bound is met by no coefficients of norm below "
                    f"{fit.conflict_radius:.3g} (which does not rule out other classifiers)"
                )
        elif rounds:
            said.append(f"goals met strictly after {rounds} rounds of tightening")
        elif not fit.converged:
            said.append("raise max_iter or tol")
        return FitStatus(
            fit.converged, met, "; ".join(said),
            self._solver_text, fit.problem.multiplier_bound,
            fit.conflict_radius, rounds,
        )  # fmt: skip

    # ---- prediction --------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return np.asarray(X @ self.coef_, dtype=np.float64)

    def decision_function(self, X: Any) -> Floats:
        """Scores; positive where ``predict`` says ``classes_[1]``.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._scores(X) + self.intercept_

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Decide by the sign of the score, the same answer every time.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,), labels
        """
        decided = self.decision_function(X) > 0
        return np.asarray(self.classes_[decided.astype(np.intp)])

    def positive_probability(self, X: Any) -> Floats:
        """Probability with which the randomized classifier decides for the positive label.

        It is the ramp ``min(1, max(0, 1/2 + z))`` of the score before any repair of the threshold:
        a rule of decision, not an estimate of the label's probability.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        scores = self._scores(X) + (self.intercept_ - self.threshold_shift_)
        return ramp(self._sign * scores)

    def predict_randomized(
        self, X: Any, random_state: Any = None, keys: Any = None
    ) -> npt.NDArray[Any]:
        """Decide at random with `positive_probability`, the paper's randomized classifier.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        random_state : int, RandomState or None
        keys : array-like of shape (n,), optional
            Integers, strings or bytes that identify rows. Decisions then come from a keyed hash:
            the same key with the same probability gets the same answer every time, in any order.
            `random_state`, an int, selects among hashes.

        Returns
        -------
        ndarray of shape (n,), labels
        """
        positive = draw(self.positive_probability(X), random_state, keys)
        chosen = positive if self._sign > 0 else ~positive
        return np.asarray(self.classes_[chosen.astype(np.intp)])

    @property
    def predict_proba(self) -> Any:
        """Not offered: scores here are rules of decision, not probabilities of labels."""
        raise AttributeError(
            "RateBoundSVC has no predict_proba, as its scores are not probabilities of labels; "
            "positive_probability(X) is the probability with which the randomized classifier "
            "decides for the positive label"
        )


# `__new__` takes anything, to refuse class_weight by name; parameters are those of `__init__`
RateBoundSVC.__signature__ = inspect.signature(RateBoundSVC.__init__).replace(
    parameters=list(inspect.signature(RateBoundSVC.__init__).parameters.values())[1:]
)


def _multipliers(goal: CompiledGoal, multipliers: Floats) -> float | dict[str, float]:
    values = multipliers[goal.rows]
    if not goal.is_family:
        return float(values[0])
    return dict(zip(goal.row_labels, values.tolist(), strict=True))


def _prices(
    rates: RateProblem, fit: Majorized, expected: Floats
) -> tuple[dict[str, float], dict[str, float]]:
    """Price of every goal per unit of its bound, and V of those whose convex bound is missed."""
    prices, unknown = {}, {}
    for goal in rates.goals:
        multipliers = fit.solution.multipliers[goal.rows]
        if np.max(fit.convex_violations[goal.rows], initial=0.0) > 1e-6:
            unknown[goal.label] = fit.problem.multiplier_bound
        # what a unit of the user's bound is worth in the normalised row
        scale: Floats | float = 1.0
        if goal.kind == "group ratio":
            scale = goal.rates(expected)[goal.pairs[:, 1]]
        elif goal.denominators is not None and goal.denominator_constants is not None:
            below = goal.denominators @ expected + goal.denominator_constants
            scale = below[goal.pairs[:, 0]]
        prices[goal.label] = float(np.sum(multipliers * scale))
    return prices, unknown


def _notes(rates: RateProblem, strict: Floats) -> tuple[str, ...]:
    """What a reader of the report should know besides its numbers."""
    total = float(rates.cell_weight.sum())
    positive = float(strict.sum())
    if positive <= 0 or positive >= total:
        which = "negatively" if positive <= 0 else "positively"
        return (f"every training row is decided {which}: of the cuts, only such a one will do",)
    return ()
