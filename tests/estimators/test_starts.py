"""A loss may declare which one it starts from: `fit` minimises that one first, and says so."""

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid, images

import isinglass as ig
from isinglass.learning.training.stages import stages_of, start_loss
from isinglass.losses import LOSSES
from isinglass.losses.smooth import SmoothedUnivariate

both = pytest.mark.parametrize("kind", KINDS)
kinks = pytest.mark.filterwarnings("ignore:.*training stopped:isinglass.ConvergenceWarning")  # where two labels tie


def test_what_losses_start_from():
    starts = {name: loss.facts.starts_from for name, loss in LOSSES.items() if loss.facts.starts_from is not None}
    decisions = dict.fromkeys(["expected", "log-expected", "hamming", "l1", "mse", "f1"], "ucl")
    assert starts == {"suclass": "ucl", "scclass": "ccl", **decisions}
    for name, first in starts.items():
        assert LOSSES[first].facts.starts_from is None
        one, two = ({c[1:3] for c in ig.combinations() if c.loss == loss} for loss in (name, first))
        assert one <= two  # whatever goes with the loss goes with its start


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_digits_keep_their_ink():
    """Without a start, the smoothed error on digits ends where every pixel is called blank."""
    X, Y, _, _ = ig.datasets.noisy_digits(0.5, 2, 1)
    cold = ig.GridCRF(iterations=3, loss="suclass", stages=["suclass"], max_iter=40).fit(X, Y)
    assert cold.predict(X).sum() == 0
    assert cold.started_from_ is None
    crf = ig.GridCRF(iterations=3, loss="suclass", max_iter=40).fit(X, Y)
    assert crf.started_from_ == "ucl"
    assert crf.score(X, Y) > 0.9
    assert crf.objective_ < 0.5 * cold.objective_


@pytest.mark.long
@kinks
@both
@pytest.mark.parametrize(("loss", "first"), [("suclass", "ucl"), (ig.losses.SmoothedClique(3.0), "ccl")])
def test_it_is_a_stage_before(kind, loss, first):
    make, data = KINDS[kind]
    X, Y = data()
    crf, staged = make(loss=loss).fit(X, Y), make(stages=[first, loss]).fit(X, Y)
    assert crf.theta_.tobytes() == staged.theta_.tobytes()
    assert crf.history_ == staged.history_
    assert (crf.stage_, crf.started_from_, staged.started_from_) == (1, first, None)
    assert {epoch.stage for epoch in crf.history_} == {0, 1}
    for one, two in zip(crf.predict_marginals(X), staged.predict_marginals(X), strict=True):
        assert one.tobytes() == two.tobytes()


@both
def test_parameters_to_begin_with_are_enough(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(loss="cl", warm_start=True).fit(X, Y).set_params(loss="suclass")
    staged = make(stages=["cl", "suclass"]).fit(X, Y)
    assert crf.fit(X, Y).theta_.tobytes() == staged.theta_.tobytes()
    assert (crf.started_from_, crf.stage_) == (None, 0)
    assert crf.score(X, Y) == staged.score(X, Y)


@both
def test_own_parameters_and_weights_of_classes_go_with_it(kind):
    make, data = KINDS[kind]
    crf = make(loss="suclass", own_parameters=True, class_weight="balanced", max_iter=2)
    with pytest.warns(
        ig.ConvergenceWarning, match="training stopped after 2 iterations: reached max_iter = 2; raise max_iter or tol$"
    ):
        crf.fit(*data())
    assert (crf.started_from_, crf.stage_) == ("ucl", 1)


def test_interrupted_in_its_start():
    X, Y = images()
    crf = grid(loss="suclass", callback=lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.warns(ig.ConvergenceWarning, match="the start of training, with loss 'ucl', was interrupted"):
        crf.fit(X, Y)
    assert crf.stage_ == 0
    assert crf.predict(X).shape == Y.shape


def test_a_start_is_printed_and_may_be_declared(capsys, monkeypatch):
    graph(loss="suclass", verbose=True).fit(*graphs())
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "loss 'suclass' starts from 'ucl', which is stage 0"
    assert printed[1] == "stage 0"
    monkeypatch.setattr(SmoothedUnivariate, "facts", SmoothedUnivariate.facts.__class__(
        "", convex=False, consistent=False, uses="beliefs", note="", starts_from="uquad"
    ))  # fmt: skip
    assert start_loss(grid(loss="suclass")) == "uquad"
    assert [stage.loss for stage in stages_of(grid(loss="suclass"))] == ["uquad", "suclass"]


@pytest.fixture
def sentences():
    rng = np.random.default_rng(0)
    Y = [list(np.repeat(rng.integers(0, 2, 6), 2)) for _ in range(6)]
    return [(np.array(y)[:, None] + 0.8 * rng.normal(size=(12, 1))) * [[1.0, 0.5]] for y in Y], Y


@kinks
@pytest.mark.parametrize(("loss", "first"), [("suclass", "ucl"), ("scclass", "ccl")])
def test_chains(sentences, loss, first, tmp_path, capsys):
    X, Y = sentences
    crf = ig.ChainCRF(loss=loss, l2=0.1, verbose=True, checkpoint=tmp_path / "run.npz").fit(X, Y)
    by_hand = ig.ChainCRF(loss=first, l2=0.1, warm_start=True).fit(X, Y).set_params(loss=loss).fit(X, Y)
    assert crf.theta_.tobytes() == by_hand.theta_.tobytes()
    assert (crf.started_from_, by_hand.started_from_) == (first, None)
    assert {epoch.stage for epoch in crf.history_} == {0, 1}
    assert capsys.readouterr().out.startswith(f"loss '{loss}' starts from '{first}', which is stage 0\n")
    assert (tmp_path / "run.stage1.npz").exists()
    again = ig.ChainCRF(loss=loss, l2=0.1, checkpoint=tmp_path / "run.npz").fit(X, Y)
    assert again.theta_.tobytes() == crf.theta_.tobytes()
    crf.save(tmp_path / "a.isg")
    assert ig.ChainCRF.load(tmp_path / "a.isg").predict(X) == crf.predict(X)
