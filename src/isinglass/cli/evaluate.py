"""``isinglass evaluate``: how good the predictions of a model are on labelled examples."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from isinglass.cli.fit import opened
from isinglass.cli.options import Commands, add_command, add_json
from isinglass.cli.pages import add_report, prepare_report, write_report
from isinglass.cli.report import json_text, one_line, print_table, say, to_stdout
from isinglass.errors import require

if TYPE_CHECKING:
    from isinglass.cli.examples import Label
    from isinglass.typing import JsonObject

_SPANS = ("true", "predicted", "right", "precision", "recall", "f1")
_SUMMARY = "compare the predictions of a model with labels"
_TEXT = """Predict labels of examples, and compare them with those in the data: the share of labels that are right; for
text the share of sequences without a mistake and, where labels are B-TYPE, I-TYPE and O, precision, recall and F1 of
spans, as the script conlleval counts them; for .npz data the share that is right among each label. A label -1 is not
counted."""
_EXAMPLES = """  isinglass evaluate chunk.isg test.txt
  isinglass evaluate digits.isg test.npz --json
  isinglass evaluate digits.isg test.npz --report page"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "evaluate", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a model that `isinglass fit` wrote")
    parser.add_argument("data", metavar="DATA", help='labelled examples: text, or .npz; "-": standard input')
    add_report(parser)
    add_json(parser, "the scores")


def run(arguments: argparse.Namespace) -> None:
    """Read, label, compare."""
    from isinglass.cli.examples import Sentences, read_examples, source_of

    prepare_report(arguments.report)
    crf, recipe, width = opened(arguments.model)
    with source_of(arguments.data) as path:
        data = read_examples(path, recipe, labelled=True, width=width)
    assert data.Y is not None
    truth, predicted = data.plain(data.Y), data.plain(crf.predict(data.X))
    scores = _shares(data.flat(truth), data.flat(predicted))
    if isinstance(data, Sentences):
        spelt = [[None if label is None else str(label) for label in one] for one in truth]
        scores |= _of_sequences(spelt, [[str(label) for label in one] for one in predicted])
    if arguments.json:
        to_stdout(json_text(scores))
    else:
        _print(scores)
    if arguments.report is not None:
        from isinglass.cli.pages import score_sections

        model, source = (os.path.basename(path) for path in (arguments.model, arguments.data))
        title = f"Predictions of {model} on {'standard input' if source == '-' else source}"
        path = write_report(arguments, title, score_sections(crf, data, truth, predicted))
        (say if arguments.json else to_stdout)(f"wrote {one_line(path)}" + "\n" * (not arguments.json))


def _shares(truth: list[Label], found: list[Label]) -> JsonObject:
    """Return the share of labels that are right, and that among each label."""
    pairs = [(a, b) for a, b in zip(truth, found, strict=True) if a is not None and a != -1]
    require(pairs, "DATA", "at least one label", "none")
    by_label: dict[str, list[bool]] = {}
    for a, b in pairs:
        by_label.setdefault(str(a), []).append(a == b)
    labels = {
        label: {"count": len(right), "right": sum(right) / len(right)} for label, right in sorted(by_label.items())
    }
    return {"labels": len(pairs), "accuracy": sum(a == b for a, b in pairs) / len(pairs), "by_label": labels}


def _of_sequences(truth: list[list[str | None]], found: list[list[str]]) -> JsonObject:
    """Return the share of sequences without a mistake, and scores of spans, where all labels are observed."""
    from isinglass.metrics import sequence_accuracy, span_scores

    scores: JsonObject = {"sequences": len(truth), "sequence_accuracy": sequence_accuracy(truth, found)}
    known = [[label for label in one if label is not None] for one in truth]
    if known == truth and all(re.fullmatch(r"O|[BI](-.*)?", label) for one in (*known, *found) for label in one):
        spans = {"all" if kind is None else kind: one for kind, one in span_scores(known, found).items()}
        scores["spans"] = {kind: {name: getattr(one, name) for name in _SPANS} for kind, one in spans.items()}
    return scores


def _print(scores: JsonObject) -> None:
    title = f"{scores['accuracy']:.4%} of {scores['labels']} labels are right"
    if "sequences" in scores:
        title += f"; {scores['sequence_accuracy']:.4%} of {scores['sequences']} sequences are without a mistake"
    if "spans" in scores:
        rows = [
            [kind, *(one[name] for name in _SPANS[:3]), *(f"{100 * one[name]:.2f}" for name in _SPANS[3:])]
            for kind, one in scores["spans"].items()
        ]
        print_table(title, ["spans", *_SPANS[:-1], "F1"], rows)
        return
    rows = [[label, one["count"], f"{one['right']:.4f}"] for label, one in scores["by_label"].items()]
    print_table(title, ["label", "count", "right"], rows)
