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
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.semantics.chordal import cliques, is_chordal, triangulate
from isinglass.graph.semantics.directed import ancestral_graph, d_separated, moralise
from isinglass.graph.semantics.junction_tree import JunctionTree, junction_tree
from isinglass.graph.semantics.separation import Independence, implied_independencies, markov_blanket, separated
from isinglass.graph.unions import disjoint_union

__all__ = [
    "EliminationOrder",
    "FactorGraph",
    "FactorGroup",
    "Independence",
    "JunctionTree",
    "ancestral_graph",
    "chain_graph",
    "cliques",
    "complete_graph",
    "d_separated",
    "disjoint_union",
    "elimination_order",
    "from_networkx",
    "grid_graph",
    "implied_independencies",
    "is_chordal",
    "junction_tree",
    "lattice_graph",
    "markov_blanket",
    "moralise",
    "pairwise_graph",
    "random_graph",
    "separated",
    "to_networkx",
    "tree_graph",
    "triangulate",
]
