"""``isinglass demo``: learn to take the noise off handwritten digits, with four kinds of training."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.pages.folder import add_report, prepare_report, write_report
from isinglass.cli.report import one_line, print_table, progress_on_stderr, require_stdout, say, to_stdout

if TYPE_CHECKING:
    from isinglass.cli.denoising import Demo
    from isinglass.pages.page import Section

_SUMMARY = "learn to take the noise off handwritten digits"
_TEXT = """Train conditional random fields on binary digits, half of whose pixels got a random value, and take the noise
off other digits. Prints the share of wrong pixels for independent pixels, pseudolikelihood, a surrogate likelihood and
ucl-4, which trains the marginals after the four sweeps of belief propagation that are run in the end. The penalty l2 of
each is the one with the least error on a third of the training images. Writes panel.png and index.html: truth, input
and the marginals of each. Fewer images and iterations than in `isinglass reproduce digits`, to take less than a
minute. panel.png needs Matplotlib."""
_LEAD = """Conditional random fields learn to take the noise off binary digits. In the pictures, the rows below the
input are the probability of ink, pixel by pixel, as each kind of training gives it."""
_COLUMNS = ["method", "pixel error", "l2", "seconds"]


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "demo", run, _SUMMARY, _TEXT, "  isinglass demo\n  isinglass demo --out pictures")
    parser.add_argument(
        "--out", metavar="DIR", default="demo-output", help="folder of panel.png (default: demo-output)"
    )
    add_report(parser, "that of --out")
    parser.add_argument("--images", metavar="N", type=int, default=3, help="training images of each digit (default: 3)")
    parser.add_argument("--iterations", metavar="N", type=int, default=20, help="of each training (default: 20)")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train, print the table, draw the panel, write the page."""
    require_stdout()
    from isinglass.cli.denoising import train_demo

    os.makedirs(arguments.out, exist_ok=True)
    arguments.report = arguments.out if arguments.report is None else arguments.report
    prepare_report(arguments.report)
    drawn = find_spec("matplotlib") is not None
    if not drawn:
        say("panel.png is left out: it needs Matplotlib (pip install 'isinglass[viz]')")
    with progress_on_stderr(arguments.quiet) as progress:
        demo = train_demo(arguments.images, arguments.iterations, progress)
    print_table(demo.title, _COLUMNS, _rows(demo), caption=demo.note)
    to_stdout(f"wrote {one_line(_page(demo, arguments))}\n")
    if drawn:
        to_stdout(f"wrote {one_line(_picture(demo, arguments.out))}\n")


def _rows(demo: Demo) -> list[list[str]]:
    """Return the table as text."""
    return [
        [row.method, f"{row.error:.2%}", "-" if row.l2 is None else f"{row.l2:g}", f"{row.seconds:.1f}"]
        for row in demo.rows
    ]


def _page(demo: Demo, arguments: argparse.Namespace) -> str:
    """Write the page; return where."""
    from isinglass.pages import Bars, Note, Pictures, Table

    rows, names = _rows(demo), [row.method for row in demo.rows]
    errors = Bars(names, [100 * row.error for row in demo.rows], _COLUMNS[1], [row[1] for row in rows])
    seconds = Bars(names, [row.seconds for row in demo.rows], _COLUMNS[3], [row[3] for row in rows])
    sections: list[Section] = [
        ("Pictures", [Pictures({"digits": demo.columns})]),
        ("At a glance", [errors, seconds]),
        ("Results", [Table(_COLUMNS, rows), Note(f"{demo.note}.")]),
    ]
    return write_report(arguments, demo.title, sections, _LEAD)


def _picture(demo: Demo, folder: str) -> str:
    """Write the panel; return where."""
    from isinglass.viz import panel

    path = os.path.join(folder, "panel.png")
    panel([images for _, images in demo.columns], [title for title, _ in demo.columns]).savefig(path)
    return path
