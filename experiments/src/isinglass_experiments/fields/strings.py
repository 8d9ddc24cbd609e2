"""Random fields of words: features are strings that a word may hold (Della Pietra, Della Pietra and Lafferty 1997).

A word of n letters has the probability

    p(w) = p(n) exp( sum_f theta_f #_f(w) ) / Z_n,

#_f(w) how often the word, with "<" before and ">" behind it, holds the string f of at most four symbols. A symbol of a
feature is a letter, a mark of an end, or a class of letters. p(n) is that of the samples. All strings of four symbols
get a table T, to which every feature adds its weight where its own string ends: a random field on a chain. Z_n and the
expected number of each string of four are exact, by a recursion over the last three symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isinglass.typing import FloatArray, IntArray

WINDOW = 4


@dataclass(frozen=True, eq=False)
class Alphabet:
    """Letters, the two marks, and classes of letters.

    Attributes
    ----------
    letters : str
    classes : dict of str to str
        The letters that a further symbol stands for.
    """

    letters: str
    classes: dict[str, str]

    @property
    def size(self) -> int:
        """The number of letters and marks: what a word consists of."""
        return len(self.letters) + 2

    @property
    def symbols(self) -> str:
        """All symbols of features: letters, "<", ">", classes."""
        return self.letters + "<>" + "".join(self.classes)

    def members(self) -> FloatArray:
        """Return which letters and marks (columns) each symbol (rows) stands for."""
        found = np.zeros((len(self.symbols), self.size))
        found[: self.size] = np.eye(self.size)
        for k, letters in enumerate(self.classes.values()):
            found[self.size + k, [self.letters.index(c) for c in letters]] = 1.0
        return found

    def coded(self, words: Sequence[str]) -> list[IntArray]:
        """Return words as numbers, three marks before and one behind each."""
        number = {c: k for k, c in enumerate(self.letters + "<>")}
        return [np.array([number[c] for c in "<<<" + w + ">"]) for w in words]


class WordModel:
    """The exact distribution for a table T (k, k, k, k) of windows, the last axis the newest symbol.

    Parameters
    ----------
    size : int
        Letters and marks; the last two are "<" and ">".
    shares : array (longest + 1,)
        p(n), the share of words of each length.
    """

    def __init__(self, size: int, shares: FloatArray) -> None:
        self.size, self.shares, self.letters = size, shares, size - 2

    def evaluate(self, T: FloatArray) -> tuple[float, FloatArray]:
        """Return sum_n p(n) log Z_n, and its derivative by T: the expected windows of a word."""
        k, m, longest = self.size, self.letters, len(self.shares) - 1
        moves = np.exp(T[..., :m]).reshape(k, k * k, m).transpose(1, 0, 2).copy()  # (middle, oldest, newest)
        end = np.exp(T[..., m + 1]).reshape(k, k * k).T  # (middle, oldest), as all states below
        forward, ends, scales = self._forward(moves, end)
        behind = np.zeros((longest + 1, k * k, m))  # sums over all that follows the newest letter
        back = np.zeros((k * k, k))
        last = np.zeros((k * k, k))
        for n in range(longest, -1, -1):
            if n < longest:
                behind[n] = self._newest(back) / scales[n + 1]
            ending = self.shares[n] / ends[n] * end
            last += forward[n] * ending
            back = (moves @ behind[n][:, :, None])[:, :, 0] + ending
        expected = np.zeros_like(T)
        expected[..., m + 1] = last.T.reshape(k, k, k)
        joined = forward.transpose(1, 2, 0) @ behind.transpose(1, 0, 2)
        expected[..., :m] = (joined * moves).transpose(1, 0, 2).reshape(k, k, k, m)
        return float(self.shares @ (np.log(ends) + np.cumsum(np.log(scales)))), expected

    def _forward(self, moves: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scaled sums over all beginnings of each length, those of whole words, and the scales."""
        k, m, longest = self.size, self.letters, len(self.shares) - 1
        forward = np.zeros((longest + 1, k * k, k))
        forward[0, m * k + m, m] = 1.0
        ends, scales = np.empty(longest + 1), np.ones(longest + 1)
        for n in range(longest + 1):
            if n:
                found = (forward[n - 1][:, None, :] @ moves)[:, 0, :]  # (middle two, newest letter)
                scales[n] = found.sum()
                forward[n].reshape(k, k, k)[:, :m] = found.reshape(k, k, m).transpose(1, 2, 0) / scales[n]
            ends[n] = (forward[n] * end).sum()
        return forward, ends, scales

    def _newest(self, state: FloatArray) -> FloatArray:
        """Return values of states (middle, oldest) by the two symbols before the newest letter, and that letter."""
        k, m = self.size, self.letters
        return state.reshape(k, k, k)[:, :m].transpose(2, 0, 1).reshape(k * k, m)

    def gibbs(self, T: FloatArray, words: list[IntArray], sweeps: int, rng: np.random.Generator) -> list[IntArray]:
        """Draw each letter in turn given all others, from given words on; annealed from a flat model to T."""
        found = [word.copy() for word in words]
        for sweep in range(sweeps):
            heat = min(1.0, 2 * (sweep + 1) / sweeps)
            for word in found:
                for t in range(3, len(word) - 1):
                    around = np.tile(word[t - 3 : t + 4], (self.letters, 1))
                    around[:, 3] = np.arange(self.letters)
                    last = min(WINDOW, len(word) - t)
                    score = sum(T[tuple(around[:, j : j + WINDOW].T)] for j in range(last))
                    total = np.cumsum(np.exp(heat * (score - np.max(score))))
                    word[t] = np.searchsorted(total, rng.random() * total[-1], side="right")
        return found


def window_counts(words: Sequence[IntArray], size: int) -> FloatArray:
    """Return the mean number of each window of four symbols in a word."""
    found = np.zeros(size**WINDOW)
    for word in words:
        code = word[:-3] * size**3 + word[1:-2] * size**2 + word[2:-1] * size + word[3:]
        np.add.at(found, code, 1.0)
    return found.reshape((size,) * WINDOW) / len(words)


def string_counts(windows: FloatArray, members: FloatArray) -> list[FloatArray]:
    """Return the counts of strings of one to four symbols, classes included, from those of windows."""
    found = []
    for length in range(1, WINDOW + 1):
        table = windows.sum(axis=tuple(range(WINDOW - length)))
        for axis in range(length):
            table = np.moveaxis(np.tensordot(members, table, axes=(1, axis)), 0, axis)
        found.append(table)
    return found


def table_of(features: Sequence[tuple[int, ...]], theta: FloatArray, members: FloatArray) -> FloatArray:
    """Return the table T of features, each a string of symbols."""
    tables = [np.zeros((members.shape[1],) * length) for length in range(1, WINDOW + 1)]
    for feature, weight in zip(features, theta, strict=True):
        tables[len(feature) - 1][_block(feature, members)] += weight
    return np.asarray(sum(tables), np.float64)  # the last symbols of a window are those of shorter strings


def gradient_of(features: Sequence[tuple[int, ...]], windows: FloatArray, members: FloatArray) -> FloatArray:
    """Return the number of each feature in windows: the transpose of `table_of`."""
    tables = [windows.sum(axis=tuple(range(WINDOW - length))) for length in range(1, WINDOW + 1)]
    return np.array([tables[len(f) - 1][_block(f, members)].sum() for f in features])


def _block(feature: tuple[int, ...], members: FloatArray) -> tuple[IntArray, ...]:
    """Return the letters and marks that the symbols of a string stand for, as indices of a block."""
    return np.ix_(*[np.flatnonzero(members[s]) for s in feature])
