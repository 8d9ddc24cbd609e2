"""Training for F on imbalanced data beats training by likelihood; scores need decisions."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

import isinglass as ig


def draw(n, seed, nodes=20):
    """One run of one to four positives on a ring, and a feature with heavy-tailed noise."""
    rng = np.random.default_rng(seed)
    edges, X, Y = [(i, (i + 1) % nodes) for i in range(nodes)], [], []
    for _ in range(n):
        y = np.zeros(nodes, int)
        y[(rng.integers(nodes) + np.arange(rng.integers(1, 5))) % nodes] = 1
        X.append((np.c_[1.5 * y + rng.standard_t(1.5, size=nodes), np.ones(nodes)], edges))
        Y.append(y)
    return X, Y


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_training_for_f_beats_the_likelihood():
    (X, Y), (X_test, Y_test) = draw(100, 0), draw(200, 1)

    def scores(**options):
        found = ig.GraphCRF(l2=0.01, max_iter=30, **options).fit(X, Y).predict(X_test)
        return np.array([ig.metrics.f_measure([y], [x]) for y, x in zip(Y_test, found, strict=True)])

    risk = scores(loss="f1", decoder="f1", iterations=5)
    for decoder in ("mpm", "f1"):
        likelihood = scores(inference="bp", loss="cl", iterations=5, decoder=decoder)
        assert risk.mean() > likelihood.mean()
        assert ttest_rel(risk, likelihood).pvalue < 0.01


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize("decoder", ["identity", "soft"])
def test_scores_need_decisions(decoder):
    X, Y = draw(5, 0)
    crf = ig.GraphCRF(iterations=2, max_iter=2, decoder=decoder).fit(X, Y)
    with pytest.raises(ig.InputError, match="decoder: expected one that decides on states, for score"):
        crf.score(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "f1", "decoder": "map"}, "decoder: expected one with a differentiable version, for loss 'f1'"),
        ({"loss": "f1", "decoder": ig.decoding.F1(positive=0)}, "decoder: expected a decoder with positive=1"),
        ({"loss": "f1", "decoder": ig.decoding.F1("exact")}, "form: expected 'independent' or 'even-split'"),
        ({"loss": ig.losses.L1(temperature=0.0)}, "temperature: expected a positive number"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    X, Y = draw(5, 0)
    with pytest.raises(ig.InputError, match=message):
        ig.GraphCRF(iterations=2, stages=[{"max_iter": 1}], **options).fit(X, Y)
