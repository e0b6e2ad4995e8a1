"""The atoms of a dataset: its rows by every membership that some goal distinguishes.

Whether a row belongs to a subset depends on the sign of its label, the sign of its baseline and
its values in a few columns. Each of those becomes one array of small integer codes over the rows;
the codes are combined into one integer per row, and the distinct integers are the atoms (cells,
once :mod:`ratebound.compile` has dropped those that no goal reads). From there on a subset is a
list of atoms, and nothing is as large as rows x goals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratebound.data import BoundDataset
from ratebound.rates import Subset

__all__ = ["Atoms", "CodedColumn", "combine", "read_column"]

Where = tuple[tuple[str, tuple[Any, ...]], ...]
Codes = NDArray[np.intp]

#: Combined codes are squeezed to the distinct ones before their range could leave 64 bits.
_LARGEST_RANGE = 2**31


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of one dataset as codes into its sorted values; -1 where the value is missing."""

    values: tuple[Any, ...]
    codes: Codes

    @cached_property
    def position(self) -> dict[Any, int]:
        """Code of each value."""
        return {value: code for code, value in enumerate(self.values)}


def read_column(dataset: BoundDataset, name: str) -> CodedColumn:
    """Return a column of `dataset` as codes."""
    entries = dataset.column(name)
    if entries.dtype.kind in "biuf":
        distinct, codes = np.unique(entries, return_inverse=True)
        missing = (
            np.isnan(distinct) if distinct.dtype.kind == "f" else np.zeros(len(distinct), bool)
        )
        kept = np.cumsum(~missing) - 1
        kept[missing] = -1
        return CodedColumn(tuple(distinct[~missing].tolist()), kept[codes.reshape(-1)])
    if entries.dtype.kind == "M":
        missing = np.isnat(entries)
        entries = np.datetime_as_string(entries, unit="auto").astype(object)
        entries[missing] = None
    try:
        listed = entries.tolist()
        found: dict[Any, int] = {value: code for code, value in enumerate(dict.fromkeys(listed))}
        codes = np.fromiter(map(found.__getitem__, listed), np.intp, len(listed))
    except TypeError as error:
        raise TypeError(
            f"column {name!r} of dataset {dataset.name!r} holds values that cannot be groups "
            f"({error}); use strings, numbers or booleans"
        ) from None
    plain = [None if _is_missing(value) else _plain(value) for value in found]
    # Numbers before strings, so that the order of groups is not the order of rows.
    values = sorted({v for v in plain if v is not None}, key=lambda v: (isinstance(v, str), v))
    order: dict[Any, int] = {value: code for code, value in enumerate(values)}
    recode = np.array([order.get(value, -1) for value in plain], dtype=np.intp)
    return CodedColumn(tuple(values), recode[codes] if len(codes) else codes)


def _plain(value: Any) -> str | int | float:
    """Return a value that `where` can name: dates and the like as text."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NA or NaT, without importing pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


class _Signatures:
    """A column's values, told apart only as far as the conditions on it tell them apart."""

    def __init__(self, column: CodedColumn, conditions: Collection[tuple[Any, ...]]) -> None:
        conditions = list(conditions)
        met: dict[int, list[int]] = {}
        for index, condition in enumerate(conditions):
            for value in condition:
                code = column.position.get(value)
                if code is not None:
                    met.setdefault(code, []).append(index)
        signature: dict[tuple[int, ...], int] = {(): 0}
        # The last entry is for missing values (code -1), which meet no condition.
        of_value = np.zeros(len(column.values) + 1, dtype=np.intp)
        members: list[list[str]] = [[]]
        for code in sorted(met):
            of_value[code] = signature.setdefault(tuple(met[code]), len(signature))
            if of_value[code] == len(members):
                members.append([])
            members[of_value[code]].append(str(column.values[code]))
        self.codes = of_value[column.codes]
        self.names = ["another value", *map("|".join, members[1:])]
        self.accepted: dict[tuple[Any, ...], list[int]] = {c: [] for c in conditions}
        for indices, number in signature.items():
            for condition in (conditions[i] for i in indices):
                self.accepted[condition].append(number)

    @property
    def size(self) -> int:
        return len(self.names)


