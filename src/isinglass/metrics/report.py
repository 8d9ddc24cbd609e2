"""One report on predictions: labels, whole examples, classes, confusions, spans, confidences, n-best lists.

Scores of labels are those of scikit-learn over all examples together; IoU is its Jaccard score. Means over classes
("macro") go over classes that are true or predicted somewhere. Labels that are not observed (-1 among numbers, None)
count nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from html import escape
from itertools import chain
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.metrics.calibration import BINS, Reliability, brier_score, reliability
from isinglass.metrics.spans import SpanScores, is_span_label, span_scores
from isinglass.runtime.pandas import pandas_for
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import real_numbers

MOST_CLASSES = 30  # that a printed confusion matrix has


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class."""

    precision: float
    recall: float
    f1: float
    iou: float
    support: int


_COLUMNS = [column.name for column in fields(ClassScores)]


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """How good predictions are. ``print(report)`` shows everything.

    Attributes
    ----------
    accuracy : float
        The share of labels that are right (tokens, pixels, nodes).
    hamming_loss : float
        The share that is wrong.
    exact_match : float
        The share of examples that are right as a whole.
    classes : list
    per_class : dict of label to ClassScores
    macro_f1, mean_iou : float
    confusion : int array (classes, classes)
        Rows are true, columns predicted.
    spans : dict of type to SpanScores, or None
        For labels in BIO form; None is all types together.
    calibration_error, brier, log_loss : float or None
        If probabilities were given.
    reliability : Reliability or None
    coverage : array (n,) or None
        If n-best lists were given: the share of examples whose true labels are among the first 1, 2, ..., n.
    n_labels, n_examples : int
    """

    accuracy: float
    exact_match: float
    classes: list[Any]
    per_class: dict[Any, ClassScores]
    confusion: IntArray
    n_labels: int
    n_examples: int
    spans: dict[str | None, SpanScores] | None = None
    brier: float | None = None
    log_loss: float | None = None
    reliability: Reliability | None = None
    coverage: FloatArray | None = None

    @property
    def hamming_loss(self) -> float:
        """The share of labels that are wrong."""
        return 1.0 - self.accuracy

    @property
    def macro_f1(self) -> float:
        """The mean F1 over classes."""
        return self._mean([scores.f1 for scores in self.per_class.values()])

    @property
    def mean_iou(self) -> float:
        """The mean over classes of intersection over union."""
        return self._mean([scores.iou for scores in self.per_class.values()])

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error; None without probabilities."""
        return None if self.reliability is None else self.reliability.error

    def _mean(self, values: list[float]) -> float:
        used = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        return float(np.mean(np.array(values)[used])) if used.any() else 0.0

    def summary(self) -> dict[str, float]:
        """Return the numbers that are about everything, by name.

        Examples
        --------
        >>> report([["a", "b"]], [["a", "a"]]).summary()["accuracy"]
        0.5
        """
        names = ("accuracy", "hamming_loss", "exact_match", "macro_f1", "mean_iou", "calibration_error", "brier")
        found = {name: getattr(self, name) for name in (*names, "log_loss")}
        if self.spans is not None:
            found["span_f1"] = self.spans[None].f1
        if self.coverage is not None:
            found[f"coverage_at_{len(self.coverage)}"] = float(self.coverage[-1])
        return {name: float(value) for name, value in found.items() if value is not None}

    def to_frame(self) -> Any:
        """Return the scores of classes as a pandas DataFrame."""
        rows = [astuple(scores) for scores in self.per_class.values()]
        return pandas_for("to_frame").DataFrame(rows, index=list(self.per_class), columns=_COLUMNS)

    def confusion_frame(self) -> Any:
        """Return the confusion matrix as a pandas DataFrame: rows are true, columns predicted."""
        return pandas_for("confusion_frame").DataFrame(self.confusion, index=self.classes, columns=self.classes)

    def __str__(self) -> str:
        parts = [f"{self.n_labels} labels in {self.n_examples} examples"]
        parts += [f"{name.replace('_', ' '):20s} {value:.4f}" for name, value in self.summary().items()]
        parts += ["", *_lines("class", _COLUMNS, {str(k): list(astuple(s)) for k, s in self.per_class.items()})]
        if self.spans is not None:
            rows = {k or "all": [s.precision, s.recall, s.f1, s.true] for k, s in self.spans.items()}
            parts += ["", *_lines("spans", ["precision", "recall", "f1", "support"], rows)]
        if len(self.classes) <= MOST_CLASSES:
            counts = dict(zip(map(str, self.classes), self.confusion.tolist(), strict=True))
            parts += ["", *_lines("true / predicted", [name[:14] for name in counts], counts)]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"Report({', '.join(f'{name}={value:.4f}' for name, value in self.summary().items())})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def report(
    Y: Sequence[Any] | Array,
    P: Sequence[Any] | Array,
    *,
    proba: Sequence[Any] | Array | None = None,
    n_best: Sequence[Any] | None = None,
    classes: Sequence[Any] | None = None,
    bins: int = BINS,
    ignore_label: Any = None,
) -> Report:
    """Compare predictions with the truth.

    Parameters
    ----------
    Y, P : lists of label sequences or arrays, or arrays with an example in each row
        True and predicted labels, as the estimators take and give them. Not observed: -1 among numbers, None.
    proba : lists of arrays (..., classes), or array, optional
        Probabilities of labels, as `predict_marginals` gives them.
    n_best : list of lists, optional
        The best labellings of each example, best first, as `predict_n_best` gives them.
    classes : sequence, optional
        The labels in the order of the columns of `proba`: ``crf.classes_``. By default those that occur, in order.
    bins : int
        Of the reliability.
    ignore_label : optional
        A further label of `Y` that means "not observed", as that of estimators.

    Returns
    -------
    Report

    Examples
    --------
    >>> Y = [["B-NP", "I-NP", "O"], ["O", "B-NP"]]
    >>> P = [["B-NP", "I-NP", "O"], ["O", "O"]]
    >>> found = report(Y, P)
    >>> found
    Report(accuracy=0.8000, hamming_loss=0.2000, exact_match=0.5000, macro_f1=0.8222, mean_iou=0.7222, span_f1=0.6667)
    >>> found.per_class["B-NP"].recall, found.confusion.tolist()
    (0.5, [[1, 0, 1], [0, 1, 0], [0, 0, 2]])
    """
    truth, guess = _examples(Y, "Y", ignore_label), _examples(P, "P")
    require(len(truth) == len(guess), "P", f"{len(truth)} examples, as Y", f"{len(guess)}")
    for i, (one, two) in enumerate(zip(truth, guess, strict=True)):
        require(len(one) == len(two), f"P[{i}]", f"{len(one)} labels, as Y[{i}]", f"{len(two)}")
    known = _classes(truth, guess, classes)
    number = {label: k for k, label in enumerate(known)}
    true, found = (_codes(labels, number, name) for labels, name in ((truth, "Y"), (guess, "P")))
    seen = true >= 0
    require(seen.any(), "Y", "at least one observed label", "none")
    right = np.split((true == found) | ~seen, np.cumsum([len(labels) for labels in truth])[:-1])
    confident = {} if proba is None else _confidence(true, proba, len(known), bins)
    return Report(
        exact_match=float(np.mean([one.all() for one in right])),
        classes=known,
        **_scores(true[seen], found[seen], known),
        n_labels=int(seen.sum()),
        n_examples=len(truth),
        spans=_spans(truth, guess, known),
        coverage=None if n_best is None else _coverage(truth, n_best),
        **confident,
    )


def mean_iou(Y: Sequence[Any] | Array, P: Sequence[Any] | Array, ignore_label: Any = None) -> float:
    """Return the mean over classes of intersection over union, which scikit-learn's searches can maximise.

    The same as ``report(Y, P).mean_iou``: classes that neither the truth nor the predictions have do not count.

    Parameters
    ----------
    Y, P : lists of label sequences or arrays, or arrays with an example in each row
        True and predicted labels; not observed are -1 among numbers, and None.
    ignore_label : optional
        A further label of `Y` that means "not observed".

    Examples
    --------
    >>> mean_iou([[0, 0, 1, -1]], [[0, 1, 1, 1]])
    0.5
    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(mean_iou)  # for GridSearchCV and cross_validate
    """
    return report(Y, P, ignore_label=ignore_label).mean_iou


def _examples(values: Any, argument: str, ignore_label: Any = None) -> list[list[Any]]:
    """Return the labels of each example in one list; -1 and NaN among numbers, and `ignore_label`, become None."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(argument, "a list of examples, or an array", type(values).__name__)
    found = []
    for i, one in enumerate(values):
        if isinstance(one, str) or not hasattr(one, "__len__"):
            raise InputError(f"{argument}[{i}]", "the labels of an example", f"{one!r:.40}", "put them in a list")
        flat = np.asarray(one, object).ravel().tolist() if not isinstance(one, list | tuple) else _flat(one)
        found.append([None if label == ignore_label or _hidden(label) else label for label in flat])
    return found


