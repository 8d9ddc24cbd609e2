"""Structure only: factor graphs, builders, elimination orders, bucket trees."""

from isinglass.graph.builders import (
    chain_graph,
    complete_graph,
    from_networkx,
    grid_graph,
    lattice_graph,
    pairwise_graph,
    random_graph,
    to_networkx,
    tree_graph,
)
from isinglass.graph.elimination.order import EliminationOrder, elimination_order
from isinglass.graph.factor_graph import FactorGraph, FactorGroup, disjoint_union

__all__ = [
    "EliminationOrder",
    "FactorGraph",
    "FactorGroup",
    "chain_graph",
    "complete_graph",
    "disjoint_union",
    "elimination_order",
    "from_networkx",
    "grid_graph",
    "lattice_graph",
    "pairwise_graph",
    "random_graph",
    "to_networkx",
    "tree_graph",
]
