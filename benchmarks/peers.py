"""Every system in one small function: the closest statement of each problem that it has.

Each takes a `Task`, imports its system, and returns the fit that is timed and the function that
asks the fitted model for its decisions. What cannot be stated raises `Inexpressible`, with what is
missing. Nothing here imports ratebound or a peer before a system is asked for.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.ours import (
    path_default,
    path_single_fits,
    path_tight,
    ratebound,
    ratebound_alpha,
    ratebound_convex,
)
from benchmarks.task import (
    RATIOS,
    THREADS,
    Answer,
    Inexpressible,
    Shares,
    System,
    Task,
    decided,
    of_scores,
)

STEPS = 1000  # full-batch steps of the systems that follow gradients
PRIMAL_RATE, DUAL_RATE = 0.02, 0.05  # cooper's, of those tried the ones that end nearest the goals
BISECTIONS = 6  # fits in search of a bound that the system states in other units


def _needs(task: Task, *problems: str, why: str) -> None:
    if task.problem not in problems:
        raise Inexpressible(why)


def _met(task: Task, decided: np.ndarray) -> bool:
    """Whether decisions for the training rows meet the goals."""
    return all(
        sum(coefficient * np.mean(decided[rows]) for coefficient, rows in shares.parts)
        <= -shares.constant
        for shares in task.constraints
    )


# --- scikit-learn ---------------------------------------------------------------------------------


def liblinear(task: Task) -> Any:
    """The floor: one plain linear SVM, no goal."""
    from sklearn.svm import LinearSVC

    svc = LinearSVC(loss="hinge", C=2, tol=1e-3)
    return lambda: svc.fit(task.X, task.y), lambda m: decided(task, m, {"passes": float(m.n_iter_)})


def libsvm(task: Task) -> Any:
    """One plain linear SVM by LIBSVM, no goal."""
    from sklearn.svm import SVC

    svc = SVC(kernel="linear", C=2, tol=1e-3, cache_size=500)
    return lambda: svc.fit(task.X, task.y), lambda m: decided(
        task, m, {"iterations": float(m.n_iter_[0])}
    )


def moved_threshold(task: Task) -> Any:
    """A plain linear SVM whose threshold is moved until the goal holds on the training rows."""
    from sklearn.svm import LinearSVC

    _needs(task, "recall", why="one threshold meets one goal; these are several")

    def fit() -> Any:
        svc = LinearSVC(loss="hinge", C=2, tol=1e-3).fit(task.X, task.y)
        scores = np.sort(svc.decision_function(task.X)[task.y == 1])[::-1]
        last = scores[int(np.ceil(task.numbers["recall"] * len(scores))) - 1]
        return svc, last

    def answer(fitted: Any) -> Answer:
        svc, last = fitted
        return Answer(*[(svc.decision_function(X) >= last) for X in (task.X, task.X_test)])

    return fit, answer


# --- fairlearn ------------------------------------------------------------------------------------


def _parity(task: Task) -> Any:
    """fairlearn's closest statement: it compares every group with the average, not pairs."""
    from fairlearn.reductions import DemographicParity, EqualizedOdds

    if task.problem in RATIOS:
        # the lower of two groups is kappa times the higher where it is this share of the average
        kappa, women = task.numbers["ratio"], float(np.mean(~task.men))
        return DemographicParity(ratio_bound=kappa / (kappa * women + 1 - women))
    if task.problem == "six":
        return EqualizedOdds(difference_bound=task.numbers["gap"] / 2)
    raise Inexpressible("no bound on a rate itself, only parity of groups")


def _exponentiated(task: Task, base: Any) -> Any:
    from fairlearn.reductions import ExponentiatedGradient

    sides = (task.X.toarray(), task.X_test.toarray())  # it takes no sparse rows

    def fit() -> Any:
        reduction = ExponentiatedGradient(base, constraints=_parity(task))
        return reduction.fit(sides[0], task.y, sensitive_features=task.men)

    def answer(fitted: Any) -> Answer:
        soft = [fitted._pmf_predict(X)[:, 1] for X in sides]
        hard = [fitted.predict(X, random_state=0) for X in sides]
        counts = {"iterations": float(fitted.last_iter_ + 1), "fits": float(fitted.n_oracle_calls_)}
        return Answer(*hard, *map(_probability, soft), counts)

    _parity(task)
    return fit, answer