def _flat(labels: Any) -> list[Any]:
    nested = any(isinstance(label, list | np.ndarray) for label in labels)
    return np.asarray(labels, object).ravel().tolist() if nested else list(labels)


def _hidden(label: Any) -> bool:
    return label is None or (isinstance(label, int | float | np.number) and (label == -1 or label != label))


def _classes(truth: list[list[Any]], guess: list[list[Any]], given: Sequence[Any] | None) -> list[Any]:
    occurring = _distinct(chain.from_iterable([*truth, *guess]), "Y, P") - {None}
    if given is not None:
        listed = list(given.tolist() if isinstance(given, np.ndarray) else given)
        distinct = _distinct(listed, "classes")
        require(len(distinct) == len(listed), "classes", "each label once", f"{len(listed)}, {len(distinct)} different")
        unknown = sorted(map(repr, occurring - distinct))
        if unknown:
            remedy = "classes are the labels themselves, as those of an estimator's classes_"
            raise InputError("classes", "all labels that occur", f"none for {unknown[0]}", remedy)
        return listed
    try:
        return sorted(occurring)
    except TypeError:
        return sorted(occurring, key=repr)


def _distinct(labels: Iterable[Any], argument: str) -> set[Any]:
    found: set[Any] = set()
    for label in labels:
        try:
            found.add(label)
        except TypeError:
            raise InputError(argument, "labels such as numbers or text", f"{label!r:.60}") from None
    return found


