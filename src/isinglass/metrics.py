"""How good predicted label sequences are: whole sequences, and spans as the shared tasks of CoNLL count them.

Spans (chunks, names) are written by labels "B-TYPE", "I-TYPE" and "O". As in the script conlleval (Tjong Kim Sang and
Buchholz 2000), for IOB and IOB2 alike, a span of a type begins

    at B, and at I after O, after another type, or at the start of a sequence,

and goes on over every I of its type. A predicted span is right if the truth has one of the same type, begin and end;

    precision = right / predicted,   recall = right / true,   F1 = 2 precision recall / (precision + recall).

A label without a dash after B or I is a span of the type "". These functions serve as scorers of scikit-learn:
``make_scorer(span_f1)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.validation import positive as positive_number

T = TypeVar("T")
U = TypeVar("U")

__all__ = ["SpanScores", "f_measure", "sequence_accuracy", "span_f1", "span_scores", "spans"]

Span = tuple[str, int, int]


@dataclass(frozen=True)
class SpanScores:
    """How many spans were right, predicted and true; all together, or of one type.

    Examples
    --------
    >>> one = SpanScores(right=1, predicted=2, true=4)
    >>> one.precision, one.recall, round(one.f1, 4)
    (0.5, 0.25, 0.3333)
    >>> one
    SpanScores(right=1, predicted=2, true=4: precision 0.5, recall 0.25, f1 0.3333)
    """

    right: int
    predicted: int
    true: int

    @property
    def precision(self) -> float:
        """The share of predicted spans that are right; 0 without any."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of true spans that were found; 0 without any."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.predicted + self.true
        return 2 * self.right / both if both else 0.0

    def __repr__(self) -> str:
        shares = f"precision {self.precision:.4g}, recall {self.recall:.4g}, f1 {self.f1:.4g}"
        return f"SpanScores(right={self.right}, predicted={self.predicted}, true={self.true}: {shares})"


def spans(labels: Sequence[str]) -> list[Span]:
    """Return the spans of one sequence: type, first token, and the one after the last.

    Examples
    --------
    >>> spans(["B-NP", "I-NP", "O", "I-VP", "B-VP", "I-NP"])
    [('NP', 0, 2), ('VP', 3, 4), ('VP', 4, 5), ('NP', 5, 6)]
    """
    found: list[Span] = []
    kind, start = None, 0
    for t, label in enumerate([*labels, "O"]):
        prefix, own = _parts(label)
        if kind is not None and (prefix != "I" or own != kind):
            found.append((kind, start, t))
            kind = None
        if kind is None and prefix != "O":
            kind, start = own, t
    return found


def span_scores(Y_true: Sequence[Sequence[str]], Y_pred: Sequence[Sequence[str]]) -> dict[str | None, SpanScores]:
    """Count spans: under None all of them, and those of each type.

    Parameters
    ----------
    Y_true, Y_pred : lists of label sequences

    Examples
    --------
    >>> scores = span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    >>> scores[None], scores["NP"].f1
    (SpanScores(right=1, predicted=2, true=2: precision 0.5, recall 0.5, f1 0.5), 0.0)
    """
    right, predicted, true = (Counter[str | None]() for _ in range(3))
    for truth, guess in _pairs(Y_true, Y_pred):
        one, two = spans(truth), spans(guess)
        for counter, some in ((right, set(one) & set(two)), (predicted, two), (true, one)):
            counter.update(kind for kind, _, _ in some)
            counter[None] += len(some)
    kinds: list[str | None] = [None, *sorted({kind for kind in (*predicted, *true) if kind is not None})]
    return {kind: SpanScores(right[kind], predicted[kind], true[kind]) for kind in kinds}


def span_f1(Y_true: Sequence[Sequence[str]], Y_pred: Sequence[Sequence[str]]) -> float:
    """Return F1 over all spans, from 0 to 1; conlleval prints it in percent.

    Examples
    --------
    >>> span_f1([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    0.5
    """
    return span_scores(Y_true, Y_pred)[None].f1


