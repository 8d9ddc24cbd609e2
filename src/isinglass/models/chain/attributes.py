"""State features of chains: weights of attributes and labels, and the scores that they give to tokens.

    f_t(x)  =  sum_a X_ta W_ax                over attributes a that have a weight for label x

X is a sparse matrix (tokens, attributes). Weights exist for all pairs of attribute and label, or for those pairs that
were seen together in training (CRFsuite's ``feature.possible_states=0``); theta lists them by attribute, then by label.

For speed the attributes are of two kinds: those with a weight for at least a quarter of all labels have whole rows,
the others lists (`isinglass.kernels.numba.chains.attributes`). So memory is at most four times that of the weights.
Training lays the tokens out by kind, and once more by attribute (`isinglass.models.chain.layout`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from isinglass.models.chain.layout import ByToken, Places, Training, by_token, width_of
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray, Mask

_PIECE = 2**16  # weights that a thread lays out at a time
_ALONE = ThreadMap(1)
_DENSE = 4  # pairs that there may be for each that occurs: so many are counted in a table


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
        if X.shape[1] * card <= _DENSE * len(keys):
            counts = np.bincount(keys, minlength=X.shape[1] * card)
            return cls.of_pairs(np.flatnonzero(counts >= min_count), X.shape[1], card)
        pairs, times = np.unique(keys, return_counts=True)
        return cls.of_pairs(pairs[times >= min_count], X.shape[1], card)

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
    def rich(self) -> Mask:
        """Whether an attribute has a whole row of weights."""
        return np.asarray(np.diff(self.first) * 4 >= self.card)

    @cached_property
    def places(self) -> Places:
        """Where the weights lie for the loops."""
        counts, width = np.diff(self.first), width_of(self.card)
        row_of = np.where(self.rich, np.cumsum(self.rich), 0).astype(np.int32)
        rows, first = int(self.rich.sum()) + 1, starts(np.where(self.rich, 0, counts))
        in_row = np.repeat(self.rich, counts)
        flat = np.repeat(row_of, counts) * np.int64(width) + self.labels
        flat[~in_row] = rows * width + np.arange(first[-1])
        return Places(width, row_of, rows, first, self.labels[~in_row], flat)

    @cached_property
    def where(self) -> NDArray[np.int32]:
        """The row of each attribute, the beginning of its list, and its length: one look into memory for all three."""
        first = self.places.first
        return np.stack([self.places.row_of, first[:-1], np.diff(first), first[:-1]], axis=1).astype(np.int32)

    def compiled(self, X: csr_array) -> Tokens:
        """Lay out the attributes of tokens."""
        return Tokens(self, by_token(X))


@dataclass(frozen=True, eq=False)
class Weights:
    """Parameters laid out for the loops."""

    rows: FloatArray
    lists: FloatArray


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens with their attributes: from weights to scores, and from slopes back to weights."""

    features: StateFeatures
    by_token: ByToken

    def training(self, pieces: IntArray) -> Training:
        """Return the tokens as training needs them; `pieces`: the first token of each piece, and their number."""
        return Training.of(self.by_token, self.features.places, pieces)

    def weights(self, theta: FloatArray, spread: ThreadMap = _ALONE) -> Weights:
        """Lay out the parameters."""
        from isinglass.kernels.numba.chains.attributes import put

        places = self.features.places
        flat, (rows, lists) = places.room()
        given = np.require(theta, requirements=("C", "W"))  # a loop would be compiled anew for memory that is read-only
        pieces = [(a, min(a + _PIECE, len(given))) for a in range(0, len(given), _PIECE)]
        spread(lambda first, last: put(first, last, given, places.flat, flat), pieces)
        return Weights(rows, lists)

    def scores(self, weights: Weights, first: int, last: int, out: FloatArray) -> None:
        """Write f_t of tokens `first` to `last` into rows of `out`."""
        from isinglass.kernels.numba.chains.attributes import sum_scores

        where, labels = self.features.where, self.features.places.labels
        sum_scores(first, last, *self.by_token, where, weights.rows, labels, weights.lists, out)
