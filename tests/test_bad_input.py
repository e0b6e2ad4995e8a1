"""Wrong calls: each is refused with the exception and the words that `wrong_calls` lists."""

from __future__ import annotations

from collections import Counter

import pytest

from wrong_calls import CASES, Case, attempt


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_wrong_call_is_told_what_is_wrong_and_what_to_do(case: Case) -> None:
    raised = attempt(case.call)
    assert raised is not None, f"nothing is raised by {case.call}"
    assert isinstance(raised.error, case.error), repr(raised.error)
    for words in case.says:
        assert words in raised.message


def test_the_table_is_long_and_names_no_case_twice() -> None:
    assert len(CASES) >= 35
    for texts in ([case.name for case in CASES], [case.call for case in CASES]):
        assert max(Counter(texts).values()) == 1
    assert all(case.says for case in CASES)
