"""``isinglass diagnose``: where the errors of a fitted model come from, and what helps."""

from __future__ import annotations

import argparse

from isinglass.cli.fit import opened
from isinglass.cli.options import Commands, add_command, add_json
from isinglass.cli.report import json_text, say, to_stdout

_SUMMARY = "say where the errors of a fitted model come from"
_TEXT = """Measure, on labelled examples, how many labels would be right with exact inference, another decoder, more
training, or a larger model. The examples should be other ones than those of training. The last two train anew on half
of the examples and look at the other half, so this takes some time."""
_EXAMPLES = """  isinglass diagnose digits.isg test.npz
  isinglass diagnose chunk.isg test.txt --examples 200 --json"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "diagnose", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a model that `isinglass fit` wrote")
    parser.add_argument("data", metavar="DATA", help="labelled examples: text, or .npz")
    parser.add_argument("--examples", metavar="N", type=int, default=100, help="use at most so many (default: 100)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="which of them are drawn (default: 0)")
    add_json(parser, "what was found")


def run(arguments: argparse.Namespace) -> None:
    """Read, diagnose, print."""
    from isinglass.cli.examples import read_examples
    from isinglass.estimators import diagnose

    crf, recipe, width = opened(arguments.model)
    data = read_examples(arguments.data, recipe, labelled=True, width=width)
    found = diagnose(crf, data.X, data.Y, examples=arguments.examples, random_state=arguments.seed)
    if not arguments.json:
        to_stdout(f"{found}\n")
        return
    for note in found.notes:
        say(note)
    causes = [{**cause._asdict(), "effect": cause.effect} for cause in found.causes]
    facts = {"error": found.error, "causes": causes, "not_converged": found.not_converged, "examples": found.n_examples}
    to_stdout(json_text(facts))
