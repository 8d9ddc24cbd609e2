"""Masked arrays: what is masked is never used as if it were a value."""

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass import losses
from isinglass.learning.optimizers import Lbfgs, OwlQn
from isinglass.models import EntropyModel, NodeTerm, SharedTerm, graph_model
from isinglass_experiments.data import ImageFeatures

GRAPH = ig.chain_graph(3, 2)
TABLE = np.ma.masked_greater([[0.0, 1.0], [2.0, 9.0]], 5)
VECTOR = np.ma.masked_greater([0.0, 9.0], 5)
INTS = np.ma.masked_greater([0, 1, 9], 5)
POTENTIALS = ig.Potentials.from_groups(GRAPH, [np.zeros((3, 2)), np.zeros((2, 2, 2))])
MODEL = graph_model([(np.ones((3, 1)), [(0, 1), (1, 2)])], 2)


def square(x):
    return float(x @ x), 2 * x


CALLS = {
    "log_tables": lambda: ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [TABLE]),
    "log_tables[": lambda: ig.Potentials.from_groups(GRAPH, [np.zeros((3, 2)), TABLE[None]]),
    "cards": lambda: ig.FactorGraph(INTS, [(0, 1)]),
    "cards of a builder": lambda: ig.chain_graph(3, np.ma.masked_equal([2, 2, 3], 3)),
    "scopes": lambda: ig.FactorGraph.from_groups([2] * 10, [np.ma.masked_greater([[0, 1], [1, 9]], 5)]),
    "edges": lambda: ig.pairwise_graph(10, np.ma.masked_greater([[0, 1], [1, 9]], 5), 2),
    "states": lambda: POTENTIALS.log_score(INTS),
    "coupling": lambda: ig.models.Ising(GRAPH).potentials(coupling=VECTOR),
    "field": lambda: ig.models.Ising(GRAPH).potentials(field=INTS),
    "features": lambda: NodeTerm("node", TABLE, 2),
    "table_ids": lambda: SharedTerm("edge", (2, 2), 10, table_ids=INTS),
    "theta": lambda: MODEL.potentials(np.ma.masked_equal(np.arange(MODEL.size), 1)),
    "bars": lambda: MODEL.transpose([np.ma.masked_equal(np.ones((3, 2)), 1), np.zeros((1, 2, 2))]),
    "variables": lambda: EntropyModel(MODEL, variables=VECTOR + 1),
    "weights.variables": lambda: ig.infer(POTENTIALS, "convex", weights=ig.EntropyWeights(INTS + 1.0)),
    "labels": lambda: losses.make("ucl")(ig.infer(POTENTIALS), np.ma.masked_equal([0, 1, 0], 1)),
    "weights": lambda: losses.Pseudolikelihood().value_and_grad(POTENTIALS, [0, 1, 0], INTS),
    "direction": lambda: ig.hessian_vector_product(POTENTIALS, "exact", [VECTOR] * 3 + [TABLE] * 2, log_z=1.0),
    "x0": lambda: Lbfgs().minimise(square, VECTOR),
    "l1": lambda: OwlQn(l1=VECTOR).minimise(square, [1.0, 1.0]),
    "X": lambda: ImageFeatures().fit(np.ma.masked_greater(np.ones((1, 12, 12, 3)), 0)),
    "curves": lambda: ig.viz.lines({"a": (VECTOR, [0.0, 1.0])}),
}


@pytest.mark.parametrize("name", CALLS)
def test_masked_values_are_refused(name):
    refuses("masked", CALLS[name])


def test_arrays_without_masked_values_and_derivatives():
    plain = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.ma.array([[0.0, 1.0], [2.0, 3.0]])])
    assert plain.log_score([1, 1]) == 3.0
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))])
    r = ig.infer(p, "bp", tape=True)
    masked = np.ma.masked_equal([1.0, -1.0], -1.0)
    tables = [np.ma.masked_equal(np.eye(2), 1)]
    for bars in ({"log_z": masked}, {"variables": [masked, [0.0, 0.0]]}, {"factors": tables}):
        refuses("masked", r.backward, **bars)
    refuses("masked", ig.infer, p, "fbp", counting_numbers=np.ma.masked_equal([1.0], 1.0))
