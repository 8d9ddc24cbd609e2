"""``isinglass predict``: label examples with a model that `isinglass fit` wrote."""

from __future__ import annotations

import argparse
from typing import Any

from isinglass.cli.fit import Recipe, opened
from isinglass.cli.options import Commands, UsageError, add_command
from isinglass.cli.report import check_writable, emit, json_text
from isinglass.errors import InputError

CLOSED = 200  # values of a column, at most, that are all the values it may have
_SUMMARY = "label examples with a fitted model"
_TEXT = """Label examples. For text, the lines are written with the label as one more column (with --marginals, and its
probability as another). For .npz data, an .npz file with labels, and marginals if asked for; it needs --out.

With --json, one JSON object a line for each example: its labels and, with --marginals, the probability of each label
by name. The data may come from standard input: DATA is then "-".

The data need no labels: for text the last column may be left out, if it held the labels in training."""
_EXAMPLES = """  isinglass predict chunk.isg test.txt > labelled.txt
  isinglass predict digits.isg test.npz --marginals --out beliefs.npz
  cat new.txt | isinglass predict chunk.isg - --marginals --json"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "predict", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a model that `isinglass fit` wrote")
    parser.add_argument("data", metavar="DATA", help="examples: text, or .npz; - is standard input")
    parser.add_argument("--marginals", action="store_true", help="probabilities, too (default: no)")
    text = "write predictions as JSON, one object per line for each example (default: no)"
    parser.add_argument("--json", action="store_true", help=text)
    parser.add_argument("--out", metavar="FILE", help="where predictions are written (default: text to stdout)")


def run(arguments: argparse.Namespace) -> None:
    """Read, label, write."""
    from isinglass.cli.examples import Sentences, read_examples

    check_writable(arguments.out, arguments.model, arguments.data)
    crf, recipe, width = opened(arguments.model)
    if arguments.out is None and recipe["estimator"] != "chain" and not arguments.json:
        text = "predictions for .npz data are an .npz file: give --out FILE or --json"
        raise UsageError(f"{text} (see: isinglass predict --help)")
    data = read_examples(arguments.data, recipe, labelled=False, width=width)
    if isinstance(data, Sentences):
        _check_tokens(crf, recipe, width, data.rows)
    marginals = crf.predict_marginals(data.X) if arguments.marginals else None
    found, classes = crf.predict(data.X), crf.classes_
    if not arguments.json:
        emit(data.written(found, marginals, classes), arguments.out)
        return
    lines: list[Any] = [{"labels": labels} for labels in data.plain(found)]
    for line, beliefs in zip(lines, () if marginals is None else marginals, strict=marginals is not None):
        line["marginals"] = _named(beliefs, [str(label) for label in classes])
    emit("".join(map(json_text, lines)), arguments.out)


def _named(beliefs: Any, names: list[str]) -> object:
    if beliefs.ndim > 1:
        return [_named(part, names) for part in beliefs]
    return {name: round(value, 6) for name, value in zip(names, beliefs.tolist(), strict=True)}


def _check_tokens(crf: Any, recipe: Recipe, width: int, rows: Any) -> None:
    """Refuse running text, of which each line would be labelled as if it were one token."""
    tokens = [row for one in rows for row in one]
    known = {label.rpartition("-")[2] for label in (*crf.classes_, "-1")}  # whatever the scheme
    columns = len(tokens[0]) if tokens else 0
    blank = columns == 1 and any(" " in row[0] for row in tokens)
    blank = blank and not any(" " in attribute for attribute in crf.index_.names)
    strange = columns == width and not any(row[recipe["label"]].rpartition("-")[2] in known for row in tokens)
    for c in {*range(1, width)} - {recipe["label"] % width}:  # words are new; of tags or shapes some are known
        values = {name for name in crf.index_.names if name.startswith(f"c{c}0=")}
        strange |= len(values) <= CLOSED and not any(f"c{c}0={row[c]}" in values for row in tokens)
    if tokens and (blank or strange):
        got = f"{' '.join(tokens[0])!a:.60}"
        raise InputError("DATA", "one token a line, as in training, and labels of the model or none", got)
