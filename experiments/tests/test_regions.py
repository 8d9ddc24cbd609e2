"""Graphs of the regions of an image."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
from isinglass_experiments.data import region_graph


@given(st.integers(0, 10**6), st.sampled_from([4, 8]))
@settings(max_examples=20, deadline=None)
def test_boundaries_are_counted_pixel_by_pixel(seed, neighbours):
    rng = np.random.default_rng(seed)
    regions = rng.integers(0, 5, (4, 6)) * 7
    image = rng.random((4, 6, 3))
    found = region_graph(regions, image, neighbours)
    names = np.unique(regions)
    lengths = {}
    steps = [(0, 1), (1, 0)] + ([(1, 1), (1, -1)] if neighbours == 8 else [])
    for y, x in np.ndindex(4, 6):
        for dy, dx in steps:
            if 0 <= y + dy < 4 and 0 <= x + dx < 6 and regions[y, x] != regions[y + dy, x + dx]:
                pair = tuple(sorted((regions[y, x], regions[y + dy, x + dx])))
                lengths[pair] = lengths.get(pair, 0) + 1
    assert {tuple(names[e]): n for e, n in zip(found.edges, found.edge_features[:, 0], strict=True)} == lengths
    for k, name in enumerate(names):
        assert found.means[k] == pytest.approx(image[regions == name].mean(axis=0))
        assert found.sizes[k] == (regions == name).sum()
    i, j = found.edges.T
    assert found.edge_features[:, 2] == pytest.approx(np.linalg.norm(found.means[i] - found.means[j], axis=1))
    assert (found.edge_features[:, 1] <= 1).all()
    assert (names[found.regions] == regions).all()


def test_labels_of_pixels_and_regions():
    found = region_graph([[0, 0, 1], [0, 1, 1]])
    assert found.edge_features.shape == (1, 2)
    assert found.gather([[2, 2, 0], [1, 0, -1]]).tolist() == [2, 0]
    assert found.gather(np.full((2, 3), -1)).tolist() == [-1, -1]
    assert found.spread([5, 6]).tolist() == [[5, 5, 6], [5, 6, 6]]
    assert region_graph([[3, 3]]).edges.shape == (0, 2)
    for call, words in (
        (lambda: region_graph(np.zeros((0, 2), int)), "at least one pixel"),
        (lambda: region_graph([[0, 1]], neighbours=6), "4 or 8"),
        (lambda: region_graph([[0, 1]], image=np.zeros((3, 3))), "image: expected an image of"),
        (lambda: found.gather([[0]]), "labels: expected shape"),
        (lambda: found.spread([1]), "one for each of 2 regions"),
    ):
        with pytest.raises(ig.InputError, match=words):
            call()


def test_regions_train_a_field_on_graphs():
    rng = np.random.default_rng(0)
    regions = np.arange(36).reshape(6, 6) // 4
    X, Y = [], []
    for _ in range(6):
        truth = rng.integers(0, 2, regions.max() + 1)
        image = truth[regions] + 0.3 * rng.normal(size=(6, 6))
        found = region_graph(regions, image)
        X.append((found.means, found.edges, found.edge_features))
        Y.append(found.gather(truth[regions]))
    assert ig.GraphCRF(bias=True, edge_bias=True, l2=0.1).fit(X, Y).score(X, Y) > 0.9