def _probability(values: Any) -> np.ndarray:
    return np.clip(np.asarray(values, dtype=float), 0.0, 1.0)


def exponentiated_svc(task: Task) -> Any:
    from sklearn.svm import LinearSVC

    return _exponentiated(task, LinearSVC(loss="hinge", C=2, tol=1e-3))


def exponentiated_logistic(task: Task) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _exponentiated(task, LogisticRegression(max_iter=1000))


def threshold_optimizer(task: Task) -> Any:
    """A threshold a group, drawn at random between two; parity is exact or within a difference."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.linear_model import LogisticRegression

    _needs(task, *RATIOS, "six", why="no bound on a rate itself, only parity of groups")
    parity = "demographic_parity" if task.problem in RATIOS else "equalized_odds"
    # A ratio of 0.8 has no counterpart: rates of the groups are equal, the ratio 1.
    optimizer = ThresholdOptimizer(
        estimator=LogisticRegression(max_iter=1000), constraints=parity,
        objective="accuracy_score", predict_method="decision_function",
    )  # fmt: skip

    sides = ((task.X.toarray(), task.men), (task.X_test.toarray(), task.men_test))

    def fit() -> Any:
        return optimizer.fit(sides[0][0], task.y, sensitive_features=task.men)

    def answer(fitted: Any) -> Answer:
        soft = [fitted._pmf_predict(X, sensitive_features=men)[:, 1] for X, men in sides]
        hard = [fitted.predict(X, sensitive_features=men, random_state=0) for X, men in sides]
        return Answer(*hard, *map(_probability, soft))

    return fit, answer


# --- scikit-lego, OxonFair ------------------------------------------------------------------------


def scikit_lego(task: Task) -> Any:
    """A bound on the covariance of score and group, found by bisection until the goal holds."""
    from cvxpy.error import SolverError
    from sklego.linear_model import DemographicParityClassifier

    _needs(task, *RATIOS, why="only a bound on the covariance of score and group")
    sides = [
        np.column_stack([X.toarray(), men])
        for X, men in ((task.X, task.men), (task.X_test, task.men_test))
    ]

    def fit() -> Any:
        low, high, best, model = 0.0, 0.2, None, None
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            fair = DemographicParityClassifier(
                covariance_threshold=middle, sensitive_cols=[task.X.shape[1]]
            )
            try:
                model = fair.fit(sides[0], task.y)
            except SolverError:  # below the covariance that its own solver copes with
                low = middle
                continue
            if _met(task, model.predict(sides[0])):
                low, best = middle, model
            else:
                high = middle
        return best if best is not None else model

    def answer(fitted: Any) -> Answer:
        decided = [fitted.predict(X) for X in sides]
        return Answer(*decided, counts={"fits": float(BISECTIONS)})

    return fit, answer


def oxonfair(task: Task) -> Any:
    """Thresholds on a logistic regression's scores by grid: one a group, or one for all."""
    import pandas as pd
    from oxonfair import FairPredictor
    from oxonfair.utils import group_metrics
    from sklearn.linear_model import LogisticRegression

    _needs(task, *RATIOS, "recall", why="one constraint besides the objective on its fast path")
    names = [f"x{j}" for j in range(task.X.shape[1])]
    parts = [
        {"data": pd.DataFrame(X.toarray(), columns=names), "target": y, "groups": men.astype(int)}
        for X, y, men in ((task.X, task.y, task.men), (task.X_test, task.y_test, task.men_test))
    ]

    def fit() -> Any:
        model = LogisticRegression(max_iter=1000).fit(parts[0]["data"], task.y)
        if task.problem in RATIOS:
            fair = FairPredictor(model, parts[0])
            fair.fit(group_metrics.accuracy, group_metrics.disparate_impact, task.numbers["ratio"])
        else:
            one = {**parts[0], "groups": np.zeros(len(task.y), dtype=int)}
            fair = FairPredictor(model, one)
            bound = task.numbers["recall"]
            fair.fit(group_metrics.false_pos_rate, group_metrics.recall, bound, grid_width=1000)
        return fair

    def answer(fair: Any) -> Answer:
        given = parts
        if task.problem == "recall":
            given = [{**p, "groups": np.zeros(len(p["target"]), dtype=int)} for p in parts]
        return Answer(*[np.asarray(fair.predict(p)).astype(int) for p in given])

    return fit, answer


