"""Names of variables and states: everywhere, in files, in batches, and in what is said about mistakes."""

import io
import itertools
import pickle

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.graph.names import Names, labelled

pd = pytest.importorskip("pandas")

CARDS = {"rain": ["no", "yes"], "wet": 2, "mood": ["low", "so-so", "high"]}
SCOPES = [("rain",), ("rain", "wet"), ("wet", "mood")]
TABLES = [[0.8, 0.2], [[0.9, 0.1], [0.25, 0.75]], [[1.0, 2.0, 3.0], [4.0, 1.0, 0.0]]]


@pytest.fixture
def graph():
    return ig.FactorGraph(CARDS, SCOPES)


@pytest.fixture
def potentials(graph):
    return ig.Potentials.from_values(graph, TABLES)


def test_a_graph_with_names_is_the_graph_with_numbers(graph, potentials):
    plain = ig.FactorGraph([2, 2, 3], [(0,), (0, 1), (1, 2)])
    assert graph.scopes[:] == plain.scopes[:]
    assert graph.cards.tolist() == plain.cards.tolist()
    assert repr(graph) == "FactorGraph: 3 variables (rain, wet, mood; 2-3 states), 3 factors (arity 1-2), forest"
    named, unnamed = ig.infer(potentials), ig.infer(ig.Potentials.from_values(plain, TABLES))
    assert named.log_z == unnamed.log_z
    for i, name in enumerate(CARDS):
        assert named.variable(name).tolist() == unnamed.variable(i).tolist() == named.variable(i).tolist()
    assert named.joint(["mood", "rain"]).tolist() == unnamed.joint([2, 0]).tolist()
    assert ig.FactorGraph(CARDS, [(0,), ("rain", 1), (1, "mood")]).scopes[:] == plain.scopes[:]


def test_evidence_by_names(potentials):
    by_number = ig.infer(potentials, evidence={0: 1, 2: 0})
    by_name = ig.infer(potentials, evidence={"rain": "yes", "mood": "low"})
    assert by_name.log_z == by_number.log_z
    assert dict(potentials.with_evidence({"rain": "yes", 1: 0}).evidence) == {0: 1, 1: 0}
    best = ig.map_assignment(potentials, evidence={"rain": "yes"})
    assert best.labels == {"rain": "yes", "wet": 1, "mood": "low"}
    assert ig.sample(potentials, 3, evidence={"mood": "high"}, random_state=0)[:, 2].tolist() == [2, 2, 2]


def test_values_are_not_logarithms(graph):
    brute = ig.infer(ig.Potentials.from_values(graph, TABLES), "brute")
    weights = {
        x: TABLES[0][x[0]] * TABLES[1][x[0]][x[1]] * TABLES[2][x[1]][x[2]]
        for x in itertools.product(range(2), range(2), range(3))
    }
    assert np.exp(brute.log_z) == pytest.approx(sum(weights.values()), rel=1e-14)
    for wrong, words in (
        ([[0.5, -0.5], *TABLES[1:]], r"tables\[0\]: .* not negative, got -0.5 at index \(1,\); give logarithms"),
        ([[0.5, np.nan], *TABLES[1:]], r"tables\[0\]: .* got nan"),
        ([[0.5], *TABLES[1:]], r"tables\[0\]: expected shape \(2,\)"),
        (TABLES[:2], "tables: expected one table for each of 3 factors"),
    ):
        refuses(words, ig.Potentials.from_values, graph, wrong)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: ig.infer(p).variable("rian"), "i: expected the name of a variable, got 'rian'; did you mean 'rain'"),
        (lambda p: ig.infer(p).joint(["rain", "mod"]), "variables: .* got 'mod'; did you mean 'mood'"),
        (lambda p: ig.infer(p, evidence={"rian": "yes"}), "evidence: .* did you mean 'rain'"),
        (lambda p: ig.infer(p, evidence={"rain": "yess"}), r"evidence\['rain'\]: .*'no', 'yes'.* did you mean 'yes'"),
        (lambda p: ig.infer(p, evidence={"wet": "yes"}), r"evidence\['wet'\]: .* the states of 'wet' have no names"),
        (lambda p: ig.infer(p, evidence={"rain": 2}), r"evidence\['rain'\]: expected a state from 0 to 1"),
        (lambda p: ig.infer(p, evidence={"rain": "yes", 0: 0}), "expected one state of a variable, got two"),
        (
            lambda p: p.with_evidence({"rain": 1}).with_evidence({"rain": "no"}),
            r"evidence\['rain'\]: .* already have 1",
        ),
        (lambda p: ig.FactorGraph(CARDS, [("rain", "wett")]), "scopes: .* got 'wett'; did you mean 'wet'"),
        (lambda p: ig.FactorGraph(CARDS, ["rain"]), r"scopes: .* write \('rain',\) for one"),
        (lambda p: ig.FactorGraph({"a": []}, []), r"cards\['a'\]: .* an empty list"),
        (lambda p: ig.FactorGraph({"a": ["x", "x"]}, []), r"cards\['a'\]: expected different names"),
        (lambda p: ig.FactorGraph({"a": "no"}, []), r"cards\['a'\]: expected the number of its states"),
        (lambda p: ig.FactorGraph({"a": [0, 1]}, []), r"cards\['a'\]: .* names are strings"),
        (lambda p: ig.FactorGraph({"a": 0}, []), r"cards\['a'\]: expected a whole number of at least 1"),
        (lambda p: ig.FactorGraph({3: 2}, []), "cards: expected names of variables"),
        (lambda p: p.graph.with_names(["a", "b"]), "names: expected one for each of 3 variables, got 2"),
        (lambda p: p.graph.with_names(["a", "b", "b"]), "names: expected different strings"),
        (lambda p: p.graph.with_names({"a": 2, "b": 2, "c": 2}), r"names\['c'\]: expected the 3 states"),
        (lambda p: ig.separated(p.graph, "rain", "modo"), "B: .* did you mean 'mood'"),
        (lambda p: ig.infer(p).variable(("rain", 5)), "i: expected the name of one variable"),
    ],
)
def test_mistakes_are_named(potentials, call, words):
    refuses(words, call, potentials)


