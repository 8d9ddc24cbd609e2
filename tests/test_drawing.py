"""Drawings: where things lie, what figures and notebooks show."""

import builtins

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
from isinglass.viz.drawing import ATTRACTS, PLAIN, REPELS, coupling, positions

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


def test_grids_are_drawn_as_such():
    grid, _ = positions(ig.grid_graph(3, 4, 2))
    assert grid.tolist() == [[x, y] for y in range(3) for x in range(4)]
    chains, _ = positions(ig.disjoint_union([ig.chain_graph(3, 2)] * 2))
    assert np.ptp(chains[:3, 1]) == np.ptp(chains[3:, 1]) == 0


def test_rings_are_circles():
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
