"""Feature induction for English spelling (Della Pietra et al. 1997; Murphy 2012, section 19.5.6).

The model starts with all words of a length equally probable. In each round the strings with the largest approximate
gain join it, and all weights are fitted again by maximum likelihood. Candidates are single symbols, and features of the
model with one more symbol at either end; with p and q the expected number of a string in a word, under samples and
model, the approximate gain is that of a Poisson variable, p log(p/q) - p + q. Samples are drawn by annealed Gibbs
sampling, as in the paper. The paper's words have capitals, digits and punctuation, those of the list here only
lower-case letters, so its first features ([a-z]) have no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass.learning.optimizers import Lbfgs
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass_experiments.common.experiment import DataExperiment, Plot, Progress, Report, register, tell
from isinglass_experiments.data import load_words
from isinglass_experiments.fields.strings import (
    Alphabet,
    WordModel,
    gradient_of,
    string_counts,
    table_of,
    window_counts,
)

ENGLISH = Alphabet("abcdefghijklmnopqrstuvwxyz", {"V": "aeiou", "C": "bcdfghjklmnpqrstvwxyz"})
LONGEST = 16
L2 = 1e-5  # against the mean over words
SHOWN = 20  # words of a sample

Feature = tuple[int, ...]


class Round(NamedTuple):
    """What a round of induction found."""

    features: int
    strings: list[str]
    gain: float
    train: float
    test: float


@register
@dataclass(frozen=True)
class Spelling(DataExperiment):
    """Strings that make words English.

    Parameters
    ----------
    quick : bool
        The 10 % of words that are most common, and 60 features; else all words, and 1,000 features.
    data : str, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Not used.
    """

    name: ClassVar[str] = "spelling"
    summary: ClassVar[str] = "feature induction for English spelling, with samples (Murphy 2012, section 19.5.6)"

    def run(self, progress: Progress | None = None) -> Report:
        """Grow a model, and draw words from it at some sizes."""
        words = [w for w in load_words(20 if self.quick else 60, self.data) if len(w) <= LONGEST]
        order = np.random.default_rng(0).permutation(len(words))
        coded = ENGLISH.coded([words[i] for i in order])
        held = len(coded) // 10
        grown = Induction(coded[held:], coded[:held])
        most, shown = (60, (0, 10, 60)) if self.quick else (1000, (0, 10, 100, 1000))
        samples, rounds = {0: grown.sample()}, []
        while len(grown.features) < most:
            size = len(grown.features)
            wanted = 1 if size < 10 else min(max(2, size // 10), most - size)
            rounds.append(grown.round(wanted if size + wanted <= next(n for n in shown if n > size) else 1))
            tell(progress, f"{len(grown.features)} features", len(grown.features) / most)
            if len(grown.features) in shown:
                samples[len(grown.features)] = grown.sample()
        return _report(rounds, samples, grown, len(coded))


class Induction:
    """A model of words that grows.

    Parameters
    ----------
    train, test : lists of int arrays
    """

    def __init__(self, train: list[IntArray], test: list[IntArray]) -> None:
        self.members, size = ENGLISH.members(), ENGLISH.size
        lengths = np.bincount([len(w) - 4 for w in train], minlength=LONGEST + 1)
        self.model, self.train = WordModel(size, lengths / len(train)), train
        self.seen, self.seen_test = window_counts(train, size), window_counts(test, size)
        test_lengths = np.bincount([len(w) - 4 for w in test], minlength=LONGEST + 1) / len(test)
        self.of_test = WordModel(size, test_lengths)
        self.wanted = string_counts(self.seen, self.members)
        self.features: list[Feature] = []
        self.theta = np.zeros(0)

    @property
    def table(self) -> FloatArray:
        """The table T of the features so far."""
        return table_of(self.features, self.theta, self.members)

    def round(self, count: int) -> Round:
        """Add the strings with the largest gains, and fit all weights."""
        windows = self.model.evaluate(self.table)[1]
        expected = string_counts(windows, self.members)
        ranked = sorted(self._gains(expected), reverse=True)[:count]
        for _, weight, feature in ranked:
            self.features.append(feature)
            self.theta = np.append(self.theta, weight if len(ranked) == 1 else 0.0)
        self.theta = Lbfgs(tol=1e-4, max_iter=200 if count == 1 else 60).minimise(self._objective, self.theta).x
        T = self.table
        train = float((T * self.seen).sum()) - self.model.evaluate(T)[0]
        test = float((T * self.seen_test).sum()) - self.of_test.evaluate(T)[0]
        strings = ["".join(ENGLISH.symbols[s] for s in feature) for _, _, feature in ranked]
        return Round(len(self.features), strings, float(ranked[0][0]), train, test)

    def sample(self) -> list[str]:
        """Draw some words, of the lengths that words have."""
        rng = np.random.default_rng(1)
        lengths = [len(self.train[i]) - 4 for i in rng.integers(0, len(self.train), SHOWN)]
        start = ENGLISH.coded(["".join(rng.choice(list(ENGLISH.letters), n)) for n in lengths])
        drawn = self.model.gibbs(self.table, start, 60, rng)
        return ["".join(ENGLISH.letters[c] for c in word[3:-1]) for word in drawn]

    def _objective(self, theta: FloatArray) -> tuple[float, FloatArray]:
        T = table_of(self.features, theta, self.members)
        value, windows = self.model.evaluate(T)
        slope = gradient_of(self.features, windows - self.seen, self.members)
        return value - float((T * self.seen).sum()) + L2 * float(theta @ theta), slope + 2 * L2 * theta

    def _gains(self, expected: list[FloatArray]) -> list[tuple[float, float, Feature]]:
        """Return gain, weight and string of the best candidates of each length."""
        found = []
        for length, (p, q) in enumerate(zip(self.wanted, expected, strict=True), 1):
            allowed = self._candidates(length) & (q > 0) & (p > 0)
            ratio = np.log(np.where(allowed, p, 1.0) / np.where(allowed, q, 1.0))
            gain = np.where(allowed, p * ratio - p + q, -1.0)
            for at in np.argsort(gain, axis=None)[::-1][:200]:
                place = tuple(int(v) for v in np.unravel_index(at, gain.shape))
                if gain[place] > 0:
                    found.append((float(gain[place]), float(ratio[place]), place))
        return found

    def _candidates(self, length: int) -> Mask:
        """Return which strings of a length extend a feature by one symbol, and are none themselves."""
        k = len(ENGLISH.symbols)
        marks = [ENGLISH.symbols.index(c) for c in "<>"]
        allowed = np.full((k,) * length, length == 1)
        for feature in self.features:
            if len(feature) == length - 1:
                allowed[feature] = True
                np.moveaxis(allowed, 0, -1)[feature] = True
        for feature in self.features:
            if len(feature) == length:
                allowed[feature] = False
        if length == 1:
            allowed[marks] = False  # every word has them
        for axis in range(length):  # "<" can only be the first symbol, ">" only the last
            for mark, place in zip(marks, (0, length - 1), strict=True):
                if axis != place:
                    np.moveaxis(allowed, axis, 0)[mark] = False
        return allowed


def _report(rounds: list[Round], samples: dict[int, list[str]], grown: Induction, n: int) -> Report:
    uniform = -float(np.arange(LONGEST + 1) @ grown.model.shares) * np.log(26)
    before, rows = uniform, []
    for one in rounds:
        told = ", ".join(one.strings[:6]) + (", ..." if len(one.strings) > 6 else "")
        rows.append([str(one.features), told, f"{one.gain:.4f}", f"{one.train - before:.4f}",
                     f"{one.train:.3f}", f"{one.test:.3f}"])  # fmt: skip
        before = one.train
    weights = {"".join(ENGLISH.symbols[s] for s in f): t for f, t in zip(grown.features, grown.theta, strict=True)}
    named = [f"{s} {weights[s]:+.2f}" for s in ("ing>", "s>", "ed>", "qu", "<un", "ly>") if s in weights]
    notes = [
        f"{n} words of at most {LONGEST} letters, a tenth of them held out; V: a vowel, C: a consonant",
        f"nats per word, given its length; all letters equal: {uniform:.3f}",
        "gain: approximate, of the first string of a round; rise: of the training log-likelihood, all of a round",
        "weights: " + (", ".join(named) or "none of the strings that are looked for"),
        *(f"{size} features: {', '.join(drawn)}" for size, drawn in samples.items()),
    ]
    across = [float(r.features) for r in rounds]
    lines = {"training": (across, [r.train for r in rounds]), "held out": (across, [r.test for r in rounds])}
    data = {"experiment": "spelling", "rounds": [r._asdict() for r in rounds], "weights": weights, "samples": samples}
    columns = ["features", "added", "gain", "rise", "training", "held out"]
    plots = {"spelling": Plot("features", "nats per word", lines)}
    return Report("Spelling", columns, rows, notes, data, {}, plots)
