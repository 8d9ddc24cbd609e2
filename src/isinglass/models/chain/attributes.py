"""State features of chains: weights of attributes and labels, and the scores that they give to tokens.

    f_t(x)  =  sum_a X_ta W_ax                over attributes a that have a weight for label x

X is a sparse matrix (tokens, attributes). Weights exist for all pairs of attribute and label, or for those pairs that
were seen together in training (CRFsuite's ``feature.possible_states=0``); theta lists them by attribute, then by label.

For speed the attributes are in two parts: those with a weight for at least a quarter of all labels have whole rows,
the others lists (`isinglass.kernels.numba.chains.attributes`). So memory is at most four times that of the weights.
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
from isinglass.segments import starts as segment_starts
from isinglass.typing import FloatArray, IntArray, Mask

LANES = 8
_BLOCK = 2**17  # numbers of a block of slopes: those of its tokens fill the second cache


def width_of(card: int) -> int:
    """Return how many numbers a row of labels takes, with padding."""
    return -(-card // LANES) * LANES


def aligned(rows: int, width: int) -> FloatArray:
    """Return an array of zeros whose rows are aligned to cache lines."""
    room = np.zeros(rows * width + 8)
    skip = (-room.ctypes.data // 8) % 8
    return room[skip : skip + rows * width].reshape(rows, width)


@dataclass(frozen=True, eq=False)
class StateFeatures:
    """Which attributes have weights for which labels.

    Attributes
    ----------
    card : int
        The number of labels.
    first : int array (attributes + 1,)
        Where the weights of each attribute begin in theta.
    labels : int32 array (size,)
        The label of each weight.
    """

    card: int
    first: IntArray
    labels: NDArray[np.int32]

    @classmethod
    def all_pairs(cls, n_attributes: int, card: int, kept: Mask | None = None) -> StateFeatures:
        """Give every attribute, or those that are `kept`, a weight for every label."""
        counts = np.full(n_attributes, card) if kept is None else np.where(kept, card, 0)
        first = segment_starts(counts)
        return cls(card, first, np.tile(np.arange(card, dtype=np.int32), int(first[-1]) // card))

    @classmethod
    def seen(cls, X: csr_array, labels: IntArray, card: int, min_count: int = 1) -> StateFeatures:
        """Give weights to the pairs that occur at least `min_count` times; a token without label has none."""
        tokens = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        y = labels[tokens]
        keys = X.indices[y >= 0].astype(np.int64) * card + y[y >= 0]
        pairs, counts = np.unique(keys, return_counts=True)
        return cls.of_pairs(pairs[counts >= min_count], X.shape[1], card)

    @classmethod
    def of_pairs(cls, pairs: IntArray, n_attributes: int, card: int) -> StateFeatures:
        """Give weights to pairs, each written as attribute · card + label, in order and different."""
        first = np.searchsorted(pairs // card, np.arange(n_attributes + 1))
        return cls(card, first.astype(np.int64), (pairs % card).astype(np.int32))

    @property
    def pairs(self) -> IntArray:
        """The attribute and label of each weight, as attribute · card + label."""
        return np.asarray(self.attributes * self.card + self.labels)

    @property
    def size(self) -> int:
        """The number of weights."""
        return len(self.labels)

    @property
    def n_attributes(self) -> int:
        """The number of attributes."""
        return len(self.first) - 1

    @property
    def attributes(self) -> IntArray:
        """The attribute of each weight."""
        return np.repeat(np.arange(self.n_attributes), np.diff(self.first))

    @cached_property
    def parts(self) -> _Parts:
        """The attributes with rows and those with lists, and where their weights are."""
        counts = np.diff(self.first)
        rich = counts * 4 >= self.card
        number = np.where(rich, np.cumsum(rich) - 1, np.cumsum(~rich) - 1)
        which = np.repeat(rich, counts)
        rows = np.repeat(number, counts)[which]
        first, first_list = (segment_starts(counts[chosen]) for chosen in (rich, ~rich))
        places = (rows * width_of(self.card) + self.labels[which]).astype(np.int64)
        in_rows, in_lists = np.flatnonzero(which), np.flatnonzero(~which)
        return _Parts(rich, number, in_rows, first, places, in_lists, first_list, self.labels[~which])

    def compiled(self, X: csr_array) -> Tokens:
        """Lay out the attributes of tokens."""
        return Tokens(self, _sides(self.parts, X, max(_BLOCK // width_of(self.card), 1)))


@dataclass(frozen=True, eq=False)
class _Parts:
    """The two kinds of attributes: `rich` ones have rows, others lists; `number`: within the kind.

    Of each kind: its weights in theta, where those of an attribute begin, and their places in rows or their labels.
    """

    rich: Mask
    number: IntArray
    row_weights: IntArray
    first_row: IntArray
    places: IntArray
    list_weights: IntArray
    first_list: IntArray
    labels: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Side:
    """A sparse matrix of tokens and the attributes of one kind: starts, columns, values and step, by tokens."""

    by_token: tuple[IntArray, NDArray[np.int32], FloatArray, int]
    n_attributes: int
    block: int

    @cached_property
    def runs(self) -> Runs:
        """The same by blocks of tokens, in these by attributes, tokens in their order."""
        starts, columns, values, step = self.by_token
        data = values if step else np.ones(len(columns), np.bool_)
        X = csr_array((data, columns, starts), shape=(len(starts) - 1, self.n_attributes))
        parts = [csc_array(X[a : a + self.block]) for a in range(0, max(X.shape[0], 1), self.block)]
        counts = [np.diff(part.indptr) for part in parts]
        some = [np.flatnonzero(count) for count in counts]
        lengths = np.concatenate([count[used] for count, used in zip(counts, some, strict=True)])
        tokens = np.concatenate([part.indices + i * self.block for i, part in enumerate(parts)])
        return Runs(
            self.n_attributes,
            segment_starts([len(used) for used in some]),
            np.concatenate(some).astype(np.int32),
            segment_starts(lengths),
            tokens.astype(np.int32),
            np.concatenate([part.data for part in parts]) if step else values,
            step,
        )


@dataclass(frozen=True, eq=False)
class Runs:
    """A sparse matrix by blocks of tokens: a run is the tokens that an attribute has in a block.

    Attributes
    ----------
    blocks : int array (blocks + 1,)
        The first run of each block.
    attributes : int32 array (runs,)
        In order within a block.
    starts : int array (runs + 1,)
        The first entry of each run.
    tokens : int32 array (entries,)
    values : array (entries,) or (1,)
    """

    n_attributes: int
    blocks: IntArray
    attributes: NDArray[np.int32]
    starts: IntArray
    tokens: NDArray[np.int32]
    values: FloatArray
    step: int
    known: dict[int, list[Part]] = field(default_factory=dict, repr=False)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the loops take."""
        return self.attributes, self.starts, self.tokens, self.values, self.step

    def parts(self, threads: int) -> list[Part]:
        """Cut the attributes into parts of about equal work: no attribute is in two of them, so sums do not change."""
        if threads not in self.known:
            self.known[threads] = self._cut(threads)
        return self.known[threads]

    def _cut(self, threads: int) -> list[Part]:
        entries = np.bincount(self.attributes, np.diff(self.starts), self.n_attributes).cumsum()
        shares = np.searchsorted(entries, entries[-1:] * np.arange(1, threads) / threads) + 1
        ends = np.unique(np.concatenate([[0], shares.astype(np.int64), [self.n_attributes]])).tolist()
        blocks = np.arange(len(self.blocks) - 1)
        keys = np.repeat(blocks, np.diff(self.blocks)) * self.n_attributes + self.attributes
        bounds = [np.searchsorted(keys, blocks * self.n_attributes + end) for end in ends]
        return [Part(a, b, *cut) for (a, b), cut in zip(pairwise(ends), pairwise(bounds), strict=True)]


