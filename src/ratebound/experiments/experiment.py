"""What an experiment is: one run that measures, figures of all runs, and claims to hold against it.

A run returns records, the lines of a CSV file. It depends on its number alone, so that runs can be
made in any order, in parallel, and anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: One line of the CSV of results: text names the case, numbers are what was measured there.
Record = Mapping[str, str | int | float]


class Results:
    """Records of all runs, to be taken apart by what their text says.

    Parameters
    ----------
    records : iterable of Record
        Each has the number of its run as "run".
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        return f"Results({len(self)} records of {len(self.values('run'))} runs)"

    def where(self, **values: Any) -> Results:
        """Return the records that have these values."""
        return Results(
            r for r in self.records if all(r.get(name) == value for name, value in values.items())
        )

    def values(self, name: str) -> list[Any]:
        """Distinct values of a column, sorted."""
        return sorted({r[name] for r in self.records if name in r})

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, in the order of the records."""
        return np.array([r[name] for r in self.records], dtype=float)

    def mean(self, name: str) -> float:
        """Mean of a column over these records."""
        return float(np.mean(self.column(name)))

    def spread(self, name: str) -> float:
        """Standard deviation of a column over these records, 0 for a single one."""
        column = self.column(name)
        return float(np.std(column, ddof=1)) if len(column) > 1 else 0.0


@dataclass(frozen=True)
class Claim:
    """What is claimed, whether it was found, and the numbers that say so.

    Attributes
    ----------
    text : str, a sentence
    met : bool or None, None where the runs made cannot tell
    found : str, the numbers
    """

    text: str
    met: bool | None
    found: str


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes
    ----------
    name : str, as in ``ratebound reproduce NAME``
    title : str
    about : str, Markdown that says what is done, on which data, and what differs from the paper
    runs : int, how many are made by default
    quick_runs : int, how many with ``--quick``
    measure : callable (run, quick) -> records of the run with that number; quick takes fewer rows
        and points, for seconds in place of minutes
    figures : callable of the results of all runs, to figures by file name (without ending)
    claims : callable of the results of all runs
    tables : callable of the results of all runs, to Markdown for the summary
    """

    name: str
    title: str
    about: str
    runs: int
    quick_runs: int
    measure: Callable[[int, bool], list[Record]]
    figures: Callable[[Results], dict[str, Figure]]
    claims: Callable[[Results], list[Claim]]
    tables: Callable[[Results], str] = field(default=lambda results: "")
