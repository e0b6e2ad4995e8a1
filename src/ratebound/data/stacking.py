"""The stacked form: the rows of all datasets, one under the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratebound.data.arrays import Columns, as_frame, distinct_values, listed, missing, quoted
from ratebound.data.dataset import DATASET_COLUMN, TRAIN, Dataset, NamedRows, read_dataset


class Stacked(NamedTuple):
    """All rows of several datasets, one under the other, as :func:`stack` builds them."""

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    baseline: NDArray[Any] | None
    columns: Any

    def __repr__(self) -> str:
        names, counts = np.unique(np.asarray(self.columns[DATASET_COLUMN]), return_counts=True)
        rows = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        given = [name for name in ("sample_weight", "baseline") if getattr(self, name) is not None]
        with_ = f"; with {' and '.join(given)}" if given else ""
        return f"<Stacked: {self.X.shape[0]} rows x {self.X.shape[1]} features ({rows}){with_}>"


def stack(**datasets: Dataset) -> Stacked:
    """Put the rows of all datasets one under the other, for Pipelines and cross-validation.

    Fit with ``datasets="dataset"``, the column of the result's ``columns`` that says which dataset
    each row belongs to. Every transformer and splitter then sees all rows.

    scikit-learn wants a label for every row, so rows without one get a third label: one less than
    the smallest (booleans become 0 and 1 then) or ``"unlabelled"``. Labels of datasets on which no
    goal reads labels are ignored in the fit; a goal that does read such a label is an error. Rows
    without a baseline get the same value in ``baseline`` where other rows have one.

    Parameters
    ----------
    **datasets : Dataset
        By name; ``train`` must be there, fully labelled. All X are of one kind: dataframes of one
        library, sparse matrices (the result is CSR) or dense arrays.

    Returns
    -------
    Stacked
        ``X``, ``y``, ``sample_weight`` and ``baseline`` (None where no dataset has any) and
        ``columns``: a dataframe of the library that ``columns`` or X came in, else a structured
        NumPy array, with a missing value where a dataset lacks a column.

    Examples
    --------
    >>> from ratebound.data import Dataset, stack
    >>> rows = stack(train=Dataset([[0.0], [1.0]], ["no", "yes"]), traffic=Dataset([[2.0]]))
    >>> rows.y
    array(['no', 'yes', 'unlabelled'], dtype='<U10')
    >>> rows.columns["dataset"]
    array(['train', 'train', 'traffic'], dtype='<U7')
    """
    if TRAIN not in datasets:
        raise ValueError(
            f"stack needs the rows to train on: stack({TRAIN}=Dataset(X, y), ...); got "
            f"{listed(datasets) or 'nothing'}"
        )
    parts = [read_dataset(dataset, name) for name, dataset in datasets.items()]
    train = next(part for part in parts if part.name == TRAIN)
    if train.y is None or missing(train.y).any():
        raise ValueError(
            f"dataset {quoted(TRAIN)} needs a label in every row; put rows without one into a "
            "dataset of another name"
        )
    filler = _filler(parts)
    has_weights = any(dataset.sample_weight is not None for dataset in datasets.values())
    has_baseline = any(part.baseline is not None for part in parts)
    return Stacked(
        X=_stack_features(parts),
        y=_stack_labels([part.y for part in parts], parts, filler),
        sample_weight=np.concatenate([part.weight for part in parts]) if has_weights else None,
        baseline=_stack_labels([part.baseline for part in parts], parts, filler)
        if has_baseline
        else None,
        columns=_stack_columns(parts, [dataset.columns for dataset in datasets.values()]),
    )


def _present(values: NDArray[Any]) -> NDArray[Any]:
    """Values that are not missing, as numbers where they are numbers kept as objects."""
    distinct, codes = distinct_values(values[~missing(values)], "labels")
    return distinct[codes]


def _filler(parts: Sequence[NamedRows]) -> Any:
    """Choose a value that is no class, neither of a label nor of a baseline."""
    given = [v for part in parts for v in (part.y, part.baseline) if v is not None]
    found = [np.unique(_present(values)).astype(object) for values in given]
    classes, _ = distinct_values(np.concatenate(found), "what y and baseline hold together")
    if classes.dtype.kind in "biuf":
        return classes.min() * 1 - 1
    filler = "unlabelled"
    while filler in classes.tolist():
        filler += "_"
    return filler


def _stack_labels(
    pieces: Sequence[NDArray[Any] | None], parts: Sequence[NamedRows], filler: Any
) -> NDArray[Any]:
    """Put labels one under the other, with the filler where there is none."""
    filled = []
    for values, part in zip(pieces, parts, strict=True):
        if values is None or missing(values).all():
            filled.append(np.full(len(part.weight), filler))
            continue
        lacks = missing(values)
        present = _present(values)
        if lacks.any():
            kind = np.result_type(present, np.asarray(filler))
            labels = np.full(len(values), filler, dtype=kind)
            labels[~lacks] = present
            filled.append(labels)
        else:
            filled.append(present)
    return np.concatenate(filled)


def _stack_features(parts: Sequence[NamedRows]) -> Any:
    frames = [as_frame(part.X) for part in parts]
    kinds = [
        str(frame.implementation) if frame is not None else sp.issparse(part.X)
        for frame, part in zip(frames, parts, strict=True)
    ]
    for part, kind in zip(parts, kinds, strict=True):
        if kind != kinds[0]:
            raise TypeError(
                f"X is a {type(parts[0].X).__name__} in {quoted(parts[0].name)} and a "
                f"{type(part.X).__name__} in {quoted(part.name)}; stack datasets of one kind"
            )
    if frames[0] is not None:
        return _stack_frames([frame for frame in frames if frame is not None], parts)
    blocks: list[Any] = [part.X if sp.issparse(part.X) else np.asarray(part.X) for part in parts]
    for part, block in zip(parts, blocks, strict=True):
        if block.shape[1:] != blocks[0].shape[1:]:
            raise ValueError(
                f"X has shape {blocks[0].shape} in {quoted(parts[0].name)} and {block.shape} in "
                f"{quoted(part.name)}; all datasets have the same features"
            )
    return sp.vstack(blocks, format="csr") if kinds[0] is True else np.concatenate(blocks)


def _stack_frames(frames: Sequence[nw.DataFrame[Any]], parts: Sequence[NamedRows]) -> Any:
    first = frames[0]
    for part, frame in zip(parts, frames, strict=True):
        if frame.columns != first.columns:
            raise ValueError(
                f"the columns of X in {quoted(part.name)} are not those of {quoted(parts[0].name)} "
                f"in the same order: {listed(frame.columns)} and {listed(first.columns)}"
            )
    mixed = set()
    for part, frame in zip(parts, frames, strict=True):
        for name, kind in frame.schema.items():
            expected = first.schema[name]
            if kind == expected:
                continue
            # Integers in one dataset and fractions in another are numbers all the same.
            if not (kind.is_numeric() and expected.is_numeric()):
                raise TypeError(
                    f"column {quoted(name)} of X is of type {kind} in {quoted(part.name)} and "
                    f"{expected} in {quoted(parts[0].name)}; convert one of them"
                )
            mixed.add(name)
    as_floats = [nw.col(name).cast(nw.Float64) for name in sorted(mixed)]
    return nw.concat([frame.with_columns(*as_floats) for frame in frames]).to_native()


def _stack_columns(parts: Sequence[NamedRows], given: Sequence[Any]) -> Any:
    """Build the table of all columns passed for any dataset, with the dataset of each row."""
    passed = [name for columns in given for name in Columns.of(columns, None).names]
    if DATASET_COLUMN in passed:
        raise ValueError(
            f"a column is named {quoted(DATASET_COLUMN)}, the name of the column that stack adds; "
            "rename it"
        )
    lengths = [len(part.weight) for part in parts]
    table = {DATASET_COLUMN: np.repeat([part.name for part in parts], lengths)}
    for name in dict.fromkeys(passed):
        # A dataset may have as a column of X what another has in columns=.
        pieces = [part.columns.get(name) if name in part.columns.names else None for part in parts]
        table[name] = _stack_column(pieces, lengths)
    frames = (as_frame(thing) for thing in (*given, *(part.X for part in parts)))
    frame = next((frame for frame in frames if frame is not None), None)
    if frame is not None:
        # Lists, because polars keeps an array of objects as objects and not as text.
        lists = {name: v.tolist() if v.dtype.kind == "O" else v for name, v in table.items()}
        return nw.from_dict(lists, backend=frame.implementation).to_native()
    records = np.empty(sum(lengths), dtype=[(name, v.dtype) for name, v in table.items()])
    for name, values in table.items():
        records[name] = values
    return records


def _stack_column(pieces: Sequence[NDArray[Any] | None], lengths: Sequence[int]) -> NDArray[Any]:
    """Put the values of a column one under the other, missing where a dataset lacks it."""
    kinds = {values.dtype.kind for values in pieces if values is not None}
    are_numbers = kinds <= set("biuf")
    nothing: Any = np.nan if are_numbers else np.datetime64("NaT") if kinds == {"M"} else None
    filled = [
        np.full(length, nothing) if values is None else values
        for values, length in zip(pieces, lengths, strict=True)
    ]
    if are_numbers or len({values.dtype.kind for values in filled}) == 1:
        return np.concatenate(filled)
    # Text and numbers side by side would all become text.
    return np.concatenate([values.astype(object) for values in filled])
