"""The entry point: put the parser together, run a command, turn mistakes into one line and an exit code.

Exit codes: 0 done; 2 a mistake in the arguments or files, work that does not fit, or a result that could not be
written; 130 interrupted; 141 the reader of the output closed it. Anything else that goes wrong is a bug and shows its
traceback.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points

from isinglass import __version__
from isinglass.cli import (
    algorithms,
    convert,
    demo,
    evaluate,
    fit,
    infer,
    info,
    predict,
    warmup,
)
from isinglass.cli.options import Parser
from isinglass.cli.report import error_text, plain_warnings, say, to_stdout
from isinglass.errors import IsinglassError, MissingDependencyError
from isinglass.removed import refuse_removed

MISTAKE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
MODULES = (infer, info, convert, fit, predict, evaluate, demo, algorithms, warmup)
GROUP = "isinglass.commands"  # entry points of other packages: each is a function like `add_parser` of a module here

_TEXT = "Undirected graphical models: inference and learning, from the command line."
_EXAMPLES = """examples:
  isinglass demo
  isinglass info model.uai
  isinglass infer model.uai --task MAR --evidence model.uai.evid --out model.MAR
  isinglass convert model.fg model.uai.gz
  isinglass fit chunk.toml train.txt --model chunk.isg
  isinglass predict chunk.isg test.txt

Each command has its own help: isinglass COMMAND --help"""


def build_parser(command: str | None = None) -> Parser:
    """Return the parser of all commands; if `command` is one of ours, without those of other packages."""
    parser = Parser(prog="isinglass", description=_TEXT, epilog=_EXAMPLES)
    parser.add_argument("--version", action="version", version=f"isinglass {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for module in MODULES:
        module.add_parser(commands)
    if command not in commands.choices:
        for entry in entry_points(group=GROUP):
            entry.load()(commands)
        if command == "reproduce" and command not in commands.choices:
            raise MissingDependencyError(
                "isinglass reproduce needs another package: pip install isinglass-experiments"
                " (in a clone of the repository: pip install ./experiments)"
            )
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : list of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["--version"])
    isinglass ...
    0
    """
    _open_streams()
    try:
        code = _run(argv)
        to_stdout()  # what is left in its buffer
        return code
    except BrokenPipeError:
        _silence(sys.stdout, sys.stderr)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except (IsinglassError, OSError, MemoryError) as error:
        return _fail(error_text(error), MISTAKE)
    except Exception as error:
        if _after_interrupt(error):
            return _fail("interrupted", INTERRUPTED)
        raise


def _after_interrupt(error: BaseException | None) -> bool:
    """Tell whether an error came of Ctrl-C: a library failed to clean up, or took it for an error of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _run(argv: list[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    command = next(iter(words), None)
    refuse_removed(f"isinglass {command}")
    for word in words:
        refuse_removed(f"isinglass {command} {word.partition('=')[0]}")
    try:
        arguments = build_parser(command).parse_args(argv)
        arguments.argv = words
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    with plain_warnings():
        return arguments.run(arguments) or 0


def _open_streams() -> None:
    """Stand in for standard streams that were closed before the program began.

    What is said to stderr is dropped; what is written to stdout fails, as no result may get lost without a word. Their
    numbers are taken, so that no other file gets them.
    """
    if sys.stdout is None:
        sys.stdout = open(_taken(1, os.O_RDONLY), "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(_taken(2, os.O_WRONLY), "w", closefd=False)  # noqa: SIM115


def _taken(descriptor: int, flags: int) -> int:
    """Open the null device under a number that is not in use."""
    null = os.open(os.devnull, flags)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)
    return descriptor


def _fail(text: str, code: int) -> int:
    """Print the line; what can no longer be written anywhere is dropped."""
    for stream, write in ((sys.stderr, lambda: say(text)), (sys.stdout, sys.stdout.flush)):
        try:
            write()
        except OSError:
            _silence(stream)
    return code


def _silence(*streams: object) -> None:
    """Point broken streams at the null device, so that Python can flush them when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        try:
            stream.flush()  # type: ignore[attr-defined]
        except OSError:
            os.dup2(null, stream.fileno())  # type: ignore[attr-defined]
    os.close(null)
