"""Iterative proportional fitting on real tables of counts (Murphy 2012, section 19.5.7).

The first row is the textbook's example, whose fitted counts are published. Each other table is fitted with all
variables independent, which takes one sweep, and with all pairs, which is not chordal and takes more. G2 is the
deviance; the last column says how many cells lose their mass because the maximum of the likelihood lies at infinity.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from isinglass import MRF, FactorGraph, infer
from isinglass.errors import no_convergence_warnings
from isinglass.typing import Array, FloatArray
from isinglass_experiments.common.experiment import DataExperiment, Progress, Report, Row, register, tell
from isinglass_experiments.data import load_contingency

MURPHY = np.array([[43, 9], [44, 4]])
PUBLISHED = np.array([[45.24, 6.76], [41.76, 6.24]])


@register
@dataclass(frozen=True)
class ProportionalFitting(DataExperiment):
    """Log-linear models of real tables.

    Parameters
    ----------
    quick : bool
        Tables of at most 100 cells.
    data : str, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Not used: all of it takes seconds.
    """

    name: ClassVar[str] = "ipf"
    summary: ClassVar[str] = "iterative proportional fitting of tables of counts (Murphy 2012, section 19.5.7)"

    def run(self, progress: Progress | None = None) -> Report:
        """Fit all tables."""
        tables = [("Murphy", MURPHY), *((t.name, t.counts) for t in load_contingency(data_dir=self.data))]
        tables = [one for one in tables if not self.quick or one[1].size <= 100]
        found: list[Row] = []
        for i, (name, counts) in enumerate(tables):
            tell(progress, name, i / len(tables))
            found.append(measured(name, counts, [(k,) for k in range(counts.ndim)], "independent"))
            if counts.ndim > 2:
                found.append(measured(name, counts, list(combinations(range(counts.ndim), 2)), "all pairs"))
        miss = float(np.abs(fitted(MURPHY) - PUBLISHED).max())
        columns = ["table", "model", "cells", "empty", "G2", "df", "sweeps", "without mass"]
        rows = [[str(row[key]) for key in columns[:4]] + _shown(row) for row in found]
        notes = [
            f"Murphy's fitted counts {PUBLISHED.ravel().tolist()}: largest difference {miss:.1e}",
            "sweeps until all margins agree to 1e-8 of the samples",
        ]
        return Report("Proportional fitting", columns, rows, notes, {"experiment": self.name, "rows": found})


def measured(name: str, counts: Array, scopes: list[tuple[int, ...]], model: str) -> Row:
    """Fit a model to a table, and return what was found."""
    began = time.perf_counter()
    with no_convergence_warnings():  # where cells lose their mass there is no maximum, and the limit is what we want
        mrf = MRF(FactorGraph(counts.shape, scopes), method="ipf", tol=1e-8, max_iter=5000).fit(counts=counts)
    scores = mrf.potentials_.log_score(np.argwhere(np.ones(counts.shape)))
    return {
        "table": name,
        "model": model,
        "cells": int(counts.size),
        "empty": int((counts == 0).sum()),
        "G2": mrf.deviance(),
        "df": mrf.degrees_of_freedom(),
        "sweeps": mrf.n_iter_,
        "without mass": int(np.isneginf(scores).sum()),
        "seconds": time.perf_counter() - began,
    }


def fitted(counts: Array) -> FloatArray:
    """Return the fitted counts of a table with independent variables.

    Examples
    --------
    >>> fitted(MURPHY).round(2).tolist()
    [[45.24, 6.76], [41.76, 6.24]]
    """
    mrf = MRF(FactorGraph(counts.shape, [(k,) for k in range(counts.ndim)]), method="ipf").fit(counts=counts)
    return np.asarray(counts.sum() * infer(mrf.potentials_).joint(range(counts.ndim)), np.float64)


def _shown(row: Row) -> list[str]:
    return [f"{row['G2']:.3f}", str(row["df"]), str(row["sweeps"]), str(row["without mass"])]