def test_impossible_evidence_is_named(potentials):
    with pytest.raises(ig.ImpossibleEvidenceError, match=r"wet = 1, mood = high"):
        ig.infer(potentials, evidence={"wet": 1, "mood": "high"})


def test_names_survive_pickles_evidence_and_structure(graph, potentials):
    for kept in (
        pickle.loads(pickle.dumps(graph)),
        pickle.loads(pickle.dumps(potentials)).graph,
        potentials.with_evidence({"rain": 0}).without_evidence().graph,
        pickle.loads(pickle.dumps(ig.infer(potentials))).potentials.graph,
        ig.triangulate(graph),
        ig.canonical_potentials(ig.Potentials.from_values(graph, [np.add(t, 1.0) for t in TABLES])).graph,
    ):
        assert kept.names == graph.names
    assert ig.separated(graph, "rain", "mood", given="wet")
    assert not ig.separated(graph, "rain", ["mood", "wet"])
    assert ig.markov_blanket(graph, "wet") == (0, 2)


def test_batches_have_names_by_component(graph, potentials):
    other = ig.Potentials(ig.FactorGraph({"cloud": 2}, [("cloud",)]), [[0.0, 1.0]])
    union = ig.potentials_union([potentials, other, potentials])
    r = ig.infer(union, evidence={("rain", 2): "yes", "cloud": 1})
    assert r.variable(("rain", 2)).tolist() == [0, 1]
    assert r.variable(("rain", 0)).tolist() == ig.infer(potentials).variable("rain").tolist()
    assert r.variable("cloud").tolist() == [0, 1]
    refuses("'rain', which 2 variables have", r.variable, "rain")
    refuses("which no variables have", r.variable, ("rain", 1))
    frame = r.to_frame()
    assert frame.columns.tolist() == ["component", "variable", "state", "belief"]
    assert frame.component.tolist() == [0] * 7 + [1] * 2 + [2] * 7
    copies = potentials.repeat(2)
    assert copies.graph.names == Names(graph.names.variables * 2, graph.names.states * 2)
    assert labelled(copies.graph, [0, 1, 2, 1, 1, 0])["mood", 0] == "high"
    assert ig.potentials_union([potentials, ig.Potentials(ig.FactorGraph([2], []), [])]).graph.names is None


