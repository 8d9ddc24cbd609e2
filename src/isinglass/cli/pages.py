"""The option ``--report DIR``: a folder with one page; below it stand the command and the versions that made it."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from isinglass import __version__
from isinglass.cli.options import Parser
from isinglass.cli.report import check_writable, one_line
from isinglass.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from isinglass.cli.examples import Examples, Images, Labels, Sentences
    from isinglass.metrics import Report
    from isinglass.pages import Part, Pictures, Section, Table
    from isinglass.typing import Array

PAGE = "index.html"
MOST_LABELS = 60  # rows of a table of all labels
MOST_IMAGES = 8
MOST_MISTAKES = 30
TOP = 8  # strongest weights of each sign for each label
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
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


def add_report(parser: Parser, default: str = "none") -> None:
    """Add the option."""
    text = f"folder for a page with figures and tables, {PAGE}, for any browser (default: {default})"
    parser.add_argument("--report", metavar="DIR", help=text)


def prepare_report(folder: str | None, *files: str | None) -> None:
    """Make the folder of the page, and refuse one that has no place for it, before any work is done for it.

    The page may be none of the `files` that the command reads, or writes elsewhere.
    """
    if folder is None:
        return
    from isinglass.pages import require_own

    if not folder:
        raise InputError("--report", "the name of a folder", "nothing")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise InputError("--report", "a folder, or a name for a new one", f"{one_line(folder)}, which is a file")
    os.makedirs(folder, exist_ok=True)
    check_writable(os.path.join(folder, PAGE), *files, option="--report")
    require_own(os.path.join(folder, PAGE), "--report")


def write_report(arguments: argparse.Namespace, title: str, sections: Iterable[Section], lead: str = "") -> str:
    """Write the page into the folder of ``--report``, all or nothing; return where it is."""
    from isinglass.pages import Code, page_of, write_page

    found = {"isinglass": __version__, "Python": platform.python_version()}
    found |= {name: known for name in _PACKAGES if (known := _version(name))}
    versions = ", ".join(f"{name} {number}" for name, number in found.items())
    made = f"{versions}; {platform.system()} {platform.machine()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    path = os.path.join(arguments.report, PAGE)
    command = Code(shlex.join(["isinglass", *arguments.argv]))
    write_page(page_of(title, sections, lead=lead, below=[command, made]), path)
    return path


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def drawn(draw: Callable[[], Any], table: Table) -> Part:
    """Return a figure of Matplotlib, or without it a table of the same numbers."""
    from isinglass.pages import Picture

    try:
        return Picture(draw(), table.caption)
    except MissingDependencyError:
        return table


def training_sections(crf: Any, facts: dict[str, object], data: Examples, recipe: str) -> list[Section]:
    """Return how training went, and what the fitted model looks at; `recipe` is the text of its file."""
    from isinglass.cli.examples import Images
    from isinglass.pages import Code, Table

    went: list[Part | str] = [_history(crf)]
    late = sum(not epoch.converged for epoch in crf.history_)
    if late:
        some = f"In {late} of {len(crf.history_)} iterations, inference stopped before it converged on all examples"
        went.append(f"{some}; that is meant to be, where the model is trained for few iterations.")
    sections: list[Section] = [
        ("", [Table(["", ""], [[name, str(value)] for name, value in facts.items()])]),
        ("How training went", went),
    ]
    if isinstance(data, Images):
        sections.append(("What it makes of examples that it was trained on", [_images(crf, data)]))
    return [*sections, ("What it looks at", _weights(crf)), ("Recipe", [Code(recipe)])]


def _history(crf: Any) -> Part:
    """Return objective, gradient and, where there are some, validation losses by iteration."""
    from isinglass.pages import Table
    from isinglass.viz import convergence

    rows = [[epoch.iteration, epoch.value, epoch.gradient_norm, epoch.validation] for epoch in crf.history_]
    runs: dict[str, object] = {"training": crf.history_}
    if any(row[3] is not None for row in rows):
        runs["validation"] = [float("nan") if row[3] is None else row[3] for row in rows]
    return drawn(lambda: convergence(runs), Table(["iteration", "objective", "gradient", "validation"], rows))


def _weights(crf: Any) -> list[Part]:
    """Return tables of neighbours, and the strongest weights of features."""
    from isinglass.pages import Table
    from isinglass.viz import heat_map

    found = crf.explain(top=TOP)
    parts: list[Part] = []
    for name, matrix in found.matrices.items():
        if matrix.values.size and max(matrix.values.shape) <= MOST_LABELS:
            numbers = [[str(row), *line] for row, line in zip(matrix.rows, matrix.values.tolist(), strict=True)]
            table = Table(["", *map(str, matrix.columns)], numbers, f"Weights of neighbours: {name}")
            parts.append(drawn(partial(heat_map, *matrix), table))
    rows = [[str(label), str(w.feature), w.weight, w.kind] for label, listed in found.features.items() for w in listed]
    if rows:
        caption = f"The {TOP} strongest weights of each sign for each label, in nats"
        parts.append(Table(["label", "feature", "weight", "kind"], rows, caption))
    return parts


def score_sections(crf: Any, data: Examples, truth: Labels, predicted: Labels) -> list[Section]:
    """Return how good predictions are: scores, confusions, confidences, classes, and examples with mistakes."""
    from isinglass.cli.examples import Images, Sentences
    from isinglass.pages import Table

    found = _scored(crf, data, truth, predicted)
    summary = found.summary()
    facts: list[list[object]] = [[text, summary[name]] for name, text in _FACTS.items() if name in summary]
    facts += [["labels", found.n_labels], ["examples", found.n_examples]]
    sections: list[Section] = [("", [Table(["", ""], facts)])]
    if isinstance(data, Images):
        sections.append(("The first images", [_images(crf, data)]))
    sections.append(("At a glance", _figures(found)))
    if isinstance(data, Sentences):
        sections.append(("The first mistakes", [_mistakes(data, truth, predicted)]))
    if found.spans is not None:
        spans = [
            [k or "all", s.precision, s.recall, s.f1, s.true, s.predicted, s.right] for k, s in found.spans.items()
        ]
        heads = ["spans", "precision", "recall", "F1", "true", "predicted", "right"]
        sections.append(("Spans", [Table(heads, spans)]))
    rows = [[str(label), s.precision, s.recall, s.f1, s.iou, s.support] for label, s in found.per_class.items()]
    return [*sections, ("Labels", [Table(["label", "precision", "recall", "F1", "IoU", "count"], rows)])]


def _scored(crf: Any, data: Examples, truth: Labels, predicted: Labels) -> Report:
    """Compare predictions with labels; with probabilities, where each label of the data has one."""
    import numpy as np

    from isinglass.cli.examples import Sentences
    from isinglass.metrics import report

    classes = np.asarray(crf.classes_, object).tolist()
    ignored = crf.ignore_label
    seen = {label for label in data.flat(truth) if label not in (None, -1, ignored)}
    translated = isinstance(data, Sentences) and data.scheme is not None
    if translated or not seen <= set(classes):
        return report(truth, predicted, ignore_label=ignored)
    return report(truth, predicted, proba=crf.predict_marginals(data.X), classes=classes, ignore_label=ignored)


def _figures(found: Report) -> list[Part]:
    """Return the confusions, and how far confidences can be believed."""
    from isinglass.pages import Table
    from isinglass.viz import heat_map, reliability_diagram

    names = [str(label) for label in found.classes]
    parts: list[Part] = []
    if len(names) <= MOST_LABELS:
        rows = [[name, *line] for name, line in zip(names, found.confusion.tolist(), strict=True)]
        table = Table(["", *names], rows, "True labels (rows), and what is predicted")
        parts.append(drawn(lambda: heat_map(found), table))
    if (bins := found.reliability) is not None:
        columns = (bins.confidence, bins.accuracy, bins.counts)
        rows = [[*row] for row in zip(*(column.tolist() for column in columns), strict=True) if row[2]]
        title = f"Can its confidence be believed? Calibration error {bins.error:.3f}"
        parts.append(
            drawn(lambda: reliability_diagram(bins), Table(["confidence", "share right", "labels"], rows, title))
        )
    return parts


def _mistakes(data: Sentences, truth: Labels, predicted: Labels) -> Table | str:
    """Return the first tokens with wrong labels; the first column of the file is what is shown of a token."""
    from isinglass.pages import Table

    found: list[list[object]] = [
        [i + 1, " ".join(row[0] for row in rows[:k][-3:]), rows[k][0], str(p), str(t)]
        for i, (rows, true, guess) in enumerate(zip(data.rows, truth, predicted, strict=True))
        for k, (t, p) in enumerate(zip(true, guess, strict=True))
        if t is not None and str(t) != str(p)
    ]
    return (
        Table(["sequence", "before", "token", "predicted", "true"], found[:MOST_MISTAKES])
        if found
        else "There are none."
    )


def _images(crf: Any, data: Images) -> Pictures:
    """Return the first images: their last feature, their labels, and what the estimator makes of them."""
    import numpy as np

    from isinglass.pages import Pictures

    X = data.X[:MOST_IMAGES]
    classes = np.asarray(crf.classes_).tolist()
    beliefs, last = np.asarray(crf.predict_marginals(X)), np.asarray(X[..., -1], np.float64)
    two = len(classes) == 2
    rows = [("input: last feature", (last - last.min()) / (np.ptp(last) or 1.0))]
    if data.Y is not None:
        rows.append(("truth", _numbers(data.Y[:MOST_IMAGES], classes)))
    rows.append((f"P(label {classes[1]})", beliefs[..., 1]) if two else ("beliefs, pale where unsure", beliefs))
    rows.append(("prediction", _numbers(np.asarray(crf.predict(X)), classes)))
    return Pictures(rows, None if two else [str(label) for label in classes])


def _numbers(labels: Array, classes: list[Any]) -> Array:
    """Return the number of each label among the classes; of two as 0.0 and 1.0. Others are -1, or nan."""
    import numpy as np

    two = len(classes) == 2
    found = np.full(labels.shape, np.nan if two else -1, np.float64 if two else np.int64)
    for k, label in enumerate(classes):
        found[labels == label] = k
    return found