# --- gradients ------------------------------------------------------------------------------------


def cooper(task: Task) -> Any:
    """A linear torch model, 1,000 full steps: proxies descend, true rates move multipliers."""
    import cooper as package
    import torch

    torch.set_num_threads(THREADS)
    X = torch.tensor(task.X.toarray(), dtype=torch.float32)
    signs = torch.tensor(2.0 * task.y - 1, dtype=torch.float32)
    negative = torch.tensor(task.y == 0)

    def rates(shares: Shares) -> Any:
        weights = np.zeros(len(task.y))
        for coefficient, rows in shares.parts:
            weights[rows] += coefficient / rows.sum()
        return torch.tensor(weights, dtype=torch.float32), shares.constant

    constraints = [rates(shares) for shares in task.constraints]
    if not constraints:
        raise Inexpressible("nothing to constrain")
    table = torch.stack([weights for weights, _ in constraints])
    constants = torch.tensor([constant for _, constant in constraints])

    class Problem(package.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            multiplier = package.multipliers.DenseMultiplier(num_constraints=len(constraints))
            self.goals = package.Constraint(
                constraint_type=package.ConstraintType.INEQUALITY,
                formulation_type=package.formulations.Lagrangian,
                multiplier=multiplier,
            )

        def compute_cmp_state(self, model: Any) -> Any:
            z = model(X)[:, 0]
            hinge = torch.relu(1 - signs * z)
            loss = hinge[negative].mean() if task.problem == "recall" else hinge.mean()
            proxy = table @ torch.sigmoid(z) + constants
            strict = table @ (z.detach() > 0).float() + constants
            state = package.ConstraintState(violation=proxy, strict_violation=strict)
            return package.CMPState(loss=loss, observed_constraints={self.goals: state})

    def fit() -> Any:
        torch.manual_seed(0)
        model = torch.nn.Linear(X.shape[1], 1)
        problem = Problem()
        primal = torch.optim.Adam(model.parameters(), lr=PRIMAL_RATE)
        dual = torch.optim.SGD(problem.dual_parameters(), lr=DUAL_RATE, maximize=True)
        optimizer = package.optim.SimultaneousOptimizer(problem, primal, dual)
        for _ in range(STEPS):
            optimizer.roll(compute_cmp_state_kwargs={"model": model})
        return model

    def answer(model: Any) -> Answer:
        coef = model.weight.detach().numpy()[0].astype(np.float64)
        return of_scores(
            task, coef, float(model.bias.detach()[0]), {"steps": STEPS, "passes": 2.0 * STEPS}
        )

    return fit, answer


def tfco(task: Task) -> Any:
    """TensorFlow Constrained Optimization: the goals as rates, 1,000 full-batch steps.

    Its last release (0.2, of 2020) knows the optimizers of TensorFlow up to 2.10 only.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    import tensorflow_constrained_optimization as package

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)

    class Optimizer(package.ProxyLagrangianOptimizerV2):
        # its last release is older than this argument, which TensorFlow passes since
        def _compute_gradients(
            self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
        ) -> Any:
            return super()._compute_gradients(loss, var_list, grad_loss)

    X = tf.constant(task.X.toarray(), dtype=tf.float32)
    labels = tf.constant(task.y[:, None], dtype=tf.float32)

    def fit() -> Any:
        coef = tf.Variable(tf.zeros((task.X.shape[1], 1)))
        bias = tf.Variable(0.0)
        context = package.rate_context(lambda: tf.matmul(X, coef) + bias, labels=lambda: labels)

        def subset(rows: np.ndarray) -> Any:
            where = tf.constant(rows[:, None])
            return context.subset(lambda: where)

        goals = []
        for shares in task.constraints:
            rate = shares.constant
            for coefficient, rows in shares.parts:
                rate = rate + coefficient * package.positive_prediction_rate(subset(rows))
            goals.append(rate <= 0)
        objective = package.error_rate(context)
        if task.problem == "recall":
            objective = package.positive_prediction_rate(subset(task.y == 0))
        problem = package.RateMinimizationProblem(objective, goals)
        optimizer = Optimizer(
            optimizer=tf.keras.optimizers.Adam(0.02),
            constraint_optimizer=tf.keras.optimizers.SGD(0.5),
            num_constraints=problem.num_constraints,
        )

        def variables() -> Any:
            return [
                coef, bias, *problem.trainable_variables, *optimizer.trainable_variables(),
            ]  # fmt: skip

        @tf.function
        def step() -> Any:
            optimizer.minimize(problem, var_list=variables())

        for _ in range(STEPS):
            step()
        return coef.numpy()[:, 0].astype(np.float64), float(bias.numpy())

    return fit, lambda model: of_scores(task, *model, {"steps": STEPS, "passes": 2.0 * STEPS})


# --- convex ---------------------------------------------------------------------------------------


def clarabel(task: Task) -> Any:
    """The convex problem at the anchor zero in cvxpy, by Clarabel at its default tolerances."""
    import cvxpy as cp

    _needs(task, "convex", why="not convex")
    n, d = task.X.shape
    positive = task.y == 1

    def fit() -> Any:
        w, b, up, down = cp.Variable(d), cp.Variable(), cp.Variable(n), cp.Variable(n)
        z = task.X @ w + b  # up >= max(0, 1/2 + z), down >= max(0, 1/2 - z)
        bounds = [up >= 0, up >= 0.5 + z, down >= 0, down >= 0.5 - z]
        for shares in task.constraints:
            value = 0.0
            for coefficient, rows in shares.parts:
                weight = np.where(rows, abs(coefficient) / rows.sum(), 0.0)
                if coefficient > 0:
                    value = value + weight @ up
                else:  # -σ(z) is σ(-z) - 1
                    value = value + weight @ down + coefficient
            bounds.append(value <= -shares.constant)
        charge = (~positive / n) @ up + (positive / n) @ down
        problem = cp.Problem(cp.Minimize(charge + cp.sum_squares(w) / (2 * n)), bounds)
        problem.solve(solver=cp.CLARABEL)
        return w.value, float(b.value), problem

    def answer(found: Any) -> Answer:
        coef, intercept, problem = found
        counts = {"iterations": float(problem.solver_stats.num_iters)}
        return of_scores(task, coef, intercept, counts, float(problem.value))

    return fit, answer


#: By the name that tables print.
SYSTEMS: dict[str, System] = {
    "LIBLINEAR, no goal": liblinear,
    "LIBSVM, no goal": libsvm,
    "LIBLINEAR, threshold moved": moved_threshold,
    "ratebound": ratebound,
    "ratebound, alpha by CV": ratebound_alpha,
    "fairlearn EG, LinearSVC": exponentiated_svc,
    "fairlearn EG, LogisticRegression": exponentiated_logistic,
    "fairlearn ThresholdOptimizer": threshold_optimizer,
    "cooper": cooper,
    "scikit-lego": scikit_lego,
    "OxonFair": oxonfair,
    "TFCO": tfco,
    "ratebound, convex problem": ratebound_convex,
    "cvxpy, Clarabel": clarabel,
    "ratebound, path to 1e-3": path_default,
    "ratebound, path to 1e-4": path_tight,
    "ratebound, 50 single fits": path_single_fits,
}
