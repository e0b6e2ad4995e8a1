"""Names, labels, groups, weights and baselines bound to rows; all validation of data.

A rate is taken on a named dataset: ``"train"`` (the ``X, y`` of ``fit``) or another one. There are
two ways to hand over the others, and :func:`bind` turns both into the same thing:

- a mapping, ``datasets={"audit": Dataset(X2, y2)}``;
- stacked, all rows in one ``X`` and ``datasets="dataset"`` the name of a column that says which
  dataset each row belongs to. :func:`stack` builds that form. Transformers and splitters then see
  every row, so it is the one for Pipelines and cross-validation.

Binding copies no ``X``: blocks are the objects the caller passed, datasets of the stacked form
are positions in them, and datasets that share one ``X`` share one block.

Weights mean repetition: a row of weight 0 is not there, so its label and its baseline are not read.
"""

from ratebound.data.arrays import check_features, missing
from ratebound.data.binding import BoundData, BoundDataset, bind
from ratebound.data.dataset import TRAIN, Dataset
from ratebound.data.scaling import warn_of_bad_scaling
from ratebound.data.stacking import Stacked, stack

__all__ = [
    "TRAIN",
    "BoundData",
    "BoundDataset",
    "Dataset",
    "Stacked",
    "bind",
    "check_features",
    "missing",
    "stack",
    "warn_of_bad_scaling",
]
