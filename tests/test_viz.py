"""Pictures."""

import builtins
import io
import os
import sys
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
from checks import refuses
from isinglass.errors import MissingDependencyError
from isinglass.pages import MISSING, label_colours
from isinglass.viz.drawing import ATTRACTS, PLAIN, REPELS, coupling, positions

UNSEEN = np.array([int(MISSING[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def colours_of(states):
    return np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in label_colours(states)]) / 255


def png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def test_maps_of_labels_have_a_colour_for_each():
    figure = ig.viz.panel([np.array([[0, 1, 2], [3, 4, -1]])], states=5)
    drawn = figure.axes[0].get_images()[0]
    colours = drawn.to_rgba(drawn.get_array()).reshape(-1, 4)
    assert len({tuple(colour) for colour in colours.tolist()}) == 6
    assert unseen(figure.axes[0]) == 1
    refuses("states", ig.viz.panel, [np.zeros((2, 2))], states=0)


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


def test_panels_of_little():
    figure = ig.viz.panel([np.arange(6).reshape(2, 3)], limits=(0, 5))
    assert figure.axes[0].get_title() == ""
    assert figure.axes[0].get_images()[0].get_clim() == (0, 5)
    picture = np.array([[0.0, 1.0], [np.nan, 0.5]])
    assert unseen(ig.viz.panel([picture]).axes[0]) == 1
    assert unseen(ig.viz.panel([np.ma.masked_greater([[0.0, 1.0], [2.0, 3.0]], 1.5)]).axes[0]) == 2
    assert unseen(ig.viz.panel([np.array([[0, -1], [-1, -1]])], states=3).axes[0]) == 3
    assert not ig.viz.panel([np.arange(60).reshape(6, 10)], states=60).legends  # too many to be told apart by name


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, (10, 4, 5))
    X = np.concatenate([np.eye(3)[Y] + 0.3 * rng.normal(size=(10, 4, 5, 3)), 7 + 4.0 * Y[..., None]], -1)
    return X, Y, ig.GridCRF(iterations=2, bias=True).fit(X, Y)


def drawn(figure, columns):
    pictures = [ax.get_images()[0].get_array() for ax in figure.axes]
    return {figure.axes[j].get_title(): pictures[j::columns] for j in range(columns)}


def unseen(ax):
    """The number of pixels that are marked as not observed."""
    image = ax.get_images()[0]
    return int(np.isclose(image.to_rgba(image.get_array(), norm=True)[..., :3], UNSEEN).all(axis=-1).sum())


@pytest.mark.long
def test_panel_of_an_estimator_has_colours_of_classes(learned):
    X, Y, crf = learned
    truth = Y.copy()
    truth[0, 0, :2] = -1
    truth[0, 3, 4] = -1
    figure = ig.viz.panel(X, crf, truth, most=3)
    found = drawn(figure, 4)
    assert list(found) == ["input", "truth", "marginals", "prediction"]
    np.testing.assert_allclose(found["input"], Y[:3] / 2, atol=1e-12)  # the last feature, from 0 to 1
    colours = colours_of(3)
    assert [unseen(ax) for ax in figure.axes[:4]] == [0, 3, 0, 0]  # in the picture of the truth alone
    for i in range(3):
        seen = truth[i] >= 0
        np.testing.assert_allclose(found["truth"][i][seen], colours[truth[i][seen]])
        np.testing.assert_allclose(found["prediction"][i], colours[crf.predict(X[:3])[i]])
    beliefs = crf.predict_marginals(X[:3])
    share = ((beliefs.max(-1) - 1 / 3) / (2 / 3))[..., None]
    np.testing.assert_allclose(found["marginals"], 1 - share + share * colours[beliefs.argmax(-1)], atol=1e-12)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["0", "1", "2", "not observed"]
    assert len(ig.viz.panel(X, crf, Y).axes) == 4 * 8
    assert png(figure).startswith(b"\x89PNG")


def test_two_labels_are_grey_and_what_is_unlabelled_is_unseen():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (4, 3, 5))
    X = Y[..., None] + 0.3 * rng.normal(size=(4, 3, 5, 1))
    crf = ig.GridCRF(iterations=2, bias=True).fit(X, Y)
    truth = np.where(np.arange(60).reshape(4, 3, 5) % 4 == 1, -1, Y)
    figure = ig.viz.panel(X, crf, truth)
    found = drawn(figure, 4)
    np.testing.assert_allclose(found["marginals"], crf.predict_marginals(X)[..., 1], atol=1e-12)
    np.testing.assert_array_equal(found["prediction"], crf.predict(X))
    assert [unseen(ax) for ax in figure.axes[1::4]] == (truth < 0).sum(axis=(1, 2)).tolist()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["not observed"]
    assert not ig.viz.panel(X, crf, Y).legends


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
        refuses(message, call)


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
    ("images", "options", "message"),
    [
        ([], {}, "images"),
        ([np.eye(2)], {"titles": ["a", "b"]}, "titles: expected one for each of 1 columns"),
        ([[1, 2]], {}, "images"),
        ([[["x"]]], {}, "images"),
        ([np.zeros((2, 3, 3)), np.zeros((3, 3, 3))], {}, r"images: .* as many pictures in every column, got \[2, 3\]"),
        ([np.zeros((2, 3, 3))], {"rows": ["a"]}, "rows: expected one for each of 2 rows"),
        ([np.zeros((0, 3, 3))], {}, "images"),
        ([np.zeros((2, 3, 3, 1))], {}, "images"),
    ],
)
def test_bad_panels(images, options, message):
    refuses(message, ig.viz.panel, images, **options)


