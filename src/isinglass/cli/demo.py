"""``isinglass demo``: learn to take the noise off handwritten digits, with four kinds of training."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.pages import add_report, prepare_report, write_report
from isinglass.cli.report import one_line, print_table, progress_on_stderr, require_stdout, to_stdout

if TYPE_CHECKING:
    from isinglass.cli.denoising import Demo
    from isinglass.pages import Section

_SUMMARY = "learn to take the noise off handwritten digits"
_TEXT = """Train conditional random fields on binary digits, half of whose pixels got a random value, and take the noise
off other digits. Prints the share of wrong pixels for independent pixels, pseudolikelihood, a surrogate likelihood and
ucl-4, which trains the marginals after the four sweeps of belief propagation that are run in the end. The penalty l2 of
each is the one with the least error on a third of the training images. Writes panel.png and index.html: truth, input
and the marginals of each. Fewer images and iterations than in `isinglass reproduce digits`, to take less than a
minute."""
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
    with progress_on_stderr(arguments.quiet) as progress:
        demo = train_demo(arguments.images, arguments.iterations, progress)
    print_table(demo.title, _COLUMNS, _rows(demo), caption=demo.note)
    to_stdout(f"wrote {one_line(_page(demo, arguments))}\n")
    rows = ", ".join(title for title, _ in demo.columns)
    to_stdout(f"wrote {one_line(_picture(demo, arguments.out))}, whose rows are {rows}\n")


def _rows(demo: Demo) -> list[list[str]]:
    """Return the table as text."""
    return [
        [row.method, f"{row.error:.2%}", "-" if row.l2 is None else f"{row.l2:g}", f"{row.seconds:.1f}"]
        for row in demo.rows
    ]


def _page(demo: Demo, arguments: argparse.Namespace) -> str:
    """Write the page; return where."""
    from isinglass.pages import Pictures, Table

    sections: list[Section] = [
        ("Pictures", [Pictures(demo.columns)]),
        ("Results", [Table(_COLUMNS, _rows(demo)), f"{demo.note}."]),
    ]
    return write_report(arguments, demo.title, sections, _LEAD)


def _picture(demo: Demo, folder: str) -> str:
    """Write the panel; return where."""
    import numpy as np

    from isinglass.io.files import write_bytes_atomically
    from isinglass.pages import Pictures, png

    strips = [np.pad(strip, ((2, 2), (2, 2), (0, 0)), constant_values=255) for strip in Pictures(demo.columns).strips()]
    path = os.path.join(folder, "panel.png")
    write_bytes_atomically(path, png(np.kron(np.concatenate(strips), np.ones((3, 3, 1), np.uint8))))
    return path
