"""``isinglass convert``: a model from one file format to another."""

from __future__ import annotations

import argparse

from isinglass.cli.options import Commands, add_command, add_evidence, add_quiet
from isinglass.cli.report import check_writable, say

_SUMMARY = "convert a model to .uai, from .fg or .uai, plain or .gz"
_TEXT = """Convert a model in the UAI format (.uai) or libDAI's factor graph format (.fg) to the UAI format,
plain or compressed (.gz). The endings of the names say which. Values keep all their digits. Evidence goes to
a file beside the model, named OUT.evid (without .gz)."""
_EXAMPLES = """  isinglass convert model.fg model.uai.gz
  isinglass convert model.uai.gz model.uai --drop-evidence"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "convert", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("source", metavar="IN", help="the model to read")
    parser.add_argument("target", metavar="OUT", help="the file to write; an old one is replaced")
    add_evidence(parser)
    parser.add_argument("--drop-evidence", action="store_true", help="leave all evidence out (default: write it)")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read, write, report."""
    from isinglass.graph.factor_graph import describe
    from isinglass.io import read_model, write_model

    beside = f"{arguments.target.removesuffix('.gz')}.evid"
    for target in (arguments.target, *([] if arguments.drop_evidence else [beside])):
        check_writable(target, arguments.source, arguments.evidence, option="OUT")
    potentials = read_model(arguments.source, arguments.evidence)
    if arguments.drop_evidence:
        potentials = potentials.without_evidence()
    write_model(potentials, arguments.target)
    if not arguments.quiet:
        observed = f", {len(potentials.evidence)} observed" if potentials.evidence else ""
        say(f"wrote {arguments.target}: {describe(potentials.graph)}{observed}")
