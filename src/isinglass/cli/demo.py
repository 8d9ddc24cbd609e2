"""``isinglass demo``: learn to take the noise off handwritten digits, with four kinds of training."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.pages.folder import add_report, prepare_report, write_report
from isinglass.cli.report import one_line, print_table, progress_on_stderr, require_stdout, to_stdout

if TYPE_CHECKING:
    from isinglass.experiments.demo import Demo

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
    from isinglass.experiments.demo import train_demo

    os.makedirs(arguments.out, exist_ok=True)
    arguments.report = arguments.out if arguments.report is None else arguments.report
    prepare_report(arguments.report)
    with progress_on_stderr(arguments.quiet) as progress:
        demo = train_demo(arguments.images, arguments.iterations, progress)
    rows = [[row.method, f"{row.error:.2%}", _penalty(row.l2), f"{row.seconds:.1f}"] for row in demo.rows]
    print_table(demo.title, _COLUMNS, rows, caption=demo.note)
    to_stdout(f"wrote {one_line(_page(demo, arguments))}\n")
    to_stdout(f"wrote {one_line(_picture(demo, arguments.out))}\n")


def _penalty(l2: float | None) -> str:
    return "-" if l2 is None else f"{l2:g}"


def _page(demo: Demo, arguments: argparse.Namespace) -> str:
    """Write the page; return where."""
    from isinglass.cli.pages.experiment import experiment_sections
    from isinglass.experiments import Report

    rows = [[row.method, f"{row.error:.2%}", _penalty(row.l2), f"{row.seconds:.1f}"] for row in demo.rows]
    report = Report(demo.title, _COLUMNS, rows, [demo.note], {}, {"digits": demo.columns})
    return write_report(arguments, demo.title, experiment_sections(report, [_COLUMNS[1], _COLUMNS[3]]), _LEAD)


def _picture(demo: Demo, folder: str) -> str:
    """Write the panel; return where."""
    from isinglass.viz import panel

    path = os.path.join(folder, "panel.png")
    panel([images for _, images in demo.columns], [title for title, _ in demo.columns]).savefig(path)
    return path
