"""Names become numbers: goals and bound data are compiled to a :class:`RateProblem`.

Three steps. Constraints are read as rates, one per group where they are about a family. Every
term of a rate becomes a coefficient on the atoms of its dataset (:mod:`ratebound.forms`); "decided
negative" is the weight of the subset minus what is decided positive. The atoms that some rate reads
are the cells, and the constraints become normalised rows over them, as :mod:`ratebound.problem`
writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
from scipy import sparse

from ratebound.data import BoundData
from ratebound.data.arrays import row_count
from ratebound.forms import Cells, Columns, Forms, Reading, Shares, read_constraint
from ratebound.problem import (
    MET_TOLERANCE,
    CompiledGoal,
    Floats,
    InfeasibleGoals,
    LinearForm,
    RateProblem,
    RowBlock,
)
from ratebound.rates import Constraint, Rate, ScoreGap
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
    columns = Columns(data)
    readings = [read_constraint(constraint, columns) for constraint in goals.subject_to]
    whole = Reading("linear", 0.0, ("",), (goals.minimize,), (str(goals.minimize),))
    shares = Shares(data, columns, [whole, *readings])
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


def _compile_goal(
    constraint: Constraint, forms: Forms, cells: Cells, start: int
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
    cells: Cells, constraints: Sequence[Constraint], forms: Sequence[Forms]
) -> tuple[Cells, list[GapCells | None]]:
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
    constraint: Constraint, forms: Forms, gap: GapCells, start: int
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


def _row_blocks(data: BoundData, cells: Cells) -> tuple[tuple[RowBlock, ...], dict[str, int]]:
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