@pytest.mark.parametrize(
    ("shape", "state", "argument"), [((2, 2), 1, "shape"), ((2, 3), 2, "state"), ((2, 3), -1, "state")]
)
def test_bad_marginals(shape, state, argument):
    r = ig.infer(ig.datasets.denoising_model([[0, 1, 1], [0, -1, 1]]))
    refuses(argument, ig.viz.marginals, r, shape, state=state)


def test_figures_bring_a_picture_for_notebooks():
    figure = ig.viz.draw(ig.chain_graph(3, 2))
    html = figure._repr_html_()
    assert html.startswith("<figure><img")
    assert "data:image/png;base64,iVBOR" in html
    assert f'width="{round(100 * figure.get_figwidth())}"' in html


def test_missing_matplotlib(monkeypatch):
    genuine = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    refuses(r"pip install 'isinglass\[viz\]'", ig.viz.panel, [np.eye(2)], error=MissingDependencyError)


def test_panel_of_examples():
    X, Y, _, _ = ig.datasets.noisy_digits(0.3, 1, 1)
    figure = ig.viz.panel(
        [Y[:3], X[:3, :, :, 1], np.full((3, 28, 28), 0.5)], ["truth", "input", "bp"], rows=["1", "2", "3"]
    )
    assert [ax.get_title() for ax in figure.axes] == ["truth", "input", "bp"] + [""] * 6
    assert [ax.get_ylabel() for ax in figure.axes] == ["1", "", "", "2", "", "", "3", "", ""]
    np.testing.assert_array_equal(figure.axes[4].get_images()[0].get_array(), X[1, :, :, 1])
    width, height = figure.get_size_inches()
    assert 0.5 < width / height < 2
    figure.savefig(os.devnull, format="png")


@dataclass
class History:
    objective: list
    gradient_norm: list


Record = namedtuple("Record", "value gradient_norm")


@pytest.mark.long
@pytest.mark.parametrize(
    "history",
    [
        History([3.0, 2.0], [1.0, 0.1]),
        {"objective": [3.0, 2.0], "gradient_norm": (1.0, 0.1)},
        {"value": np.array([3.0, 2.0]), "gradient_norms": np.array([1.0, 0.1])},
        [Record(3.0, 1.0), Record(2.0, 0.1)],
        [{"objective": 3.0, "gradient_norm": 1.0}, {"objective": 2.0, "gradient_norm": 0.1}],
    ],
)
def test_histories_of_every_form(history):
    figure = ig.viz.convergence({"method": history}, title="a run")
    left, right = figure.axes
    np.testing.assert_array_equal(left.get_lines()[0].get_ydata(), [3, 2])
    np.testing.assert_array_equal(right.get_lines()[0].get_ydata(), [1, 0.1])
    assert (left.get_yscale(), right.get_yscale()) == ("log", "log")
    assert (left.get_xlabel(), left.get_ylabel(), right.get_ylabel()) == ("iteration", "objective", "gradient norm")
    assert figure.get_suptitle() == "a run"
    figure.savefig(os.devnull, format="png")


