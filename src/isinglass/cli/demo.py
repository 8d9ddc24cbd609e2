"""``isinglass demo``: learn to take the noise off handwritten digits, with four kinds of training."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_quiet
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
_COLUMNS = ["method", "pixel error", "l2", "seconds"]


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "demo", run, _SUMMARY, _TEXT, "  isinglass demo\n  isinglass demo --out pictures")
    parser.add_argument(
        "--out", metavar="DIR", default="demo-output", help="folder of panel.png and index.html (default: demo-output)"
    )
    parser.add_argument("--images", metavar="N", type=int, default=3, help="training images of each digit (default: 3)")
    parser.add_argument("--iterations", metavar="N", type=int, default=20, help="of each training (default: 20)")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train, print the table, draw the panel, write the page."""
    from isinglass.experiments.demo import train_demo

    require_stdout()
    os.makedirs(arguments.out, exist_ok=True)
    with progress_on_stderr(arguments.quiet) as progress:
        demo = train_demo(arguments.images, arguments.iterations, progress)
    rows = [[row.method, f"{row.error:.2%}", _penalty(row.l2), f"{row.seconds:.1f}"] for row in demo.rows]
    print_table(demo.title, _COLUMNS, rows, caption=demo.note)
    for path in _pictures(demo, arguments.out):
        to_stdout(f"wrote {one_line(path)}\n")


def _penalty(l2: float | None) -> str:
    return "-" if l2 is None else f"{l2:g}"


def _pictures(demo: Demo, folder: str) -> list[str]:
    """Write the panel and the page; return where."""
    from isinglass.viz import Table, html_page, panel

    picture, page = os.path.join(folder, "panel.png"), os.path.join(folder, "index.html")
    figure = panel([images for _, images in demo.columns], [title for title, _ in demo.columns])
    figure.savefig(picture)
    table = Table(_COLUMNS, [[row.method, row.error, _penalty(row.l2), row.seconds] for row in demo.rows])
    parts: list[tuple[str, list[object]]] = [
        ("Errors", [demo.note, table]),
        ("Truth, input, and the marginal probability of ink", [figure]),
    ]
    html_page(demo.title, parts, page)
    return [picture, page]
