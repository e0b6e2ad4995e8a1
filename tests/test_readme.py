"""The README's example and the documentation's blocks run, and print what the README shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("number", range(2))
def test_the_language_as_documented(number: int) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(blocks("docs/goals.md", "python")[number], "docs/goals.md", "exec"), {})
