"""What the commands print: results and tables on stdout, everything else in single lines on stderr."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any, Self

from isinglass.errors import CacheWarning, ConvergenceWarning, InputError, SearchWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

STDOUT = "standard output"  # its name in messages
_FILE_WIDTH = 100_000  # columns of a table that does not go to a terminal: no line is broken
_FIRST = "preparing"  # what a progress bar says before the first report
_REDRAW = 0.1  # seconds between two drawings of a progress bar


def one_line(text: str) -> str:
    r"""Return the text without line breaks and control characters.

    Examples
    --------
    >>> one_line("two\nlines \x1b[31m")
    'two lines \\x1b[31m'
    """
    return "".join(c if c.isprintable() else " " if c in "\t\r\n" else ascii(c)[1:-1] for c in text)


def say(text: str) -> None:
    """Print one line to stderr, after the name of the program."""
    print(f"isinglass: {one_line(text)}", file=sys.stderr, flush=True)


def to_stdout(output: str | bytes = "") -> None:
    """Write to stdout, at once; a failure says that it is stdout that failed.

    Characters that its encoding does not have are written as escapes; bytes go as they are.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        if isinstance(output, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(output)
        else:
            sys.stdout.write(output.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, STDOUT) from error


def require_stdout() -> None:
    """Refuse to work for a stdout that is closed, or open for reading only."""
    try:
        import fcntl

        fine = fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except (ImportError, UnsupportedOperation):  # Windows; a stream that is no file
        return
    except OSError:
        fine = False
    if not fine:
        raise OSError(errno.EBADF, "closed, there is no place for the result", STDOUT)


def error_text(error: BaseException) -> str:
    """Say what went wrong, for a line of its own.

    Examples
    --------
    >>> error_text(FileNotFoundError(2, "No such file or directory", "model.uai"))
    'model.uai: No such file or directory'
    """
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror}"
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory; give a limit with --memory or close other programs"
    return str(error) or type(error).__name__


def check_writable(path: str | None, *sources: str | None, option: str = "--out") -> None:
    """Refuse a file that cannot be written, or that is one of the sources, before any work is done for it.

    None stands for stdout, and the source "-" for stdin.
    """
    if path is None:
        require_stdout()
        return
    for source in sources:
        if source is not None and _same_file(path, source):
            raise InputError(option, "another file than those that are read or written", path)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory", path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied", path)
    if not path.startswith(("/dev/", "/proc/")):  # which may stand for files that are open already
        _check_folder(os.path.dirname(os.path.realpath(path)), os.path.isfile(path) or not os.path.exists(path))


def _same_file(path: str, source: str) -> bool:
    try:
        found = os.fstat(0) if source == "-" else os.stat(source)
        return os.path.isfile(path) and os.path.samestat(os.stat(path), found)
    except OSError:  # there may be none yet
        return os.path.realpath(source) == os.path.realpath(path)


def _check_folder(folder: str, replaced: bool) -> None:
    """Refuse a folder that does not exist or, where a file in it is to be replaced, cannot be written to."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such folder", folder)
    if replaced and not os.access(folder, os.W_OK):
        raise PermissionError(13, "Permission denied", folder)


def emit(output: str | bytes, path: str | None) -> None:
    """Write a result to a file, all or nothing, or to stdout."""
    from isinglass.io.files import write_bytes_atomically, write_text_atomically

    if path is None:
        to_stdout(output)
        return
    try:
        if isinstance(output, bytes):
            write_bytes_atomically(path, output)
        else:
            write_text_atomically(path, output)
    except OSError as error:  # it may name the temporary file, which nobody knows
        raise OSError(error.errno, error.strerror, path) from error


def json_text(value: object, indent: int | None = None) -> str:
    r"""Write strict JSON: what is not finite becomes null, NumPy's arrays and numbers become lists and numbers.

    Examples
    --------
    >>> json_text({"bound": math.inf})
    '{"bound": null}\n'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if hasattr(value, "tolist"):  # NumPy, which is not imported for this
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console(stderr: bool = False) -> Console:
    """Return a Rich console for the stream as it is now."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _FILE_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1, caption: str = ""
) -> None:
    """Print a table and a line below it; the first `left` columns are aligned left, the others right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_header=any(columns))
    for i, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(str(cell))) for cell in row))
    to = console()
    with to.capture() as captured:  # Rich would leave the process on a broken pipe
        to.print(Text(title, style="bold"), soft_wrap=True)
        to.print(table)
        if caption:
            to.print(Text(f"{caption}\n"), soft_wrap=True)
    to_stdout(captured.get())


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show a warning of the library as one line; leave other warnings to Python."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, ConvergenceWarning | CacheWarning | SearchWarning):
            say(f"warning: {message}")
        else:
            shown(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


class Silence:
    """Takes reports of progress and shows nothing; keeps the last one."""

    last = ""

    def __enter__(self) -> Self:
        return self

    def __call__(self, stage: str, fraction: float) -> None:
        """Report that a fraction of a stage is done."""
        self.last = stage

    def __exit__(self, *error: object) -> None:
        """Show nothing more."""


class ProgressLines(Silence):
    """A line on stderr now and then, for a log file or a pipe.

    Parameters
    ----------
    every : float
        Seconds between two lines, and before the first.
    """

    def __init__(self, every: float = 10.0) -> None:
        self._every, self._due = every, time.monotonic() + every

    def __call__(self, stage: str, fraction: float) -> None:
        """Print the stage if a line is due."""
        super().__call__(stage, fraction)
        if time.monotonic() >= self._due:
            say(stage)
            self._due = time.monotonic() + self._every


class ProgressBar(Silence):
    """A progress bar on a terminal, for runs of more than a moment.

    Parameters
    ----------
    bounded : bool
        Whether the fraction says how long it will take; where it does not, there is a spinner instead of a bar.
    delay : float
        Seconds before it appears.
    """

    def __init__(self, bounded: bool = True, delay: float = 0.5) -> None:
        self._timer = threading.Timer(delay, self._show)
        self._timer.daemon = True
        self._progress, self._task = _new_bar(bounded)
        self._shown, self._drawn = False, 0.0

    def __enter__(self) -> Self:
        self._timer.start()
        return super().__enter__()

    def __call__(self, stage: str, fraction: float) -> None:
        """Report that a fraction of a stage is done; compiled loops hold back the thread that would draw it."""
        super().__call__(stage, fraction)
        self._progress.update(self._task, description=stage, completed=fraction, total=1.0)
        if self._shown and time.monotonic() > self._drawn + _REDRAW:
            self._progress.refresh()
            self._drawn = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._shown:
            self._progress.stop()

    def _show(self) -> None:
        self._progress.start()
        self._shown = True


def progress_on_stderr(quiet: bool, bounded: bool = True) -> Silence:
    """Return a bar for a terminal, lines now and then for anything else, silence where it is wanted."""
    if quiet:
        from isinglass.runtime.compilation.jit import Count

        Count.announced = True  # that it compiles
        return Silence()
    return ProgressBar(bounded) if sys.stderr.isatty() else ProgressLines()


def _new_bar(bounded: bool) -> tuple[Progress, TaskID]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    head = TextColumn("{task.description}")
    amount = (head, BarColumn(), TaskProgressColumn()) if bounded else (SpinnerColumn(), head)
    progress = Progress(*amount, TimeElapsedColumn(), console=console(stderr=True), transient=True)
    return progress, progress.add_task(_FIRST, total=None)
