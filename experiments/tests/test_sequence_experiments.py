"""Chunking and letters, small."""

import os

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments.catalogue import make
from isinglass_experiments.data import chunk_attributes, load_letters


@pytest.mark.parametrize("name", ["conll2000", "letters"])
def test_no_folder(monkeypatch, tmp_path, name):
    monkeypatch.delenv("ISINGLASS_DATA", raising=False)
    with pytest.raises(ig.InputError, match="ISINGLASS_DATA"):
        make(name).run()
    with pytest.raises(ig.InputError, match="a folder with"):
        make(name, data=str(tmp_path)).run()


def test_damaged_letters(tmp_path):
    path = tmp_path / "letters_folds0-7.npz"
    good = {"X_bits": np.zeros((3, 16), np.uint8), "y": np.array([0, 1, 25]), "lengths": np.array([2, 1])}
    np.savez(path, **good, fold=np.array([0, 1]))
    words = load_letters(tmp_path)
    assert [x.shape for x in words.X] == [(2, 128), (1, 128)]
    assert [y.tolist() for y in words.part(1)[1]] == [[25]]
    for change in ({"y": np.array([0, 1, 26])}, {"lengths": np.array([2, 2])}, {"X_bits": np.zeros((3, 15), np.uint8)}):
        np.savez(path, **{**good, **change}, fold=np.array([0, 1]))
        with pytest.raises(ig.FileFormatError):
            load_letters(tmp_path)


def test_chunk_attributes():
    found = chunk_attributes(["a", "b", "c"], ["A", "B", "C"])
    assert {len(set(token)) for token in found} == {19}
    assert {"w0=b", "w-1|0=a|b", "t-1|0|1=A|B|C", "t0|1|2=B|C|</s>"} <= set(found[1])
    assert chunk_attributes([], []) == []


def _run(name, quick):
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    return make(name, quick=quick, n_jobs=1).run().data


@pytest.mark.long
def test_quick_chunking():
    assert _run("conll2000", True)["f1"] > 89


@pytest.mark.long
def test_quick_letters():
    alone, chain = _run("letters", True)["rows"]
    assert chain["letters"] > alone["letters"] + 0.05
    assert chain["words"] > alone["words"]


@pytest.mark.slow
def test_goals():
    assert _run("conll2000", False)["f1"] >= 93.5
    assert _run("letters", False)["rows"][1]["letters"] >= 0.875
