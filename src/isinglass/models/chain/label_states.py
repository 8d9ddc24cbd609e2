"""States of a chain: labels, or for chains of second order pairs of them.

    order 1:  state_t = y_t                       g(x, y)               = G(x, y)
    order 2:  state_t = (y_{t-1}, y_t)            g((w, x), (x, y))     = G(x, y) + H(w, x, y)

Pairs that do not overlap may not follow one another; before the first label there is none, which is the label K. So a
chain of second order is one of first order over K (K + 1) states, whose scores of single labels are tied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray, Mask


@dataclass(frozen=True)
class LabelStates:
    """The states of a chain over labels.

    Parameters
    ----------
    card : int
        The number of labels.
    order : 1 or 2

    Examples
    --------
    >>> states = LabelStates(2, order=2)
    >>> states.count, states.label_of.tolist()
    (6, [0, 1, 0, 1, 0, 1])
    >>> states.codes(np.array([1, 0, -1, 0, 1]), np.array([0, 3, 5])).tolist()
    [5, 2, -1, 4, 1]
    """

    card: int
    order: int = 1

    @property
    def count(self) -> int:
        """The number of states."""
        return self.card if self.order == 1 else self.card * (self.card + 1)

    @cached_property
    def label_of(self) -> IntArray:
        """The label of each state, the later one of a pair."""
        return np.arange(self.count) % self.card

    @cached_property
    def first(self) -> Mask:
        """Whether a sequence may begin with a state."""
        return np.arange(self.count) >= self.count - self.card

    def codes(self, labels: IntArray, offsets: IntArray) -> IntArray:
        """Return the state of each token, -1 where a label of it is not known."""
        if self.order == 1:
            return labels
        before = np.concatenate([[self.card], labels[:-1]])
        before[offsets[:-1][offsets[:-1] < len(labels)]] = self.card
        return np.where((labels >= 0) & (before >= 0), before * self.card + labels, -1)

    def spread(self, values: Array) -> Array:
        """Give each state what its label has; labels are the last axis."""
        return values if self.order == 1 else values[..., self.label_of]

    def collect(self, values: FloatArray) -> FloatArray:
        """Add up over the states of each label; states are the last axis."""
        if self.order == 1:
            return values
        return np.asarray(values.reshape(*values.shape[:-1], self.card + 1, self.card).sum(axis=-2))

    def table(self, pairs: FloatArray, triples: FloatArray | None) -> FloatArray:
        """Return g (states, states) from G (labels, labels) and H (labels + 1, labels, labels); -inf forbids."""
        if triples is None:
            return pairs
        k = np.arange(self.card)
        table = np.full((self.card + 1, self.card) * 2, -np.inf)
        table[:, k, k, :] = pairs + triples
        return table.reshape(self.count, self.count)

    def table_slopes(self, slopes: FloatArray) -> list[FloatArray]:
        """Return derivatives by G and, for pairs, by H, from those by g."""
        if self.order == 1:
            return [slopes]
        k = np.arange(self.card)
        triples = slopes.reshape((self.card + 1, self.card) * 2)[:, k, k, :]
        return [triples.sum(axis=0), triples]
