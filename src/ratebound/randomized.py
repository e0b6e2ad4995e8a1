"""Draws of the randomized classifier: positive with the probability of the ramp.

The paper's classifier decides positively with probability ``σ(z)``. `draw` makes such decisions
reproducible: from a random state, or from a key a row (a customer number, say), so that the same
person gets the same answer every time, in whatever order and company the rows come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state


def draw(
    probability: npt.NDArray[np.float64], random_state: Any = None, keys: Any = None
) -> npt.NDArray[np.bool_]:
    """Decide each row positively with its probability.

    Parameters
    ----------
    probability : (n,)
    random_state : None, int or RandomState
        With keys, an int (or None, which stands for 0) that selects one of many ways to hash them.
    keys : (n,) of integers, strings or bytes, optional
        What identifies a row; equal keys share one uniform number.

    Returns
    -------
    (n,) booleans
    """
    if keys is None:
        uniform = check_random_state(random_state).uniform(size=len(probability))
        return np.asarray(uniform < probability)
    if random_state is not None and not isinstance(random_state, (int, np.integer)):
        raise TypeError(
            "with keys, random_state must be an int (it selects the hash) or None, "
            f"got {type(random_state).__name__}"
        )
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise TypeError(f"keys holds one key a row of X, not {keys!r}")
    listed = keys.tolist() if hasattr(keys, "tolist") else list(keys)
    if len(listed) != len(probability):
        raise ValueError(f"keys has {len(listed)} entries for {len(probability)} rows of X")
    secret = int(random_state or 0).to_bytes(16, "little", signed=True)
    plain = (key.item() if isinstance(key, np.generic) else key for key in listed)
    return np.fromiter((_uniform(key, secret) for key in plain), float, len(listed)) < probability


def _uniform(key: Any, secret: bytes) -> float:
    """A number in [0, 1) that is a keyed hash of key."""
    if isinstance(key, bool) or not isinstance(key, (int, str, bytes)):
        raise TypeError(
            f"a key must be an integer, a string or bytes, got {type(key).__name__}: {key!r}"
        )
    # the type is part of what is hashed: 7 and "7" are different keys
    text = key if isinstance(key, bytes) else str(key).encode()
    digest = hashlib.blake2b(
        type(key).__name__.encode() + b":" + text, key=secret, digest_size=8
    ).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2.0**53
