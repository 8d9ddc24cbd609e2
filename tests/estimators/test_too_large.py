"""Estimators whose decoder or loss does not fit into memory say what would."""

import numpy as np
import pytest

import isinglass as ig


@pytest.fixture
def scenes():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (1, 40, 40))
    return Y[..., None] + rng.normal(size=(1, 40, 40, 1)), Y


@pytest.mark.long
def test_an_exact_decoder(scenes) -> None:
    X, Y = scenes
    crf = ig.GridCRF(iterations=1, max_iter=1, decoder="map")
    with ig.errors.no_convergence_warnings():
        crf.fit(X, Y)
    with pytest.raises(ig.MemoryLimitError, match=r"decoding.MAP\('trws'\)"):
        crf.predict(X)


@pytest.mark.long
def test_an_exact_margin(scenes) -> None:
    with pytest.raises(ig.MemoryLimitError, match=r"Margin\(solver='trws'\)"):
        ig.GridCRF(loss="margin").fit(*scenes)
