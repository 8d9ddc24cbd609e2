"""The parser class, and the options that several commands share. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from isinglass.cli.report import to_stdout
from isinglass.errors import InputError, IsinglassError

Run = Callable[[argparse.Namespace], int | None]
"""Does the work of a command; an exit code other than zero is returned."""
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class UsageError(IsinglassError):
    """The arguments do not form a command."""


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake as an error of one line, and takes no abbreviated options."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving the process."""
        raise UsageError(f"{message} (see: {self.prog} --help)")

    def _print_message(self, message: str, file: object = None) -> None:
        """Print help and versions, which argparse would drop without a word where that fails."""
        to_stdout(message)


def add_command(commands: Commands, name: str, run: Run, summary: str, text: str, examples: str) -> Parser:
    """Add a command with its help; `run` is called with the parsed arguments."""
    parser: Parser = commands.add_parser(
        name, help=summary, description=text, epilog=f"examples:\n{examples}" if examples else None
    )
    parser.set_defaults(run=run)
    return parser


def add_model(parser: Parser) -> None:
    """Add the model and its evidence."""
    parser.add_argument("model", metavar="MODEL", help="a model: .uai, .uai.gz, .fg or .fg.gz")
    add_evidence(parser)


def add_evidence(parser: Parser) -> None:
    """Add the evidence file."""
    text = "observed variables (.evid), added to those in the model file (default: none)"
    parser.add_argument("--evidence", metavar="FILE", help=text)


def add_json(parser: Parser, what: str) -> None:
    """Add the choice of JSON."""
    parser.add_argument("--json", action="store_true", help=f"write {what} as one JSON object (default: no)")


def add_quiet(parser: Parser) -> None:
    """Add the choice of silence."""
    parser.add_argument("--quiet", action="store_true", help="no report and no progress bar (default: no)")


def memory_bytes(size: str | None) -> int | None:
    """Read the value of --memory; None stays None."""
    from isinglass.validation import memory_size

    if size is None:
        return None
    try:
        return memory_size(size, "--memory")
    except OverflowError:
        raise InputError("--memory", "a size such as 12GB, 500MiB or a number of bytes", f"{size:.40}") from None
