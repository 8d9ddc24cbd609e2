"""``isinglass evaluate``: how good the predictions of a model are on labelled examples."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

from isinglass.cli.fit import opened
from isinglass.cli.options import Commands, add_command, add_json
from isinglass.cli.pages import add_report, prepare_report, write_report
from isinglass.cli.report import json_text, one_line, say, to_stdout

_SPANS = ("true", "predicted", "right", "precision", "recall", "f1")
_SUMMARY = "compare the predictions of a model with labels"
_TEXT = """Predict labels of examples, and compare them with those in the data, as `metrics.report` does in Python: the
share of labels and of whole examples that are right, precision, recall, F1 and IoU of each label and, where labels are
B-TYPE, I-TYPE and O, of spans, as the script conlleval counts them. A label -1, or the
ignore_label of the recipe, is not counted."""
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
    from isinglass.cli.examples import read_examples
    from isinglass.metrics import report

    prepare_report(arguments.report, arguments.model, arguments.data)
    crf, recipe, width = opened(arguments.model)
    data = read_examples(arguments.data, recipe, labelled=True, width=width)
    truth, predicted = data.plain(data.Y), data.plain(crf.predict(data.X))
    found = report(truth, predicted, ignore_label=crf.ignore_label)
    if arguments.json:
        by_label = {str(k): asdict(s) for k, s in found.per_class.items()}
        spans = {k or "all": {name: getattr(s, name) for name in _SPANS} for k, s in (found.spans or {}).items()}
        scores = {"labels": found.n_labels, "examples": found.n_examples, **found.summary(), "by_label": by_label}
        to_stdout(json_text(scores | ({"spans": spans} if spans else {})))
    else:
        to_stdout(f"{found}\n")
    if arguments.report is not None:
        from isinglass.cli.pages import score_sections

        model, source = (os.path.basename(path) for path in (arguments.model, arguments.data))
        title = f"Predictions of {model} on {'standard input' if source == '-' else source}"
        path = write_report(arguments, title, score_sections(crf, data, truth, predicted))
        (say if arguments.json else to_stdout)(f"wrote {one_line(path)}" + "\n" * (not arguments.json))
