"""The paper's fairness experiment on Adult: rate goals beside Zafar et al.'s score gaps.

``python -m benchmarks.zafar`` prints, over a range of bounds, the test error and the observed test
ratio of positive rates, men's over women's (Figure 2 of the paper, left), for

- ``svm``: one support vector machine with ``|<coef, x̄_men - x̄_women>| <= c``, the paper's baseline
  (without a bound: the plain machine);
- ``ramp``: the same goal with the ramp loss majorized to the end, as the rate goals are;
- ``rate``: the paper's goal, positive rate of men <= positive rate of women / κ.

The ratio wanted is known for κ only; what c means is read off the table.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ratebound import Constraint, Goals, RateBoundSVC, error_rate, positive_rate, score_gap
from ratebound.datasets import RealData, load

SCORE_BOUNDS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
RATIOS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WOMEN, MEN = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--no-bias", action="store_true", help="fit_intercept=False, as the paper's experiment"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    adult = load("adult")
    print("method  bound   train error   test error (expected)   test ratio (expected)  train gap")
    problems: list[tuple[str, float | None, list[Constraint], int]] = []
    for steps, name in ((1, "svm"), (50, "ramp")):
        problems.append((name, None, [], steps))
        problems += [(name, c, [score_gap(by="sex") <= c], steps) for c in SCORE_BOUNDS]
    problems += [("rate", kappa, [WOMEN / kappa >= MEN], 50) for kappa in RATIOS]
    for name, bound, goals, steps in problems:
        svc = RateBoundSVC(
            Goals(error_rate(), goals),
            max_iter=steps,
            threshold="zero",
            fit_intercept=not given.no_bias,
        )
        svc.fit(adult.X, adult.y, columns=adult.columns)
        print(row(name, bound, svc, adult))


def row(name: str, bound: float | None, svc: RateBoundSVC, adult: RealData) -> str:
    """One line of the table."""
    test = adult.test
    assert test is not None
    minimize = Goals(error_rate())
    decisions, probability = svc.predict(test.X), svc.positive_probability(test.X)
    strict = minimize.evaluate(predictions=decisions, y=test.y).objective_strict
    soft = minimize.evaluate(probabilities=probability, y=test.y).objective_expected
    women = np.asarray(test.columns["sex"] == "Female")
    positive = decisions == 1
    ratio = positive[~women].mean() / max(positive[women].mean(), 1e-12)
    soft_ratio = probability[~women].mean() / probability[women].mean()
    scores = svc.decision_function(adult.X)
    of_women = np.asarray(adult.columns["sex"] == "Female")
    gap = abs(scores[~of_women].mean() - scores[of_women].mean())
    train = float(np.mean(svc.predict(adult.X) != adult.y))
    limit = "" if bound is None else f"{bound:g}"
    return (
        f"{name:6s} {limit:>6s} {train:13.4f} {strict:12.4f} ({soft:.4f}) "
        f"{ratio:18.3f} ({soft_ratio:.3f}) {gap:12.5f}"
    )


if __name__ == "__main__":
    main()