class Part(NamedTuple):
    """The attributes from `first` to `last`, and their runs in each block."""

    first: int
    last: int
    begins: IntArray
    ends: IntArray


def _sides(parts: _Parts, X: csr_array, block: int) -> tuple[_Side, _Side]:
    """Cut the columns of X into the two kinds; values that are all 1 are stored once."""
    from isinglass.kernels.numba.chains.attributes import split_kinds

    step, tokens, entries = int(not (X.data == 1).all()), X.shape[0], len(X.data)
    room = [
        (np.empty(tokens + 1, np.int64), np.empty(entries, np.int32), np.empty(entries) if step else np.ones(1))
        for _ in range(2)
    ]
    values = X.data if step else np.ones(1)
    split_kinds(X.indptr.astype(np.int64), X.indices.astype(np.int32), values, step, parts.rich, parts.number, *room)
    rich = int(parts.rich.sum())
    one, two = (
        _Side((starts, columns[: starts[-1]], kept[: starts[-1]] if step else kept, step), n, size)
        for (starts, columns, kept), n, size in zip(
            room, (rich, len(parts.rich) - rich), (block, max(tokens, 1)), strict=True
        )
    )
    return one, two


@dataclass(frozen=True, eq=False)
class Weights:
    """Parameters laid out for the loops."""

    rows: FloatArray
    lists: FloatArray


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens with their attributes: from weights to scores, and from slopes back to weights."""

    features: StateFeatures
    sides: tuple[_Side, _Side]

    @cached_property
    def lists(self) -> NDArray[np.int32]:
        """Where the weights of each attribute with a list begin, and how many it has, token by token."""
        first, columns = self.features.parts.first_list, self.sides[1].by_token[1]
        return np.stack([first[columns], np.diff(first)[columns]], axis=1).astype(np.int32)

    def weights(self, theta: FloatArray) -> Weights:
        """Lay out the parameters."""
        from isinglass.kernels.numba.chains.attributes import carry

        parts, width = self.features.parts, width_of(self.features.card)
        rows = aligned(self.sides[0].n_attributes, width)
        given = np.require(theta, requirements=("C", "W"))  # a loop would be compiled anew for memory that is read-only
        carry(0, len(parts.places), parts.row_weights, given, parts.places, rows.reshape(-1))
        return Weights(rows, theta[parts.list_weights])

    def attributes(self, weights: Weights) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the attributes with rows and those with lists, and their weights, as the loops take them."""
        starts, _, *values = self.sides[1].by_token
        lists = starts, self.lists, *values, self.features.parts.labels, weights.lists
        return (*self.sides[0].by_token, weights.rows), lists

    def scores(self, weights: Weights, first: int, last: int, out: FloatArray) -> None:
        """Write f_t of tokens `first` to `last` into rows of `out`."""
        from isinglass.kernels.numba.chains.attributes import sum_scores

        sum_scores(first, last, *self.attributes(weights), out)

    def transpose(self, slopes: FloatArray, spread: ThreadMap, out: FloatArray) -> None:
        """Write derivatives by theta from those by the scores of all tokens (tokens, width)."""
        from isinglass.kernels.numba.chains.attributes import add_entries, add_rows, carry

        (rich, poor), parts = (side.runs for side in self.sides), self.features.parts
        table, lists = aligned(rich.n_attributes, slopes.shape[1]), np.zeros(len(parts.labels))

        def rows(a: int, b: int, begins: IntArray, ends: IntArray) -> None:
            add_rows(begins, ends, *rich.arrays, slopes, table)
            carry(parts.first_row[a], parts.first_row[b], parts.places, table.reshape(-1), parts.row_weights, out)

        def entries(a: int, b: int, begins: IntArray, ends: IntArray) -> None:
            add_entries(begins, ends, *poor.arrays, parts.first_list, parts.labels, slopes, lists)
            first, last = parts.first_list[a], parts.first_list[b]
            out[parts.list_weights[first:last]] = lists[first:last]

        work = [(rows, *part) for part in rich.parts(spread.threads)]
        work += [(entries, *part) for part in poor.parts(spread.threads)]
        spread(lambda do, *part: do(*part), work)
