"""An approximate log Z below the score of the labels: training says that its objective is no likelihood."""

import numpy as np
import pytest

import isinglass as ig


def equal_labels():
    """Return complete graphs of six nodes, all of the same label, with features that say little."""
    rng = np.random.default_rng(0)
    edges = np.array([(i, j) for i in range(6) for j in range(i)])
    Y = [np.full(6, rng.integers(2)) for _ in range(20)]
    return [(0.1 * y[:, None] + rng.normal(size=(6, 1)), edges) for y in Y], Y


@pytest.mark.filterwarnings("ignore:training stopped")
def test_truncated_belief_propagation_is_flagged():
    bp = ig.BeliefPropagation(iterations=2, schedule="flooding")
    with pytest.warns(ig.ConvergenceWarning, match="a likelihood above one.*inference='trw'"):
        crf = ig.GraphCRF(bp, loss="cl", l2=1e-3, max_iter=20).fit(*equal_labels())
    assert crf.objective_ < 0


@pytest.mark.long
@pytest.mark.parametrize("inference", ["trw", "exact"])
def test_upper_bounds_need_no_word(inference):
    crf = ig.GraphCRF(inference, loss="cl", gradient="envelope", l2=1e-3).fit(*equal_labels())
    assert crf.objective_ > 0
