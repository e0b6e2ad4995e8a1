"""What ``ratebound demo`` shows: training under goals on real data, told step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from textwrap import fill, indent
from typing import Any

_MALIGNANT, _BENIGN = "malignant", "benign"


# --- breast-cancer: a successor for a deployed model ----------------------------------------------


def _demo_breast_cancer(seed: int) -> None:
    _title("The data")
    _say(
        "569 tumours, 30 measurements of each, from scikit-learn (breast cancer, Wisconsin). "
        "A positive decision says: malignant."
    )

    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from ratebound import (
        Dataset,
        Goals,
        RateBoundSVC,
        churn,
        error_rate,
        positive_rate,
        recall,
    )

    bunch = load_breast_cancer()
    y = np.where(bunch.target == 0, _MALIGNANT, _BENIGN)
    rest = np.arange(len(y))
    parts = {}
    for name, size in {"early": 80, "train": 150, "audit": 120, "traffic": 100}.items():
        parts[name], rest = train_test_split(
            rest, train_size=size, stratify=y[rest], random_state=seed
        )
    known = np.concatenate([parts["early"], parts["train"]])
    X = StandardScaler().fit(bunch.data[known]).transform(bunch.data)
    early, train, audit, traffic, test = *(X[rows] for rows in parts.values()), X[rest]
    y_early, y_train, y_audit = y[parts["early"]], y[parts["train"]], y[parts["audit"]]
    _say(
        f"They are split at random into {len(early)} early rows, {len(train)} to train on, "
        f"{len(audit)} audited ones, {len(traffic)} of traffic whose labels nobody looks at, and "
        f"{len(test)} that are kept aside."
    )

    _title("A deployed model")
    deployed = LogisticRegression(C=0.05).fit(early, y_early)
    found = float(np.mean(deployed.predict(audit[y_audit == _MALIGNANT]) == _MALIGNANT))
    _say(
        f"A logistic regression, trained on the early rows. It finds {found:.1%} of the malignant "
        "tumours among the audited ones. People rely on its decisions, so its successor should "
        "change only a few of them, find at least 97 % of the audited tumours, and not do so by "
        "flagging everybody."
    )

    _title("Goals for its successor")
    goals = Goals(
        minimize=error_rate(),
        subject_to=[
            recall(on="audit") >= 0.97,
            churn(on="traffic") <= 0.06,
            positive_rate(on="traffic") <= 0.4,
        ],
        pos_label=_MALIGNANT,
    )
    print(indent(str(goals), "  "))

    _title("Training")
    _say("The first run on a machine compiles for a few seconds.")
    successor = _fit(
        RateBoundSVC(goals, verbose=1),
        train,
        y_train,
        datasets={
            "audit": Dataset(audit, y_audit),
            "traffic": Dataset(traffic, baseline=deployed.predict(traffic)),
        },
    )

    _title("Report")
    print(successor.report_)

    _title("On the rows kept aside")
    held_out = {
        "audit": Dataset(test, y[rest]),
        "traffic": Dataset(test, baseline=deployed.predict(test)),
    }
    after = goals.evaluate(successor, test, y[rest], datasets=held_out)
    before = goals.evaluate(deployed, test, y[rest], datasets=held_out)
    print(after)
    _say(
        f"The deployed model finds {before.goals[0].strict:.1%} of the malignant tumours among "
        f"these rows, with an error rate of {before.objective_strict:.1%}; its successor finds "
        f"{after.goals[0].strict:.1%}, with an error rate of {after.objective_strict:.1%}."
    )
    _say_what_held_out_means(after.met)

    _title("What to try next")
    _say("- Another split: ratebound demo --seed 1")
    _say("- The 80 % rule on census data: ratebound demo --data adult")
    _say(
        '- Your own data: RateBoundSVC(goals).fit(X, y, datasets={"audit": Dataset(X2, y2), ...}); '
        "the README has 15 lines to start from, and docs/goals.md lists every rate."
    )
    _say("- Any classifier you have: goals.evaluate(model, X, y, datasets=...) prints its report.")


# --- adult: the 80 % rule -------------------------------------------------------------------------


def _demo_adult(seed: int) -> None:
    _title("The data")

    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from ratebound import Goals, RateBoundSVC, error_rate, positive_rate
    from ratebound.datasets import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tries that failed; the error says what to do
        adult = load("adult")
    test = adult.test
    assert test is not None
    _say(
        f"Adult: {len(adult.y)} people of a census to train on and {len(test.y)} to test with. "
        "A positive decision says: earns more than 50,000 dollars a year."
    )
    rates = {sex: np.mean(adult.y[adult.columns["sex"] == sex] == 1) for sex in ("Female", "Male")}
    _say(f"That is true of {rates['Female']:.1%} of the women and {rates['Male']:.1%} of the men.")

    _title("The goal: the 80 % rule")
    goals = Goals(error_rate(), [positive_rate(by="sex").ratio() >= 0.8])
    print(indent(str(goals), "  "))
    _say(
        "Women are to get positive decisions at no less than 80 % of the rate of men, and men "
        "at no less than 80 % of the rate of women."
    )

    _title("A logistic regression without the goal, on the test rows")
    plain = LogisticRegression(max_iter=1000).fit(adult.X, adult.y)
    before = goals.evaluate(plain, test.X, test.y, columns=test.columns)
    print(before)

    _title("Training with the goal")
    _say("The first run on a machine compiles for a few seconds.")
    fair = _fit(RateBoundSVC(goals, verbose=1), adult.X, adult.y, columns=adult.columns)

    _title("Report")
    print(fair.report_)

    _title("On the test rows")
    after = goals.evaluate(fair, test.X, test.y, columns=test.columns)
    print(after)
    _say(
        f"The ratio of the two rates is {after.goals[0].strict:.2f}, and was "
        f"{before.goals[0].strict:.2f} without the goal. The error rate is "
        f"{after.objective_strict:.1%}, and was {before.objective_strict:.1%}."
    )
    _say_what_held_out_means(after.met)

    _title("What to try next")
    _say("- Equal recall instead: Goals(error_rate(), [recall(by='sex').gap() <= 0.02])")
    _say("- Several columns: positive_rate(by=['sex', 'age']).ratio() >= 0.5")
    _say("- Goals on several datasets: ratebound demo")


# --- what both share ------------------------------------------------------------------------------


def _fit(classifier: Any, X: Any, y: Any, **given: Any) -> Any:
    """Fit without the warning about goals missed: the report that follows says so too."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(X, y, **given)


def _say_what_held_out_means(met: bool) -> None:
    here = "they are met" if met else "not all are met"
    _say(
        "Goals hold on the data they were trained on. On new rows rates differ by chance, the more "
        f"the fewer rows there are; here {here}. A bound with some room to spare helps."
    )


def _title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def _say(text: str) -> None:
    print(fill(text, 100, subsequent_indent="  " if text.startswith("- ") else ""), flush=True)


DEMOS: dict[str, Callable[[int], None]] = {
    "breast-cancer": _demo_breast_cancer,
    "adult": _demo_adult,
}
