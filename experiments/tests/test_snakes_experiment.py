"""Snakes, on few images."""

import os

import pytest

import isinglass as ig
from isinglass_experiments.catalogue import make


def test_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("ISINGLASS_DATA", raising=False)
    with pytest.raises(ig.InputError, match="ISINGLASS_DATA"):
        make("snakes").run()
    with pytest.raises(ig.InputError, match=r"snakes\.npz"):
        make("snakes", data=str(tmp_path)).run()


def _run(quick):
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    report = make("snakes", quick=quick).run()
    return [row["snake"] for row in report.data["rows"]]


@pytest.mark.long
def test_edges_help():
    without, with_edges = _run(quick=True)
    assert with_edges > without + 0.1


@pytest.mark.slow
def test_goal():
    assert _run(quick=False)[1] > 0.95
