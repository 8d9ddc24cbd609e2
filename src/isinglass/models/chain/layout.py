"""How the attributes of tokens lie in memory for training.

Scores want them by token, in two parts: attributes with rows of weights, and single entries of lists. Derivatives want
them by pieces of tokens, whose slopes are in a cache, and in a piece by attribute
(`isinglass.kernels.numba.chains.gradient`). A long piece is cut further, into blocks.

Attributes are cut into parts, which threads add to side by side. A sum goes over the tokens in order, so the bits do
not depend on the parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray

LANES = 8
_BLOCK = 2**18  # numbers of a block of slopes: those of its tokens stay in the caches
_LARGE, _HUGE = 2**15, 2**18  # numbers: a quarter of a megabyte; a huge page
_LONG = 16  # lists longer than that, in the mean, are not written out token by token
_SHARES = 2  # parts for each of several threads

ByToken = tuple[IntArray, NDArray[np.int32], FloatArray, int]
"""Starts (tokens + 1,), columns (entries,), values, and step: 0 where all values are equal, and just one is stored."""

Derivatives = tuple[FloatArray, FloatArray]
"""Derivatives by weights in rows (rows, width), and by those in lists (entries,)."""


def by_token(X: csr_array) -> ByToken:
    """Return a sparse matrix (tokens, attributes) as loops take it; values that are all 1 are stored once."""
    step = int(not (X.data == 1).all())
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data if step else np.ones(1), step


def width_of(card: int) -> int:
    """Return how many numbers a row of labels takes, with padding."""
    return -(-card // LANES) * LANES


def aligned(rows: int, width: int) -> FloatArray:
    """Return an array of zeros whose rows are aligned to cache lines; a large one begins with a huge page.

    Loops look into them at random, and would else wait for addresses of pages as often as for numbers. NumPy asks for
    huge pages where an array has twice their size.
    """
    line = 8 if rows * width < _LARGE else _HUGE
    room = np.zeros(max(rows * width + line, 2 * line))
    skip = (-room.ctypes.data // 8) % line
    return room[skip : skip + rows * width].reshape(rows, width)


@dataclass(frozen=True, eq=False)
class Places:
    """Where weights lie: in rows of labels, of which row 0 is zero, for attributes that have none; in lists after them.

    Attributes
    ----------
    width : int
        Of a row.
    row_of : int32 array (attributes,)
        The row of each attribute, 0 for those with lists.
    rows : int
    first : int array (attributes + 1,)
        The first entry of each attribute's list.
    labels : int32 array (entries,)
        Of the entries of lists.
    flat : int array (weights,)
        Where each weight of theta is, rows first.
    """

    width: int
    row_of: NDArray[np.int32]
    rows: int
    first: IntArray
    labels: NDArray[np.int32]
    flat: IntArray

    def room(self) -> tuple[FloatArray, Derivatives]:
        """Return zeros for all weights, and the same as rows and lists."""
        cut = self.rows * self.width
        flat = aligned(1, cut + len(self.labels)).reshape(-1)
        return flat, (flat[:cut].reshape(self.rows, self.width), flat[cut:])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Tokens in pieces, and these in blocks.

    Attributes
    ----------
    pieces, blocks : int arrays (pieces + 1,), (blocks + 1,)
        The first token of each.
    first : int array (pieces + 1,)
        The first block of each piece.
    """

    pieces: IntArray
    blocks: IntArray
    first: IntArray

    @classmethod
    def of(cls, pieces: IntArray, width: int) -> Blocks:
        """Cut pieces of tokens with so many slopes each."""
        most = max(_BLOCK // width, 1)
        counts = np.maximum(-(-np.diff(pieces) // most), 1)
        first = starts(counts)
        inside = ranges(np.zeros(len(counts), np.int64), counts)
        blocks = np.repeat(pieces[:-1], counts) + most * inside
        return cls(pieces, np.append(blocks, pieces[-1]), first)


@dataclass(frozen=True, eq=False)
class Sorted:
    """The entries of a sparse matrix by blocks of tokens, in these by columns, then by tokens.

    Attributes
    ----------
    starts : int array (blocks + 1,)
        The first entry of each block.
    tokens, columns : int32 arrays (entries,)
        Tokens are counted from the first of their piece.
    values : array (entries,) or (1,)
    """

    n_columns: int
    starts: IntArray
    tokens: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: FloatArray
    step: int

    @classmethod
    def of(cls, data: ByToken, n_columns: int, cuts: Blocks) -> Sorted:
        """Sort the entries of tokens."""
        first, columns, values, step = data
        given = values if step else np.ones(len(columns), np.bool_)
        X = csr_array((given, columns, first), shape=(len(first) - 1, n_columns)).tocsc()
        sizes = np.diff(cuts.blocks)
        block_of = np.repeat(np.arange(len(sizes), dtype=np.uint16 if len(sizes) < 2**16 else np.int64), sizes)
        order = np.argsort(block_of[X.indices], kind="stable")
        piece_of = np.repeat(cuts.pieces[:-1], np.diff(cuts.pieces)).astype(np.int32)
        tokens = X.indices[order].astype(np.int32)
        return cls(
            n_columns,
            first[cuts.blocks],
            tokens - piece_of[tokens],
            np.repeat(np.arange(n_columns, dtype=np.int32), np.diff(X.indptr))[order],
            X.data[order] if step else values,
            step,
        )

    def cuts(self, parts: int) -> IntArray:
        """Cut the columns into parts of about equal work."""
        return _equal_cuts(np.bincount(self.columns, minlength=self.n_columns), parts)

    def bounds(self, cuts: IntArray) -> IntArray:
        """Return the first entry of each part in each block, and the end (blocks, parts + 1)."""
        blocks = np.arange(len(self.starts) - 1)
        keys = np.repeat(blocks, np.diff(self.starts)) * (self.n_columns + 1) + self.columns
        return np.stack([np.searchsorted(keys, blocks * (self.n_columns + 1) + end) for end in cuts], axis=1)

    def in_parts(self, parts: int) -> tuple[IntArray, IntArray, tuple[Any, ...]]:
        """Return the cuts between parts, the bounds between these in each block, in runs, and the runs."""
        cuts, runs = self.cuts(parts), Runs.of(self)
        return cuts, np.searchsorted(runs.starts, self.bounds(cuts)), tuple(runs)


class Runs(NamedTuple):
    """Sorted entries, where those of a column in a block are a run; the first entry of each run, and the end."""

    columns: NDArray[np.int32]
    starts: IntArray
    tokens: NDArray[np.int32]
    values: FloatArray
    step: int

    @classmethod
    def of(cls, entries: Sorted) -> Runs:
        """Find the runs."""
        new = np.ones(len(entries.columns), np.bool_)
        new[1:] = entries.columns[1:] != entries.columns[:-1]
        new[entries.starts[:-1][entries.starts[:-1] < len(new)]] = True
        first = np.flatnonzero(new)
        return cls(entries.columns[first], np.append(first, len(new)), entries.tokens, entries.values, entries.step)


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
    def of(cls, data: ByToken, places: Places) -> Entries | None:
        """Write the lists out; None where they are long."""
        first, columns, values, step = data
        counts = np.diff(places.first)[columns]
        if counts.sum() > _LONG * len(columns):
            return None
        targets = ranges(places.first[columns], counts).astype(np.int32)
        numbers = np.repeat(values, counts) if step else values
        return cls(starts(counts)[first], targets, numbers, step, places.labels[targets])

    @property
    def by_token(self) -> ByToken:
        """The entries as a sparse matrix (tokens, entries of lists)."""
        return self.starts, self.targets, self.values, self.step

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the loops take."""
        return self.starts, self.targets, self.values, self.step, self.labels


@dataclass(frozen=True, eq=False)
class Training:
    """Tokens laid out for training.

    Attributes
    ----------
    places : Places
    cuts : Blocks
    rows : tuple
        The rows of each token.
    entries : Entries or None
        The lists of each token, written out.
    lists : tuple
        The attributes of each token that have lists.
    """

    places: Places
    cuts: Blocks
    rows: ByToken
    entries: Entries | None
    lists: ByToken
    known: dict[int, tuple[Any, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: ByToken, places: Places, pieces: IntArray) -> Training:
        """Lay out tokens; `pieces`: the first token of each piece, and the number of tokens."""
        own, others = _split(data, places)
        return cls(places, Blocks.of(pieces, places.width), own, Entries.of(others, places), others)

    @cached_property
    def derivatives(self) -> tuple[FloatArray, Derivatives]:
        """Room for the derivatives: flat, and as rows and lists."""
        return self.places.room()

    def parts_of(self, threads: int) -> int:
        """Return how many parts there are for so many threads: those of rows, and as many of lists."""
        return 2 * (_SHARES * threads if threads > 1 else 1)

    def layout(self, threads: int) -> tuple[Any, ...]:
        """Return what `isinglass.kernels.numba.chains.gradient.add_part` takes; no entries if lists are not written."""
        if threads not in self.known:
            parts = self.parts_of(threads) // 2
            self.known[threads] = self.cuts.first, self._rows.in_parts(parts), self._entries_in(parts)
        return self.known[threads]

    @cached_property
    def _rows(self) -> Sorted:
        return Sorted.of(self.rows, self.places.rows, self.cuts)

    @cached_property
    def _listed(self) -> Sorted:
        return Sorted.of(self.lists, len(self.places.row_of), self.cuts)

    def _entries_in(self, parts: int) -> tuple[Any, ...]:
        """Return the cuts between parts, the bounds between these in each block, and the entries, by tokens there."""
        none = np.zeros_like(self.rows[0]), self.rows[1][:0], np.ones(1), 0
        first, targets, values, step = none if self.entries is None else self.entries.by_token
        cuts = _equal_cuts(np.bincount(targets, minlength=len(self.places.labels)), parts)
        tokens, blocks = np.repeat(np.arange(len(first) - 1), np.diff(first)), len(self.cuts.blocks) - 1
        part = np.searchsorted(cuts[1:-1], targets, "right")
        keys = np.repeat(np.arange(blocks), np.diff(first[self.cuts.blocks])) * parts + part
        order = np.argsort(keys.astype(np.uint16) if blocks * parts < 2**16 else keys, kind="stable")
        starts_of_pieces = np.repeat(self.cuts.pieces[:-1], np.diff(self.cuts.pieces))
        sources = (tokens - starts_of_pieces[tokens]) * self.places.width + self.places.labels[targets]
        narrow = sources.astype(np.int32) if sources.max(initial=0) < 2**31 else sources
        ends = starts(np.bincount(keys, minlength=blocks * parts))
        bounds = np.concatenate([ends[:-1].reshape(blocks, parts), ends[parts::parts, None]], axis=1)
        return cuts, bounds, (narrow[order], targets[order], values[order] if step else values, step)

    def transpose(self, slopes: FloatArray, spread: ThreadMap) -> None:
        """Write the derivatives from those by the scores of all tokens (tokens, width)."""
        from isinglass.kernels.numba.chains.gradient import add_lists, add_pieces

        pieces, pair, parts = self.cuts.pieces, (slopes, slopes.reshape(-1)), self.parts_of(spread.threads)
        given = pieces, self.layout(spread.threads), pair, self.derivatives[1]
        spread(lambda part: add_pieces(part, *given), [(i,) for i in range(parts)])
        if self.entries is None:
            lists = pieces, self.cuts.first, *self._listed.in_parts(parts // 2), self.places.first, self.places.labels
            out = slopes, self.derivatives[1][1]
            spread(lambda part: add_lists(part, *lists, *out), [(i,) for i in range(parts // 2)])

    def add(self, first: int, last: int, slopes: FloatArray) -> None:
        """Add the slopes of tokens `first` to `last` to the derivatives; only where lists are written out."""
        from isinglass.kernels.numba.chains.gradient import add_tokens

        assert self.entries is not None
        add_tokens(first, last, self.rows, self.entries.arrays, slopes, self.derivatives[1])

    def gradient(self, spread: ThreadMap, out: FloatArray) -> None:
        """Write derivatives by theta."""
        flat, places, n = self.derivatives[0], self.places.flat, len(self.places.flat)
        ends = [n * i // spread.threads for i in range(spread.threads + 1)]
        spread(lambda a, b: np.take(flat, places[a:b], out=out[a:b], mode="clip"), list(pairwise(ends)))  # in range


def _equal_cuts(work: IntArray, parts: int) -> IntArray:
    """Cut columns into parts of about equal work (parts + 1,)."""
    done = starts(work)
    inner = np.searchsorted(done, done[-1] * np.arange(1, parts) / parts)
    return np.concatenate([[0], inner, [len(work)]]).astype(np.int64)


def _split(data: ByToken, places: Places) -> tuple[ByToken, ByToken]:
    """Cut the attributes of tokens into the two kinds."""
    from isinglass.kernels.numba.chains.attributes import split_kinds

    first, columns, values, step = data
    room = [(np.empty_like(first), np.empty_like(columns), np.empty_like(values) if step else values) for _ in range(2)]
    split_kinds(first, columns, values, step, places.row_of, *room)
    one, two = (
        (ends, kept[: ends[-1]], numbers[: ends[-1]] if step else numbers, step) for ends, kept, numbers in room
    )
    return one, two
