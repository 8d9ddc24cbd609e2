"""Iterative algorithms until they have converged."""

from __future__ import annotations

import isinglass as ig
from benchmarks.problems import problem
from benchmarks.timing import Row, Rows, paired, ratio, seconds

TITLE = "To a tolerance of 1e-6"
COLUMNS = ("what", "ours", "at most", "peers, recorded", "over flooding", "")


def rows() -> Rows:
    """Name the rows."""
    return {"residual bp, ising300": _residual, "mean field, ising100": _mean_field}


def _residual() -> Row:
    p, results = problem("ising300"), []
    residual, flooding = ig.BeliefPropagation(schedule="residual", tol=1e-6), ig.BeliefPropagation(tol=1e-6)
    calls = {"ours": lambda: results.append(ig.infer(p, residual)), "flooding": lambda: ig.infer(p, flooding)}
    times = paired(calls, 3)
    over = f"{ratio(times['ours'], times['flooding'])} of {seconds(times['flooding'])}"
    note = _note(results[-1], 113427.1542293)
    return ["residual bp, ising300", seconds(times["ours"]), "3 s", "libDAI 39.9 s", over, note]


def _mean_field() -> Row:
    p, results = problem("ising100"), []
    times = paired({"ours": lambda: results.append(ig.infer(p, ig.MeanField(tol=1e-6)))}, 5)
    return ["mean field, ising100", seconds(times["ours"]), "0.15 s", "libDAI 11.7 s", "-", _note(results[-1], None)]


def _note(result: ig.Result, bethe: float | None) -> str:
    info = result.info
    off = "" if bethe is None else f", log Z off libDAI's by {abs(result.log_z - bethe):.0e}"
    return f"{'converged' if info.converged else 'NOT converged'}, {info.iterations} iterations{off}"
