"""Names become numbers: goals and bound data are compiled to a :class:`RateProblem`.

Three steps. Constraints are read as rates, one per group where they are about a family. Every
term of a rate becomes a coefficient on the atoms of its dataset (:mod:`ratebound.cells`), divided
by the weight of the rows that it is a share of; "decided negative" is the weight of the subset
minus what is decided positive. The atoms that some rate reads are the cells, and the constraints
become normalised rows over them, as :mod:`ratebound.problem` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ratebound.cells import Atoms, CodedColumn, combine, read_column
from ratebound.data import BoundData
from ratebound.data.arrays import plural, row_count
from ratebound.problem import (
    MET_TOLERANCE,
    CompiledGoal,
    Floats,
    InfeasibleGoals,
    LinearForm,
    RateProblem,
    RowBlock,
)
from ratebound.rates import (
    Constraint,
    GroupExtreme,
    Rate,
    RatesByGroup,
    RatioRate,
    ScoreGap,
    Term,
)
from ratebound.score_gaps import GapCells
from ratebound.terms import number_text

__all__ = [
    "MET_TOLERANCE",
    "CompiledGoal",
    "Floats",
    "InfeasibleGoals",
    "LinearForm",
    "RateProblem",
    "RowBlock",
    "compile_goals",
]


class GoalsLike(Protocol):
    """What is compiled: something to minimise and constraints that hold."""

    @property
    def minimize(self) -> Rate: ...

    @property
    def subject_to(self) -> tuple[Constraint, ...]: ...


def compile_goals(goals: GoalsLike, data: BoundData, *, attainable: bool = True) -> RateProblem:
    """Return the goals on the data, as cells and a table.

    Parameters
    ----------
    goals : object with `minimize` and `subject_to`
    data : BoundData
    attainable : bool, default=True
        Raise InfeasibleGoals for a constraint that no decisions whatever could meet on this data.
        To judge a model that exists, pass False: the constraint is then just not met.

    Returns
    -------
    RateProblem

    Raises
    ------
    ValueError
        A rate is a share of no rows, a group is empty or missing, or a condition names a value
        that no row has.
    InfeasibleGoals
    """
    columns = _Columns(data)
    readings = [_read(constraint, columns) for constraint in goals.subject_to]
    whole = _Reading("linear", 0.0, ("",), (goals.minimize,), (str(goals.minimize),))
    shares = _Shares(data, columns, [whole, *readings])
    objective = shares.forms("the objective", whole, goals.minimize)
    forms = [
        shares.forms(f"goal {constraint.text!r}", reading, constraint.left)
        for constraint, reading in zip(goals.subject_to, readings, strict=True)
    ]
    cells, gaps = _with_gap_cells(shares.cells([objective, *forms]), goals.subject_to, forms)

    compiled: list[CompiledGoal] = []
    tables, offsets = [sparse.csr_array((0, len(cells.weight)))], [np.empty(0)]
    start = 0
    for constraint, found, gap in zip(goals.subject_to, forms, gaps, strict=True):
        if gap is None:
            goal, table, offset = _compile_goal(constraint, found, cells, start)
        else:
            goal, table, offset = _compile_score_gap(constraint, found, gap, start)
        compiled.append(goal)
        tables.append(table)
        offsets.append(offset)
        start += len(offset)
    numerators, constants = cells.matrix(objective.numerators)
    form = LinearForm(numerators.toarray()[0], float(constants[0]))
    blocks, places = _row_blocks(data, cells)
    problem = RateProblem(
        blocks=blocks,
        cell_weight=cells.weight,
        cost=form.coefficients,
        cost_constant=form.constant,
        table=sparse.csr_array(sparse.vstack(tables, format="csr")),
        offset=np.concatenate(offsets),
        goals=tuple(compiled),
        objective=form,
        objective_text=str(goals.minimize),
        cell_names=cells.names,
        places=places,
        reads=tuple(shares.atoms),
        data=data,
        score_gaps=tuple(gap for gap in gaps if gap is not None),
    )
    if attainable:
        _check_attainable(problem)
    return problem


# --- from constraints to rates per group ---------------------------------------------------------


class _Reading(NamedTuple):
    """A constraint (or the objective) as rates, one per group where it is about a family."""

    kind: str
    bound: float
    groups: tuple[str, ...]
    rates: tuple[Rate | RatioRate, ...]
    texts: tuple[str, ...]


class _Columns:
    """Coded columns of the datasets, each read once."""

    def __init__(self, data: BoundData) -> None:
        self._data = data
        self._read: dict[tuple[str, str], CodedColumn] = {}

    def __call__(self, dataset: str, name: str) -> CodedColumn:
        key = dataset, name
        if key not in self._read:
            self._read[key] = read_column(self._data.datasets[dataset], name)
        return self._read[key]


def _read(constraint: Constraint, columns: _Columns) -> _Reading:
    left = constraint.left
    if not isinstance(left, GroupExtreme | ScoreGap):
        bound = 0.0 if isinstance(constraint.right, Rate) else float(constraint.right)
        rate = left
        if isinstance(constraint.right, Rate):
            rate = cast(Rate, left) - constraint.right
        kind = "ratio" if isinstance(rate, RatioRate) else "linear"
        return _Reading(kind, bound, ("",), (rate,), (str(rate),))

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
    bound = float(cast(float, constraint.right))
    return _Reading(kind, bound, names, rates, tuple(map(str, rates)))


def _groups(family: RatesByGroup, columns: _Columns, goal: str) -> list[tuple[Any, ...]]:
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


class _Sparse(NamedTuple):
    """A linear form over the atoms of all datasets, numbered one after the other."""

    atoms: NDArray[np.intp]
    coefficients: Floats
    constant: float


class _Forms(NamedTuple):
    """A reading with its rates as linear forms; groups that were empty are gone."""

    kind: str
    bound: float
    groups: tuple[str, ...]
    texts: tuple[str, ...]
    numerators: tuple[_Sparse, ...]
    denominators: tuple[_Sparse, ...] | None


class _EmptyShare(ValueError):
    """A term is a share of no rows."""


class _Shares:
    """Terms as linear forms: the atoms of every dataset that is read, and weights of scopes."""

    def __init__(self, data: BoundData, columns: _Columns, readings: Iterable[_Reading]) -> None:
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

    def forms(self, goal: str, reading: _Reading, written: object) -> _Forms:
        """Return the reading's rates as linear forms, or say which is a share of no rows."""
        family = written.family if isinstance(written, GroupExtreme | ScoreGap) else None
        kept: list[int] = []
        above: list[_Sparse] = []
        below: list[_Sparse] = []
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
            listed = ", ".join(empty[:10]) + (", ..." if len(empty) > 10 else "")
            if not kept:
                raise ValueError(f"{goal}: every group is empty ({listed})")
            warn(f"{goal}: dropped groups without rows to measure: {listed}", stacklevel=4)
        if not kept:
            raise ValueError(f"{goal}: there is no group: no row satisfies its conditions")
        return _Forms(
            reading.kind,
            reading.bound,
            tuple(reading.groups[i] for i in kept),
            tuple(reading.texts[i] for i in kept),
            tuple(above),
            tuple(below) or None,
        )

    def cells(self, forms: Iterable[_Forms]) -> _Cells:
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
        return _Cells(np.concatenate(weight), tuple(names), of_row, number)

    def _form(self, rate: Rate) -> _Sparse:
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
        return _Sparse(np.concatenate(atoms), np.concatenate(coefficients), constant)

    def _why_empty(self, term: Term) -> str:
        subset = term.subset
        for name, values in subset.where:
            existing = self._columns(term.dataset, name).values
            for value in values:
                if value not in self._columns(term.dataset, name).position:
                    listed = ", ".join(map(repr, existing[:20]))
                    more = ", ..." if len(existing) > 20 else ""
                    return (
                        f"no row of dataset {term.dataset!r} has {value!r} in column {name!r}; "
                        f"its values are {listed}{more}"
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


# --- from forms to rows of the table --------------------------------------------------------------


class _Cells(NamedTuple):
    """The cells: atoms that some goal reads."""

    weight: Floats
    names: tuple[str, ...]
    of_row: dict[str, NDArray[np.int32]]
    number: NDArray[np.int32]

    def matrix(self, forms: Sequence[_Sparse]) -> tuple[sparse.csr_array, Floats]:
        """Return the forms' coefficients on P, one row per form, and their constants."""
        row = np.repeat(np.arange(len(forms)), [len(form.atoms) for form in forms])
        column = self.number[np.concatenate([form.atoms for form in forms])]
        data = np.concatenate([form.coefficients for form in forms])
        matrix = sparse.csr_array((data, (row, column)), shape=(len(forms), len(self.weight)))
        matrix.sum_duplicates()
        return matrix, np.array([form.constant for form in forms])


def _compile_goal(
    constraint: Constraint, forms: _Forms, cells: _Cells, start: int
) -> tuple[CompiledGoal, sparse.csr_array, Floats]:
    """Return a goal with its normalised rows: table and offset."""
    numerators, constants = cells.matrix(forms.numerators)
    denominators, denominator_constants = None, None
    bound, texts, number = forms.bound, forms.texts, number_text(forms.bound)
    if forms.kind in ("gap", "group ratio"):
        a, b = np.nonzero(~np.eye(len(texts), dtype=bool))
        pairs = np.column_stack([a, b])
        if forms.kind == "gap":
            table = numerators[a] - numerators[b]
            offset = constants[a] - constants[b] - bound
            labels = [f"{texts[i]} - {texts[j]} <= {number}" for i, j in pairs.tolist()]
        else:
            table = bound * numerators[b] - numerators[a]
            offset = bound * constants[b] - constants[a]
            labels = [f"{texts[i]} >= {number} * {texts[j]}" for i, j in pairs.tolist()]
    else:
        sign = -1.0 if constraint.sense == ">=" else 1.0
        pairs = np.repeat(np.arange(len(texts))[:, None], 2, axis=1)
        table, offset = sign * numerators, sign * constants
        if forms.denominators is None:
            offset = offset - sign * bound
        else:
            denominators, denominator_constants = cells.matrix(forms.denominators)
            table = table - sign * bound * denominators
            offset = offset - sign * bound * denominator_constants
        labels = [f"{text} {constraint.sense} {number}" for text in texts]
    goal = CompiledGoal(
        constraint=constraint,
        label=constraint.label,
        text=constraint.text,
        sense=constraint.sense,
        bound=bound,
        kind=forms.kind,
        rows=slice(start, start + len(offset)),
        row_labels=tuple(labels),
        groups=forms.groups,
        pairs=pairs,
        numerators=numerators,
        numerator_constants=constants,
        denominators=denominators,
        denominator_constants=denominator_constants,
    )
    table = sparse.csr_array(table)
    table.eliminate_zeros()
    return goal, table, offset


def _with_gap_cells(
    cells: _Cells, constraints: Sequence[Constraint], forms: Sequence[_Forms]
) -> tuple[_Cells, list[GapCells | None]]:
    """Add the cells of score gaps behind those of the rows; None for goals of another kind."""
    pairs = {
        i: np.column_stack(np.triu_indices(len(found.groups), 1))
        for i, found in enumerate(forms)
        if found.kind == "score gap"
    }
    first, total = len(cells.weight), len(cells.weight) + sum(map(len, pairs.values()))
    wide = cells._replace(weight=np.append(cells.weight, np.zeros(total - first)))
    gaps: list[GapCells | None] = [None] * len(forms)
    names = list(cells.names)
    for i, pair in pairs.items():
        found, left = forms[i], cast(ScoreGap, constraints[i].left)
        if not len(pair):
            raise ValueError(
                f"goal {constraints[i].text!r} compares groups, and there is one only: "
                f"{found.groups[0]}"
            )
        means, _ = wide.matrix(found.numerators)
        weight = float(wide.weight[np.unique(means.indices)].sum())
        scale = {"linear": 1.0, "hinge": 0.5, "ramp": 0.25 / (found.bound or 1.0)}[left.form]
        gaps[i] = GapCells(first, means, pair, weight, scale, left.form == "ramp")
        wide.weight[first : first + len(pair)] = weight
        names += [f"score gap: {found.groups[a]} - {found.groups[b]}" for a, b in pair.tolist()]
        first += len(pair)
    return wide._replace(names=tuple(names)), gaps


def _compile_score_gap(
    constraint: Constraint, forms: _Forms, gap: GapCells, start: int
) -> tuple[CompiledGoal, sparse.csr_array, Floats]:
    """Return a goal on a score gap with its normalised rows, d - c <= 0 and -d - c <= 0 a pair."""
    count, width = len(gap.pairs), gap.means.shape[1]
    per_unit = 1.0 / (gap.scale * gap.weight)
    entries = (np.full(count, per_unit), (np.arange(count), np.arange(count) + gap.first))
    differences = sparse.csr_array(entries, shape=(count, width))
    constants = np.full(count, -0.5 / gap.scale)
    of_row, sign = np.repeat(np.arange(count), 2), np.tile([1.0, -1.0], count)
    groups = tuple(f"{forms.groups[a]} - {forms.groups[b]}" for a, b in gap.pairs.tolist())
    name, number = str(constraint.left), number_text(forms.bound)
    table = sparse.csr_array(sparse.diags_array(sign) @ differences[of_row])
    offset = sign * constants[of_row] - forms.bound
    goal = CompiledGoal(
        constraint=constraint,
        label=constraint.label,
        text=constraint.text,
        sense=constraint.sense,
        bound=forms.bound,
        kind=forms.kind,
        rows=slice(start, start + 2 * count),
        row_labels=tuple(
            f"{name}, {text} <= {number}"
            for a, b in gap.pairs.tolist()
            for text in (
                f"{forms.groups[a]} - {forms.groups[b]}",
                f"{forms.groups[b]} - {forms.groups[a]}",
            )
        ),
        groups=groups,
        pairs=np.column_stack([of_row, of_row]),
        numerators=differences,
        numerator_constants=constants,
    )
    return goal, table, offset


def _row_blocks(data: BoundData, cells: _Cells) -> tuple[tuple[RowBlock, ...], dict[str, int]]:
    """Lay the datasets' weights and cells over the blocks of X."""
    X = list(data.blocks)
    sizes = [0] * len(X)
    for bound in data.datasets.values():
        last = bound.n_rows if bound.rows is None else int(bound.rows.max(initial=-1)) + 1
        sizes[bound.block] = max(sizes[bound.block], last)
    sizes = [max(row_count(x, "X"), n) for x, n in zip(X, sizes, strict=True)]
    weight = [np.zeros(n) for n in sizes]
    cell = [np.full(n, -1, dtype=np.int32) for n in sizes]
    taken = [np.zeros(n, dtype=bool) for n in sizes]
    layers = [[block] for block in range(len(X))]
    places: dict[str, int] = {}
    for name, bound in data.datasets.items():
        rows = slice(None) if bound.rows is None else bound.rows
        place = next((at for at in layers[bound.block] if not taken[at][rows].any()), None)
        if place is None and name not in cells.of_row:
            continue
        if place is None:  # two datasets share these rows of X, with weights and cells of their own
            place = len(X)
            layers[bound.block].append(place)
            X.append(data.blocks[bound.block])
            weight.append(np.zeros(sizes[bound.block]))
            cell.append(np.full(sizes[bound.block], -1, dtype=np.int32))
            taken.append(np.zeros(sizes[bound.block], dtype=bool))
        places[name] = place
        taken[place][rows] = True
        weight[place][rows] = bound.weight
        if name in cells.of_row:
            cell[place][rows] = cells.of_row[name]
    return tuple(map(RowBlock, X, weight, cell)), places


def _check_attainable(problem: RateProblem) -> None:
    """Raise InfeasibleGoals for a row that no decisions whatever could bring to zero."""
    least = problem.offset + problem.table.minimum(0) @ problem.cell_weight
    for goal in problem.goals:
        rows = least[goal.rows]
        if rows.size and rows.max() > MET_TOLERANCE:
            worst = int(rows.argmax())
            short = float(rows[worst])
            if goal.kind in ("gap", "group ratio") or goal.denominators is not None:
                reach = f"every classifier misses it by {short:.6g} or more"
            else:
                best = goal.bound - short if goal.sense == ">=" else goal.bound + short
                reach = f"{best:.6g} is the best that any classifier reaches"
            named = "" if goal.row_labels[worst] == goal.label else f" (goal {goal.label!r})"
            raise InfeasibleGoals(
                f"no classifier can meet {goal.row_labels[worst]}{named} on this data: {reach}"
            )


def _terms(rate: Rate | RatioRate) -> list[Term]:
    if isinstance(rate, RatioRate):
        return [*rate.numerator.terms, *rate.denominator.terms]
    return list(rate.terms)
