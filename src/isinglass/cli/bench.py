"""``isinglass bench``: how fast the library is on this machine, and where the time of a fit goes."""

from __future__ import annotations

import argparse

from isinglass.cli.options import Commands, add_command
from isinglass.cli.report import print_table, progress_on_stderr, require_stdout
from isinglass.errors import require

FITS = ("digits", "digits-flooding", "tagging", "graphs")  # as in `isinglass.experiments.speed`, which is not light
SHOWN = 8  # functions

_SUMMARY = "measure the speed on this machine, or where the time of a fit goes"
_TEXT = """Time small problems of each kind with one thread and with several, as seconds on the wall: the median of five
runs. "recorded" is one core of a Zen 4 machine. It takes about ten seconds, and longer the first time, when loops are
compiled. `isinglass bench profile FIT` shows where the time of a fit goes: laying out graphs and messages (set-up),
compiled loops, beliefs (read-out), features to potentials and back (model), loss, optimizer, and handling of the data
(estimator). For your own code, see ig.Profile."""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    examples = "  isinglass bench\n  isinglass bench --n-jobs 8\n  isinglass bench profile digits"
    parser = add_command(commands, "bench", run, _SUMMARY, _TEXT, examples)
    parser.add_argument("what", nargs="?", choices=("speed", "profile"), default="speed", help="(default: speed)")
    text = f"with profile: one of {', '.join(FITS)} (default: {FITS[0]})"
    parser.add_argument("fit", metavar="FIT", nargs="?", choices=FITS, help=text)
    parser.add_argument("--n-jobs", metavar="N", type=int, default=-1, help="threads (default: one a processor)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar (default: no)")


def run(arguments: argparse.Namespace) -> None:
    """Measure, and print a table."""
    require_stdout()
    if arguments.what == "profile":
        _profile(arguments.fit or FITS[0])
    else:
        fit = arguments.fit
        require(fit is None, "FIT", "none, but with profile", str(fit), "use isinglass bench profile FIT")
        _speed(arguments.n_jobs, arguments.quiet)


def _speed(jobs: int, quiet: bool) -> None:
    from isinglass.experiments.speed import measure
    from isinglass.validation import jobs_of

    threads = jobs_of(jobs)
    with progress_on_stderr(quiet) as progress:
        found = measure(threads, progress)
    rows = [[s.problem, _time(s.one), _time(s.several), f"{s.one / s.several:.1f} x", _time(s.recorded)] for s in found]
    columns = ["problem", "1 thread", f"{threads} thread{'s' * (threads > 1)}", "speed-up", "recorded"]
    print_table("Speed on this machine", columns, rows)


def _profile(name: str) -> None:
    from isinglass.experiments.speed import profile

    spent = profile(name)
    total = sum(spent.seconds.values())
    parts = sorted(spent.seconds.items(), key=lambda item: -item[1])
    print_table(f"Where the time of {name} goes", ["part", "seconds", "share"], [
        [part, f"{seconds:.3f}", f"{seconds / total:.0%}"] for part, seconds in parts
    ])  # fmt: skip
    slowest = [[one.function, one.calls, f"{one.seconds:.3f}"] for one in spent.slowest(SHOWN)]
    print_table("Functions that take longest by themselves", ["function", "calls", "seconds"], slowest)


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