def test_several_methods_and_references():
    runs = {"a": [3.0, 2.0, 1.0], "b": [3.0, 0.5, np.inf]}
    figure = ig.viz.convergence(runs, reference="best")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [2.5, 1.5, 0.5])
    np.testing.assert_array_equal(
        axes.get_lines()[1].get_ydata(), [2.5, np.nan, np.nan]
    )  # the lowest is at minus infinity
    known = ig.viz.convergence(runs, reference=0.25).axes[0]
    assert known.get_ylabel() == "objective - 0.25"
    assert known.get_lines()[1].get_ydata()[1] == 0.25
    assert len({line.get_color() for line in axes.get_lines()}) == 2


@pytest.mark.long
@pytest.mark.parametrize("values", [[], [np.inf, np.nan], [1.0], [1.0, 1.0]])
@pytest.mark.parametrize("reference", [None, "best", 1.0])
def test_histories_with_little_in_them(values, reference):
    figure = ig.viz.convergence({"a": values}, reference=reference)
    figure.savefig(os.devnull, format="png")


def test_negative_objectives_are_on_a_linear_axis():
    figure = ig.viz.convergence({"a": [3.0, -2.0]})
    assert figure.axes[0].get_yscale() == "linear"
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_ydata(), [3, -2])
    assert ig.viz.convergence({"a": [3.0, 2.0]}, log=False).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(
    ("histories", "more", "message"),
    [
        ({}, {}, "histories: expected a mapping"),
        ([1, 2], {}, "histories: expected a mapping"),
        ({"a": 3}, {}, r"histories\['a'\]: expected objectives"),
        ({"a": "text"}, {}, r"histories\['a'\]: expected a sequence of real numbers"),
        ({"a": [[1, 2]]}, {}, r"histories\['a'\]: expected a sequence of real numbers"),
        ({"a": [1.0]}, {"reference": "worst"}, "reference: expected a number, 'best' or None"),
        ({"a": [1.0]}, {"reference": np.nan}, "reference"),
    ],
)
def test_bad_histories(histories, more, message):
    refuses(message, ig.viz.convergence, histories, **more)


mpl = pytest.importorskip("matplotlib")

RAIN = ig.FactorGraph(
    {"season": ["dry", "wet"], "rain": ["no", "yes"], "sprinkler": 3, "grass": 2},
    [("season",), ("season", "rain"), ("rain", "sprinkler", "grass")],
)


def random_model(graph, seed=0):
    rng = np.random.default_rng(seed)
    return ig.Potentials.from_groups(graph, [rng.normal(size=(len(g), *g.shape)) for g in graph.groups])


@pytest.mark.parametrize(
    "graph",
    [
        ig.grid_graph(3, 4, 2),
        ig.chain_graph(5, 2),
        ig.tree_graph(15, 2, random_state=0),
        ig.lattice_graph((7,), 2, periodic=True),
        ig.complete_graph(6, 2),
        ig.random_graph(20, 30, 2, random_state=1),
        ig.disjoint_union([ig.chain_graph(3, 2), ig.grid_graph(2, 2, 2), ig.FactorGraph([2], [])]),
        RAIN,
    ],
)
def test_no_two_variables_lie_on_each_other(graph):
    pytest.importorskip("networkx")
    variables, joints = positions(graph)
    points = np.concatenate([variables, *(place[None] for place in joints.values())])
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1) + 9 * np.eye(len(points))
    assert apart.min() > 0.48  # the width of the circles
    assert [len(graph.scopes[a]) > 2 for a in joints] == [True] * sum(len(scope) > 2 for scope in graph.scopes)


