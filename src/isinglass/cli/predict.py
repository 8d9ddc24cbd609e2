"""``isinglass predict``: label examples with a model that `isinglass fit` wrote."""

from __future__ import annotations

import argparse

from isinglass.cli.fit import opened
from isinglass.cli.options import Commands, UsageError, add_command
from isinglass.cli.report import check_writable, emit

_SUMMARY = "label examples with a fitted model"
_TEXT = """Label examples. For text, the lines are written with the label as one more column (with --marginals, and its
probability as another). For .npz data, an .npz file with labels, and marginals if asked for; it needs --out.

The data need no labels: for text the last column may be left out, if it held the labels in training."""
_EXAMPLES = """  isinglass predict chunk.isg test.txt > labelled.txt
  isinglass predict digits.isg test.npz --marginals --out beliefs.npz"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "predict", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a model that `isinglass fit` wrote")
    parser.add_argument("data", metavar="DATA", help="examples: text, or .npz")
    parser.add_argument("--marginals", action="store_true", help="probabilities, too (default: no)")
    parser.add_argument("--out", metavar="FILE", help="where predictions are written (default: text to stdout)")


def run(arguments: argparse.Namespace) -> None:
    """Read, label, write."""
    from isinglass.cli.examples import read_examples

    check_writable(arguments.out, arguments.model, arguments.data)
    crf, recipe, width = opened(arguments.model)
    if arguments.out is None and recipe.estimator != "chain":
        raise UsageError("predictions for .npz data are an .npz file: give --out FILE (see: isinglass predict --help)")
    data = read_examples(arguments.data, recipe, labelled=False, width=width)
    marginals = crf.predict_marginals(data.X) if arguments.marginals else None
    text = data.written(crf.predict(data.X), marginals, getattr(crf, "classes_", ()))
    emit(text, arguments.out)
