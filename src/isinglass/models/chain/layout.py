"""How the attributes of tokens lie in memory for training.

Scores want them by token, in two parts: attributes with rows of weights, and single entries of lists. Derivatives want
them by attribute, so that each sum is written by one thread, and by blocks of tokens, whose slopes then stay in the
second cache (`isinglass.kernels.numba.chains.attributes`). Attributes are shared out among threads; their sums go over
the tokens in order, so the bits do not depend on the shares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from isinglass.runtime.threads import ThreadMap
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray

LANES = 8
_BLOCK = 2**18  # numbers of a block of slopes: those of its tokens fill the second cache
_LONG = 16  # lists longer than that, in the mean, are not written out token by token

ByToken = tuple[IntArray, NDArray[np.int32], FloatArray, int]
"""Starts (tokens + 1,), columns (entries,), values, and step: 0 where all values are equal, and just one is stored."""


def width_of(card: int) -> int:
    """Return how many numbers a row of labels takes, with padding."""
    return -(-card // LANES) * LANES


def aligned(rows: int, width: int) -> FloatArray:
    """Return an array of zeros whose rows are aligned to cache lines."""
    room = np.zeros(rows * width + 8)
    skip = (-room.ctypes.data // 8) % 8
    return room[skip : skip + rows * width].reshape(rows, width)


@dataclass(frozen=True, eq=False)
class Rows:
    """Weights in rows (count, width), of which row 0 is zero, for attributes that have none.

    Attributes
    ----------
    row_of : int32 array (attributes,)
    weights : int array (n,)
        Their numbers in theta.
    first : int array (rows + 1,)
        The first weight of each row.
    places : int array (n,)
        Where each weight is in the flat rows.
    """

    row_of: NDArray[np.int32]
    weights: IntArray
    first: IntArray
    places: IntArray

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.first) - 1


@dataclass(frozen=True, eq=False)
class Lists:
    """Weights in lists: the first entry of each attribute, the number of each weight in theta, and its label."""

    first: IntArray
    weights: IntArray
    labels: NDArray[np.int32]


class Part(NamedTuple):
    """What one thread works on: columns from `first` to `last`, and where their runs begin and end in each block."""

    first: int
    last: int
    begins: IntArray
    ends: IntArray


@dataclass(frozen=True, eq=False)
class Runs:
    """A sparse matrix by blocks of tokens: a run is the tokens that a column has in a block.

    Attributes
    ----------
    blocks : int array (blocks + 1,)
        The first run of each block.
    columns : int32 array (runs,)
        In order within a block.
    starts : int array (runs + 1,)
        The first entry of each run.
    tokens : int32 array (entries,)
    values : array (entries,) or (1,)
    """

    n_columns: int
    blocks: IntArray
    columns: NDArray[np.int32]
    starts: IntArray
    tokens: NDArray[np.int32]
    values: FloatArray
    step: int

    @classmethod
    def of(cls, data: ByToken, n_columns: int, block: int) -> Runs:
        """Sort the entries of blocks of so many tokens."""
        first, columns, values, step = data
        given = values if step else np.ones(len(columns), np.bool_)
        X = csr_array((given, columns, first), shape=(len(first) - 1, n_columns))
        parts = [csc_array(X[a : a + block]) for a in range(0, max(X.shape[0], 1), block)]
        counts = [np.diff(part.indptr) for part in parts]
        some = [np.flatnonzero(count) for count in counts]
        lengths = np.concatenate([count[used] for count, used in zip(counts, some, strict=True)])
        tokens = np.concatenate([part.indices + i * block for i, part in enumerate(parts)])
        return cls(
            n_columns,
            starts([len(used) for used in some]),
            np.concatenate(some).astype(np.int32),
            starts(lengths),
            tokens.astype(np.int32),
            np.concatenate([part.data for part in parts]) if step else values,
            step,
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the loops take."""
        return self.columns, self.starts, self.tokens, self.values, self.step

    def parts(self, threads: int) -> list[Part]:
        """Cut the columns into parts of about equal work."""
        entries = np.bincount(self.columns, np.diff(self.starts), self.n_columns).cumsum()
        shares = np.searchsorted(entries, entries[-1:] * np.arange(1, threads) / threads) + 1
        ends = np.unique(np.concatenate([[0], shares.astype(np.int64), [self.n_columns]])).tolist()
        blocks = np.arange(len(self.blocks) - 1)
        keys = np.repeat(blocks, np.diff(self.blocks)) * self.n_columns + self.columns
        bounds = [np.searchsorted(keys, blocks * self.n_columns + end) for end in ends]
        return [Part(a, b, *cut) for (a, b), cut in zip(pairwise(ends), pairwise(bounds), strict=True)]


