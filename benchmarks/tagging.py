"""Chain CRFs beside python-crfsuite: an iteration of L-BFGS, tagging, and chunking from files to a model.

What has one thread is timed by the processor's clock, ours and theirs; two threads by the clock on the wall.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import cache
from typing import Any

import numpy as np

import isinglass as ig
from benchmarks.crfsuite_peer import crfsuite
from benchmarks.tagging_problem import tagging_problem
from benchmarks.timing import Row, Rows, seconds

TITLE = "Sequence labelling beside python-crfsuite (204,000 tokens, 22 labels, 474,000 weights)"
COLUMNS = ("what", "ours", "at most", "python-crfsuite, this run", "recorded", "")
ITERATIONS = 20


def rows() -> Rows:
    """Name the rows."""
    return {
        "L-BFGS iteration, one thread": lambda: _iteration(1, "0.10 s"),
        "L-BFGS iteration, two threads": lambda: _iteration(2, "0.06 s"),
        "tagging, encoded features": lambda: _tagging("encoded", 1.5),
        "tagging, lists of strings": lambda: _tagging("lists", 0.7),
        "CoNLL-2000, 100 iterations": _conll2000,
    }


@cache
def _problem() -> tuple[Any, Any]:
    return tagging_problem()


@cache
def _fitted(threads: int = 1) -> tuple[ig.ChainCRF, np.ndarray]:
    """Train for some iterations; return the seconds of each."""
    stamps: list[float] = []
    clock = time.process_time if threads == 1 else time.perf_counter
    crf = ig.ChainCRF(l2=1.0, bias=False, boundary=False, max_iter=ITERATIONS, tol=0, n_jobs=threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        crf.set_params(callback=lambda _: stamps.append(clock())).fit(*_problem())
    return crf, np.diff(stamps)


def _iteration(threads: int, most: str) -> Row:
    crf, times = _fitted(threads)
    peer = crfsuite(ITERATIONS)
    theirs = peer if isinstance(peer, str) else seconds(peer["iteration"])
    note = f"{len(crf.theta_)} weights" if isinstance(peer, str) else f"{peer['iteration'] / np.median(times):.2g} x"
    return [f"L-BFGS iteration, threads: {threads}", seconds(times), most, theirs, "0.34 s", note]


def _tagging(form: str, least: float) -> Row:
    (X, _), (crf, _), peer = _problem(), _fitted(), crfsuite(ITERATIONS)
    data = crf.encode(X) if form == "encoded" else X
    crf.predict(data)
    times = []
    for _ in range(5):
        start = time.process_time()
        crf.predict(data)
        times.append(time.process_time() - start)
    rate = sum(map(len, X)) / np.median(times)
    key, recorded = ("ready", "0.48 M/s") if form == "encoded" else ("lists", "0.38 M/s")
    theirs = peer if isinstance(peer, str) else f"{peer[key] / 1e6:.2f} M/s"
    note = "" if isinstance(peer, str) else f"{rate / peer[key]:.2g} x"
    return [f"tagging, {form}, one thread", f"{rate / 1e6:.2f} M/s", f"at least {least} M/s", theirs, recorded, note]


def _conll2000() -> Row:
    what = "CoNLL-2000, files to model, 100 iterations, two threads"
    if not os.environ.get("ISINGLASS_DATA"):
        return [what, "-", "25 s", "-", "41 s", "skipped: set ISINGLASS_DATA"]
    from isinglass_experiments.catalogue import make

    data = make("conll2000").run().data
    return [what, seconds(data["seconds"]), "25 s", "-", "41 s", f"F1 {data['f1']:.2f}"]
