"""The errors and warnings of the library: each says what was expected, what was given, and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "CacheWarning",
    "ConvergenceWarning",
    "FileFormatError",
    "ImpossibleEvidenceError",
    "InputError",
    "IsinglassError",
    "MemoryLimitError",
    "MissingDependencyError",
    "RemovedError",
    "SearchWarning",
    "no_convergence_warnings",
]


_MOST = 300  # characters of what a file should have, and of what it has


class IsinglassError(Exception):
    """Base class of every error that the library raises on purpose."""


class InputError(IsinglassError, ValueError):
    """An argument is not what the function needs.

    Parameters
    ----------
    argument : str
        The name of the argument in the call.
    expected, got : str
        What the function needs, and what it was given.
    remedy : str, optional
        What the caller can do about it.

    Examples
    --------
    >>> print(InputError("cards", "positive integers", "cards[3] = 0", "leave the variable out"))
    cards: expected positive integers, got cards[3] = 0; leave the variable out
    """

    def __init__(self, argument: str, expected: str, got: str, remedy: str = "") -> None:
        self.argument, self.expected, self.got, self.remedy = argument, expected, got, remedy
        super().__init__(argument, expected, got, remedy)

    def __str__(self) -> str:
        tail = f"; {self.remedy}" if self.remedy else ""
        return f"{self.argument}: expected {self.expected}, got {self.got}{tail}"


def require(fine: object, argument: str, expected: str, got: str, remedy: str = "") -> None:
    """Refuse an argument unless something is true of it.

    Examples
    --------
    >>> require(1 > 2, "n", "a number above 2", "1")
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: n: expected a number above 2, got 1
    """
    if not fine:
        raise InputError(argument, expected, got, remedy)


class ImpossibleLabelError(InputError):
    """A label has belief zero, so that its loss is infinite. A line search then shortens its step."""


class UnknownNameError(InputError):
    """A name that no algorithm, loss or other choice has."""


class FileFormatError(IsinglassError, ValueError):
    """A file does not follow its format. The message is one line: file, line, expected, got, and what to do."""

    def __init__(self, file: str, line: int | None, expected: str, got: str, remedy: str = "") -> None:
        self.file, self.line, self.expected, self.got, self.remedy = file, line, expected, got, remedy
        super().__init__(file, line, expected, got, remedy)

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        tail = f"; {self.remedy}" if self.remedy else ""
        expected, got = (text if len(text) <= _MOST else f"{text[:_MOST]}..." for text in (self.expected, self.got))
        text = f"{where}: expected {expected}, got {got}{tail}"
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)  # files hold anything


class MemoryLimitError(IsinglassError, MemoryError):
    """The computation would need more memory than its limit; it was not started."""


@contextmanager
def memory_remedy(text: str) -> Iterator[None]:
    """Append what to do, in the caller's words, to the message of a `MemoryLimitError`.

    Examples
    --------
    >>> with memory_remedy("use less"):
    ...     raise MemoryLimitError("it needs 2 GB")
    Traceback (most recent call last):
    ...
    isinglass.errors.MemoryLimitError: it needs 2 GB; use less
    """
    try:
        yield
    except MemoryLimitError as error:
        raise MemoryLimitError(f"{error}; {text}") from None


class ImpossibleEvidenceError(IsinglassError, ValueError):
    """Every assignment that agrees with the evidence has probability zero."""


class MissingDependencyError(IsinglassError, ImportError):
    """An optional package is needed for this call and is not installed."""


class RemovedError(IsinglassError, AttributeError):
    """A name, an option or a command that went before the first release; the message says what to use instead.

    It is an `AttributeError`, so that ``hasattr`` and a default of ``getattr`` work for a name that went.
    """


class ConvergenceWarning(UserWarning):
    """An iterative algorithm stopped before it reached its tolerance."""


class CacheWarning(UserWarning):
    """Compiled inner loops are cached in another folder, or cannot be cached; then first calls take seconds longer."""


class SearchWarning(UserWarning):
    """Exact inference does not fit in memory with the first elimination order, so a longer search follows."""


_UNTOLD: ContextVar[bool] = ContextVar("isinglass_convergence_untold", default=False)


def warn_of_convergence(text: str, stacklevel: int) -> None:
    """Warn, unless inside `no_convergence_warnings`; `stacklevel` counts as in `warnings.warn`."""
    if not _UNTOLD.get():
        warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel + 1)


@contextmanager
def no_convergence_warnings() -> Iterator[None]:
    """Suppress convergence warnings in this thread, and in threads that work for it: the caller reports them itself.

    The filters of `warnings` belong to the whole process, and to the user.

    Examples
    --------
    >>> with no_convergence_warnings():
    ...     warn_of_convergence("not yet converged", stacklevel=1)
    """
    before = _UNTOLD.set(True)
    try:
        yield
    finally:
        _UNTOLD.reset(before)
