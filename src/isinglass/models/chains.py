"""Linear-chain conditional random fields: one sequence for each example.

    phi_t(x) = sum_f X_tf W_f(x),        phi_(t,t+1)(x, y) = V(x, y)

with parameters W: "node", (features, states), and V: "edge", (states, states), rows: the earlier state.
(Lafferty, McCallum and Pereira 2001.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isinglass.models.checks import Features, examples_of, matrix, stacked, states
from isinglass.models.graphs import union_of_pairs
from isinglass.models.model import Model
from isinglass.models.terms import NodeTerm, SharedTerm
from isinglass.validation import flag


def chain_model(sequences: Sequence[Features], n_states: int, *, bias: bool = False) -> Model:
    """Return the model of a batch of sequences; component c of its graph is sequence c.

    Parameters
    ----------
    sequences : sequence of arrays (length, features)
        Dense or scipy.sparse.
    n_states : int
    bias : bool, default=False
        Append a constant feature.

    Examples
    --------
    >>> chain_model([np.zeros((4, 3)), np.zeros((2, 3))], n_states=5).graph
    FactorGraph: 6 variables (5 states), 10 factors (arity 1-2), 2 components, forest
    """
    k = states(n_states)
    found = examples_of(sequences, "sequences", "arrays (length, features)")
    rows = [matrix(one, f"sequences[{i}]", "length, features") for i, one in enumerate(found)]
    sizes = np.array([one.shape[0] for one in rows], np.int64)
    edge_sizes = np.maximum(sizes - 1, 0)
    first = np.arange(edge_sizes.sum()) - np.repeat(np.cumsum(edge_sizes) - edge_sizes, edge_sizes)
    graph = union_of_pairs(sizes, np.stack([first, first + 1], axis=1), edge_sizes, k)
    features = stacked(rows, "sequences", flag(bias, "bias"))
    return Model(graph, [[NodeTerm._build("node", features, (k,))], [SharedTerm("edge", (k, k))]])
