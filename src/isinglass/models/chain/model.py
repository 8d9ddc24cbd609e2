"""Log-linear chains over sequences of tokens: parameters to scores, and which neighbours are forbidden.

    log p(y | X) + log Z  =  sum_t f_t(y_t) + sum_t g(y_{t-1}, y_t) + start(y_1) + end(y_T)

f from `StateFeatures`; g "transition" (labels, labels), rows: the earlier label; start and end only with `boundary`.
A forbidden pair has g = -inf whatever its parameter; the last row of `forbidden` says which labels may not be first,
the last column which may not be last. (Lafferty, McCallum and Pereira 2001; Sutton and McCallum 2012.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from isinglass.models.chain.attributes import StateFeatures, Tokens, Weights
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray, Mask

_ALONE = ThreadMap(1)
PIECE = 4096  # tokens whose scores stay in the second cache


@dataclass(frozen=True, eq=False)
class Tables:
    """Parameters as scores: of attributes, of transitions (labels, labels), of the first and of the last label."""

    weights: Weights
    transition: FloatArray
    start: FloatArray
    end: FloatArray

    @cached_property
    def ends(self) -> FloatArray:
        """The scores of the first and of the last label (2, labels)."""
        return np.stack([self.start, self.end])


@dataclass(frozen=True, eq=False)
class SequenceModel:
    """A chain with state features, one transition table, and hard zeros.

    Attributes
    ----------
    features : StateFeatures
    boundary : bool
        Whether the first and the last label have parameters of their own.
    forbidden : bool array (labels + 1, labels + 1)
    """

    features: StateFeatures
    boundary: bool
    forbidden: Mask

    @cached_property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of the parameters, in the order of theta."""
        k = self.features.card
        ends = {"start": (k,), "end": (k,)} if self.boundary else {}
        return {"state": (self.features.size,), "transition": (k, k), **ends}

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(map(prod, self.parameters.values()))

    def split(self, theta: FloatArray) -> dict[str, FloatArray]:
        """Cut theta into its arrays."""
        ends = np.cumsum([prod(shape) for shape in self.parameters.values()])[:-1]
        parts = zip(self.parameters.items(), np.split(theta, ends), strict=True)
        return {name: part.reshape(shape) for (name, shape), part in parts}

    def tables(self, theta: FloatArray, tokens: Tokens, spread: ThreadMap = _ALONE) -> Tables:
        """Return the scores that parameters stand for; long vectors are laid out on the threads of `spread`."""
        named, k = self.split(theta), self.features.card
        start, end = (named.get(name, np.zeros(k)) for name in ("start", "end"))
        f = self.forbidden
        given = ((f[:k, :k], named["transition"]), (f[k, :k], start), (f[:k, k], end))
        tables = (np.where(ruled_out, -np.inf, scores) for ruled_out, scores in given)
        return Tables(tokens.weights(named["state"], spread), *tables)

    def joined(self, state: FloatArray, transition: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Return derivatives by theta from those by weights, transitions, first and last labels."""
        return np.concatenate([state, self.others(transition, start, end)])

    def others(self, transition: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Return derivatives by the parameters other than weights, which come after these in theta."""
        return np.concatenate([transition.ravel(), *((start, end) if self.boundary else ())])


@dataclass(frozen=True, eq=False)
class Sequences:
    """Tokens in sequences: sequence s has the tokens from offsets[s] to offsets[s + 1]."""

    tokens: Tokens
    offsets: IntArray

    def pieces(self, tokens: int = PIECE) -> Iterator[tuple[int, int]]:
        """Cut the sequences into runs of at most so many tokens, or of one sequence."""
        first, last = 0, len(self.offsets) - 1
        while first < last:
            end = int(np.searchsorted(self.offsets, self.offsets[first] + tokens, "right")) - 1
            end = min(max(end, first + 1), last)
            yield first, end
            first = end

    def scores(self, tables: Tables, first: int, last: int, out: FloatArray) -> None:
        """Write the scores of the tokens of sequences `first` to `last`, those of first and last labels included."""
        base, end = int(self.offsets[first]), int(self.offsets[last])
        self.tokens.scores(tables.weights, base, end, out)
        if tables.ends.any():
            begins, ends = ends_of(self.offsets[first : last + 1] - base)
            out[begins, : len(tables.start)] += tables.start
            out[ends, : len(tables.end)] += tables.end


def ends_of(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the last token of each sequence that has any.

    Examples
    --------
    >>> [places.tolist() for places in ends_of(np.array([0, 3, 3, 4]))]
    [[0, 3], [2, 3]]
    """
    some = offsets[1:] > offsets[:-1]
    return offsets[:-1][some], offsets[1:][some] - 1
