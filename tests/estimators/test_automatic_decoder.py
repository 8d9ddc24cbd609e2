"""Predictions are decided by what the loss fits, unless a decoder is chosen; a hinge loss fits no probabilities."""

import warnings

import numpy as np
import pytest
from estimator_helpers import graph, graphs, grid, images

import isinglass as ig

RNG = np.random.default_rng(0)
SETS = RNG.normal(size=(40, 2))
KINDS = {
    "grid": (grid, images()),
    "graph": (graph, graphs()),
    "sets": (ig.MultiLabelCRF, (SETS, (SETS @ RNG.normal(size=(2, 3)) + RNG.normal(size=(40, 3)) > 0).astype(int))),
    "chain": (ig.ChainCRF, ([np.eye(2)[y] for y in (RNG.integers(0, 2, (6, 5)))], RNG.integers(0, 2, (6, 5)).tolist())),
}
CASES = [
    ({"loss": "margin"}, "map"),
    ({"loss": "slack"}, "map"),
    ({"loss": "viterbi", "l2": 0.0}, "map"),
    ({"loss": ig.losses.Margin(relaxed=True)}, ig.decoding.MAP("lp")),
    ({"loss": ig.losses.Margin(solver="trws")}, ig.decoding.MAP("trws")),
    ({"loss": "pseudo"}, "mpm"),
    ({"stages": ["cl", "margin"]}, "map"),
    ({"stages": ["margin", "pseudo"]}, "mpm"),
]


def flat(Y):
    return np.concatenate([np.ravel(y) for y in Y]).tolist()


@pytest.mark.long
@pytest.mark.parametrize(("options", "decoder"), CASES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_the_decoder_is_what_the_loss_fits(kind, options, decoder):
    make, (X, Y) = KINDS[kind]
    if kind == "chain" and ("stages" in options or not isinstance(options["loss"], str)):
        return
    crf = make(**{"l2": 0.1, "max_iter": 5, **options}).fit(X, Y)
    found = crf.predict(X)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        (crf.predict_marginals if kind == "chain" else crf.predict_proba)(X)
    assert ["no probabilities" in str(one.message) for one in said] == [True] * (decoder != "mpm")
    assert flat(found) == flat(crf.set_params(decoder="map" if kind == "chain" else decoder).predict(X))


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_a_field_with_outputs_decides_likewise():
    X, outputs = RNG.integers(0, 2, (20, 3)), [True, True, False]
    mrf = ig.MRF(ig.chain_graph(3, 2), l2=0.1, loss="margin", tol=0.1).fit(X, outputs=outputs)
    with pytest.warns(UserWarning, match="beliefs after loss 'margin' are no probabilities"):
        mrf.predict_proba(np.where(outputs, -1, X))
    found = mrf.predict(X, outputs=outputs)
    assert (found == mrf.set_params(decoder="map").predict(X, outputs=outputs)).all()


@pytest.mark.parametrize("loss", ["mse", ig.losses.Hybrid("mse", "ucl")], ids=str)
def test_the_squared_error_of_decided_states_is_another_one(loss):
    X, Y = images()
    options = {"loss": loss, "max_iter": 1, "tol": 10.0}
    with pytest.warns(UserWarning, match=r"loss 'mse' is of relaxed decisions of decoder 'mpm'; .* decoder='identity'"):
        grid(**options).fit(X, Y)
    grid(**options, decoder="identity").fit(X, Y)
    grid(loss=ig.losses.MSE("identity"), max_iter=1, tol=10.0).fit(X, Y)
