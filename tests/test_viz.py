"""Pictures."""

import builtins
import io
import sys

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import InputError, MissingDependencyError


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def test_maps_of_labels_have_a_colour_for_each():
    figure = ig.viz.panel([np.array([[0, 1, 2], [3, 4, -1]])], states=5)
    drawn = figure.axes[0].get_images()[0]
    colours = drawn.to_rgba(drawn.get_array()).reshape(-1, 4)
    assert len({tuple(colour) for colour in colours[:5].tolist()}) == 5
    assert colours[5, 3] == 0  # left blank
    with pytest.raises(ig.InputError, match="states"):
        ig.viz.panel([np.zeros((2, 2))], states=0)


def test_panel():
    pictures = [np.eye(3), np.zeros((3, 5)), np.full((3, 3), 0.5)]
    figure = ig.viz.panel(pictures, ["a", "b", "c"])
    assert [ax.get_title() for ax in figure.axes] == ["a", "b", "c"]
    for ax, picture in zip(figure.axes, pictures, strict=True):
        assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
        (image,) = ax.get_images()
        assert image.get_clim() == (0, 1)
        np.testing.assert_array_equal(image.get_array(), picture)
    assert png(figure).startswith(b"\x89PNG")


def test_panel_without_titles_and_with_limits():
    figure = ig.viz.panel([np.arange(6).reshape(2, 3)], limits=(0, 5))
    assert figure.axes[0].get_title() == ""
    assert figure.axes[0].get_images()[0].get_clim() == (0, 5)


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, (10, 4, 5))
    X = np.concatenate([np.eye(3)[Y] + 0.3 * rng.normal(size=(10, 4, 5, 3)), 7 + 4.0 * Y[..., None]], -1)
    return X, Y, ig.GridCRF(iterations=2, bias=True).fit(X, Y)


def drawn(figure, columns):
    pictures = [ax.get_images()[0].get_array() for ax in figure.axes]
    return {figure.axes[j].get_title(): pictures[j::columns] for j in range(columns)}


def test_panel_of_an_estimator(learned):
    X, Y, crf = learned
    truth = Y.copy()
    truth[0, 0, 0] = -1
    found = drawn(ig.viz.panel(X, crf, truth, most=3), 4)
    assert list(found) == ["input", "truth", "marginals", "prediction"]
    np.testing.assert_allclose(found["input"], Y[:3] / 2, atol=1e-12)  # the last feature, from 0 to 1
    assert found["truth"][0].mask.sum() == 1
    assert found["truth"][0].mask[0, 0]
    np.testing.assert_array_equal(found["truth"][1:], Y[1:3] / 2)
    beliefs = crf.predict_marginals(X[:3])
    np.testing.assert_allclose(found["marginals"], beliefs[..., 1] / 2 + beliefs[..., 2], atol=1e-12)
    np.testing.assert_array_equal(found["prediction"], crf.predict(X[:3]) / 2)
    figure = ig.viz.panel(X, crf, Y)
    assert len(figure.axes) == 4 * 8
    assert png(figure).startswith(b"\x89PNG")


def test_panel_without_truth_or_of_a_list(learned):
    X, Y, crf = learned
    without = drawn(ig.viz.panel(X[:2], crf, feature=0), 3)
    assert list(without) == ["input", "marginals", "prediction"]
    listed = drawn(ig.viz.panel(list(X[:2]), crf, list(Y[:2]), rows=["a", "b"]), 4)
    np.testing.assert_array_equal(listed["marginals"], without["marginals"])


def test_bad_panels_of_an_estimator(learned):
    X, Y, crf = learned
    for call, message in {
        lambda: ig.viz.panel(X, crf, Y[:, :2]): "labels: expected shape",
        lambda: ig.viz.panel(X, crf, feature=4): "images: .*feature 4",
        lambda: ig.viz.panel(X, crf, most=0): "most: expected a whole number of at least 1",
        lambda: ig.viz.panel([X[0], X[1][:2]], crf): "images of one size",
        lambda: ig.viz.panel(X[..., 0], None, Y): "labels: expected None without an estimator",
    }.items():
        with pytest.raises(InputError, match=message):
            call()


def test_no_pyplot(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    png(ig.viz.panel([np.eye(2)]))
    assert "matplotlib.pyplot" not in sys.modules


def test_marginals():
    p = ig.datasets.denoising_model([[0, 1, 1], [0, -1, 1]])
    r = ig.infer(p)
    figure = ig.viz.marginals(r, (2, 3), title="beliefs")
    expected = np.asarray(r.variables)[:, 1].reshape(2, 3)
    np.testing.assert_array_equal(figure.axes[0].get_images()[0].get_array(), expected)
    assert figure.axes[0].get_title() == "beliefs"
    assert ig.viz.marginals(r, (3, 2), state=0).axes[0].get_title() == "P(state 0)"
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("images", "titles", "argument"),
    [
        ([], None, "images"),
        ([np.eye(2)], ["a", "b"], "titles"),
        ([[1, 2]], None, "images"),
        ([[["x"]]], None, "images"),
    ],
)
def test_bad_panels(images, titles, argument):
    with pytest.raises(InputError, match=argument):
        ig.viz.panel(images, titles)


@pytest.mark.parametrize(
    ("shape", "state", "argument"), [((2, 2), 1, "shape"), ((2, 3), 2, "state"), ((2, 3), -1, "state")]
)
def test_bad_marginals(shape, state, argument):
    r = ig.infer(ig.datasets.denoising_model([[0, 1, 1], [0, -1, 1]]))
    with pytest.raises(InputError, match=argument):
        ig.viz.marginals(r, shape, state=state)


def test_missing_matplotlib(monkeypatch):
    genuine = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingDependencyError, match=r"pip install 'isinglass\[viz\]'"):
        ig.viz.panel([np.eye(2)])
