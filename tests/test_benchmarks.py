"""The benchmarks measure what they say: one model in two orders, rows chosen by a word, peers that may be absent."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isinglass as ig

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import learning, pgmax_peer, problems
from benchmarks.__main__ import GROUPS, chosen


@pytest.mark.parametrize("shared", [True, False])
def test_both_orders_of_a_grid_are_the_same_model(shared):
    grid, general = (problems.grid_model(4, shared=shared, general=g) for g in (False, True))
    assert grid.graph.scopes[16:] != general.graph.scopes[16:]
    assert sorted(grid.graph.scopes[:]) == sorted(general.graph.scopes[:])
    assert ig.infer(grid, "exact").log_z == pytest.approx(ig.infer(general, "exact").log_z, rel=1e-14)


def test_sparse_scopes_and_rows_by_a_word():
    p = problems.sparse(30, 40, 20)
    assert [g.scopes.shape for g in p.graph.groups] == [(30, 1), (40, 2), (20, 3)]
    assert all(len(set(scope)) == len(scope) for scope in p.graph.scopes)
    everything = {name: group.rows() for name, group in GROUPS.items()}
    assert all(rows for rows in everything.values())
    assert chosen("sweeps", everything["sweeps"], []) == everything["sweeps"]
    assert chosen("sweeps", everything["sweeps"], ["sweeps"]) == everything["sweeps"]
    assert list(chosen("sweeps", everything["sweeps"], ["potts"])) == ["potts100_k5"]
    assert chosen("exact", everything["exact"], ["potts"]) == {}


def test_the_gradient_is_that_of_the_value():
    p, labels = problems.batch_of_grids(2, 3, general=True)
    value, groups = learning.value_and_gradient(p, labels)
    assert learning.value_and_gradient(p, labels, tape=False)[0] == value
    step = np.random.default_rng(0).normal(size=p.groups[1].shape)
    ahead, back = (
        learning.value_and_gradient(ig.Potentials.from_groups(p.graph, [p.groups[0], p.groups[1] + h * step]), labels)[
            0
        ]
        for h in (1e-5, -1e-5)
    )
    assert (ahead - back) / 2e-5 == pytest.approx(float((groups[1] * step).sum()), rel=1e-6)


def test_a_peer_that_does_not_install_is_skipped_with_a_word(monkeypatch, tmp_path):
    def refuse(python):
        raise subprocess.CalledProcessError(1, "pip", stderr="...\nERROR: No matching distribution found\n")

    monkeypatch.setattr(pgmax_peer, "FOLDER", tmp_path / "venv")
    monkeypatch.setattr(pgmax_peer, "_install", refuse)
    assert pgmax_peer.sweeps([3]) == "skipped: ERROR: No matching distribution found"
