"""libDAI's published regression values on its 4 x 4 grid: marginals to their printed digits, and errors of log Z."""

import csv
import gzip
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig

FOLDER = Path(os.environ.get("ISINGLASS_DATA", "nowhere")) / "libdai"
ROWS = {
    "EXACT": ig.Exact(),
    "BP_PARALL": ig.BeliefPropagation(tol=1e-10, schedule="flooding"),
    "BP_SEQFIX": ig.BeliefPropagation(tol=1e-10, schedule="sequential"),
    "BP_SEQMAX": ig.BeliefPropagation(tol=1e-10, schedule="residual"),
    "FBP": ig.FractionalBeliefPropagation(tol=1e-10),
    "MF": ig.MeanField(tol=1e-10),
}


def published(name):
    """The marginals and the error of log Z of a row."""
    with gzip.open(FOLDER / "testfast.out.gz", "rt") as file:
        lines = file.read().splitlines()
    row = next(i for i, line in enumerate(lines) if line.split("\t")[0].strip() == name)
    cells = lines[row].split("\t")
    marginals = [re.findall(r"[-+.0-9e]+", line.split("}, ")[1]) for line in lines[row + 1 : row + 17]]
    return np.array(marginals, float), None if name == "EXACT" else float(cells[5])


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    if not FOLDER.exists():
        pytest.skip("ISINGLASS_DATA is not set, or has no libdai folder")
    p = ig.read_fg(FOLDER / "testfast.fg")
    r = ig.infer(p, ROWS[name])
    marginals, error = published(name)
    assert_allclose(np.asarray(r.variables), marginals, rtol=5.1e-4)
    if error is not None:
        assert_allclose(r.log_z - ig.infer(p, "exact").log_z, error, rtol=6e-4)


TOL = 1e-6
ALGORITHMS = {
    "bp": ig.BeliefPropagation(schedule="sequential", damping=0.1, tol=TOL, max_iter=500),
    "trw": ig.TreeReweighted(damping=0.3, tol=TOL, max_iter=500),
    "mf": ig.MeanField(tol=TOL, max_iter=500),
}
NO_START = {"linkage_21"}  # no possible assignment is found there, and exact inference does not fit


def rows():
    index = Path(os.environ.get("ISINGLASS_DATA", "nowhere")) / "uai" / "index.csv"
    if not index.exists():
        return [pytest.param({}, id="no data", marks=pytest.mark.skip("no uai folder in ISINGLASS_DATA"))]
    with open(index) as file:
        return [pytest.param(row, id=row["name"]) for row in csv.DictReader(file)]


def run(row, algorithm):
    """Return the result and whether it warned."""
    folder = Path(os.environ["ISINGLASS_DATA"]) / "uai"
    p = ig.read_model(folder / f"{row['name']}.uai.gz", folder / f"{row['name']}.uai.evid")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ig.infer(p, algorithm)
    return result, any(issubclass(w.category, ig.ConvergenceWarning) for w in caught)


def check_beliefs(result):
    for belief in [*result.variables, *result.factors]:
        assert (belief >= 0).all()
        assert belief.sum() == pytest.approx(1, abs=1e-9)
    for variable, state in result.potentials.evidence.items():
        assert result.variable(variable)[state] == 1


def check_bound(row, result):
    """A bound must hold; references of six digits are trusted to their last."""
    log10_z = result.log_z / np.log(10)
    known = float(row["exact_log10Z"] or row["ref_log10Z"])
    slack = 1e-8 * abs(known) if row["exact_log10Z"] else 1e-5 * abs(known)
    if result.info.bound == "upper":
        assert log10_z >= known - slack
    if result.info.bound == "lower":
        assert log10_z <= known + slack


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("row", rows())
def test_every_uai_instance(row, name):
    if name == "mf" and row["name"] in NO_START:
        with pytest.raises(ig.MemoryLimitError, match="no assignment that the hard zeros allow"):
            run(row, ALGORITHMS[name])
        return
    result, warned = run(row, ALGORITHMS[name])
    info = result.info
    check_beliefs(result)
    assert info.converged == (info.residual <= TOL)
    assert warned == (not info.converged)
    claims = {"bp": [None], "trw": ["upper", None] if info.converged else [None], "mf": ["lower"]}  # None: not proved
    assert info.bound in claims[name]
    assert np.isfinite(result.log_z)
    check_bound(row, result)
