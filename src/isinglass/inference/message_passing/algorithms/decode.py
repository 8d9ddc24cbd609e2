"""From max-marginals to an assignment, and what is proved about it.

Links are decoded one after the other, so that ties are broken consistently.

Links are visited from the roots to the leaves in components that are forests, elsewhere in factor order. Each link
chooses the best states of its undecided variables, given those that are decided. On a forest with converged max-product
messages the result is a most probable assignment, even with ties (Wainwright and Jordan 2008, section 8.1).

Proofs. At a fixed point max_{x_a with x_i} b_a ~ b_i, and the score of x is, up to a constant,

    s(x)  =  sum_a c_a log b_a(x_a) + sum_i (1 - sum_{a at i} c_a) log b_i(x_i)

Let x* attain the maximum of every b_i, uniquely, and of every b_a (it *agrees*). Let x differ from x* on the variables
S, and r_i = b_i(x_i) / b_i(x*_i) < 1 there. A factor a at S has b_a(x_a) / b_a(x*_a) <= r_i for each i in both.

- c = 1: S and the factors at S, joined where a factor holds a variable of S, form a graph. If each of its connected
  parts has at most one cycle, every factor can be given to one of its variables so that each variable misses at most
  one of its factors; hence s(x) <= s(x*): x* is optimal in that neighbourhood (Weiss and Freeman 2001, for pairwise
  models).
- c_a the probability that a is in a random forest: s is the expectation of such scores on forests, each of which x*
  maximises: x* is optimal (Wainwright, Jaakkola and Willsky 2005).

Messages that are not quite at a fixed point shift each comparison of b_a with b_i by no more than the oscillation that
the residual stands for; a maximum counts as unique only if its lead is larger than all of these shifts together.
"""

from __future__ import annotations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_beliefs
from isinglass.graph.message_graph import edges_of
from isinglass.graph.schedules import tree_schedule
from isinglass.kernels.layout import Edges
from isinglass.potentials import Potentials
from isinglass.typing import Array, IntArray

MARGIN = 1e-6  # the least relative lead of a maximum that counts as unique


def decode(potentials: Potentials, variables: Array, factors: Array) -> IntArray:
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


def agrees(potentials: Potentials, variables: Array, factors: Array, states: IntArray, margin: float) -> bool:
    """Tell whether an assignment attains the maximum of every variable's belief, uniquely, and of every link's."""
    edges, first = edges_of(potentials.graph), first_beliefs(potentials.graph)
    for i, state in enumerate(states.tolist()):
        belief = variables[edges.first_state[i] : edges.first_state[i + 1]]
        others = np.delete(belief, state)
        if not others.max(initial=0.0) < belief[state] * (1 - max(margin, MARGIN)):
            return False
    for f in range(len(edges.size)):
        start = first[edges.link_factor[f]]
        slots = slice(edges.first_slot[f], edges.first_slot[f + 1])
        at = (states[edges.slot_variable[slots]] * edges.slot_stride[slots]).sum()
        if factors[start + at] < factors[start : start + edges.size[f]].max():
            return False
    return True


def _order(graph: FactorGraph, edges: Edges) -> list[int]:
    """Links of forest components from the roots down, then the others."""
    both_ways = tree_schedule(graph)
    down = both_ways[len(both_ways) // 2 :]
    rest = np.setdiff1d(np.arange(len(edges.size)), down)
    order: list[int] = np.concatenate([down, rest]).tolist()
    return order


def _decide(edges: Edges, f: int, belief: Array, states: IntArray) -> None:
    """Fix the undecided variables of link f at the best entry that agrees with the decided ones."""
    scope = edges.slot_variable[edges.first_slot[f] : edges.first_slot[f + 1]]
    if (states[scope] >= 0).all():
        return
    table = belief.reshape(tuple(edges.cards[scope]))
    known = tuple(slice(None) if states[i] < 0 else int(states[i]) for i in scope)
    part = table[known]
    states[scope[states[scope] < 0]] = np.unravel_index(int(np.argmax(part)), part.shape)
