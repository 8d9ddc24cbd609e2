"""Skip-chains: named entities, with links between equal words of a sentence.

A capitalised word that comes back in its sentence is likely to be the same kind of name, wherever the evidence for it
is. A skip-chain CRF adds to the chain an edge from each such word to its next occurrence, with a table of its own
(Sutton and McCallum 2004; Murphy 2012, section 19.6.2.3, figure 19.17):

    log p(y | X) + log Z  =  sum_t f_t(y_t) + sum_t g(y_{t-1}, y_t) + sum_{links (s, t)} h(y_s, y_t)

The graph has cycles: inference is belief propagation, run to its tolerance, and the likelihood is the surrogate one of
its Bethe free energy. As sentences without links are trees, on which belief propagation is exact, the same estimator
without links is the plain chain; its objective is that of `ChainCRF`, which checks both.

The difference of two F1 has a 95 % interval by resampling test sentences (paired bootstrap).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from isinglass import BeliefPropagation, ChainCRF, GraphCRF
from isinglass.metrics import SpanScores, span_scores, spans
from isinglass.typing import Array, IntArray, JsonObject
from isinglass_experiments.common.experiment import DataExperiment, Progress, Report, fit_quietly, register, tell
from isinglass_experiments.data import entity_attributes, load_wnut17

Words = Sequence[Sequence[str]]
L2, MIN_COUNT = 0.1, 2
_BP = BeliefPropagation(tol=1e-6, max_iter=200)


@register
@dataclass(frozen=True)
class SkipChain(DataExperiment):
    """Named entities by a chain and by a skip-chain.

    Parameters
    ----------
    quick : bool
        A fifth of the training sentences, and fewer iterations.
    data : str, optional
        The folder of text/wnut17_train.txt.gz; else the one that ISINGLASS_DATA names.
    """

    name: ClassVar[str] = "skipchain"
    summary: ClassVar[str] = "named entities: F1 of a chain and of a skip-chain CRF"

    def run(self, progress: Progress | None = None) -> Report:
        """Train the chain, the same by belief propagation, and the skip-chain; test all."""
        given = load_wnut17(self.data)
        n, most = (len(given.Y_train) // 5, 60) if self.quick else (len(given.Y_train), 150)
        words, Y, held_out = given.words_train[:n], given.Y_train[:n], given.words_test
        found: list[JsonObject] = []
        guesses: list[list[list[str]]] = []

        def keep(row: str, fitted: ChainCRF | GraphCRF, guess: list[list[str]], began: float) -> None:
            right = linked_right(held_out, given.Y_test, guess)
            found.append({"row": row, **_scores(given.Y_test, guess), "linked": right, "seconds": time.time() - began,
                          "objective": fitted.objective_, "iterations": fitted.n_iter_,
                          "converged": fitted.history_[-1].converged_share})  # fmt: skip
            guesses.append(guess)

        tell(progress, "training the chain", 0.0)
        began, X, X_test = time.time(), _attributes(words), _attributes(held_out)
        chain = entity_chain(most, self.n_jobs)
        keep("chain, exact", fit_quietly(chain, X, Y), chain.predict(X_test), began)
        numbers = {label: i for i, label in enumerate(chain.classes_)}
        codes = [np.array([numbers[y] for y in labels]) for labels in Y]
        for i, row in enumerate(("chain, bp", "skip-chain, bp")):
            tell(progress, f"training {row}", (1 + i) / 3)
            began, skip = time.time(), row.startswith("skip")
            crf = GraphCRF(_BP, loss="cl", gradient="envelope", l2=L2, bias=False, n_states=len(numbers), max_iter=most,
                           n_jobs=self.n_jobs)  # fmt: skip
            fit_quietly(crf, _graphs(chain, words, X, skip), codes)
            codes_test = crf.predict(_graphs(chain, held_out, X_test, skip))
            keep(row, crf, [[chain.classes_[y] for y in labels] for labels in codes_test], began)
        interval = f1_interval(given.Y_test, guesses[1], guesses[2])
        return _report(found, interval, [(words, Y), (held_out, given.Y_test)], most)


def entity_chain(most: int, n_jobs: int, loss: str = "cl") -> ChainCRF:
    """Return a chain for attributes of words, which decides token by token."""
    options: JsonObject = {"l2": L2, "state_features": "all", "min_count": MIN_COUNT, "decoder": "mpm"}
    return ChainCRF(loss, bias=False, boundary=False, max_iter=most, n_jobs=n_jobs, **options)


def links(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of a capitalised word of two letters or more and its next occurrence, if that is no neighbour.

    Examples
    --------
    >>> links(["Bonnie", "met", "Clyde", ";", "Clyde", "saw", "Bonnie", "Bonnie"])
    [(2, 4), (0, 6)]
    """
    last: dict[str, int] = {}
    found = []
    for t, word in enumerate(words):
        if len(word) > 1 and word[0].isupper():
            if last.get(word, t) < t - 1:
                found.append((last[word], t))
            last[word] = t
    return found


