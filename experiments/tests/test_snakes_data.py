"""The reader of the snakes, and their graphs."""

import os

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import FileFormatError, InputError
from isinglass_experiments.data import load_snakes, snake_graph


def snakes():
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set; it names the folder of the reference data")
    return load_snakes()


def test_snakes():
    data = snakes()
    assert (len(data.X_train), len(data.Y_train), len(data.X_test), len(data.Y_test)) == (200, 200, 50, 50)
    for image, label in zip(data.X_train + data.X_test, data.Y_train + data.Y_test, strict=True):
        assert image.shape == (*label.shape, 3)
        assert np.bincount(label.ravel()).tolist()[1:] == [1] * 10  # ten cells, each once
        places = np.array([np.argwhere(label == cell)[0] for cell in range(1, 11)])
        assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()  # neighbours


def test_snakes_as_graphs_and_grids():
    data = snakes()
    X, Y = data.graphs("test")
    grid_X, grid_Y = data.grids("test")
    assert len(X) == len(Y) == len(grid_X) == len(grid_Y) == 50
    for (nodes, edges, edge_features), y, image in zip(X, Y, data.X_test, strict=True):
        height, width = image.shape[:2]
        assert nodes.shape == (height * width, 45) == (len(y), 45)
        assert edge_features.shape == (len(edges), 180)
        scopes = [s for s in ig.grid_graph(height, width, 2).scopes if len(s) == 2]
        assert [tuple(e) for e in edges.tolist()] == scopes
        np.testing.assert_array_equal(nodes.sum(axis=1), 9)
    height, width = data.X_test[0].shape[:2]
    np.testing.assert_array_equal(grid_X[0, :height, :width].reshape(height * width, -1), X[0][0])
    np.testing.assert_array_equal(grid_Y[0, :height, :width].ravel(), Y[0])
    assert (grid_Y == -1).sum() == sum(grid_Y[0].size - y.size for y in Y)


def test_snake_features():
    """By hand: colours in the window, and the ends of an edge in the half of its direction."""
    image = np.full((2, 2, 3), (0, 0, 255), np.uint8)
    image[0, 1] = (255, 0, 0)
    nodes, edges, edge_features = snake_graph(image, window=0)
    assert nodes.argmax(axis=1).tolist() == [0, 3, 0, 0]
    assert edges.tolist() == [[0, 1], [2, 3], [0, 2], [1, 3]]
    assert [np.flatnonzero(f).tolist() for f in edge_features] == [[0, 8], [0, 5], [10, 15], [13, 15]]
    wide = snake_graph(image)[0].reshape(4, 3, 3, 5).argmax(axis=-1)
    assert wide[0].tolist() == [[0, 0, 0], [0, 0, 3], [0, 0, 0]]
    assert wide[2].tolist() == [[0, 0, 3], [0, 0, 0], [0, 0, 0]]


def test_snakes_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("ISINGLASS_DATA", raising=False)
    with pytest.raises(InputError, match=r"data_dir: expected the folder of snakes.npz, .*; docs/data.md tells"):
        load_snakes()
    with pytest.raises(InputError, match=r"data_dir: expected a folder with snakes.npz"):
        load_snakes(tmp_path)
    monkeypatch.setenv("ISINGLASS_DATA", os.fspath(tmp_path))
    with pytest.raises(InputError, match=r"data_dir: expected a folder with snakes.npz"):
        load_snakes()


GOOD = {
    f"{name}_{part}": array
    for part in ("train", "test")
    for name, array in {
        "X": np.full((1, 2, 2, 3), (0, 0, 255), np.uint8),
        "Y": np.zeros((1, 2, 2), np.int8),
        "shape": np.array([[2, 1]], np.uint8),
    }.items()
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_train": None}, "expected the arrays X_train"),
        ({"X_train": np.zeros((1, 2, 2, 3))}, "that fit together"),
        ({"Y_test": np.zeros((2, 2, 2), np.int8)}, "that fit together"),
        ({"shape_test": np.zeros((2, 2), np.int8)}, "that fit together"),
        ({"shape_test": np.array([[3, 2]])}, "sizes inside the images"),
        ({"shape_test": np.array([[0, 2]])}, "sizes inside the images"),
        ({"Y_train": np.full((1, 2, 2), 11, np.int8)}, "labels below 11"),
    ],
)
def test_damaged_snakes(tmp_path, change, message):
    np.savez(tmp_path / "snakes.npz", **GOOD)
    data = load_snakes(tmp_path)
    assert data.X_train[0].shape == (2, 1, 3)
    np.savez(tmp_path / "snakes.npz", **{k: v for k, v in (GOOD | change).items() if v is not None})
    with pytest.raises(FileFormatError, match=message):
        load_snakes(tmp_path)


def test_bad_snake_arguments(tmp_path):
    np.savez(tmp_path / "snakes.npz", **GOOD)
    data = load_snakes(tmp_path)
    with pytest.raises(InputError, match="part: expected 'train' or 'test'"):
        data.graphs("dev")
    with pytest.raises(InputError, match="window"):
        data.grids(window=-1)
    with pytest.raises(InputError, match="image: expected only the colours"):
        snake_graph(np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(InputError, match="image: expected an array"):
        snake_graph(np.zeros((2, 2), np.uint8))
