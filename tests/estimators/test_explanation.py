"""Explanations of fitted models: every weight once, the strongest first."""

import numpy as np
import pytest

import isinglass as ig
from checks import refuses

pytest.importorskip("pandas")

X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]], [["w=dog"], ["w=barks"]]]
Y = [["D", "N"], ["D", "N", "V"], ["N", "V"]]


@pytest.mark.parametrize("kind", ["crf", "hmm", "memm"])
def test_sequences(kind):
    made = {"crf": ig.ChainCRF(l2=0.1, bias=True, boundary=True), "hmm": ig.HMM(), "memm": ig.MEMM(l2=0.1)}[kind].fit(
        X, Y
    )
    frame = made.weights_frame()
    states = frame[frame.kind == "state"]
    assert {
        (f, y): w for f, y, w in zip(states.feature, states.label, states.weight, strict=True)
    } == made.state_features_
    pairs = frame[frame.kind == "transition"]
    assert {(a, b): w for a, b, w in zip(pairs.feature, pairs.label, pairs.weight, strict=True)} == pytest.approx(
        made.transition_features_
    )
    if kind != "hmm":  # whose weights are logarithms of probabilities, minus infinity included
        assert len(frame) == len(made.theta_)
    shown = made.explain(top=2)
    for label, listed in shown.features.items():
        positive = [w.weight for w in listed if w.weight > 0]
        own = frame[(frame.label == label) & frame.kind.isin(["state", "start", "end"])]
        every = sorted(own.weight, reverse=True)
        assert positive == [w for w in every if w > 0][:2]
    assert "->" in str(shown)
    assert shown._repr_html_().startswith("<pre>")
    assert set(shown.to_frame().columns) == {"kind", "feature", "label", "weight"}


def test_fields_on_graphs():
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(5)]
    labels = [rng.integers(0, 2, 6) for _ in range(8)]
    data = [(y[:, None] + 0.3 * rng.normal(size=(6, 1)), edges, rng.normal(size=(5, 2))) for y in labels]
    words = [np.array(["n", "y"])[y] for y in labels]
    crf = ig.GraphCRF(bias=True, edge_bias=True, iterations=3).fit(data, words)
    frame = crf.weights_frame()
    assert len(frame) == len(crf.theta_)
    assert sorted(frame.weight) == pytest.approx(sorted(crf.theta_))
    shown = crf.explain(top=1)
    assert list(shown.matrices) == ["edge x0", "edge x1", "edge (bias)"]
    assert shown.features["y"][0].weight == pytest.approx(crf.parameters_["node"][:, 1].max())
    assert shown.matrices["edge (bias)"].rows == ["n", "y"]
    pytest.importorskip("matplotlib")
    assert len(ig.viz.heat_map(shown).axes) == 3
    assert ig.viz.heat_map(crf.explain()).axes[0].get_title() == "edge x0"


def test_grids_and_parameters_of_their_own():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (3, 4, 4))
    images = labels[..., None] + 0.3 * rng.normal(size=(3, 4, 4, 1))
    crf = ig.GridCRF(iterations=2, own_parameters=True, bias=True).fit(images, labels)
    shown = crf.explain()
    assert list(shown.matrices) == ["edge/horizontal", "edge/vertical"]
    assert shown.matrices["edge/vertical"].values == pytest.approx(crf.parameters_["edge/vertical"][-1])
    assert ig.GridCRF(edges="none").fit(images, labels).explain().transitions == []
    refuses("top: expected a whole number of at least 1", crf.explain, top=0)
    refuses("not fitted yet", ig.GridCRF().explain, error=ValueError)