def test_grids_and_rings():
    grid, _ = positions(ig.grid_graph(3, 4, 2))
    assert grid.tolist() == [[x, y] for y in range(3) for x in range(4)]
    chains, _ = positions(ig.disjoint_union([ig.chain_graph(3, 2)] * 2))
    assert np.ptp(chains[:3, 1]) == np.ptp(chains[3:, 1]) == 0
    pytest.importorskip("networkx")
    ring, _ = positions(ig.lattice_graph((8,), 2, periodic=True))
    radii = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert np.ptp(radii) < 0.01 * radii.mean()


def test_without_networkx_other_graphs_are_circles(monkeypatch):
    genuine = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("networkx"):
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    places, _ = positions(ig.random_graph(20, 30, 2, random_state=1))
    radii = np.linalg.norm(places, axis=1)
    assert np.ptp(radii) < 1e-12
    assert ig.viz.draw(RAIN).axes[0].texts


@pytest.mark.long
@given(st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_drawings_do_not_depend_on_anything_but_the_graph(seed):
    graphs = [ig.random_graph(9, 12, 2, random_state=seed) for _ in range(2)]
    assert positions(graphs[0])[0].tolist() == positions(graphs[1])[0].tolist()


def test_colours_tell_attraction_from_repulsion():
    assert coupling(np.eye(3))[1] == ATTRACTS
    assert coupling(-np.eye(3)) == (pytest.approx(coupling(np.eye(3))[0]), REPELS)
    assert coupling(np.add.outer([1.0, 2.0], [3.0, 4.0])) == (pytest.approx(0, abs=1e-12), PLAIN)
    assert coupling(np.log([[1.0, 1e-300], [0.5, 1.0]]))[0] > 100
    with np.errstate(divide="ignore"):
        assert coupling(np.log(np.eye(2))) == (np.inf, PLAIN)


@pytest.mark.parametrize("what", ["graph", "potentials", "result"])
def test_figures_of_all_kinds(what):
    p = random_model(RAIN).with_evidence({"grass": 1})
    drawn = {"graph": RAIN, "potentials": p, "result": ig.infer(p)}[what]
    figure = ig.viz.draw(drawn, title="rain")
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {"season", "rain", "sprinkler", "grass"}
    assert figure.axes[0].get_title() == "rain"


def test_a_picture_shows_what_it_says(tmp_path):
    """A certain belief fills its circle with one colour."""
    p = ig.Potentials(ig.grid_graph(2, 2, 2), [[0, 0]] * 4 + [np.eye(2)] * 4, {0: 1, 3: 0})
    figure = ig.viz.draw(ig.infer(p))
    figure.savefig(tmp_path / "a.png", dpi=100)
    picture = mpl.image.imread(tmp_path / "a.png")[..., :3]
    dark = np.abs(picture - np.array([0x1F, 0x5F, 0xA8]) / 255).max(axis=-1) < 0.02
    height, width = dark.shape
    assert dark[: height // 2, : width // 2].sum() > 1.8 * dark[height // 2 :, width // 2 :].sum()


def test_notebooks_show_the_first_beliefs():
    graph = ig.FactorGraph({"<a>": 2, **{f"x{k}": 2 for k in range(19)}}, [("<a>", "x0")])
    r = ig.infer(random_model(graph), "bp")
    assert "<td>&lt;a&gt;</td>" in r._repr_html_()
    assert "and 8 more" in r._repr_html_()
    assert "converged" in r.info._repr_html_()
    assert "GridCRF" in ig.GridCRF()._repr_html_()


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ig.InputError, match="what: expected a FactorGraph, Potentials or a Result, got list"):
        ig.viz.draw([1])
    with pytest.raises(ig.InputError, match="at most 300 variables and large factors in a drawing, got 1200"):
        ig.viz.draw(ig.random_graph(1200, 1500, 2, random_state=0))
    assert not ig.viz.draw(ig.FactorGraph([], [])).axes[0].texts  # nothing is there, which is no error
