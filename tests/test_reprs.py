"""What objects say of themselves."""

import numpy as np

import isinglass as ig


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


def test_models_and_scores():
    assert repr(ig.models.Ising(ig.grid_graph(3, 3, 2))) == "Ising: 9 variables (2 states), 21 factors (arity 1-2)"
    scores = ig.metrics.span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])[None]
    assert repr(scores) == "SpanScores(right=1, predicted=2, true=2: precision 0.5, recall 0.5, f1 0.5)"


def test_encodings_do_not_print_all_names():
    crf = ig.ChainCRF(bias=True).fit([[["a"], ["b", "c"]]], [["x", "y"]])
    assert repr(crf.encode([[["a"]], [["b"], ["z"]]])) == "Encoded: 2 sequences, 3 tokens, 4 attributes"
    assert repr(crf.index_) == "FeatureIndex: 3 names and a constant"
