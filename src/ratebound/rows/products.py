"""Inner products of rows with each other, for what is solved over few rows of many columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ratebound import kernels

if TYPE_CHECKING:
    from ratebound.rows.memory import MemoryRows


def products_of_rows(
    rows: MemoryRows, used: npt.NDArray[np.intp], dtype: type[np.float32] | type[np.float64]
) -> npt.NDArray[Any]:
    """X X' over the used rows, whatever blocks they lie in.

    Returns
    -------
    (n, n) array, C-ordered, of which only the lower triangle may be filled
    """
    X: Any = rows.matrix().X
    if len(used) < rows.n_rows:
        X = X[used]
    if not scipy.sparse.issparse(X):
        part: npt.NDArray[Any] = np.asarray(X, dtype=dtype)
        return np.asarray(part @ part.T)
    X = cast(Any, X)
    columns = X.tocsc()
    out: npt.NDArray[Any] = np.zeros((len(used), len(used)), dtype=dtype)
    kernels.csr_products(
        X.indptr, X.indices, X.data.astype(dtype, copy=False),
        columns.indptr, columns.indices, columns.data.astype(dtype, copy=False),
        np.zeros(X.shape[1], dtype=np.int64), out,
    )  # fmt: skip
    return out
