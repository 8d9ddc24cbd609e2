"""Bayesian networks from files and from tables."""

import pickle

import numpy as np
import pytest

import isinglass as ig

SPRINKLER = """
// a comment
network "lawn" { property "author: nobody" ; }
variable cloudy { type discrete [ 2 ] { no, yes }; property "x" ; }
variable sprinkler { type discrete [ 2 ] { off, on }; }
variable rain { type discrete[3] { none, some, much }; }  /* three
states */
variable "wet-grass" { type discrete [ 2 ] { no, yes }; }
probability ( cloudy ) { table 0.4, 0.6; }
probability ( sprinkler | cloudy ) { (no) 0.5, 0.5; (yes) 0.9, 0.1; }
probability ( rain | cloudy ) { default 0.5, 0.25, 0.25; (yes) 0.2, 0.3, 0.5; }
probability ( "wet-grass" | sprinkler, rain ) {
  (off, none) 1.0, 0.0; (off, some) 0.2 0.8; (off, much) 0.1, 0.9;
  (on, none) 0.1, 0.9; (on, some) 0.05, 0.95; (on, much) 1e-2, 0.99;
}
"""
HEAD = "network a { }\nvariable x { type discrete [ 2 ] { a, b }; }\nvariable y { type discrete [ 2 ] { c, d }; }\n"


def read(folder, text):
    (folder / "a.bif").write_text(text)
    return ig.read_bif(folder / "a.bif")


def test_a_network_is_the_product_of_its_tables(tmp_path):
    network = read(tmp_path, SPRINKLER)
    assert network.names == ("cloudy", "sprinkler", "rain", "wet-grass")
    assert network.parents == ((), (0,), (0,), (1, 2))
    cloudy, sprinkler = np.array([0.4, 0.6]), np.array([[0.5, 0.5], [0.9, 0.1]])
    rain = np.array([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]])
    dry = np.array([[1, 0.2, 0.1], [0.1, 0.05, 0.01]])
    joint = np.einsum("a,ab,ac,bcd->abcd", cloudy, sprinkler, rain, np.stack([dry, 1 - dry], axis=-1))
    np.testing.assert_allclose(ig.infer(network).joint(range(4)), joint, atol=1e-14)
    assert ig.infer(network).log_z == pytest.approx(0, abs=1e-12)
    seen = network.observe({"wet-grass": "yes"}, sprinkler="off")
    posterior = joint[:, 0, :, 1].sum(axis=1) / joint[:, 0, :, 1].sum()
    np.testing.assert_allclose(ig.infer(network, evidence=seen).variable(0), posterior)
    again = pickle.loads(pickle.dumps(network))
    assert (again.names, again.states, again.parents) == (network.names, network.states, network.parents)
    np.testing.assert_allclose(ig.infer(again).joint(range(4)), joint, atol=1e-14)


def test_a_whole_table_has_the_own_states_slowest(tmp_path):
    network = read(tmp_path, HEAD + "probability (x) { table 0.3 0.7; } probability (y x) { table 0.6 0.05 0.4 0.95; }")
    np.testing.assert_allclose(np.exp(network.log_tables[1]), [[0.6, 0.4], [0.05, 0.95]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("graph a { }", "line 1: expected 'network'"),
        ("network a {", "the end of the file"),
        ("network a { } edge x", "line 1: expected 'variable' or 'probability'"),
        ("network a { }\nvariable x { type discrete [ 3 ] { a, b }; }", "line 2: expected 3 different states"),
        ("network a { } variable x { type discrete [ 2 ] { a, a }; }", "2 different states of 'x', got 1"),
        ("network a { }\nvariable x { }", "the type of 'x'"),
        (HEAD + "probability (x) { table 1.0; } probability (y) { table 1, 0; }", "2 probabilities of 'x'"),
        (HEAD + "probability (x) { table 0.3, 0.7; }", "probabilities of 'y', got none"),
        (HEAD + "probability (x) { table 0.3, 0.6; } probability (y) { table 1, 0; }", "sum to one, got 0.9"),
        (HEAD + "probability (x) { table 0.3, -0.7; }", "probabilities"),
        (HEAD + "probability (x) { table 0.3, b; }", "line 4: expected numbers"),
        (HEAD + "probability (z) { table 0.3, 0.7; }", "declared before, got 'z'"),
        (HEAD + "probability (x | y) { (c) 1, 0; } probability (y) { table 1, 0; }", "a row for all states"),
        (HEAD + "probability (x | y) { (e) 1, 0; } probability (y) { table 1, 0; }", "a state of 'y', got 'e'"),
        (HEAD + "probability (x | y) { (c, d) 1, 0; } probability (y) { table 1, 0; }", "each of the 1 parents"),
        (HEAD + "probability (x | y) { (c) 1, 0; (c) 0, 1; default 1, 0; }", "'x' that are given once, got the same"),
        (HEAD + "probability (x | y) { (c) 1, 0; table 1, 0, 1, 0; }", "'x' that are given once"),
        (HEAD + "probability (x) { table 1, 0; table 0, 1; }", "'x' that are given once"),
        (HEAD + "probability (x | y) { default 1, 0; default 0, 1; }", "'x' that are given once"),
        (
            HEAD + "probability (x) { table 1, 0; } probability (x) { table 1, 0; }",
            "one table for each variable, got x",
        ),
        (HEAD + "probability (x | y) { default 1, 0; } probability (y | x) { default 1, 0; }", "the cycle x -> y -> x"),
    ],
)
def test_damaged_files_are_named(tmp_path, text, words):
    with pytest.raises(ig.FileFormatError, match=words.replace("(", r"\(")):
        read(tmp_path, text)


