"""A fat chain: parts of speech and chunks of a sentence, labelled together.

Two chains, coupled at each word (a factorial CRF: Sutton, McCallum and Rohanimanesh 2007; Murphy 2012, section
19.6.2.2, figure 19.16): with z_t the part of speech and y_t the chunk label,

    log p(y, z | X) + log Z  =  sum_t [ a_t(z_t) + b_t(y_t) + A(z_{t-1}, z_t) + B(y_{t-1}, y_t) + C(z_t, y_t) ]

Neither layer is given at test time. Exact inference would take (parts of speech x chunk labels)² steps a word, about a
million; an iteration of belief propagation takes a few thousand. It is run for a fixed number of iterations, and the
loss is that of the beliefs which these iterations give (ucl, differentiated through them): nothing needs to
converge.

Beside it: chunks alone, by a chain that sees words only, and in cascade: parts of speech by a chain, then chunks by a
chain that sees the first one's guesses, of three words (true parts of speech in training).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from isinglass import BeliefPropagation, ChainCRF, FactorGraph, decoding, disjoint_union, infer, losses
from isinglass.errors import no_convergence_warnings
from isinglass.estimators.sequence.features import Encoded
from isinglass.gradients import rule
from isinglass.learning import Objective
from isinglass.learning.optimizers import Lbfgs
from isinglass.learning.total import Total, blocks
from isinglass.metrics import span_f1
from isinglass.models import Model, NodeTerm, SharedTerm
from isinglass.typing import FloatArray, IntArray, JsonObject
from isinglass_experiments.common.experiment import DataExperiment, Progress, Report, fit_quietly, register, tell
from isinglass_experiments.data import entity_attributes, read_chunking
from isinglass_experiments.skipchain import L2, MIN_COUNT, entity_chain, f1_interval

Labels = Sequence[Sequence[str]]
Attributes = list[list[list[str]]]  # of each token of each sentence
ITERATIONS = 5


@register
@dataclass(frozen=True)
class FatChain(DataExperiment):
    """Parts of speech and chunks, apart, one after the other, and together.

    Parameters
    ----------
    quick : bool
        Fewer sentences and iterations.
    data : str, optional
        The folder of text/conll2000_train.txt.gz; else the one that ISINGLASS_DATA names.
    """

    name: ClassVar[str] = "fatchain"
    summary: ClassVar[str] = "parts of speech and chunks together: a factorial CRF beside chains"

    def run(self, progress: Progress | None = None) -> Report:
        """Train the three, and test."""
        n_train, n_test, most = (100, 300, 30) if self.quick else (1000, 1000, 60)
        X, Z, Y = _layers("train", n_train, self.data)
        X_test, Z_test, Y_test = _layers("test", n_test, self.data)
        found: list[JsonObject] = []
        guesses: list[Labels] = []

        def keep(row: str, tags: Labels | None, chunks: Labels, began: float) -> None:
            guesses.append(chunks)
            right = float("nan") if tags is None else 100 * _share(Z_test, tags)
            found.append({"row": row, "tags": right, "chunks": 100 * _share(Y_test, chunks),
                          "f1": 100 * span_f1(Y_test, chunks), "seconds": time.time() - began})  # fmt: skip

        tell(progress, "training chains", 0.0)
        began = time.time()
        keep("chunks alone", None, self._chain(X, Y, most).predict(X_test), began)
        began, tagger = time.time(), self._chain(X, Z, most)
        guessed = tagger.predict(X_test)
        second = self._chain(_with_tags(X, Z), Y, most)
        keep("tags, then chunks", guessed, second.predict(_with_tags(X_test, guessed)), began)
        tell(progress, "training the fat chain", 0.2)
        began = time.time()
        fat = FatChainModel.fit(tagger.encode(X), Z, Y, most, self.n_jobs)
        keep("fat chain, bp", *fat.predict(tagger.encode(X_test)), began)
        intervals = [f1_interval(Y_test, other, guesses[-1]) for other in guesses[:-1]]
        return _report(found, intervals, fat, n_train, n_test, most)

    def _chain(self, X: Attributes, Y: Labels, most: int) -> ChainCRF:
        return fit_quietly(entity_chain(most, self.n_jobs, "ucl"), X, Y)


@dataclass(eq=False)
class FatChainModel:
    """A fitted factorial CRF of two layers with different numbers of labels.

    Attributes
    ----------
    classes : tuple of lists
        The labels of each layer.
    columns : int array
        The attributes that have weights.
    theta : array
        Named "tag" and "chunk" (attributes, labels), "tag-tag", "chunk-chunk" and "tag-chunk".
    """

    classes: tuple[list[str], list[str]]
    columns: IntArray
    theta: FloatArray = field(default_factory=lambda: np.zeros(0))
    objective: float = float("nan")
    algorithm: ClassVar[BeliefPropagation] = BeliefPropagation(iterations=ITERATIONS, schedule="flooding")

    @classmethod
    def fit(cls, data: Encoded, Z: Labels, Y: Labels, most: int, n_jobs: int) -> FatChainModel:
        """Learn from encoded tokens and the labels of both layers."""
        names = tuple(sorted({label for one in layer for label in one}) for layer in (Z, Y))
        counts = np.bincount(data.X.indices, minlength=data.X.shape[1])
        fat = cls((names[0], names[1]), np.flatnonzero(counts >= MIN_COUNT))
        parts = []
        for block in blocks(2 * np.diff(data.offsets)):
            model = fat.model(data, range(len(Y))[block])
            labels = fat.codes(Z[block], Y[block])
            parts.append(Objective(model, labels, losses.make("ucl"), cls.algorithm, rule("unrolled")))
        total = Total(parts, L2, n_jobs)
        found = Lbfgs(max_iter=most, tol=1e-4).minimise(total, np.zeros(total.size))
        fat.theta, fat.objective = found.x, found.value
        return fat

    def model(self, data: Encoded, sentences: Sequence[int]) -> Model:
        """Compile some sentences; a graph with 2 T variables each: parts of speech, then chunk labels."""
        k, m = map(len, self.classes)
        offsets = data.offsets
        graph = disjoint_union([ladder(int(offsets[s + 1] - offsets[s]), k, m) for s in sentences])
        rows = csr_array(data.X[offsets[sentences[0]] : offsets[sentences[-1] + 1]][:, self.columns])
        terms = {
            (k,): NodeTerm("tag", rows, k),
            (m,): NodeTerm("chunk", rows, m),
            (k, k): SharedTerm("tag-tag", (k, k)),
            (m, m): SharedTerm("chunk-chunk", (m, m)),
            (k, m): SharedTerm("tag-chunk", (k, m)),
        }
        return Model(graph, [[terms[group.shape]] for group in graph.groups])

    def codes(self, Z: Labels, Y: Labels) -> IntArray:
        """Return the labels of all variables."""
        one, two = ({label: i for i, label in enumerate(layer)} for layer in self.classes)
        return np.array([c for z, y in zip(Z, Y, strict=True) for c in [*map(one.get, z), *map(two.get, y)]], np.int64)

    def predict(self, data: Encoded) -> tuple[list[list[str]], list[list[str]]]:
        """Return the labels of both layers, each the most probable by its belief."""
        found: tuple[list[list[str]], list[list[str]]] = ([], [])
        for block in blocks(2 * np.diff(data.offsets)):
            sentences = range(len(data.offsets) - 1)[block]
            with no_convergence_warnings():
                result = infer(self.model(data, sentences).potentials(self.theta), self.algorithm)
            states = decoding.MPM()(result).tolist()
            for s in sentences:
                n = int(data.offsets[s + 1] - data.offsets[s])
                for layer, names in zip(found, self.classes, strict=True):
                    layer.append([names[state] for state in states[:n]])
                    states = states[n:]
        return found


def ladder(n: int, k: int, m: int) -> FactorGraph:
    """Return the graph of a sentence: n variables of k states, n of m, along the layers and between them.

    The two numbers must differ, for the factors of the layers are told apart by their shapes.

    Examples
    --------
    >>> ladder(2, 3, 4).scopes[:]
    [(0,), (1,), (2,), (3,), (0, 1), (2, 3), (0, 2), (1, 3)]
    """
    unary = [(i,) for i in range(2 * n)]
    along = [(i, i + 1) for layer in (0, n) for i in range(layer, layer + n - 1)]
    return FactorGraph([k] * n + [m] * n, [*unary, *along, *((i, n + i) for i in range(n))])


def _layers(part: str, n: int, data: str | None) -> tuple[Attributes, list[list[str]], list[list[str]]]:
    """Return attributes of words, parts of speech and chunk labels of the first n sentences."""
    words, tags, chunks = (column[:n] for column in read_chunking(part, data))
    return [entity_attributes(one) for one in words], tags, chunks


def _with_tags(X: Attributes, tags: Labels) -> Attributes:
    """Add the parts of speech of three tokens to the attributes."""
    found = []
    for one, z in zip(X, tags, strict=True):
        padded = ["<s>", *z, "</s>"]
        near = zip(one, padded, padded[1:], padded[2:], strict=False)
        found.append([[*token, f"t-1={a}", f"t0={b}", f"t1={c}", f"t-1|0={a}|{b}"] for token, a, b, c in near])
    return found


def _share(truth: Labels, guess: Labels) -> float:
    pairs = [y == z for one, two in zip(truth, guess, strict=True) for y, z in zip(one, two, strict=True)]
    return sum(pairs) / len(pairs)


def _report(
    found: list[JsonObject],
    intervals: list[tuple[float, float, float]],
    fat: FatChainModel,
    n_train: int,
    n_test: int,
    most: int,
) -> Report:
    rows = [[one["row"], "" if np.isnan(one["tags"]) else f"{one['tags']:.2f}", f"{one['chunks']:.2f}",
             f"{one['f1']:.2f}", f"{one['seconds']:.0f}"] for one in found]  # fmt: skip
    notes = [
        "words, their shapes, beginnings and ends are seen; parts of speech are not, but in training",
        f"univariate likelihood (ucl), l2 {L2:g}, at most {most} iterations; the fat chain with {ITERATIONS} flooding "
        "iterations of belief propagation in training and test",
        "F1 of the fat chain less that of "
        + "; ".join(
            f"{one['row']}: {100 * gain:+.2f}, 95 % interval {100 * low:+.2f} to {100 * high:+.2f}"
            for one, (gain, low, high) in zip(found, intervals, strict=False)
        ),
        f"{len(fat.classes[0])} parts of speech, {len(fat.classes[1])} chunk labels, {len(fat.theta)} weights",
    ]
    title = f"Parts of speech and chunks (CoNLL-2000), {n_train} training and {n_test} test sentences, in percent"
    data = {"experiment": FatChain.name, "rows": found, "weights": len(fat.theta), "objective": fat.objective,
            "gains": intervals}  # fmt: skip
    return Report(title, ["model", "tags right", "chunk labels right", "chunk F1", "seconds"], rows, notes, data, {})
