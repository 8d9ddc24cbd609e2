"""Names of variables and states where people read them: drawings, pages, junction trees, directed graphs."""

import io

import numpy as np
import pytest

import isinglass as ig
from checks import refuses

NETWORK = """
network dog { }
variable "family out" { type discrete [ 2 ] { true, false }; }
variable bowel { type discrete [ 2 ] { ill, well }; }
variable dog { type discrete [ 2 ] { out, in }; }
probability ( "family out" ) { table 0.15, 0.85; }
probability ( bowel ) { table 0.01, 0.99; }
probability ( dog | "family out", bowel ) { table 0.99, 0.9, 0.97, 0.3, 0.01, 0.1, 0.03, 0.7; }
"""


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "dog.bif"
    path.write_text(NETWORK)
    return ig.read_bif(path)


def test_separation_in_a_network_by_names(network) -> None:
    assert ig.d_separated(network, "bowel", "family out")
    assert not ig.d_separated(network, "bowel", "family out", given="dog")
    assert ig.moralise(network).names.variables == ("family out", "bowel", "dog")


def test_a_junction_tree_shows_names(network) -> None:
    assert str(ig.junction_tree(network.graph)).endswith("0: family out, bowel, dog")
    refuses("graph: expected a FactorGraph, got BayesianNetwork; give its graph", ig.junction_tree, network)
    refuses("got BayesianNetwork; give its graph", ig.cliques, network)


def test_the_page_of_a_trace_has_the_names_of_states(network) -> None:
    page = ig.trace(network, "bp", iterations=1).to_html()
    assert "<td>bowel</td><td>ill 0.010, well 0.990</td>" in page
    assert "<td>dog</td><td>out " in page


def test_a_trace_refuses_limits_that_it_would_not_keep(network) -> None:
    refuses(r"max_iter: expected no limit beside iterations.*; iterations=50", ig.trace, network, "bp", max_iter=50)
    refuses("tol: expected no limit", ig.trace, network, "bp", tol=1e-3)


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    graph = ig.FactorGraph({"$a_$ {": ["$1-$2", "$\\x$"], "b": ["$1-$2", "$\\x$"]}, [("$a_$ {", "b")])
    result = ig.infer(ig.Potentials(graph, [np.eye(2)]))
    ig.viz.draw(result).savefig(io.BytesIO())
    ig.viz.heat_map(np.eye(2), rows=["$1-$2", "$\\x$"], columns=["a", "b"]).savefig(io.BytesIO())
