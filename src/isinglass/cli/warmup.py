"""``isinglass warmup``: compile the inner loops now, so that later runs need not."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.report import one_line, progress_on_stderr, to_stdout

if TYPE_CHECKING:
    from isinglass.warming import Warmth

_SUMMARY = "compile the inner loops now, once for this user and machine"
_TEXT = """Compile the inner loops that inference and training use, by running tiny models through every algorithm. It
takes a few minutes the first time; later processes load the loops from a cache. Without it, each loop is compiled when
it is first needed. The cache lies beside the installed package or, where that cannot be written, in the user's cache
folder; the environment variable NUMBA_CACHE_DIR names another place."""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    examples = "  isinglass warmup\n  NUMBA_CACHE_DIR=/var/cache/isinglass isinglass warmup"
    add_quiet(add_command(commands, "warmup", run, _SUMMARY, _TEXT, examples))


def run(arguments: argparse.Namespace) -> None:
    """Compile, and say what was done."""
    from isinglass.warming import warmup

    with progress_on_stderr(arguments.quiet) as progress:
        done = warmup(progress)
    if not arguments.quiet:
        to_stdout(_report(done))


def _report(done: Warmth) -> str:
    lines = [f"compiled {done.compiled} loops in {done.seconds:.1f} s; {done.loaded} were in the cache"]
    lines += [f"cache: {folder}" for folder in done.folders]
    if not done.folders:
        lines.append("cache: none, no folder can be written; set NUMBA_CACHE_DIR to one that can")
    return "".join(f"{one_line(line)}\n" for line in lines)
