"""The digits of Domke (2009), section 6.2, on tiny subsets."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass_experiments.catalogue import EXPERIMENTS, make
from isinglass_experiments.common.methods import (
    METHODS,
    Training,
    checked_method,
    error,
    ink,
    mean_losses,
    pixel_table,
    predict,
    start_of,
    train,
)
from isinglass_experiments.common.selection import select
from isinglass_experiments.common.statistics import mean_and_error
from isinglass_experiments.domke import digits
from isinglass_experiments.domke.digits import NOISE, PUBLISHED, Digits, Plan, trained

TINY = Training(max_iter=4, tol=1e-3, most=20, grid=(1.0, 0.01))


@pytest.fixture(scope="module")
def data():
    return ig.datasets.noisy_digits(0.5, 1, 1)


@pytest.fixture
def tiny(monkeypatch):
    """Make every digits experiment one of nine images and a few iterations."""
    genuine = Digits._plan

    def plan(self):
        whole = genuine(self)
        return Plan(whole.rows, whole.noise, whole.draws, 1, TINY)

    monkeypatch.setattr(Digits, "_plan", plan)


def test_registry():
    assert "digits" in EXPERIMENTS
    assert all(cls.name == name and cls.summary for name, cls in EXPERIMENTS.items())
    with pytest.raises(ig.InputError, match="did you mean 'digits'"):
        make("digit")
    with pytest.raises(ig.InputError, match="an option of 'digits'"):
        make("digits", colour="red")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": ["ucll"]}, "rows"),
        ({"rows": ["trw + entropy"]}, "rows"),
        ({"rows": ["ucl-4 + entropy"]}, "rows"),
        ({"rows": ["ucl-0"]}, "rows"),
        ({"rows": []}, "rows"),
        ({"noise": [1.5]}, "noise"),
        ({"noise": []}, "noise"),
        ({"draws": 0}, "draws"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ig.InputError, match=words):
        make("digits", **options).run()


def test_methods_of_the_issue():
    assert len(METHODS) == 6 + 4 + 1 + 4 * 4
    cold = {"pixels", "pseudo", "pseudo + start", "trw", "convex"}
    assert {name for name in METHODS if start_of(name) is None} == cold
    assert {start_of(name) for name in ("lbp", "ucl-1", "cquad-4")} == {"trw"}
    assert start_of("ccl") == "convex"
    assert set(METHODS) == {checked_method(name) for name in METHODS}
    assert set(PUBLISHED) <= set(METHODS)
    assert {tuple(PUBLISHED[name]) for name in ("convex", "ucl", "ucl-4")} == {NOISE}


def test_pixel_table_is_the_share_of_ink(data):
    theta = pixel_table(data.X, data.Y)
    marginals = ink(predict(train("pixels", data.X, data.Y, TINY), data.X), data.Y)
    seen = data.X[..., 1] == 1
    assert marginals[seen].std() < 1e-12
    assert marginals[seen][0] == pytest.approx((data.Y[seen].sum() + 1) / (seen.sum() + 2))
    assert np.count_nonzero(theta) == 4  # no edges


def test_losses_are_means_of_their_terms(data):
    result = predict(train("pixels", data.X, data.Y, TINY), data.X_test)
    right = np.where(data.Y_test == 1, ink(result, data.Y_test), 1 - ink(result, data.Y_test))
    found = mean_losses(result, data.Y_test)
    assert found["ucl"] == pytest.approx(-np.log(right).mean())
    assert found["ucl"] < found["ccl"] < 3 * found["ucl"]  # pixels are independent; inner ones are on more edges
    assert -2 < found["uquad"] < 0
    assert error(result, data.Y_test) == pytest.approx((right < 0.5).mean())


def test_marginal_losses_start_from_trw(data):
    methods = dict(trained(["ucl-2", "trw", "pseudo"], data, TINY))
    again = train("ucl-2", data.X, data.Y, TINY, methods["trw"].theta)
    assert np.array_equal(methods["ucl-2"].theta, again.theta)
    cold = train("ucl-2", data.X, data.Y, TINY)
    assert not np.array_equal(cold.theta, again.theta)


@pytest.mark.long
def test_l2_is_chosen_on_images_held_out(data):
    """By hand: train on two thirds with each l2, in proportion; the least error on the last third wins."""
    grid = (10.0, 1.0, 0.1)
    training = replace(TINY, grid=grid)
    trw = select("trw", data.X, data.Y, training)
    for name, start in (("pseudo", None), ("ucl-1", trw)):
        found = select(name, data.X, data.Y, training, start)
        theta, wrong = None if start is None else start.part.theta, {}
        for l2 in grid:
            part = train(name, data.X[:6], data.Y[:6], replace(training, l2=l2 * 6 / 9), theta)
            wrong[l2] = error(predict(part, data.X[6:]), data.Y[6:])
            if l2 == found.l2:
                assert np.array_equal(part.theta, found.part.theta)
            theta = part.theta if start is None else theta
        assert found.errors == wrong
        assert found.l2 == max(l2 for l2 in grid if wrong[l2] == min(wrong.values()))
        first = None if start is None else start.whole.theta
        again = train(name, data.X, data.Y, replace(training, l2=found.l2), first)
        assert np.array_equal(found.whole.theta, again.theta)
    assert len(set(trw.errors.values())) > 1


@pytest.mark.long
def test_pseudolikelihood_has_several_fixed_points():
    """With little penalty belief propagation from uniform messages finds no ink, from the noisy picture it does."""
    data = ig.datasets.noisy_digits(0.3, 3, 1)
    little = Training(max_iter=60, l2=1e-3, tol=1e-5, most=100, grid=(10.0, 1.0, 1e-3))
    plain, started = (train(name, data.X, data.Y, little) for name in ("pseudo", "pseudo + start"))
    assert np.array_equal(plain.theta, started.theta)
    assert (plain.from_picture, started.from_picture) == (False, True)
    assert not (ink(predict(plain, data.X_test), data.Y_test) > 0.5).any()
    assert error(predict(started, data.X_test), data.Y_test) < 0.08
    best = select("pseudo", data.X, data.Y, little)
    assert best.l2 > 1e-2
    assert error(predict(best.whole, data.X_test), data.Y_test) < 0.08


@pytest.mark.long
def test_losses_of_a_convex_energy(data):
    few = Training(max_iter=2)
    found = dict(trained(["convex", "uquad + entropy", "uquad"], data, few))
    assert found["uquad"].theta.tobytes() == train("uquad", data.X, data.Y, few, found["convex"].theta).theta.tobytes()
    crf = ig.GridCRF("convex", gradient="implicit", entropy="A", loss="uquad", l2=1e-3, bias=False, n_states=2)
    crf.theta_, crf.n_states_, crf.n_features_in_ = found["uquad"].theta, 2, 2
    expected = crf.predict_marginals(data.X_test[:2])[..., 1]
    assert_allclose(ink(predict(found["uquad"], data.X_test[:2]), data.Y_test[:2]), expected, atol=1e-8)
    released = found["uquad + entropy"]
    crf.set_params(entropy=released.entropy).theta_ = released.theta
    expected = crf.predict_marginals(data.X_test[:2])[..., 1]
    assert_allclose(ink(predict(released, data.X_test[:2]), data.Y_test[:2]), expected, atol=1e-8)
    assert released.entropy is not None
    assert np.min(released.entropy["variables"]) > 0
    assert released.entropy["factors"] != [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_rows_that_others_start_from_are_trained_once(monkeypatch):
    counts, genuine = [], digits.select
    monkeypatch.setattr(digits, "select", lambda name, *rest: (counts.append(name), genuine(name, *rest))[1])
    monkeypatch.setattr(sys.modules[__name__], "TINY", Training(max_iter=1, grid=(1.0, 0.1)))
    report = make("digits", rows=["ucl + entropy", "ucl", "ucl-1", "pixels"], noise=[0.5], n_jobs=1).run()
    assert sorted(counts) == ["convex", "pixels", "trw", "ucl", "ucl + entropy", "ucl-1"]
    assert [row[0] for row in report.rows] == ["ucl + entropy", "ucl", "ucl-1", "pixels"]
    assert [row[2] for row in report.rows] == ["0.0590", "0.0710", "-", "-"]
    cells = {row["row"]: row["draws"][0] for row in report.data["rows"]}
    assert cells["ucl"]["entropy"] is None
    assert np.shape(cells["ucl + entropy"]["entropy"]["factors"]) == (2, 2)
    assert cells["ucl"]["test_converged"]


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_processes_change_nothing():
    one, two = (make("digits", rows=["pixels", "ucl-2"], noise=[0.5], n_jobs=n).run() for n in (1, 2))
    assert one.rows == two.rows
    assert [row["error"] for row in one.data["rows"]] == [row["error"] for row in two.data["rows"]]
    for (_, first), (_, second) in zip(one.pictures["digits-50"], two.pictures["digits-50"], strict=True):
        assert np.array_equal(first, second)


def test_training_helps(data):
    wrong = {name: error(predict(f, data.X_test), data.Y_test) for name, f in trained(["pixels", "ucl-4"], data, TINY)}
    assert wrong["ucl-4"] < wrong["pixels"]


def test_mean_and_error():
    assert mean_and_error([0.5]) == (0.5, None)
    mean, spread = mean_and_error([1.0, 2.0, 3.0])
    assert (mean, spread) == (2.0, pytest.approx(1 / np.sqrt(3)))


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_report():
    seen = []
    report = make("digits", rows=["pixels", "ucl-4"], noise=[0.1, 0.5], draws=2, n_jobs=1).run(
        lambda *told: seen.append(told)
    )
    assert report.columns == ["method", "10% (l2)", "publ.", "50% (l2)", "publ."]
    assert [row[0] for row in report.rows] == ["pixels", "ucl-4"]
    assert report.rows[1][2::2] == ["0.0087", "0.0599"]
    assert all("(" not in text for text in report.rows[0])  # a table of counts has no penalty
    assert all(re.search(r" \((1|0\.01|0\.01 to 1)\)\*?$", text) for text in report.rows[1][1::2])
    for row in report.data["rows"]:
        for draw in row["draws"]:
            errors = {float(l2): wrong for l2, wrong in draw["validation"].items()}
            assert set(errors) == (set(TINY.grid) if row["row"] == "ucl-4" else set())
            assert draw["l2"] == (min(TINY.grid, key=errors.get) if errors else None)
    assert "the one with the least error on the last third of the training images" in report.notes[0]
    assert all("±" in row[1] for row in report.rows)
    assert seen[-1][1] == 1.0
    assert len(seen) == 1 + 2 * 2 * 2
    assert set(report.pictures) == {"digits-10", "digits-50"}
    assert [title for title, _ in report.pictures["digits-50"]] == ["truth", "input", "pixels", "ucl-4"]
    assert all(np.shape(images) == (9, 28, 28) for _, images in report.pictures["digits-50"])
    first = report.data["rows"][0]
    assert len(first["draws"]) == 2
    assert first["error"] == np.mean([draw["error"] for draw in first["draws"]])


@pytest.mark.usefixtures("tiny")
def test_all_losses():
    report = make("digits", rows=["pixels"], noise=[0.3], all_losses=True, n_jobs=1).run()
    assert report.columns[-4:] == ["ucl", "ccl", "uquad", "cquad"]
    assert all(np.isfinite(float(value)) for value in report.rows[0][-4:])


@pytest.mark.usefixtures("tiny")
def test_what_did_not_converge_is_told():
    report = make("digits", rows=["trw"], noise=[0.5], n_jobs=1).run()
    assert report.rows[0][1].endswith("*")
    assert any(note.startswith("*") for note in report.notes)