def test_networks_have_names_too():
    network = ig.from_bayesian_network(
        {"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.25, 0.75]]}, {"rain": ["no", "yes"]}
    )
    assert network.states == (("no", "yes"), ("0", "1"))
    posterior = ig.infer(network, evidence={"wet": "1"})
    assert posterior.variable("rain") == pytest.approx([0.08 / 0.23, 0.15 / 0.23])
    assert pickle.loads(pickle.dumps(network)).names == ("rain", "wet")


def test_networkx_nodes_are_names():
    nx = pytest.importorskip("networkx")
    graph = ig.from_networkx(nx.Graph([("a", "b"), ("b", "c")]), 2)
    assert graph.names.variables == ("a", "b", "c")
    assert ig.to_networkx(graph).nodes["variable", 1]["name"] == "b"
    assert ig.from_networkx(nx.path_graph(3), 2).names is None


def test_frames_show_every_state(potentials):
    frame = ig.infer(potentials).to_frame()
    assert frame.variable.tolist() == ["rain"] * 2 + ["wet"] * 2 + ["mood"] * 3
    assert frame.state.tolist() == ["no", "yes", 0, 1, "low", "so-so", "high"]
    assert frame.groupby("variable").belief.sum().tolist() == pytest.approx([1, 1, 1])
    plain = ig.Potentials(ig.FactorGraph([2, 3], []), [])
    assert ig.infer(plain).to_frame().state.tolist() == [0, 1, 0, 1, 2]


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


def test_names_of_networks(network):
    assert ig.d_separated(network, "bowel", "family out")
    assert not ig.d_separated(network, "bowel", "family out", given="dog")
    assert ig.moralise(network).names.variables == ("family out", "bowel", "dog")
    assert str(ig.junction_tree(network.graph)).endswith("0: family out, bowel, dog")
    refuses("graph: expected a FactorGraph, got BayesianNetwork; give its graph", ig.junction_tree, network)
    refuses("got BayesianNetwork; give its graph", ig.cliques, network)
    page = ig.trace(network, "bp", iterations=1).to_html()
    assert "<td>bowel</td><td>ill 0.010, well 0.990</td>" in page
    assert "<td>dog</td><td>out " in page
    refuses(r"max_iter: expected no limit beside iterations.*; iterations=50", ig.trace, network, "bp", max_iter=50)
    refuses("tol: expected no limit", ig.trace, network, "bp", tol=1e-3)


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    graph = ig.FactorGraph({"$a_$ {": ["$1-$2", "$\\x$"], "b": ["$1-$2", "$\\x$"]}, [("$a_$ {", "b")])
    result = ig.infer(ig.Potentials(graph, [np.eye(2)]))
    ig.viz.draw(result).savefig(io.BytesIO())
    ig.viz.heat_map(np.eye(2), rows=["$1-$2", "$\\x$"], columns=["a", "b"]).savefig(io.BytesIO())


def test_beliefs_show_the_first():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 3.0], [2.0, 2.0]])])
    r = ig.infer(p)
    assert repr(r.variables) == "VariableBeliefs of length 2: [0.5 0.5], [0.375 0.625]"
    assert repr(r.factors) == "FactorBeliefs of length 1: [[0.125 0.375] [0.25 0.25 ]]"
    grid = ig.infer(ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(0.1))
    assert repr(grid.variables) == "VariableBeliefs of length 16: [0.5 0.5], [0.5 0.5], [0.5 0.5], ..."
    assert repr(ig.chain_graph(5, 2).scopes).startswith("Scopes of length 9: (0,), (1,), (2,), ...")
    wide = ig.Potentials(ig.FactorGraph([1000], [(0,)]), [np.zeros(1000)])
    assert len(repr(ig.infer(wide).variables)) < 100
    empty = ig.Potentials(ig.FactorGraph([2], []), [])
    assert repr(ig.infer(empty).factors) == "FactorBeliefs of length 0"


def test_what_models_and_encodings_say():
    assert repr(ig.models.Ising(ig.grid_graph(3, 3, 2))) == "Ising: 9 variables (2 states), 21 factors (arity 1-2)"
    scores = ig.metrics.span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])[None]
    assert repr(scores) == "SpanScores(right=1, predicted=2, true=2: precision 0.5, recall 0.5, f1 0.5)"
    crf = ig.ChainCRF(bias=True).fit([[["a"], ["b", "c"]]], [["x", "y"]])
    assert repr(crf.encode([[["a"]], [["b"], ["z"]]])) == "Encoded: 2 sequences, 3 tokens, 4 attributes"
    assert repr(crf.index_) == "FeatureIndex: 3 names and a constant"