class Atoms:
    """The atoms of one dataset, for the subsets that goals read of it.

    Attributes
    ----------
    of_row : ndarray of intp, shape (n_rows,)
        Atom of each row, -1 where the row's weight is 0.
    weight : ndarray of float64, shape (atoms,)
    label, baseline : ndarray of int8, shape (atoms,)
        Signs; 0 where there is none or no subset tells them apart.
    """

    def __init__(
        self,
        dataset: BoundDataset,
        subsets: Collection[Subset],
        columns: Mapping[str, CodedColumn],
    ) -> None:
        self.name = dataset.name
        rows = np.flatnonzero(dataset.weight > 0)
        self._signatures = {
            name: _Signatures(columns[name], conditions)
            for name, conditions in _conditions(subsets).items()
        }
        parts: dict[str, tuple[Codes, int]] = {}
        for name, signatures in self._signatures.items():
            parts[f"column {name}"] = signatures.codes[rows], signatures.size
        if dataset.label is not None and any(s.label or s.per != "rows" for s in subsets):
            parts["label"] = dataset.label[rows].astype(np.intp) + 1, 3
        if dataset.baseline is not None and any(s.baseline for s in subsets):
            parts["baseline"] = dataset.baseline[rows].astype(np.intp) + 1, 3

        atom, first = combine(list(parts.values()), len(rows))
        self.of_row = np.full(dataset.n_rows, -1, dtype=np.intp)
        self.of_row[rows] = atom
        sums = np.bincount(atom, weights=dataset.weight[rows], minlength=len(first))
        self.weight = sums.astype(np.float64)
        self.label = self._sign(parts, "label", first)
        self.baseline = self._sign(parts, "baseline", first)
        self._codes = {name: parts[f"column {name}"][0][first] for name in self._signatures}
        self._found: dict[Where, Codes] = {}
        self._with_code = {
            name: _positions(codes, self._signatures[name].size)
            for name, codes in self._codes.items()
        }

    @staticmethod
    def _sign(parts: Mapping[str, tuple[Codes, int]], kind: str, first: Codes) -> NDArray[np.int8]:
        if kind not in parts:
            return np.zeros(len(first), dtype=np.int8)
        return (parts[kind][0][first] - 1).astype(np.int8)

    def __len__(self) -> int:
        return len(self.weight)

    def where(self, where: Where) -> Codes:
        """Return the atoms whose rows meet every condition."""
        if where not in self._found:
            self._found[where] = self._search(where)
        return self._found[where]

    def _search(self, where: Where) -> Codes:
        if not where:
            return np.arange(len(self), dtype=np.intp)
        # The condition that the fewest atoms meet first, so that a family costs as much as its
        # atoms and not groups x atoms.
        candidates = []
        for name, values in where:
            accepted = self._signatures[name].accepted[values]
            atoms = [self._with_code[name][code] for code in accepted]
            candidates.append(np.concatenate(atoms) if atoms else np.empty(0, dtype=np.intp))
        found: Codes = min(candidates, key=len)
        for name, values in where:
            meets = np.zeros(self._signatures[name].size, dtype=bool)
            meets[self._signatures[name].accepted[values]] = True
            found = found[meets[self._codes[name][found]]]
        found.sort()
        return found

    def scope(self, subset: Subset) -> Codes:
        """Return the atoms that a share of `subset` is a share of (its where and per)."""
        atoms = self.where(subset.where)
        if subset.per == "rows":
            return atoms
        label = self.label[atoms]
        wanted = {"labelled": label != 0, "positives": label > 0, "negatives": label < 0}
        found: Codes = atoms[wanted[subset.per]]
        return found

    def members(self, subset: Subset) -> Codes:
        """Return the atoms of `subset` itself."""
        atoms = self.scope(subset)
        if subset.label:
            atoms = atoms[self.label[atoms] == _SIGN[subset.label]]
        if subset.baseline:
            atoms = atoms[self.baseline[atoms] == _SIGN[subset.baseline]]
        return atoms

    def describe(self, atom: int) -> str:
        """Return a readable name, such as "audit: label +, sex = Female"."""
        words = []
        for kind, signs in (("label", self.label), ("baseline", self.baseline)):
            if signs[atom]:
                words.append(f"{kind} {'+' if signs[atom] > 0 else '-'}")
        for name, codes in self._codes.items():
            words.append(f"{name} = {self._signatures[name].names[codes[atom]]}")
        return f"{self.name}: {', '.join(words) or 'all rows'}"


_SIGN = {"+": 1, "-": -1}


def _conditions(subsets: Collection[Subset]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the distinct conditions on each column, in a settled order."""
    found: dict[str, dict[tuple[Any, ...], None]] = {}
    for subset in subsets:
        for name, values in subset.where:
            found.setdefault(name, {})[values] = None
    return {name: list(found[name]) for name in sorted(found)}


def combine(parts: list[tuple[Codes, int]], n_rows: int) -> tuple[Codes, Codes]:
    """Return each row's combination of codes, as a number, and one row of each combination.

    `parts` are arrays of codes with the number of codes each can have.
    """
    combined, size = np.zeros(n_rows, dtype=np.intp), 1
    for codes, range_ in parts:
        if size * range_ > _LARGEST_RANGE:
            combined, first = _squeeze(combined, size)
            size = len(first)
        combined = combined * range_ + codes
        size *= range_
    return _squeeze(combined, size)


def _squeeze(codes: Codes, size: int) -> tuple[Codes, Codes]:
    """Renumber codes below `size` as 0, 1, ... in order; return them and a row of each."""
    if size > 4 * len(codes) + 1024:
        _, first, squeezed = np.unique(codes, return_index=True, return_inverse=True)
        return squeezed.reshape(-1), first
    number = np.cumsum(np.bincount(codes, minlength=size) > 0) - 1
    squeezed = number[codes]
    first = np.zeros(number[-1] + 1, dtype=np.intp)
    first[squeezed[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return squeezed, first


def _positions(codes: Codes, size: int) -> list[Codes]:
    """Return, for each code below `size`, where it stands in `codes`."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=size))[:-1])
