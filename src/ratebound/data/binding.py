"""Binding: named datasets and goals' wishes in, rows with signs and weights out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratebound.data.arrays import (
    Columns,
    alternatives,
    distinct_values,
    listed,
    missing,
    plural,
    quoted,
    vector,
)
from ratebound.data.dataset import DATASET_COLUMN, TRAIN, NamedRows, by_column, by_mapping, read


@dataclass(frozen=True, eq=False)
class BoundDataset:
    """A named dataset whose labels, weights and baseline are arrays over its rows.

    Attributes
    ----------
    name : str
        Name that goals use.
    block : int
        Index into ``BoundData.blocks``.
    rows : array of intp or None
        Positions of its rows in that block; None means all rows in order.
    n_rows : int
    weight : array of float64 of shape (n_rows,)
    label : array of int8 or None
        +1 for ``pos_label``, -1 for the other class, 0 where there is no label; None where the
        dataset has no labels, or has some that no goal reads.
    baseline : array of int8 or None
        +1 or -1 likewise (0 only where the weight is 0).
    """

    name: str
    block: int
    rows: NDArray[np.intp] | None
    n_rows: int
    weight: NDArray[np.float64]
    label: NDArray[np.int8] | None
    baseline: NDArray[np.int8] | None
    _columns: Columns = field(repr=False)

    @property
    def column_names(self) -> tuple[Any, ...]:
        """Names that ``column`` knows."""
        return self._columns.names

    def column(self, name: Any) -> NDArray[Any]:
        """Values of a column, one for each row of this dataset."""
        if name not in self._columns.names:
            argument = "fit's columns=" if self.name == TRAIN else "columns= of that Dataset"
            raise ValueError(
                f"dataset {quoted(self.name)} has no column {quoted(name)}"
                f"{alternatives(name, self._columns.names)}; pass it in {argument}, or in X "
                "where X is a dataframe"
            )
        values = self._columns.get(name)
        return values if self.rows is None else values[self.rows]


@dataclass(frozen=True, eq=False)
class BoundData:
    """Everything that goals can read: the named datasets, their blocks of X and the classes."""

    datasets: Mapping[str, BoundDataset]
    blocks: tuple[Any, ...]
    classes: NDArray[Any]
    pos_label: Any


def bind(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    baseline: Any = None,
    columns: Any = None,
    datasets: Any = None,
    pos_label: Any = None,
    reads_labels: Collection[str] = frozenset(),
    reads_baseline: Collection[str] = frozenset(),
    used: Collection[str] | None = None,
    classes: Any = None,
) -> BoundData:
    """Bind names, labels, groups, weights and baselines to rows, or say what is wrong with them.

    Parameters
    ----------
    X, y, sample_weight, baseline, columns
        As in ``fit``. Of ``X`` only the number of rows and, for a dataframe, the columns are used.
    datasets : mapping of names to Dataset, or a column name, optional
        The other datasets, or the column that says which dataset each row of X belongs to.
    pos_label : optional
        The class called positive; the larger one by default.
    reads_labels, reads_baseline : collections of str
        Datasets whose labels and baselines the goals read: those must have them. In the stacked
        form the labels (except those of "train") and baselines of all others are ignored.
    used : collection of str, optional
        Datasets the goals mention, each of which must exist and have some weight.
    classes : array of shape (2,), optional
        The two classes where they are known before (evaluation of a model). The labels of "train"
        may then be missing or of one class only, and ``X=None`` means that there is no "train".

    Returns
    -------
    BoundData
    """
    if X is None and classes is not None:
        parts = by_mapping(datasets)
    else:
        train = read(X, y, sample_weight, baseline, columns, TRAIN, "")
        if isinstance(datasets, str):
            parts = by_column(train, datasets)
        else:
            parts = [train, *by_mapping(datasets)]
    names = [part.name for part in parts]
    forgotten = _stacked_unsaid(parts, datasets)
    for name in sorted({*(used or ()), *reads_labels, *reads_baseline} - set(names)):
        remedy = "pass X and y, its rows" if name == TRAIN else "add it to datasets= or change on="
        raise ValueError(
            f"a goal is on dataset {quoted(name)}, which does not exist"
            f"{alternatives(name, names)}; {forgotten or remedy}"
        )
    for part in parts:
        if part.name == TRAIN or used is None or part.name in used:
            _check_some_weight(part)
    known = _training_classes(parts[0], forgotten) if classes is None else _given_classes(classes)
    positive = _positive_class(pos_label, known)

    blocks = {id(part.X): part.X for part in parts}
    position = {identity: index for index, identity in enumerate(blocks)}
    bound = {
        part.name: BoundDataset(
            name=part.name,
            block=position[id(part.X)],
            rows=part.rows,
            n_rows=len(part.weight),
            weight=part.weight,
            label=_labels(part, known, positive, part.name in reads_labels),
            baseline=_baseline(part, known, positive, part.name in reads_baseline),
            _columns=part.columns,
        )
        for part in parts
    }
    return BoundData(bound, tuple(blocks.values()), known, positive)


def _stacked_unsaid(parts: Sequence[NamedRows], datasets: Any) -> str:
    """What to do where rows are stacked and nothing says so; empty where that is not the case."""
    if datasets is not None or not parts or DATASET_COLUMN not in parts[0].columns.names:
        return ""
    values = parts[0].columns.get(DATASET_COLUMN)
    if values.dtype.kind not in "OU" or TRAIN not in values.tolist():
        return ""
    return (
        f"column {quoted(DATASET_COLUMN)} says which dataset each row belongs to: pass its name, "
        f"datasets={quoted(DATASET_COLUMN)}"
    )


def _check_some_weight(part: NamedRows) -> None:
    if len(part.weight) == 0:
        raise ValueError(f"X{part.owner} has no rows")
    if not part.weight.any():
        raise ValueError(
            f"sample_weight{part.owner} is zero in every row; at least one must be positive"
        )


def _training_classes(train: NamedRows, forgotten: str = "") -> NDArray[Any]:
    """Two classes, sorted, of the training rows that have weight."""
    if train.y is None:
        raise ValueError(
            "training requires y to be passed, but the target y is None; rows without labels go "
            "into datasets= as Dataset(X)"
        )
    alive = train.weight > 0
    lacks = missing(train.y) & alive
    if lacks.any():
        raise ValueError(
            f"y has {plural(int(lacks.sum()), 'missing label')} (NaN, None or NA), the first in "
            f"row {train.first_row(lacks)}. Rows without labels are datasets of their own: pass "
            'datasets={"traffic": Dataset(X, y)}, whose y may lack labels or be left out, or stack '
            "them under X with another name than "
            f"{quoted(TRAIN)} in the column that datasets= names (ratebound.stack does)"
        )
    distinct, _ = distinct_values(train.y[alive], "y")
    if distinct.dtype.kind == "f":
        if np.isinf(distinct).any():
            raise ValueError("y contains infinity; labels are two classes")
        fractions = distinct[distinct != np.floor(distinct)]
        if len(fractions):
            raise ValueError(
                f"Unknown label type: continuous. y holds numbers such as {fractions[0]}; labels "
                "are two classes (cut y at a threshold, or use a regressor)"
            )
    if len(distinct) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(distinct)} classes ({listed(distinct.tolist())}). "
            + (
                f"If rows are stacked, {forgotten}"
                if forgotten
                else "Train one-vs-rest, with sklearn.multiclass.OneVsRestClassifier around the "
                "estimator"
            )
        )
    if len(distinct) < 2:
        among = "" if alive.all() else " in rows of positive weight"
        raise ValueError(
            f"y has one class only{among} ({listed(distinct.tolist())}); training needs rows of "
            "two classes"
        )
    return distinct


def _given_classes(classes: Any) -> NDArray[Any]:
    distinct, _ = distinct_values(vector(classes, "classes"), "classes")
    if len(distinct) != 2:
        raise ValueError(f"classes must be two, got {listed(distinct.tolist())}")
    return distinct


def _positive_class(pos_label: Any, classes: NDArray[Any]) -> Any:
    values = classes.tolist()
    if pos_label is None:
        return values[1]
    if pos_label not in values:
        raise ValueError(
            f"pos_label={pos_label!r} is not one of the classes of y: {listed(values)}"
        )
    return values[values.index(pos_label)]


def _labels(
    part: NamedRows, classes: NDArray[Any], positive: Any, is_read: bool
) -> NDArray[np.int8] | None:
    if is_read and part.y is None:
        argument = "y, beside X" if part.name == TRAIN else "Dataset(X, y)"
        raise ValueError(
            f"a goal reads the labels of dataset {quoted(part.name)}, which has none; pass them "
            f"({argument}), or use a goal that needs no labels there, such as positive_rate or "
            "churn"
        )
    # In the stacked form every row must have some label, so those that no goal reads may be
    # invented; in a Dataset they were given on purpose and are worth checking.
    if part.y is None or (part.is_stacked and part.name != TRAIN and not is_read):
        return None
    hint = (
        "labels must be among the training classes; a row without a label has NaN or None, or "
        "belongs in a dataset of its own, on which no goal reads labels"
    )
    reads = (part.weight > 0) & ~missing(part.y)
    signs = _signs(part.y, reads, classes, positive, f"y{part.owner}", hint)
    if is_read and not signs.any():
        raise ValueError(
            f"a goal reads the labels of dataset {quoted(part.name)}, and every label there is "
            "missing; pass labels for some rows"
        )
    return signs


def _baseline(
    part: NamedRows, classes: NDArray[Any], positive: Any, is_read: bool
) -> NDArray[np.int8] | None:
    if is_read and part.baseline is None:
        argument = "baseline=..., beside X" if part.name == TRAIN else "Dataset(X, baseline=...)"
        raise ValueError(
            f"a goal compares with the baseline of dataset {quoted(part.name)}, which has none; "
            f"pass the other classifier's predictions: {argument}"
        )
    if part.baseline is None or (part.is_stacked and not is_read):
        return None
    hint = "pass the classes that the other classifier predicts (predict, not scores)"
    reads = part.weight > 0
    lacks = missing(part.baseline) & reads
    if lacks.any():
        raise ValueError(
            f"baseline{part.owner} is missing in row {part.first_row(lacks)} of X; {hint}"
        )
    return _signs(part.baseline, reads, classes, positive, f"baseline{part.owner}", hint)


def _signs(
    values: NDArray[Any],
    reads: NDArray[np.bool_],
    classes: NDArray[Any],
    positive: Any,
    what: str,
    hint: str,
) -> NDArray[np.int8]:
    """+1 for the positive class and -1 for the other in the rows to read, 0 elsewhere."""
    distinct, codes = distinct_values(values[reads], what)
    known = classes.tolist()
    strangers = [value for value in distinct.tolist() if value not in known]
    if strangers:
        raise ValueError(
            f"{what} holds {listed(strangers)}, and the classes are {listed(known)}; {hint}"
        )
    signs = np.zeros(len(values), dtype=np.int8)
    sign_of = np.array([1 if value == positive else -1 for value in distinct.tolist()], np.int8)
    signs[reads] = sign_of[codes]
    return signs