def linked_right(words: Words, truth: Words, guess: Words) -> float:
    """Return the share of tokens with links, in sentences whose links touch a name, that have the right label."""
    right = total = 0
    for one, y, z in zip(words, truth, guess, strict=True):
        ends = {t for pair in links(one) if any(y[t] != "O" for t in pair) for t in pair}
        right, total = right + sum(y[t] == z[t] for t in ends), total + len(ends)
    return right / total if total else float("nan")


def f1_interval(truth: Words, one: Words, two: Words, draws: int = 2000) -> tuple[float, float, float]:
    """Return by how much the F1 of the second is above that of the first, and a 95 % interval by paired bootstrap.

    Examples
    --------
    >>> Y = [["B-x", "O"], ["O", "B-x"]]
    >>> f1_interval(Y, [["O", "O"]] * 2, Y)
    (1.0, 1.0, 1.0)
    """
    counts = np.array([[_counts(y, a), _counts(y, b)] for y, a, b in zip(truth, one, two, strict=True)])
    generator = np.random.default_rng(0)

    def difference(rows: IntArray | slice) -> float:
        (a, b) = (SpanScores(*sums).f1 for sums in counts[rows].sum(axis=0).tolist())
        return b - a

    values = [difference(generator.integers(0, len(counts), len(counts))) for _ in range(draws)]
    low, high = np.quantile(values, [0.025, 0.975])
    return difference(slice(None)), float(low), float(high)


def _counts(truth: Sequence[str], guess: Sequence[str]) -> tuple[int, int, int]:
    a, b = set(spans(truth)), set(spans(guess))
    return len(a & b), len(b), len(a)


def _attributes(words: Words) -> list[list[list[str]]]:
    return [entity_attributes(one) for one in words]


def _graphs(
    chain: ChainCRF, words: Words, X: list[list[list[str]]], skip: bool
) -> list[tuple[csr_array, IntArray, Array]]:
    """Lay sentences out as graphs, with the attributes that the chain has weights for; edges are of two types."""
    data, features = chain.encode(X), chain.model_.features
    columns = data.X[:, np.flatnonzero(np.diff(features.first))]
    found = []
    for s, one in enumerate(words):
        rows = slice(int(data.offsets[s]), int(data.offsets[s + 1]))
        near = [(t, t + 1) for t in range(len(one) - 1)]
        far = links(one) if skip else []
        types = np.repeat(np.eye(2), [len(near), len(far)], axis=0)
        found.append((columns[rows], np.array(near + far, np.int64).reshape(-1, 2), types))
    return found


def _scores(truth: Words, guess: Words) -> dict[str, float]:
    score = span_scores(truth, guess)[None]
    return {"precision": 100 * score.precision, "recall": 100 * score.recall, "f1": 100 * score.f1}


def _report(
    found: list[JsonObject], interval: tuple[float, float, float], parts: Sequence[tuple[Words, Words]], most: int
) -> Report:
    rows = [[one["row"], *(f"{one[key]:.2f}" for key in ("precision", "recall", "f1")), f"{100 * one['linked']:.1f}",
             f"{one['objective']:.2f}", f"{one['seconds']:.0f}"] for one in found]  # fmt: skip
    counts = [sum(len(links(one)) for one in words) for words, _ in parts]
    named = [sum(y[a] != "O" or y[b] != "O" for one, y in zip(*part, strict=True) for a, b in links(one))
             for part in parts]  # fmt: skip
    gain, low, high = (100 * value for value in interval)
    notes = [
        f"links: {counts[0]} to train on and {counts[1]} to test, {named[0]} and {named[1]} of them at a name",
        f"F1 of the skip-chain less that of the chain: {gain:+.2f}, 95 % interval {low:+.2f} to {high:+.2f}",
        f"likelihood, for the skip-chain the surrogate of belief propagation; l2 {L2:g}, at most {most} iterations; "
        f"inference converged on {found[-1]['converged']:.1%} of the sentences at the end",
        "decoded label by label (mpm); linked: labels right at ends of links of which one is a name",
    ]
    title = f"Named entities (WNUT 2017), {len(parts[0][1])} training and {len(parts[1][1])} test sentences, in percent"
    data = {"experiment": SkipChain.name, "rows": found, "gain": gain, "interval": [low, high], "links": counts,
            "links at names": named}  # fmt: skip
    columns = ["model", "precision", "recall", "F1", "linked", "objective", "seconds"]
    return Report(title, columns, rows, notes, data, {})
