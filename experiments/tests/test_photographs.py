"""Photographs with labelled pixels: what is in the files, and files that are not what they should be."""

import os
from pathlib import Path

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments import data
from isinglass_experiments.data import load_horses, load_street_scenes


def folder():
    root = os.environ.get("ISINGLASS_DATA")
    if not root:
        pytest.skip("ISINGLASS_DATA is not set")
    return root


def test_street_scenes():
    found = load_street_scenes(folder())
    assert found.X_train.shape == found.X_test.shape == (100, 60, 80, 3)
    assert set(np.unique(found.Y_train)) == {-1, 0, 1, 2, 3, 4}
    assert 0.05 < (found.Y_train < 0).mean() < 0.12


def test_horses():
    found = load_horses(folder())
    assert len(found.X_train) + len(found.X_test) == 327
    assert found.X_test.shape[1:] == (60, 80, 3)
    assert set(np.unique(found.Y_test)) == {0, 1}


def test_wrong_files(tmp_path):
    with pytest.raises(ig.InputError, match="camvid_60x80"):
        load_street_scenes(tmp_path)
    images, labels = np.zeros((2, 4, 5, 3), np.uint8), np.zeros((2, 4, 5), np.int8)
    parts = {"X_train": images, "Y_train": labels, "X_test": images, "Y_test": labels}
    for broken in ({"X_train": images[..., :2]}, {"Y_test": labels + 5}, {"Y_train": labels.astype(float)}):
        np.savez(tmp_path / "camvid_60x80.npz", **(parts | broken))
        with pytest.raises(ig.FileFormatError):
            load_street_scenes(tmp_path)
    np.savez(tmp_path / "camvid_60x80.npz", **parts)
    assert load_street_scenes(tmp_path).Y_test.dtype == np.int64
    np.savez(tmp_path / "weizmann_horses_60x80.npz", X=images, Y=labels)
    with pytest.raises(ig.FileFormatError, match="is_train"):
        load_horses(tmp_path)
    np.savez(tmp_path / "weizmann_horses_60x80.npz", X=images[:1], Y=labels, is_train=np.array([True, False]))
    with pytest.raises(ig.FileFormatError, match="2 images"):
        load_horses(tmp_path)


def test_readers_are_documented():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    assert [name for name in data.__all__ if name.startswith("load_") and name not in page] == []