class Cpd:
    """What pgmpy's TabularCPD shows of itself."""

    def __init__(self, variable, parents, values, states):
        self.variable, self.variables = variable, [variable, *parents]
        self.values, self.state_names = np.asarray(values), {variable: states}


class Network:
    """What a pgmpy network shows of itself."""

    def __init__(self, cpds):
        self.nodes, self._cpds = [cpd.variable for cpd in cpds], cpds

    def get_cpds(self):
        return self._cpds


def test_a_pgmpy_network():
    wet = np.array([[0.9, 0.25], [0.1, 0.75]])  # own states first
    network = ig.from_bayesian_network(
        Network([Cpd("wet", ["rain"], wet, ["n", "y"]), Cpd("rain", [], [0.8, 0.2], [0, 1])])
    )
    assert network.names == ("wet", "rain")
    np.testing.assert_allclose(ig.infer(network).joint([1, 0]), [[0.72, 0.08], [0.05, 0.15]])
    with pytest.raises(ig.InputError, match="a network with tables"):
        ig.from_bayesian_network(Network([]))


@pytest.mark.parametrize(
    ("network", "tables", "words"),
    [
        ({"a": ["b"]}, {"a": [0.5, 0.5]}, "'b', a parent of 'a'"),
        ({"a": ["b"], "b": ["a"]}, {}, "a -> b -> a"),
        ({"a": []}, {}, "none for 'a'"),
        ({"a": []}, {"a": [0.5, 0.6]}, "sum to one"),
        ({"rain": []}, {"rain": [0.5, 0.5], "rian": [0.3, 0.7]}, "got 'rian'; did you mean 'rain'"),
        ({"a": [], "b": ["a"]}, {"a": [0.5, 0.5], "b": [0.5, 0.5]}, "shape"),
        ([[]], [[1.5, -0.5]], "probabilities"),
        ([[]], None, "got none"),
        (
            [[]],
            [[[0.2], [0.8]]],
            r"tables\['0'\]: .* got columns that sum to one, as in pgmpy's TabularCPD; give np.tr",
        ),
        ([[], [0]], [[0.2, 0.8], [[0.9, 0.25], [0.1, 0.75]]], r"tables\['1'\]: .* TabularCPD"),
        ([[], [0], [0, 1]], [[1.0], [[1.0]], [[0.9], [0.1]]], r"tables\['2'\]: .* TabularCPD"),
    ],
)
def test_wrong_tables_are_named(network, tables, words):
    with pytest.raises(ig.InputError, match=words):
        ig.from_bayesian_network(network, tables)


def test_wrong_names_are_named():
    network = ig.from_bayesian_network({"rain": []}, {"rain": [0.5, 0.5]}, {"rain": ["no", "yes"]})
    with pytest.raises(ig.InputError, match="did you mean 'rain'"):
        network.observe(rainy="yes")
    with pytest.raises(ig.InputError, match="'no', 'yes'"):
        network.observe(rain="maybe")