def _codes(labels: list[list[Any]], number: dict[Any, int], argument: str) -> IntArray:
    flat = [-1 if label is None else number[label] for label in chain.from_iterable(labels)]
    if argument == "P" and -1 in flat:
        raise InputError("P", "a label for each variable", "None or -1")
    return np.array(flat, np.int64)


def _scores(true: IntArray, found: IntArray, classes: list[Any]) -> dict[str, Any]:
    """Return what scikit-learn says about numbers of classes."""
    from sklearn import metrics

    of_each: Any = {"labels": np.arange(len(classes)), "average": None, "zero_division": 0.0}
    precision, recall, f1, support = metrics.precision_recall_fscore_support(true, found, **of_each)
    columns = (precision, recall, f1, metrics.jaccard_score(true, found, **of_each), support)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "accuracy": float(metrics.accuracy_score(true, found)),
        "per_class": {label: ClassScores(*row) for label, row in zip(classes, rows, strict=True)},
        "confusion": np.bincount(true * len(classes) + found, minlength=len(classes) ** 2).reshape(len(classes), -1),
    }


def _spans(truth: list[list[Any]], guess: list[list[Any]], known: list[Any]) -> dict[str | None, SpanScores] | None:
    """Return the scores of spans, if all labels are such of spans, and some are no O."""
    if not known or not all(is_span_label(label) for label in known) or known == ["O"]:
        return None
    if any(label is None for labels in truth for label in labels):
        return None
    return span_scores(truth, guess)


def _confidence(true: IntArray, proba: Any, n_classes: int, bins: int) -> dict[str, Any]:
    parts = [proba] if isinstance(proba, np.ndarray) else list(proba)
    flat = [real_numbers(part, f"proba[{i}]", "probabilities") for i, part in enumerate(parts)]
    for i, part in enumerate(flat):
        if part.ndim < 2 or part.shape[-1] != n_classes:
            remedy = "give classes=crf.classes_, if some labels do not occur"
            raise InputError(f"proba[{i}]", f"a last axis of {n_classes} classes", f"shape {part.shape}", remedy)
    p = np.concatenate([part.reshape(-1, n_classes) for part in flat])
    require(len(p) == len(true), "proba", f"probabilities of {len(true)} labels", f"{len(p)}")
    seen = true >= 0
    with np.errstate(divide="ignore"):
        surprise = -np.log(p[seen, true[seen]])
    return {
        "reliability": reliability(true, p, bins),
        "brier": brier_score(true, p),
        "log_loss": float(surprise.mean()),
    }


def _coverage(truth: list[list[Any]], n_best: Sequence[Any]) -> FloatArray:
    """Return the share of examples whose true labels are among the first of their lists."""
    require(len(n_best) == len(truth), "n_best", f"a list for each of {len(truth)} examples", f"{len(n_best)}")
    longest = max((len(listed) for listed in n_best), default=0)
    require(longest, "n_best", "at least one labelling", "none")
    hits = np.zeros((len(truth), longest), bool)
    for i, (labels, listed) in enumerate(zip(truth, n_best, strict=True)):
        for k, candidate in enumerate(listed):
            path = candidate[0] if isinstance(candidate, tuple) and len(candidate) == 2 else candidate
            flat = np.asarray(path, object).ravel().tolist()
            require(len(flat) == len(labels), f"n_best[{i}][{k}]", f"{len(labels)} labels", f"{len(flat)}")
            hits[i, k] = all(y is None or y == z for y, z in zip(labels, flat, strict=True))
    return np.asarray(np.maximum.accumulate(hits, axis=1).mean(axis=0), np.float64)


def _lines(title: str, heads: Sequence[str], rows: dict[str, list[float]]) -> list[str]:
    """Return a table in lines of text: names, then numbers under their heads."""
    names = [name if len(name) <= 24 else name[:23] + "…" for name in rows]
    texts = [[f"{value:.4f}" if isinstance(value, float) else str(value) for value in row] for row in rows.values()]
    table = [[title, *heads], *([name, *row] for name, row in zip(names, texts, strict=True))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(f"{cell:{'>' if k else '<'}{widths[k]}s}" for k, cell in enumerate(line)) for line in table]
