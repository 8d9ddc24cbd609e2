"""Features, dense or sparse: products with parameters. Checks of features, images, edges and examples."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.finite import all_finite
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import array_of, integers, items, whole_number

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NUMBERS = "finite real numbers"
Matrix: TypeAlias = "FloatArray | csr_array"
"""A float64 array (m, n), or a scipy.sparse CSR or CSC array of that shape."""
Features: TypeAlias = "ArrayLike | csr_array"
"""What the caller gives for a matrix."""


def times(matrix: Matrix, array: Array) -> Array:
    """Multiply a real matrix (m, n) with an array (n, ...), giving (m, ...), on one thread.

    A complex array is multiplied as two real ones side by side: the matrix is not converted.

    Examples
    --------
    >>> times(np.array([[1.0, 2.0]]), np.array([3.0, 1j])).tolist()
    [(3+2j)]
    """
    tail = array.shape[1:]
    flat = np.ascontiguousarray(array).reshape(array.shape[0], prod(tail))
    right = flat.astype(np.complex128, copy=False).view(np.float64) if flat.dtype.kind == "c" else flat
    with one_blas_thread():
        found = np.ascontiguousarray(matrix @ right)
    found = found.view(np.complex128) if flat.dtype.kind == "c" else found
    return found.reshape(matrix.shape[0], *tail)


def dense(values: ArrayLike, argument: str, axes: str, threads: int = 1) -> FloatArray:
    """Convert to a float64 array of finite numbers with the axes that are named, such as "nodes, features"."""
    ndim = axes.count(",") + 1
    array = array_of(values, argument, f"an array ({axes})", "fill in or drop masked values, e.g. with .filled(0)")
    if array.dtype.kind not in "biuf":
        raise InputError(argument, NUMBERS, f"dtype {array.dtype}", _remedy(array))
    if array.ndim != ndim:
        raise InputError(argument, f"an array ({axes})", f"shape {array.shape}")
    array = np.asarray(array, np.float64)
    if not all_finite(array, threads):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(argument, NUMBERS, f"{array[where]} at index {where}", "fill in or drop missing values")
    return array


def matrix(values: Features, argument: str, axes: str = "rows, features") -> Matrix:
    """Convert features to a float64 array, or a CSR array where they are sparse."""
    from scipy import sparse

    if not sparse.issparse(values):
        return dense(values, argument, axes)
    given: sparse.sparray = values
    if given.ndim != 2:
        raise InputError(argument, f"a sparse array ({axes})", f"shape {given.shape}")
    if given.dtype.kind not in "biuf":
        raise InputError(argument, NUMBERS, f"dtype {given.dtype}", _remedy(given))
    rows = sparse.csr_array(given, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        got = f"{rows.data[bad[0]]} at index {(row, int(rows.indices[bad[0]]))}"
        raise InputError(argument, NUMBERS, got, "fill in or drop missing values")
    return rows


def stacked(matrices: Sequence[Matrix], argument: str, bias: bool = False) -> Matrix:
    """Copy matrices to one, their rows one below the other; `bias` appends a column of ones.

    The whole is sparse if one of them is.
    """
    from scipy import sparse

    widths = {m.shape[1]: i for i, m in reversed(list(enumerate(matrices)))}
    if len(widths) > 1:
        (first, _), (other, i) = sorted(widths.items(), key=lambda pair: pair[1])[:2]
        got = f"{first} and, in example {i}, {other}"
        raise InputError(argument, "the same number of features in every example", got)
    rows = sum(m.shape[0] for m in matrices)
    if any(map(sparse.issparse, matrices)):
        blocks = [sparse.csr_array(m) for m in matrices]
        whole = sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0].copy()
        return sparse.hstack([whole, sparse.csr_array(np.ones((rows, 1)))], format="csr") if bias else whole
    if bias:
        whole = np.ones((rows, next(iter(widths)) + 1))
        np.concatenate(matrices, out=whole[:, :-1])
        return whole
    return np.ascontiguousarray(np.concatenate(matrices))


def edge_list(values: ArrayLike, n_nodes: int, argument: str) -> IntArray:
    """Check edges (edges, 2) between nodes of one example: in range, none from a node to itself."""
    if (isinstance(values, list | tuple) and not values) or (isinstance(values, np.ndarray) and not values.size):
        return np.zeros((0, 2), np.int64)
    pairs = integers(values, argument, 2)
    if pairs.shape[1] != 2:
        remedy = "transpose it" if pairs.shape[0] == 2 else ""
        raise InputError(argument, "an array (edges, 2)", f"shape {pairs.shape}", remedy)
    if pairs.min() < 0 or pairs.max() >= n_nodes:
        row = int(np.flatnonzero(((pairs < 0) | (pairs >= n_nodes)).any(axis=1))[0])
        expected = f"nodes 0 to {n_nodes - 1}" if n_nodes else "no edges, as there are no nodes"
        raise InputError(argument, expected, f"{tuple(pairs[row].tolist())} in row {row}", "count nodes from 0")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        got = f"{tuple(pairs[loops[0]].tolist())} in row {loops[0]}"
        raise InputError(argument, "no edge from a node to itself", got, "put what depends on one node in its features")
    return pairs


def examples_of(values: object, argument: str, what: str) -> list[Any]:
    """Check a list of at least one example."""
    found = items(values, argument, f"a list of {what}")
    require(found, argument, f"at least one of {what}", "an empty list")
    return found


def states(n_states: object) -> int:
    """Check a number of states."""
    return whole_number(n_states, "n_states", 1)


def cards_of(cards: object, argument: str = "cards") -> tuple[int, ...]:
    """Check the shape of a table."""
    found = items(cards, argument, "the numbers of states of a table's axes, such as (2, 2)")
    return tuple(whole_number(k, f"{argument}[{i}]", 1) for i, k in enumerate(found))


def _remedy(array: Matrix) -> str:
    return "convert it, e.g. with .astype(float)" if array.dtype.kind == "O" else ""
