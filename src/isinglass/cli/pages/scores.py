"""The page of ``isinglass evaluate``: scores, confusions, confidences, classes, and examples with mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from isinglass.cli.examples import Examples, Images, Labels, Sentences
from isinglass.cli.pages.images import image_panel
from isinglass.metrics import Reliability, Report, report
from isinglass.pages import Bars, Facts, Heat, Lines, Note, Part, Table, Tokens
from isinglass.pages.page import Section

MOST_LABELS = 60  # of a confusion matrix
MOST_BARS = 30
MOST_SEQUENCES = 12
_FACTS = {
    "accuracy": "labels right",
    "exact_match": "examples right",
    "span_f1": "F1 of spans",
    "macro_f1": "mean F1 of labels",
    "mean_iou": "mean IoU",
    "calibration_error": "calibration error",
    "brier": "Brier score",
    "log_loss": "log loss, nats",
}


def scored(crf: Any, data: Examples, truth: Labels, predicted: Labels) -> Report:
    """Compare predictions with labels; with probabilities, where each label of the data has one."""
    classes = np.asarray(crf.classes_, object).tolist()
    seen = {label for label in data.flat(truth) if label is not None and label != -1}
    translated = isinstance(data, Sentences) and data.scheme is not None
    if translated or not seen <= set(classes):
        return report(truth, predicted)
    return report(truth, predicted, proba=crf.predict_marginals(data.X), classes=classes)


def score_sections(crf: Any, data: Examples, truth: Labels, predicted: Labels) -> list[Section]:
    """Return the sections of the page."""
    found = scored(crf, data, truth, predicted)
    summary = found.summary()
    facts: dict[str, object] = {text: summary[name] for name, text in _FACTS.items() if name in summary}
    facts |= {"labels": found.n_labels, "examples": found.n_examples}
    sections: list[Section] = [("", [Facts(facts)])]
    if isinstance(data, Images):
        sections.append(("The first images", [image_panel(crf, data)]))
    sections.append(("At a glance", _figures(found)))
    if isinstance(data, Sentences):
        sections.append(("The first sequences with mistakes", _mistakes(data, truth, predicted)))
    return [*sections, *_tables(found)]


def _figures(found: Report) -> list[Part | str]:
    names = [str(label) for label in found.classes]
    parts: list[Part | str] = []
    if len(names) <= MOST_LABELS:
        shares = found.confusion / np.maximum(found.confusion.sum(axis=1, keepdims=True), 1)
        tips = [
            [f"{count} of {row.sum()} ({share:.1%})" for count, share in zip(row.tolist(), line.tolist(), strict=True)]
            for row, line in zip(found.confusion, shares, strict=True)
        ]
        parts.append(
            Heat(shares, names, names, "Share of each true label (rows) that is predicted as", "predicted", tips)
        )
    if found.reliability is not None:
        parts.append(_reliability(found.reliability))
    if len(names) <= MOST_BARS:
        parts.append(
            Bars(names, [scores.f1 for scores in found.per_class.values()], "F1 of each label", from_zero=True)
        )
    return parts


def _reliability(bins: Reliability) -> Lines:
    some = bins.counts > 0
    curves = {
        "perfect": ([0.0, 1.0], [0.0, 1.0]),
        "this model": (bins.confidence[some].tolist(), bins.accuracy[some].tolist()),
    }
    counts = [f"{count} labels" for count in bins.counts[some].tolist()]
    title = f"Can its confidence be believed? Calibration error {bins.error:.3f}"
    return Lines(curves, "confidence", "share right", title, dashed=["perfect"], notes={"this model": counts})


def _mistakes(data: Sentences, truth: Labels, predicted: Labels) -> list[Part | str]:
    """Return the first sequences with mistakes; the first column of the file is what is shown of a token."""
    shown = []
    for rows, true, found in zip(data.rows, truth, predicted, strict=True):
        labels = [(str(f), None if t is None else str(t)) for f, t in zip(found, true, strict=True)]
        if any(t is not None and f != t for f, t in labels):
            shown.append([(row[0], f, t) for row, (f, t) in zip(rows, labels, strict=True)])
    if not shown:
        return ["There are none."]
    return [Note("Struck out: predicted. Beside it: the truth."), Tokens(shown[:MOST_SEQUENCES])]


def _tables(found: Report) -> list[Section]:
    rows = [[str(label), s.precision, s.recall, s.f1, s.iou, s.support] for label, s in found.per_class.items()]
    sections: list[Section] = []
    if found.spans is not None:
        spans = [
            ["all" if kind is None else kind, s.precision, s.recall, s.f1, s.true, s.predicted, s.right]
            for kind, s in found.spans.items()
        ]
        heads = ["spans", "precision", "recall", "F1", "true", "predicted", "right"]
        sections.append(("Spans", [Table(heads, spans)]))
    return [*sections, ("Labels", [Table(["label", "precision", "recall", "F1", "IoU", "count"], rows)])]
