"""State features of chains: weights of attributes and labels, and the scores that they give to tokens.

    f_t(x)  =  sum_a X_ta W_ax                over attributes a that have a weight for label x

X is a sparse matrix (tokens, attributes). Weights exist for all pairs of attribute and label, or for those pairs that
were seen together in training (CRFsuite's ``feature.possible_states=0``); theta lists them by attribute, then by label.

For speed the attributes are in two parts: those with a weight for at least a quarter of all labels have whole rows,
the others lists (`isinglass.kernels.numba.chains.attributes`). So memory is at most four times that of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray, Mask

ParallelMap = Callable[[Callable[..., object], Sequence[tuple[object, ...]]], object]
"""Calls a function with each of several tuples of arguments, possibly in parallel."""

LANES = 8
_ENTRIES = 2**15  # of X in a piece of the work on gradients


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
        first = starts(counts)
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
        first, first_list = (starts(counts[chosen]) for chosen in (rich, ~rich))
        places = (rows * width_of(self.card) + self.labels[which]).astype(np.int64)
        in_rows, in_lists = np.flatnonzero(which), np.flatnonzero(~which)
        return _Parts(rich, number, in_rows, first, places, in_lists, first_list, self.labels[~which])

    def compiled(self, X: csr_array) -> Tokens:
        """Lay out the attributes of tokens."""
        return Tokens(self, _sides(self.parts, X))


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

    @cached_property
    def by_attribute(self) -> tuple[Any, ...]:
        """Return the same by attributes, tokens in their order."""
        starts, columns, values, step = self.by_token
        data = values if step else np.ones(len(columns), np.bool_)
        turned = csc_array(csr_array((data, columns, starts), shape=(len(starts) - 1, self.n_attributes)))
        return turned.indptr.astype(np.int64), turned.indices.astype(np.int32), turned.data if step else values, step

    @cached_property
    def pieces(self) -> list[tuple[int, int]]:
        """Cut the attributes into pieces of about equal work."""
        starts = self.by_attribute[0]
        cuts = np.searchsorted(starts, np.arange(_ENTRIES, starts[-1], _ENTRIES))
        ends = np.unique(np.concatenate([[0], cuts, [len(starts) - 1]]))
        return list(pairwise(ends.tolist()))


def _sides(parts: _Parts, X: csr_array) -> tuple[_Side, _Side]:
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
        _Side((starts, columns[: starts[-1]], kept[: starts[-1]] if step else kept, step), n)
        for (starts, columns, kept), n in zip(room, (rich, len(parts.rich) - rich), strict=True)
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

    def transpose(self, slopes: FloatArray, parallel: ParallelMap, out: FloatArray) -> None:
        """Write derivatives by theta from those by the scores of all tokens (tokens, width)."""
        from isinglass.kernels.numba.chains.attributes import carry, collect_entries, sum_rows

        (rich, poor), parts = self.sides, self.features.parts
        table = np.empty((rich.n_attributes, slopes.shape[1]))

        def rows(a: int, b: int) -> None:
            sum_rows(a, b, *rich.by_attribute, slopes, table[a:b])
            first, last = parts.first_row[a], parts.first_row[b]
            carry(first, last, parts.places, table.reshape(-1), parts.row_weights, out)

        def entries(a: int, b: int) -> None:
            collect_entries(a, b, *poor.by_attribute, parts.first_list, parts.labels, slopes, parts.list_weights, out)

        work = [*((rows, *ends) for ends in rich.pieces), *((entries, *ends) for ends in poor.pieces)]
        parallel(lambda do, a, b: do(a, b), work)
