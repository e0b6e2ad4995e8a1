"""Shared fixtures: where the real data lies, and runs that repeat themselves exactly."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, and no limit on one example: the first compiles kernels.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def data_folder() -> Path:
    """The folder of real datasets: $RATEBOUND_DATA, or `shared/data` beside the repository."""
    named = os.environ.get("RATEBOUND_DATA")
    if named:
        return Path(named)
    return Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """The path of a real data file by name; the test is skipped where it is not at hand."""

    def find(name: str) -> Path:
        path = data_folder() / name
        if not path.is_file():
            pytest.skip(f"needs {name}; set RATEBOUND_DATA to the folder that holds it")
        return path

    return find
