"""``isinglass algorithms``: what each inference algorithm promises."""

from __future__ import annotations

import argparse

from isinglass.cli.options import Commands, add_command
from isinglass.cli.report import print_table

_SUMMARY = "list the inference algorithms and what each promises"
_TEXT = """List the inference algorithms: where each is exact, what its log Z is of the true one elsewhere,
and whether it finds a most probable assignment (MAP), draws samples, gives joint beliefs of any variables. Then the
solvers that do nothing but find a most probable assignment: which models each takes, and what it proves."""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    add_command(commands, "algorithms", run, _SUMMARY, _TEXT, "  isinglass algorithms")


def run(arguments: argparse.Namespace) -> None:
    """Print the table."""
    from isinglass.inference import ALGORITHMS, SOLVERS

    rows = []
    for name, cls in ALGORITHMS.items():
        f = cls.facts
        flags = ("yes" if flag else "-" for flag in (f.maximises, f.samples, f.joints))
        rows.append([name, f.summary, f.exact, f.bound or "-", *flags])
    columns = ["name", "what it does", "exact", "log Z is", "MAP", "samples", "joints"]
    print_table("Inference algorithms", columns, rows, left=len(columns))
    columns = ["name", "what it does", "takes", "proves optimality", "bound", "needs"]
    rows = [
        [name, f.summary, f.accepts, f.proves, "yes" if f.bound else "-", f.needs or "-"]
        for name, f in ((name, cls.facts) for name, cls in SOLVERS.items())
    ]
    print_table("Solvers for most probable assignments (infer --task MAP)", columns, rows, left=len(columns))