class Share(NamedTuple):
    """Entries of lists that one thread works on, in the order of tokens.

    Their targets are from `first` to `last`; sources are places in the flat slopes.
    """

    first: int
    last: int
    sources: NDArray[Any]
    targets: NDArray[np.int32]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of lists, token by token: one for each weight of each attribute of a token.

    Attributes
    ----------
    starts : int array (tokens + 1,)
    targets : int32 array (entries,)
        Places in the lists.
    values : array (entries,) or (1,)
    labels : int32 array (entries,)
    """

    starts: IntArray
    targets: NDArray[np.int32]
    values: FloatArray
    step: int
    labels: NDArray[np.int32]

    @classmethod
    def of(cls, data: ByToken, lists: Lists) -> Entries | None:
        """Write the lists out; None where they are long."""
        first, columns, values, step = data
        counts = np.diff(lists.first)[columns]
        if counts.sum() > _LONG * len(columns):
            return None
        targets = ranges(lists.first[columns], counts).astype(np.int32)
        return cls(
            starts(counts)[first], targets, np.repeat(values, counts) if step else values, step, lists.labels[targets]
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the loops take."""
        return self.starts, self.targets, self.values, self.step, self.labels

    def shares(self, threads: int, width: int, size: int) -> list[Share]:
        """Cut the lists, of so many entries in all, into parts of about equal work."""
        tokens = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        sources = tokens * width + self.labels
        if len(tokens) * width < 2**31:
            sources = sources.astype(np.int32)
        sums = np.bincount(self.targets, minlength=size).cumsum()
        ends = np.searchsorted(sums, sums[-1:] * np.arange(1, threads) / threads) if size else np.zeros(0, np.int64)
        cuts = np.unique(np.concatenate([[0], ends, [size]]).astype(np.int64)).tolist()
        if len(cuts) <= 2:
            return [Share(0, size, sources, self.targets, self.values)]
        own = [np.flatnonzero((self.targets >= a) & (self.targets < b)) for a, b in pairwise(cuts)]
        return [
            Share(a, b, sources[mine], self.targets[mine], self.values[mine] if self.step else self.values)
            for (a, b), mine in zip(pairwise(cuts), own, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Training:
    """Tokens laid out for training.

    Attributes
    ----------
    by_token : tuple
        The rows of each token.
    runs : Runs
        The same by rows.
    entries : Entries or None
        The lists of each token, written out.
    listed : Runs or None
        The lists by attributes, where they are not written out.
    """

    rows: Rows
    lists: Lists
    by_token: ByToken
    runs: Runs
    entries: Entries | None
    listed: Runs | None
    card: int
    known: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: ByToken, card: int, rows: Rows, lists: Lists) -> Training:
        """Lay out tokens."""
        own, others = _split(data, rows)
        entries = Entries.of(others, lists)
        listed = Runs.of(others, len(lists.first) - 1, max(len(data[0]) - 1, 1)) if entries is None else None
        runs = Runs.of(own, rows.count, max(_BLOCK // width_of(card), 1))
        return cls(rows, lists, own, runs, entries, listed, card)

    @cached_property
    def table(self) -> FloatArray:
        """Room for the derivatives of rows."""
        return aligned(self.rows.count, width_of(self.card))

    def transpose(self, slopes: FloatArray, spread: ThreadMap, out: FloatArray) -> None:
        """Write derivatives by theta from those by the scores of all tokens (tokens, width)."""
        spread(lambda do, *part: do(slopes, out, *part), self._work(spread.threads))

    def _work(self, threads: int) -> list[tuple[Any, ...]]:
        """Return the parts of the work, with the function for each; the largest first."""
        if threads not in self.known:
            work: list[tuple[Any, ...]] = [(self._of_rows, *part) for part in self.runs.parts(threads)]
            if self.entries is not None:
                shares = self.entries.shares(threads, width_of(self.card), len(self.lists.labels))
                work += [(self._of_entries, *share) for share in shares]
            if self.listed is not None:
                work += [(self._of_lists, *part) for part in self.listed.parts(threads)]
            self.known[threads] = work
        return self.known[threads]

    def _of_rows(
        self, slopes: FloatArray, out: FloatArray, first: int, last: int, begins: IntArray, ends: IntArray
    ) -> None:
        from isinglass.kernels.numba.chains.attributes import add_rows, carry

        rows, table = self.rows, self.table
        table[first:last] = 0.0
        add_rows(begins, ends, *self.runs.arrays, slopes, table)
        carry(rows.first[first], rows.first[last], rows.places, table.reshape(-1), rows.weights, out)

    def _of_entries(
        self,
        slopes: FloatArray,
        out: FloatArray,
        first: int,
        last: int,
        sources: NDArray[Any],
        targets: NDArray[np.int32],
        values: FloatArray,
    ) -> None:
        from isinglass.kernels.numba.chains.attributes import collect_entries

        assert self.entries is not None
        lists = np.zeros(last - first)
        collect_entries(sources, targets, values, self.entries.step, slopes.reshape(-1), first, lists)
        out[self.lists.weights[first:last]] = lists

    def _of_lists(
        self, slopes: FloatArray, out: FloatArray, first: int, last: int, begins: IntArray, ends: IntArray
    ) -> None:
        from isinglass.kernels.numba.chains.attributes import collect_lists

        assert self.listed is not None
        own, lists = self.lists, np.zeros(len(self.lists.labels))
        collect_lists(begins, ends, *self.listed.arrays, own.first, own.labels, slopes, lists)
        a, b = own.first[first], own.first[last]
        out[own.weights[a:b]] = lists[a:b]


def _split(data: ByToken, rows: Rows) -> tuple[ByToken, ByToken]:
    """Cut the attributes of tokens into the two kinds."""
    from isinglass.kernels.numba.chains.attributes import split_kinds

    first, columns, values, step = data
    room = [(np.empty_like(first), np.empty_like(columns), np.empty_like(values) if step else values) for _ in range(2)]
    split_kinds(first, columns, values, step, rows.row_of, *room)
    one, two = (
        (ends, kept[: ends[-1]], numbers[: ends[-1]] if step else numbers, step) for ends, kept, numbers in room
    )
    return one, two
