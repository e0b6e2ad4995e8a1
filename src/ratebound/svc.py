"""`RateBoundSVC`: the linear or kernel classifier that meets goals, as a scikit-learn estimator."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

from ratebound.certify import Facts
from ratebound.compile import compile_goals
from ratebound.data import BoundData, bind, check_features, warn_of_bad_scaling
from ratebound.goals import Goals
from ratebound.kernel_functions import Kernel, named_kernel
from ratebound.outcome import Solved, fit_status, goal_multipliers, goal_prices, notes
from ratebound.prediction import Prediction
from ratebound.problem import RateProblem
from ratebound.ramp import RampProblem
from ratebound.report import Certificate, Report, build_report
from ratebound.terms import quoted

if TYPE_CHECKING:
    from ratebound.kernel_model import FitRows
    from ratebound.majorize import Step
    from ratebound.solvers.base import Solver, Start

Floats = npt.NDArray[np.float64]

_STARTING_PRICE = 10.0  # of a unit of violation, in ranges of the objective


class RateBoundSVC(Prediction, ClassifierMixin, BaseEstimator):
    """Linear or kernel classifier with as few errors as possible, subject to goals on datasets.

    Minimises, over scores ``z = <coef, x> + intercept``, the *expected* rates of the classifier
    that decides for the positive label with probability ``σ(z) = min(1, max(0, 1/2 + z))``::

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
    solver : {"auto", "interior-point", "augmented-lagrangian", "alternating-directions", \
            "cutting-plane"} or Solver
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
        Where False, the repair of the threshold still moves the cut of ``predict`` from zero.
    start : {"homotopy", "zero"}
        Where majorization starts: "zero" is the paper's; "homotopy" follows a smoothed ramp from
        zero to a start close to the end, which takes a fraction of the time. Where it stalls, with
        kernels other than the linear one, with the augmented Lagrangian and with alternating
        directions, that start is zero too (`status_` says so).
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
        Seconds of solving after which the best iterate so far is returned, with a warning; looked
        at after every Newton step.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable
        With a kernel, coef is a combination of rows in its feature space, and all bounds are those
        of the kernel itself. A callable maps two arrays of rows to the values of all pairs. With
        "precomputed", X holds the kernel between all rows (those of other datasets too, in the
        stacked form), and at prediction that of the new rows with all of them.
    gamma : {"scale", "auto"} or float
        Of "rbf" and "poly"; "scale" is 1 / (n_features * variance of the entries of the training
        rows), "auto" is 1 / n_features.
    degree : float
        Of "poly".
    coef0 : float
        Of "poly".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        With a kernel there is none, but ``dual_coef_``.
    dual_coef_ : ndarray of shape (1, n_support)
        With a kernel: ``decision_function(X) = k(X, support_vectors_) @ dual_coef_[0] +
        intercept_``.
    support_ : ndarray of shape (n_support,)
        With a kernel: numbers of the support rows, those of X first, then those of each other
        dataset that goals read.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        With a kernel; empty where it is precomputed.
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
            StrOptions(
                {
                    "auto",
                    "interior-point",
                    "augmented-lagrangian",
                    "alternating-directions",
                    "cutting-plane",
                }
            ),
            HasMethods("solve"),
        ],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "multiplier_bound": [Interval(Real, 0, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "start": [StrOptions({"zero", "homotopy"})],
        "threshold": [StrOptions({"repair", "zero"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "kernel": [str, callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
    }

    def __new__(cls, *args: Any, **parameters: Any) -> RateBoundSVC:
        """Refuse ``class_weight`` and ``C`` with the name of what does their work."""
        if "C" in parameters:
            raise TypeError(
                "RateBoundSVC has no C, but alpha, the weight of the regulariser beside the mean "
                "loss: C of an SVC on n rows is alpha=1/(n * C)"
            )
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
        start: str = "homotopy",
        threshold: str = "repair",
        n_starts: int = 1,
        random_state: Any = None,
        callback: Callable[[Step], Any] | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
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
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.sparse = not precomputed
        tags.input_tags.pairwise = precomputed
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
        data, arrays = self._bound(X, y, sample_weight, baseline, columns, datasets)
        rates = compile_goals(self._goals(), data)
        problem, source = self._ramp_problem(rates, data, arrays)
        self._keep(rates, problem, self._solve(rates, problem), source)

    def _goals(self) -> Goals:
        return self.goals if self.goals is not None else Goals()

    def _bound(
        self, X: Any, y: Any, sample_weight: Any, baseline: Any, columns: Any, datasets: Any
    ) -> tuple[BoundData, dict[int, Any]]:
        """What goals read of the data, and every X as a numeric array, by its identity."""
        goals = self._goals()
        if self.kernel == "precomputed" and isinstance(datasets, Mapping) and datasets:
            raise ValueError(
                'kernel="precomputed" needs the kernel between the rows of all datasets: stack '
                "them (see ratebound.stack), pass the kernel between all stacked rows as X, and "
                "the name of the column that says which dataset a row belongs to as datasets="
            )
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
        if self.kernel != "precomputed":
            warn_of_bad_scaling(arrays[id(X)], getattr(self, "feature_names_in_", None))
        return data, arrays

    def _named_kernel(self, data: BoundData, arrays: Mapping[int, Any]) -> Kernel:
        """The kernel of the parameters; gamma="scale" is of the rows of the dataset "train"."""
        train = data.datasets["train"]
        X = arrays[id(data.blocks[train.block])]
        rows = X if train.rows is None else X[train.rows]
        return named_kernel(self.kernel, self.gamma, self.degree, self.coef0, rows, train.weight)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X as a numeric array or CSR matrix, its columns checked against those of the first X."""
        check_features(X)
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
        self, rates: RateProblem, data: BoundData, arrays: Mapping[int, Any]
    ) -> tuple[RampProblem, FitRows]:
        """The ramp problem over the rows that take part, and where these come from."""
        # deferred, as it loads the compiler: `import ratebound` stays light
        from ratebound.kernel_model import fit_rows
        from ratebound.rows.gaps import with_gap_rows

        kernel = self._named_kernel(data, arrays)
        if rates.score_gaps and kernel.kind != "linear":
            raise ValueError(
                "score_gap() is about the mean rows of groups, which are linear in the features: "
                'use kernel="linear"'
            )
        blocks = [replace(block, X=arrays[id(block.X)]) for block in rates.blocks]
        source = fit_rows(kernel, blocks, len(rates.cost))
        parts = [(block.X, block.weight, block.cell) for block in blocks]
        problem = RampProblem.from_rates(
            with_gap_rows(source.rows, rates.score_gaps, parts),
            rates.cost, rates.cost_constant, rates.table, rates.offset,
            alpha=self._alpha(data), multiplier_bound=1.0, fit_intercept=bool(self.fit_intercept),
        )  # fmt: skip
        price = self.multiplier_bound
        if price is None:
            price = _STARTING_PRICE * (problem.objective_range or 1.0)
        return problem.priced(float(price)), source

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

    def _solve(
        self, rates: RateProblem, problem: RampProblem, start: Start | None = None
    ) -> Solved:
        """Solve as the parameters say, or by majorization from a given start (see `paths`)."""
        from ratebound.homotopy import Homotopy
        from ratebound.majorize import WARM_GAP, Majorization
        from ratebound.operating_point import Cut, repair
        from ratebound.solvers.alternating_directions import AlternatingDirections
        from ratebound.solvers.augmented_lagrangian import AugmentedLagrangian
        from ratebound.solvers.choice import choose_solver

        solver, why = choose_solver(self.solver, problem)
        if self.verbose:
            print(f"[RateBoundSVC] {why}")
        # The path needs columns, which rows of a kernel have only by their factor, and its Newton
        # steps factorise what these solvers are chosen for not to be factorised, or only once.
        cheap = isinstance(solver, AugmentedLagrangian | AlternatingDirections)
        path = self.kernel == "linear" and not cheap
        majorization = Majorization(
            solver, self.tol, self.max_iter, adapt_price=self.multiplier_bound is None,
            homotopy=Homotopy() if self.start == "homotopy" and path else None,
        )  # fmt: skip
        deadline = None if self.time_limit is None else time.monotonic() + self.time_limit
        if start is None:
            fit = majorization.best_of(
                problem, self.n_starts, check_random_state(self.random_state),
                on_step=self._on_step, deadline=deadline,
            )  # fmt: skip
        else:
            warm = replace(majorization, first_gap=WARM_GAP)
            fit = warm.run(problem, start, on_step=self._on_step, deadline=deadline)
        if self.threshold == "zero":
            return Solved(fit, Cut(0.0, float("nan"), float("nan"), float("nan")), 0, why)
        done = repair(rates, problem, majorization, fit, on_step=self._on_step, deadline=deadline)
        return Solved(done.fit, done.cut, done.rounds, why)

    def _on_step(self, step: Step) -> bool:
        if self.verbose:
            print(f"[RateBoundSVC] {step}")
        return bool(self.callback(step)) if self.callback is not None else False

    # ---- what a fit leaves -------------------------------------------------------------------

    def _keep(
        self, rates: RateProblem, problem: RampProblem, solved: Solved, source: FitRows
    ) -> None:
        """Copy the fit into attributes, in the signs and labels of the outside."""
        fit, cut = solved.fit, solved.cut
        classes = rates.data.classes
        sign = 1.0 if rates.data.pos_label == classes[1] else -1.0
        rows = problem.rows
        strict = rows.decision_sums(fit.coef, fit.intercept - cut.threshold)
        expected = rows.ramp_sums(fit.coef, fit.intercept)
        expected[rates.gap_cells] = strict[rates.gap_cells]  # scores are the same by both rules
        self.classes_ = classes
        self._keep_model(sign * fit.coef, source)
        self.threshold_shift_ = -sign * cut.threshold
        self.intercept_ = sign * fit.intercept + self.threshold_shift_
        self._sign = sign
        self.history_ = fit.history
        self.n_iter_ = len(fit.history)
        self.multipliers_ = {
            goal.label: goal_multipliers(goal, fit.solution.multipliers) for goal in rates.goals
        }
        self._facts = None
        if not rates.score_gaps:
            free = self.multiplier_bound is None
            self._facts = Facts.of(
                rates, fit.problem, fit.coef,
                first_price=problem.multiplier_bound if free else None,
            )  # fmt: skip
        prices, unknown = goal_prices(rates, fit, expected)
        solution = fit.solution
        certificate = Certificate(
            solution.upper + problem.constant,
            solution.lower + problem.constant,
            solution.gap,
            solution.violation,
        )
        report = build_report(
            rates, strict=strict, expected=expected, prices=prices, price_bounds=unknown,
            certificate=certificate, notes=notes(rates, strict),
        )  # fmt: skip
        self.status_ = fit_status(solved, report, self.threshold, self.tol)
        self.report_ = Report(
            report.objective_text, report.objective_strict, report.objective_expected,
            report.goals, report.certificate, str(self.status_), report.notes,
        )  # fmt: skip
        if not (fit.converged and self.status_.goals_met):
            warnings.warn(f"RateBoundSVC: {self.status_}", ConvergenceWarning, stacklevel=5)

    def _keep_model(self, coef: Floats, source: FitRows) -> None:
        for name in ("support_", "dual_coef_", "support_vectors_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._expansion = source.expansion(coef)
        self._coef = coef if self._expansion is None else None
        if self._expansion is None:
            return
        self.support_ = self._expansion.support
        self.dual_coef_ = self._expansion.factors[None]
        vectors = self._expansion.vectors
        self.support_vectors_ = np.zeros((0, 0)) if vectors is None else vectors


# `__new__` takes anything, to refuse some by name; parameters are those of `__init__`
RateBoundSVC.__signature__ = inspect.signature(RateBoundSVC.__init__).replace(
    parameters=list(inspect.signature(RateBoundSVC.__init__).parameters.values())[1:]
)
