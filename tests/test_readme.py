"""The README's example and the documentation's blocks run, and print what the README shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from ratebound import Dataset, RateBoundSVC

ROOT = Path(__file__).resolve().parents[1]


def blocks(file: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


def test_the_example_prints_the_report_that_the_readme_shows() -> None:
    [code] = blocks("README.md", "python")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    [shown] = re.findall(r"```\n(goal .*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # the last digits of prices and of the certificate may differ between machines
    table = [
        line.rsplit(maxsplit=2)[0] for line in shown.splitlines() if "≥" in line or "≤" in line
    ]
    lines = [
        line.rsplit(maxsplit=2)[0]
        for line in printed.getvalue().splitlines()
        if "≥" in line or "≤" in line
    ]
    assert [re.sub(r"\s+", " ", line) for line in lines] == [
        re.sub(r"\s+", " ", line) for line in table
    ]
    assert "all 3 goals are met" in printed.getvalue()


@pytest.mark.parametrize("page", ["goals", "data", "selection", "kernels", "experiments"])
def test_the_blocks_of_a_page_run_one_after_the_other(page: str) -> None:
    """With what they speak of as given: an audited sample, traffic, a deployed model."""
    X, y = make_classification(900, n_features=4, class_sep=2, random_state=0)
    deployed = LogisticRegression().fit(X[:100], y[:100])
    given: dict[str, Any] = {
        "X": X[:400], "y": y[:400], "X_audit": X[400:700], "y_audit": y[400:700],
        "X_traffic": X[700:], "X_new": X[700:], "deployed": deployed, "Dataset": Dataset,
        "clf": RateBoundSVC(),
    }  # fmt: skip
    code = blocks(f"docs/{page}.md", "python")
    assert code
    with contextlib.redirect_stdout(io.StringIO()), config_context():
        for block in code:
            exec(compile(block, f"docs/{page}.md", "exec"), given)
