"""Which distinct tables a group of factors needs when several terms add up, and where each term's tables go.

Term s gives factor a its table i_s(a), or none (-1). Factors with the same tuple (i_1(a), ..., i_S(a)) share a table of
the group,

    phi_u = sum_s tables_s[i_s(u)],        dL/dtables_s[i] = sum over u with i_s(u) = i of dL/dphi_u,

so what the terms share stays shared: one table for all edges of a thousand examples remains one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.models.checks import Matrix, times
from isinglass.typing import Array, IntArray
from isinglass.validation import read_only


class Placement(NamedTuple):
    """The distinct tables of a group.

    `table_ids` (factors,) says which one a factor uses; `chosen`, for each term, which of the term's tables goes into
    each, -1 for none.
    """

    table_ids: IntArray
    n_tables: int
    chosen: list[IntArray]


def place(ids: Sequence[IntArray], counts: Sequence[int], n_factors: int) -> Placement:
    """Find the distinct tables, in the order of the first term's tables, then of the second's, and so on; none is last.

    So terms that apply to different factors have a range of tables each.

    Parameters
    ----------
    ids : sequence of int arrays (factors,)
        For each term, the table that each factor uses.
    counts : sequence of int
        The number of tables of each term.
    n_factors : int

    Examples
    --------
    Two terms, for the horizontal and the vertical edges of a grid:

    >>> table_ids, n, chosen = place([np.array([0, 0, -1, -1]), np.array([-1, -1, 0, 0])], [1, 1], 4)
    >>> table_ids.tolist(), n, [c.tolist() for c in chosen]
    ([0, 0, 1, 1], 2, [[0, -1], [-1, 0]])
    """
    if len(ids) == 1 and (ids[0] >= 0).all():
        return Placement(read_only(ids[0]), counts[0], [np.arange(counts[0])])
    key = np.zeros(n_factors, np.int64)
    for one, count in zip(ids, counts, strict=True):
        key = key * (count + 1) + np.where(one >= 0, one, count)
        key = np.unique(key, return_inverse=True)[1].ravel()  # small numbers again
    first = np.unique(key, return_index=True)[1]
    return Placement(read_only(key), len(first), [one[first] for one in ids])


class SliceMap(NamedTuple):
    """A range of a term's tables that is a range of the group's tables."""

    of_group: slice
    of_term: slice
    n_tables: int  # of the term

    def add(self, tables: Array, total: Array) -> None:
        """Add a term's tables to those of the group."""
        total[self.of_group] += tables[self.of_term]

    def collect(self, bars: Array) -> Array:
        """Return derivatives by the term's tables, given those by the group's."""
        rows = bars[self.of_group]
        if len(rows) == self.n_tables:
            return rows
        out = np.zeros((self.n_tables, *bars.shape[1:]), bars.dtype)
        out[self.of_term] = rows
        return out


class SparseMap(NamedTuple):
    """Any choice of a term's tables for the group's, as a sparse matrix of zeros and ones."""

    matrix: Matrix  # (tables of the group, tables of the term)

    def add(self, tables: Array, total: Array) -> None:
        """Add a term's tables to those of the group."""
        total += times(self.matrix, tables)

    def collect(self, bars: Array) -> Array:
        """Return derivatives by the term's tables, given those by the group's."""
        return times(self.matrix.T, bars)


def selection(chosen: IntArray, n_tables: int) -> SliceMap | SparseMap:
    """Return the map from a term's tables to those of its group, by slices where that is possible.

    Examples
    --------
    >>> selection(np.array([-1, 0]), 1)
    SliceMap(of_group=slice(1, 2, None), of_term=slice(0, 1, None), n_tables=1)
    """
    rows = np.flatnonzero(chosen >= 0)
    of_group, of_term = _run(rows), _run(chosen[rows])
    if of_group is not None and of_term is not None:
        return SliceMap(of_group, of_term, n_tables)
    from scipy.sparse import csr_array

    ones = np.ones(len(rows))
    return SparseMap(csr_array((ones, (rows, chosen[rows])), shape=(len(chosen), n_tables)))


def is_whole(found: SliceMap | SparseMap, n_tables: int) -> bool:
    """Tell whether a term's tables are the group's `n_tables` tables, one by one."""
    return isinstance(found, SliceMap) and found.n_tables == n_tables == found.of_group.stop - found.of_group.start


def _run(numbers: IntArray) -> slice | None:
    """Return the slice that picks these numbers, if they follow each other."""
    if not len(numbers):
        return slice(0, 0)
    start = int(numbers[0])
    return slice(start, start + len(numbers)) if (np.diff(numbers) == 1).all() else None
