"""libDAI's published regression values on its 4 x 4 grid: marginals to their printed digits, and errors of log Z."""

import gzip
import os
import re
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
