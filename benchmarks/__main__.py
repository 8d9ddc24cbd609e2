"""Print the benchmark tables: ``python -m benchmarks [WORD ...]``.

Medians of repetitions that are taken in turns, on one core. Times are processor time, but for rows that run other
processes (peers, importing, compiling), which have the clock on the wall. Compilation is counted only where it is the
question. A word chooses the rows that have it in their group or name: "sweeps", "exact", "memory", "300". "scaling"
(the speed-up with threads, on the wall), "growth" (seconds against size) and "defaults" (scores of estimators) run only
if they are named. Figures called recorded were taken on one core of a Zen 4 machine; all others in this run.
"""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.table import Table

from benchmarks import (
    convergence,
    defaults,
    exact,
    growth,
    learning,
    peers,
    sampling,
    scaling,
    startup,
    sweeps,
    tagging,
)
from benchmarks.timing import Rows

GROUPS = {
    "exact": exact,
    "sweeps": sweeps,
    "learning": learning,
    "convergence": convergence,
    "peers": peers,
    "tagging": tagging,
    "sampling": sampling,
    "startup": startup,
    "scaling": scaling,
    "growth": growth,
    "defaults": defaults,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"groups: {', '.join(GROUPS)}; peers installs PGMax into .venv-pgmax, tagging python-crfsuite into"
        " .venv-crfsuite, once",
    )  # fmt: skip
    parser.add_argument("words", nargs="*", metavar="WORD", help="choose rows (default: all)")
    parser.add_argument("--small", action="store_true", help="smaller problems, for the group scaling")
    parser.add_argument("--list", action="store_true", help="name the rows and run nothing")
    arguments = parser.parse_args()
    scaling.small = arguments.small
    console, start = Console(), time.perf_counter()
    for name, group in GROUPS.items():
        rows = chosen(name, group.rows(), arguments.words)
        if name in ("scaling", "growth", "defaults") and not arguments.words:
            continue  # minutes of all processors, or of one: only by their words
        if arguments.list:
            for row in rows:
                console.print(f"{name}: {row}", highlight=False)
        elif rows:
            console.print(measured(console, group.TITLE, group.COLUMNS, rows))
    if not arguments.list:
        console.print(f"{time.perf_counter() - start:.0f} s in all")


def chosen(group: str, rows: Rows, words: list[str]) -> Rows:
    """Keep the rows that have one of the words in their group or name; without words, all."""
    return {n: run for n, run in rows.items() if not words or any(w in f"{group} {n}" for w in words)}


def measured(console: Console, title: str, columns: tuple[str, ...], rows: Rows) -> Table:
    """Run the rows, saying which one runs; in a file, each is also written when it is known, in case the run is cut."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for name, run in rows.items():
        with console.status(name):
            cells = run()
        table.add_row(*cells)
        if not console.is_terminal:
            print(" | ".join(map(str, cells)), file=sys.stderr, flush=True)
    return table


if __name__ == "__main__":
    main()
