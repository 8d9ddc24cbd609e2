"""Where the time of a fit goes, by the part of the library in which it is spent (`isinglass.Profile`).

A fit runs three times: to compile, to be timed, and to be profiled.
"""

from __future__ import annotations

import time
import warnings
from functools import partial

import isinglass as ig
from benchmarks.timing import Row, Rows, seconds, timed
from isinglass.experiments.speed import FITS
from isinglass.runtime.profiling import PARTS

TITLE = "Where the time of a fit goes"
COLUMNS = ("fit", "all of it", *PARTS)


def rows() -> Rows:
    """Name the rows."""
    return {name: partial(_row, name) for name in FITS}


def _row(name: str) -> Row:
    fit = FITS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        fit()
        took = timed(fit)
        with ig.Profile(time.process_time) as spent:
            fit()
    whole = sum(spent.seconds.values())
    return [name, seconds(took), *(f"{spent.seconds[part] / whole:.0%}" for part in PARTS)]
