"""From max-marginals to an assignment, one link after the other, so that ties are broken consistently.

Links are visited from the roots of the graph's forest components down to their leaves (elsewhere in factor order);
each chooses the best states of its undecided variables, given those that are decided. On a forest with converged
max-product messages this is a most probable assignment, whatever the ties (Wainwright and Jordan 2008, section 8.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.edges import Edges, edges_of
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.schedules import tree_schedule
from isinglass.inference.result import first_beliefs
from isinglass.potentials import Potentials
from isinglass.validation import IntArray


def decode(potentials: Potentials, variables: NDArray[Any], factors: NDArray[Any]) -> IntArray:
    """Return an assignment from flat beliefs of variables and (group by group) of factors."""
    graph, edges = potentials.graph, edges_of(potentials.graph)
    states = np.full(graph.n_variables, -1, np.int64)
    for variable, state in potentials.evidence.items():
        states[variable] = state
    first = first_beliefs(graph)
    for f in _order(graph, edges):
        start = first[edges.link_factor[f]]
        _decide(edges, f, factors[start : start + edges.size[f]], states)
    for i in np.flatnonzero(states < 0):
        states[i] = np.argmax(variables[edges.first_state[i] : edges.first_state[i + 1]])
    return states


def _order(graph: FactorGraph, edges: Edges) -> list[int]:
    """Links of forest components from the roots down, then the others."""
    both_ways = tree_schedule(graph)
    down = both_ways[len(both_ways) // 2 :]
    rest = np.setdiff1d(np.arange(len(edges.size)), down)
    order: list[int] = np.concatenate([down, rest]).tolist()
    return order


def _decide(edges: Edges, f: int, belief: NDArray[Any], states: IntArray) -> None:
    """Fix the undecided variables of link f at the best entry that agrees with the decided ones."""
    scope = edges.slot_variable[edges.first_slot[f] : edges.first_slot[f + 1]]
    if (states[scope] >= 0).all():
        return
    table = belief.reshape(tuple(edges.cards[scope]))
    known = tuple(slice(None) if states[i] < 0 else int(states[i]) for i in scope)
    part = table[known]
    states[scope[states[scope] < 0]] = np.unravel_index(int(np.argmax(part)), part.shape)
