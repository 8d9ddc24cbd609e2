"""Estimators as they come: how long inference runs in training, and how much memory its tape takes."""

import numpy as np
import pytest
from estimator_helpers import graphs
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.gradients import taping
from isinglass.inference.algorithm import Taping


def trees(n=4, seed=1, length=30):
    """Chains that ten iterations of flooding do not get through, with a branch."""
    rng = np.random.default_rng(seed)
    Y = [np.repeat(rng.integers(0, 2, length // 5), 5) for _ in range(n)]
    edges = np.array([(i, i + 1) for i in range(length - 2)] + [(3, length - 1)])
    return [(np.c_[y + 0.8 * rng.normal(size=length), np.ones(length)], edges) for y in Y], Y


def marginals(crf, X):
    return np.concatenate([np.reshape(b, (-1, 2)) for b in crf.predict_marginals(X)])


def coupled(make):
    """Grids of noise, as graphs or images, and parameters with which messages take long to settle."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 12, 12, 2)), rng.integers(0, 2, (2, 12, 12))
    edge, shapes = 0.5 * np.array([[1.0, -1.0], [-1.0, 1.0]]), {"node": 0.2 * np.eye(2)}
    if make is ig.GridCRF:
        return X, Y, {**shapes, "edge/horizontal": edge, "edge/vertical": edge}
    at = np.arange(144).reshape(12, 12)
    edges = np.concatenate([np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()], np.c_[at[:-1].ravel(), at[1:].ravel()]])
    return [(x.reshape(-1, 2), edges) for x in X], [y.ravel() for y in Y], {**shapes, "edge": edge}


@pytest.mark.parametrize("make", [ig.GraphCRF, ig.GridCRF])
def test_loops_are_gone_through_ten_times(make, capsys):
    X, Y, named = coupled(make)
    crf = make(l2=0.01, bias=False, verbose=True, warm_start=True, max_iter=1)
    crf.theta_ = np.concatenate([array.ravel() for array in named.values()])
    with pytest.warns(ig.ConvergenceWarning, match="max_iter"):
        crf.fit(X, Y)
    assert (crf.iterations_, crf.tape_) == (10, "full")
    assert [epoch.inference_iterations for epoch in crf.history_] == [10]
    crf.theta_ = np.concatenate([array.ravel() for array in named.values()])
    assert crf.infer(X).info.iterations == 10
    assert crf.set_params(iterations=None).infer(X).info.iterations > 10
    assert "inference: at most 10 iterations; see the parameter iterations\n" in capsys.readouterr().out


def test_a_tolerance_ends_it_earlier():
    X, Y = graphs()
    crf = ig.GraphCRF(l2=1e4).fit(X, Y)
    assert crf.infer(X).info.converged
    assert 1 < crf.infer(X).info.iterations < 10


def test_forests_are_exact():
    X, Y = trees()
    crf, exact = ig.GraphCRF(l2=0.1).fit(X, Y), ig.GraphCRF(inference="exact", l2=0.1).fit(X, Y)
    assert crf.iterations_ is None
    assert crf.infer(X).info.bound == "exact"
    assert_allclose(crf.theta_, exact.theta_, atol=1e-3)
    exact.theta_ = crf.theta_
    assert_allclose(marginals(crf, X), marginals(exact, X), atol=1e-10)


def test_forests_are_exact_beside_loops():
    """What an example gets does not depend on the others in its batch."""
    X, Y = trees()
    loops, labels = graphs()
    crf = ig.GraphCRF(l2=0.1).fit([*X, *loops], [*Y, *labels])
    assert crf.iterations_ == 10
    exact = ig.GraphCRF(inference="exact", l2=0.1).fit(X, Y)
    exact.theta_ = crf.theta_
    assert_allclose(marginals(crf, [*loops, *X])[-len(X) * 30 :], marginals(exact, X), atol=1e-10)
    assert_allclose(marginals(crf, X), marginals(exact, X), atol=1e-10)


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"iterations": 3}, 3),
        ({"iterations": None}, None),
        ({"inference": "trw"}, 10),
        ({"inference": "mf"}, 10),
        ({"inference": ig.BeliefPropagation(max_iter=40)}, None),
        ({"loss": "cl", "gradient": "envelope"}, None),
        ({"loss": "cl"}, None),
        ({"gradient": "implicit"}, None),
        ({"loss": "pseudo"}, None),
        ({"inference": "exact"}, None),
        ({"stages": [{"loss": "cl", "gradient": "envelope"}, {}]}, 10),
    ],
    ids=str,
)
def test_who_is_limited(options, most):
    X, Y = graphs()
    crf = ig.GraphCRF(l2=1.0, **options).fit(X, Y)
    assert crf.iterations_ == most
    if most is None and crf.inference == "bp":
        assert crf.infer(X).info.converged


def test_other_words_are_refused():
    with pytest.raises(ig.InputError, match=r"iterations: expected .*'auto'"):
        ig.GraphCRF(iterations="some").fit(*graphs())


def test_a_large_tape_is_not_kept(monkeypatch, capsys):
    """Beyond a size that is estimated before, the tape is "sqrt": less memory, the same bits."""
    X, Y = graphs()
    plain = ig.GraphCRF(iterations=None, l2=0.1).fit(X, Y)
    assert plain.tape_ == "full"
    seen: list[Taping] = []
    genuine = ig.BeliefPropagation.run_stages

    def spied(self, stages, progress=None, tape=False, init=None):
        seen.append(tape)
        return genuine(self, stages, progress, tape, init)

    monkeypatch.setattr(ig.BeliefPropagation, "run_stages", spied)
    graph = choices_graph(X)
    bytes_of_all = float(ig.BeliefPropagation().tape_bytes(graph).sum())
    assert bytes_of_all == 8 * 2 * 2 * sum(len(edges) for _, edges in X) * 1000
    for module in (taping, __import__("isinglass.learning.training.problem", fromlist=["_"])):
        monkeypatch.setattr(module, "FULL_BYTES", bytes_of_all - 1)
    crf = ig.GraphCRF(iterations=None, l2=0.1, verbose=True).fit(X, Y)
    assert crf.tape_ == "sqrt"
    assert set(seen) == {"sqrt"}
    assert "tape='sqrt'" in capsys.readouterr().out
    assert crf.theta_.tobytes() == plain.theta_.tobytes()


def choices_graph(X):
    """Return the graph of all examples."""
    crf = ig.GraphCRF()
    return crf._model(crf._examples(X), 2).graph
