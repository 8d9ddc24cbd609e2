"""Inference step by step: each step is that of `infer`, and the page shows it."""

import numpy as np
import pytest

import isinglass as ig
from browser import WIDTH, visited
from checks import refuses
from isinglass.testing.strategies import random_potentials

pd = pytest.importorskip("pandas")

GRAPH = ig.FactorGraph({"a": ["x", "y"], "b": 2, "c": 3}, [("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")])


@pytest.fixture(scope="module")
def potentials():
    return random_potentials(GRAPH, np.random.default_rng(0), 0.8)


@pytest.mark.parametrize("algorithm", ["bp", "trw", "mf"])
def test_each_step_is_that_of_infer(potentials, algorithm):
    t = ig.trace(potentials, algorithm, iterations=5, evidence={"a": "y"})
    assert t.iterations == 5
    for k in range(6):
        r = ig.infer(potentials, algorithm, iterations=k, evidence={"a": 1})
        assert t.beliefs[k].tolist() == r.variables.flat.tolist()
        assert t.variable("c")[k].tolist() == r.variable(2).tolist()
        assert t.log_z[k] == r.log_z
        if k:
            assert t.residuals[k - 1] == r.info.residual


def test_messages_are_those_from_factors(potentials):
    """On a tree the belief of a variable is its potential times the messages into it."""
    p = random_potentials(ig.FactorGraph([2, 3, 2], [(0,), (0, 1), (1, 2)]), np.random.default_rng(1), 1.0)
    t = ig.trace(p, "bp", iterations=4, schedule="flooding")
    product = t.message(1, 1) * t.message(2, 1)
    assert product / product.sum(axis=1, keepdims=True) == pytest.approx(t.variable(1))
    own = np.exp(p.log_tables[0]) * t.message(1, 0)
    assert own / own.sum(axis=1, keepdims=True) == pytest.approx(t.variable(0))
    assert t.beliefs[-1] == pytest.approx(ig.infer(p).variables.flat)
    refuses("factor of two or more variables", t.message, 0, 0)


def test_frames_of_beliefs_and_messages(potentials):
    t = ig.trace(potentials, "bp", iterations=2)
    beliefs, messages = t.to_frame(), t.messages_frame()
    assert beliefs.columns.tolist() == ["iteration", "variable", "state", "belief"]
    last = beliefs[(beliefs.iteration == 2) & (beliefs.variable == "a")]
    assert last.state.tolist() == ["x", "y"]
    assert last.belief.tolist() == t.variable("a")[2].tolist()
    assert messages.groupby(["iteration", "factor", "variable"]).message.sum().to_numpy() == pytest.approx(1)
    some = messages[(messages.iteration == 1) & (messages.factor == 3) & (messages.variable == "c")]
    assert some.message.tolist() == t.message(3, "c")[1].tolist()


def test_algorithms_without_iterations_or_messages(potentials):
    refuses("algorithm that iterates", ig.trace, potentials, "exact")
    for name in ("gibbs", "convex"):
        refuses("algorithm that iterates", ig.trace, potentials, name)
    t = ig.trace(potentials, "mf", iterations=1)
    refuses("algorithm with messages", t.message, 1, "a")
    refuses("algorithm with messages", t.messages_frame)
    assert "message" not in t.to_html()
    assert repr(t).startswith("Trace: 1 iterations of 'mf'")


def test_the_page_has_a_frame_for_each_step(potentials, tmp_path):
    t = ig.trace(potentials, "bp", iterations=3)
    page = t.to_html(tmp_path / "trace.html")
    assert (tmp_path / "trace.html").read_text() == page
    assert page.count("<div data-step=") == 4
    assert page.count("<table>") == 4 + 3 + 1  # beliefs at each step, messages that changed in it, and all iterations
    assert "http" not in page.replace("http-equiv", "")
    assert "iframe" in t._repr_html_()
    (tmp_path / "mine.html").write_text("mine")
    refuses(r"another file, .*mine\.html", t.to_html, tmp_path / "mine.html")
    large = ig.Potentials.from_groups(ig.chain_graph(301, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))])
    refuses("at most 300 variables on a page", ig.trace(large, iterations=0).to_html)


def test_the_slider_works_in_a_browser(potentials, tmp_path):
    page = ig.trace(potentials, "bp", iterations=3).to_html()
    script = """
        const slider = document.querySelector(".steps input");
        slider.value = 2;
        slider.dispatchEvent(new window.Event("input"));
        return [...document.querySelectorAll("[data-step]")].filter((one) => one.checkVisibility()).map(
            (one) => one.querySelector("p").textContent.split(" ·")[0]);
    """
    used, narrow = visited([(page, 900, script), (page, 360, WIDTH)], tmp_path)
    assert used == ["iteration 2 of 3"]
    assert narrow == 360
