"""The option ``--report DIR``: a folder with one page, and below it the command and the versions that made it."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from isinglass import __version__
from isinglass.cli.options import Parser
from isinglass.cli.report import check_writable, emit, one_line
from isinglass.errors import InputError

if TYPE_CHECKING:
    from isinglass.pages import Part
    from isinglass.pages.page import Section

PAGE = "index.html"
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def add_report(parser: Parser, default: str = "none") -> None:
    """Add the option."""
    text = f"folder for a page with figures and tables, {PAGE}, for any browser (default: {default})"
    parser.add_argument("--report", metavar="DIR", help=text)


def prepare_report(folder: str | None) -> None:
    """Make the folder of the page, and refuse one that cannot be written to, before any work is done for it."""
    if folder is None:
        return
    if not folder:
        raise InputError("--report", "the name of a folder", "nothing")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise InputError("--report", "a folder, or a name for a new one", f"{one_line(folder)}, which is a file")
    os.makedirs(folder, exist_ok=True)
    check_writable(os.path.join(folder, PAGE), option="--report")


def write_report(arguments: argparse.Namespace, title: str, sections: Iterable[Section], lead: str = "") -> str:
    """Write the page into the folder of ``--report``, all or nothing; return where it is."""
    from isinglass.pages import page_of

    path = os.path.join(arguments.report, PAGE)
    emit(page_of(title, sections, lead=lead, below=_made_by(arguments.argv)), path)
    return path


def _made_by(argv: Sequence[str]) -> list[Part | str]:
    """Return how a page was made: the exact command, the versions, the machine and the time."""
    from isinglass.pages import Code, Note

    found = {"isinglass": __version__, "Python": platform.python_version()}
    found |= {name: known for name in _PACKAGES if (known := _version(name))}
    versions = ", ".join(f"{name} {number}" for name, number in found.items())
    made = f"{platform.system()} {platform.machine()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return [Code(shlex.join(["isinglass", *argv])), Note(f"{versions}; {made}")]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
