"""Draws of the randomized classifier: frequencies, repeatability, keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratebound.randomized import draw

P = np.tile([0.0, 0.1, 0.5, 0.9, 1.0], 4000)


@pytest.mark.parametrize("keys", [None, np.arange(len(P)), [f"person {i}" for i in range(len(P))]])
def test_frequencies_are_the_probabilities(keys: Any) -> None:
    drawn = draw(P, 3, keys).reshape(-1, 5).mean(axis=0)
    assert drawn[0] == 0.0 and drawn[4] == 1.0
    np.testing.assert_allclose(drawn, P[:5], atol=4 * np.sqrt(0.25 / 4000))


def test_a_random_state_repeats_and_another_differs() -> None:
    np.testing.assert_array_equal(draw(P, 1), draw(P, 1))
    assert (draw(P, 1) != draw(P, 2)).mean() > 0.1


@given(st.permutations(range(40)), st.integers(-5, 5))
def test_a_key_decides_alone(order: list[int], seed: int) -> None:
    p = np.linspace(0.0, 1.0, 40)
    keys = np.arange(40) * 7
    together = draw(p, seed, keys)
    np.testing.assert_array_equal(draw(p[order], seed, keys[order]), together[order])
    np.testing.assert_array_equal(draw(p[:5], seed, keys[:5]), together[:5])


def test_a_key_that_says_yes_says_yes_to_more() -> None:
    keys = list(range(1000))
    few, many = draw(np.full(1000, 0.3), None, keys), draw(np.full(1000, 0.6), None, keys)
    assert (many | ~few).all()


def test_kinds_of_keys_are_told_apart_and_seeds_select_hashes() -> None:
    half = np.full(2000, 0.5)
    numbers = draw(half, 0, list(range(2000)))
    words = draw(half, 0, [str(i) for i in range(2000)])
    assert 0.4 < (numbers != words).mean() < 0.6
    assert 0.4 < (numbers != draw(half, 1, list(range(2000)))).mean() < 0.6


@pytest.mark.parametrize(
    ("keys", "random_state", "error", "says"),
    [
        ([1, 2], None, ValueError, "2 entries for 3 rows"),
        ([1.5, 2.5, 3.5], None, TypeError, "integer, a string or bytes"),
        ([True, False, True], None, TypeError, "integer, a string or bytes"),
        ([1, 2, 3], np.random.RandomState(0), TypeError, "must be an int"),
    ],
)
def test_wrong_keys(keys: Any, random_state: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        draw(np.full(3, 0.5), random_state, keys)