def sequence_accuracy(Y_true: Sequence[Sequence[object]], Y_pred: Sequence[Sequence[object]]) -> float:
    """Return the share of sequences whose labels are all right; None in the truth is not observed.

    Examples
    --------
    >>> sequence_accuracy([["a", "b"], ["a"], ["b", None]], [["a", "b"], ["b"], ["b", "a"]])
    0.6666666666666666
    """
    pairs = _pairs(Y_true, Y_pred)
    require(pairs, "Y_true", "at least one sequence", "none")
    return sum(all(y is None or y == z for y, z in zip(*pair, strict=True)) for pair in pairs) / len(pairs)


def _pairs(Y_true: Sequence[Sequence[T]], Y_pred: Sequence[Sequence[U]]) -> list[tuple[list[T], list[U]]]:
    """Check that both have the same lengths."""
    one, two = [list(labels) for labels in Y_true], [list(labels) for labels in Y_pred]
    require(len(one) == len(two), "Y_pred", f"{len(one)} sequences, as in Y_true", f"{len(two)}")
    for i, (a, b) in enumerate(zip(one, two, strict=True)):
        if len(a) != len(b):
            raise InputError(f"Y_pred[{i}]", f"{len(a)} labels, as in Y_true", f"{len(b)}")
    return list(zip(one, two, strict=True))


def _parts(label: object) -> tuple[str, str]:
    """Cut a label into prefix and type."""
    if isinstance(label, str):
        prefix, _, kind = label.partition("-")
        if prefix in ("B", "I") or label == "O":
            return prefix, kind
    raise InputError("labels", "labels such as 'B-NP', 'I-NP' and 'O'", f"{label!r:.60}", "convert to IOB or IOB2")


def f_measure(
    true: Sequence[ArrayLike],
    predicted: Sequence[ArrayLike],
    positive: int = 1,
    beta: float = 1.0,
    average: str = "examples",
) -> float:
    """Return F_beta of a positive state; precision and recall of an example without any positives are one.

    Parameters
    ----------
    true, predicted : sequence of int arrays
        The states of each example. Where the truth is -1, not observed, nothing is counted.
    positive : int
    beta : float
        Recall counts beta times as much as precision.
    average : {"examples", "corpus"}
        The mean of F over examples; or one F, of counts that are added up over all examples.

    Examples
    --------
    >>> true, predicted = [[1, 0], [1, 1]], [[1, 1], [1, 0]]
    >>> round(f_measure(true, predicted), 4), round(f_measure(true, predicted, beta=2.0), 4)
    (0.6667, 0.6944)
    >>> f_measure([[0, 0], [1, 1]], [[0, 0], [1, 0]], average="corpus")
    0.6666666666666666
    """
    require(average in ("examples", "corpus"), "average", "'examples' or 'corpus'", repr(average))
    beta = positive_number(beta, "beta")
    for name, given in (("true", true), ("predicted", predicted)):
        require(hasattr(given, "__len__"), name, "a sequence of int arrays", type(given).__name__)
    require(len(true) == len(predicted), "predicted", f"{len(true)} examples", f"{len(predicted)}")
    require(len(true) > 0, "true", "at least one example", "none")
    counts = [_counts(y, x, positive, i) for i, (y, x) in enumerate(zip(true, predicted, strict=True))]
    if average == "corpus":
        counts = [(sum(c[0] for c in counts), sum(c[1] for c in counts), sum(c[2] for c in counts))]
    each = [
        (1 + beta**2) * right / total if (total := beta**2 * real + found) else 1.0 for right, found, real in counts
    ]
    return sum(each) / len(each)


def _counts(true: ArrayLike, predicted: ArrayLike, positive: int, i: int) -> tuple[int, int, int]:
    """Return how many positives are right, predicted and true."""
    y, x = np.asarray(true), np.asarray(predicted)
    require(y.ndim > 0, f"true[{i}]", "the states of an example", "a single number", "put one example into a list")
    require(y.shape == x.shape, f"predicted[{i}]", f"shape {y.shape}", f"shape {x.shape}")
    real, found = y == positive, (x == positive) & (y != -1)
    return int((real & found).sum()), int(found.sum()), int(real.sum())
