"""Constraints as rates, one per group, and rates as linear forms over the atoms of datasets.

The first two steps of compiling (:mod:`ratebound.compile`): what the user wrote is read as one or
several rates, and every term of a rate becomes a coefficient on the atoms of its dataset
(:mod:`ratebound.cells`), divided by the weight of the rows that it is a share of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ratebound.cells import Atoms, CodedColumn, combine, read_column
from ratebound.data import BoundData
from ratebound.data.arrays import listed, plural
from ratebound.rates import Constraint, GroupExtreme, Rate, RatesByGroup, RatioRate, ScoreGap, Term

Floats = NDArray[np.float64]

MOST_COMPARED = 2000  # groups of a gap or ratio, whose pairs are four million


# --- from constraints to rates per group ---------------------------------------------------------


class Reading(NamedTuple):
    """A constraint (or the objective) as rates, one per group where it is about a family."""

    kind: str
    bound: float
    groups: tuple[str, ...]
    rates: tuple[Rate | RatioRate, ...]
    texts: tuple[str, ...]


class Columns:
    """Coded columns of the datasets, each read once."""

    def __init__(self, data: BoundData) -> None:
        self._data = data
        self._read: dict[tuple[str, str], CodedColumn] = {}

    def __call__(self, dataset: str, name: str) -> CodedColumn:
        """Return a column of a dataset, coded."""
        key = dataset, name
        if key not in self._read:
            self._read[key] = read_column(self._data.datasets[dataset], name)
        return self._read[key]


def read_constraint(constraint: Constraint, columns: Columns) -> Reading:
    """Return the rates that a constraint is about."""
    left = constraint.left
    if not isinstance(left, GroupExtreme | ScoreGap):
        bound = 0.0 if isinstance(constraint.right, Rate) else float(constraint.right)
        rate = left
        if isinstance(constraint.right, Rate):
            rate = cast(Rate, left) - constraint.right
        kind = "ratio" if isinstance(rate, RatioRate) else "linear"
        return Reading(kind, bound, ("",), (rate,), (str(rate),))

    family = left.family
    groups = _groups(family, columns, constraint.text)
    names = tuple(
        str(group[0])
        if len(group) == 1
        else ", ".join(f"{c}={v}" for c, v in zip(family.by, group, strict=True))
        for group in groups
    )
    rates = tuple(family.rate.within(dict(zip(family.by, group, strict=True))) for group in groups)
    kind = "score gap"
    if isinstance(left, GroupExtreme):
        kind = "group ratio" if left.kind == "ratio" else left.kind
    if kind not in ("min", "max") and len(groups) > MOST_COMPARED:
        raise ValueError(
            f"goal {constraint.text!r} compares {len(groups)} groups with each other, and at most "
            f"{MOST_COMPARED} can be: cut the values of {listed(family.by)} into fewer groups "
            "(pandas.cut does, for numbers), or bound each group by .min() >= or .max() <="
        )
    bound = float(cast(float, constraint.right))
    return Reading(kind, bound, names, rates, tuple(map(str, rates)))


def _groups(family: RatesByGroup, columns: Columns, goal: str) -> list[tuple[Any, ...]]:
    """Return the combinations of values of the family's columns that occur in its dataset.

    Conditions of the family on these columns choose among them; other conditions do not, so a
    group can turn out to be empty.
    """
    (dataset,) = family.datasets
    read = [columns(dataset, name) for name in family.by]
    for name, column in zip(family.by, read, strict=True):
        lacking = int((column.codes < 0).sum())
        if lacking:
            raise ValueError(
                f"goal {goal!r}: {plural(lacking, 'row')} of dataset {dataset!r} without a value "
                f"in column {name!r}; fill the missing values so that they are a group of their own"
            )
    linear = family.rate.numerator if isinstance(family.rate, RatioRate) else family.rate
    allowed = dict(next(iter(linear.terms)).subset.where)
    parts = [(column.codes, len(column.values)) for column in read]
    _, rows = combine(parts, len(read[0].codes))
    found = [
        tuple(column.values[code] for column, code in zip(read, codes, strict=True))
        for codes in zip(*(column.codes[rows].tolist() for column in read), strict=True)
    ]
    return [
        group
        for group in found
        if all(v in allowed.get(name, (v,)) for name, v in zip(family.by, group, strict=True))
    ]


# --- from rates to sparse linear forms over atoms -------------------------------------------------


class SparseForm(NamedTuple):
    """A linear form over the atoms of all datasets, numbered one after the other."""

    atoms: NDArray[np.intp]
    coefficients: Floats
    constant: float


class Forms(NamedTuple):
    """A reading with its rates as linear forms; groups that were empty are gone."""

    kind: str
    bound: float
    groups: tuple[str, ...]
    texts: tuple[str, ...]
    numerators: tuple[SparseForm, ...]
    denominators: tuple[SparseForm, ...] | None


class _EmptyShare(ValueError):
    """A term is a share of no rows."""


class Shares:
    """Terms as linear forms: the atoms of every dataset that is read, and weights of scopes."""

    def __init__(self, data: BoundData, columns: Columns, readings: Iterable[Reading]) -> None:
        self._data = data
        self._columns = columns
        subsets: dict[str, dict[Any, None]] = {}
        for reading in readings:
            for rate in reading.rates:
                for term in _terms(rate):
                    subsets.setdefault(term.dataset, {})[term.subset] = None
        self.atoms: dict[str, Atoms] = {}
        self._start: dict[str, int] = {}
        start = 0
        for name, read in subsets.items():
            used = {column for subset in read for column, _ in subset.where}
            self.atoms[name] = Atoms(
                data.datasets[name], read, {column: columns(name, column) for column in used}
            )
            self._start[name] = start
            start += len(self.atoms[name])

    def forms(self, goal: str, reading: Reading, written: object) -> Forms:
        """Return the reading's rates as linear forms, or say which is a share of no rows."""
        family = written.family if isinstance(written, GroupExtreme | ScoreGap) else None
        kept: list[int] = []
        above: list[SparseForm] = []
        below: list[SparseForm] = []
        empty: list[str] = []
        for i, rate in enumerate(reading.rates):
            try:
                numerator = self._form(rate.numerator if isinstance(rate, RatioRate) else rate)
                if isinstance(rate, RatioRate):
                    below.append(self._form(rate.denominator))
            except _EmptyShare as error:
                if family is None or not family.allow_empty:
                    remedy = "" if family is None else "; allow_empty=True drops such groups"
                    raise ValueError(f"{goal}: {error}{remedy}") from None
                empty.append(reading.groups[i])
                continue
            above.append(numerator)
            kept.append(i)
        if empty:
            some = listed(empty, quote=False)
            if not kept:
                raise ValueError(f"{goal}: every group is empty ({some})")
            warn(f"{goal}: dropped groups without rows to measure: {some}", stacklevel=4)
        if not kept:
            raise ValueError(f"{goal}: there is no group: no row satisfies its conditions")
        if len(kept) == 1 and not empty and reading.kind in ("gap", "group ratio"):
            warn(
                f"{goal} compares groups, and there is one only, {reading.groups[kept[0]]}: it is "
                "met whatever is decided",
                stacklevel=4,
            )
        return Forms(
            reading.kind,
            reading.bound,
            tuple(reading.groups[i] for i in kept),
            tuple(reading.texts[i] for i in kept),
            tuple(above),
            tuple(below) or None,
        )

    def cells(self, forms: Iterable[Forms]) -> Cells:
        """Return the atoms that some form reads, numbered: those are the cells."""
        found = [form for f in forms for form in (*f.numerators, *(f.denominators or ()))]
        total = sum(map(len, self.atoms.values()))
        read = np.zeros(total, dtype=bool)
        for form in found:
            read[form.atoms] = True
        number = np.full(total, -1, dtype=np.int32)
        number[read] = np.arange(int(read.sum()), dtype=np.int32)
        weight, names, of_row = [np.empty(0)], [], {}
        for name, atoms in self.atoms.items():
            start = self._start[name]
            own = number[start : start + len(atoms)]
            weight.append(atoms.weight[own >= 0])
            names += [atoms.describe(atom) for atom in np.flatnonzero(own >= 0).tolist()]
            # Rows without an atom (-1) read the -1 at the end.
            of_row[name] = np.append(own, np.int32(-1))[atoms.of_row]
        return Cells(np.concatenate(weight), tuple(names), of_row, number)

    def _form(self, rate: Rate) -> SparseForm:
        atoms: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)]
        coefficients: list[Floats] = [np.empty(0)]
        constant = rate.constant
        for term, coefficient in rate.terms.items():
            own = self.atoms[term.dataset]
            total = float(own.weight[own.scope(term.subset)].sum())
            if total <= 0.0:
                raise _EmptyShare(self._why_empty(term))
            members = own.members(term.subset)
            share = coefficient / total
            if term.side == "-":
                # Classified negative is the weight of the subset less what is classified positive.
                constant += share * float(own.weight[members].sum())
                share = -share
            atoms.append(members + self._start[term.dataset])
            coefficients.append(np.full(len(members), share))
        return SparseForm(np.concatenate(atoms), np.concatenate(coefficients), constant)

    def _why_empty(self, term: Term) -> str:
        subset = term.subset
        for name, values in subset.where:
            existing = self._columns(term.dataset, name).values
            for value in values:
                if value not in self._columns(term.dataset, name).position:
                    shown = ", ".join(map(repr, existing[:20]))
                    more = ", ..." if len(existing) > 20 else ""
                    return (
                        f"no row of dataset {term.dataset!r} has {value!r} in column {name!r}; "
                        f"its values are {shown}{more}"
                    )
        kind = {"positives": "positively labelled ", "negatives": "negatively labelled "}.get(
            subset.per, "labelled " if subset.per == "labelled" else ""
        )
        conditions = " and ".join(
            f"{name} = {' or '.join(map(repr, values)) or 'nothing'}"
            for name, values in subset.where
        )
        return (
            f"dataset {term.dataset!r} has no {kind}rows (of positive weight)"
            f"{f' where {conditions}' if conditions else ''}, so the rate is undefined there"
        )


class Cells(NamedTuple):
    """The cells: atoms that some goal reads."""

    weight: Floats
    names: tuple[str, ...]
    of_row: dict[str, NDArray[np.int32]]
    number: NDArray[np.int32]

    def matrix(self, forms: Sequence[SparseForm]) -> tuple[sparse.csr_array, Floats]:
        """Return the forms' coefficients on P, one row per form, and their constants."""
        row = np.repeat(np.arange(len(forms)), [len(form.atoms) for form in forms])
        column = self.number[np.concatenate([form.atoms for form in forms])]
        data = np.concatenate([form.coefficients for form in forms])
        matrix = sparse.csr_array((data, (row, column)), shape=(len(forms), len(self.weight)))
        matrix.sum_duplicates()
        return matrix, np.array([form.constant for form in forms])


def _terms(rate: Rate | RatioRate) -> list[Term]:
    if isinstance(rate, RatioRate):
        return [*rate.numerator.terms, *rate.denominator.terms]
    return list(rate.terms)
