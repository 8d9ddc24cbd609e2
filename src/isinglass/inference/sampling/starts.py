"""Initial states of chains: possible assignments that are far apart.

If any combination of the states that hard zeros leave is possible in a component, the first chain starts with the
lowest state of each variable and the second with the highest. The others are in pairs: one starts uniformly at random,
and the next at its mirror image, in which the j-th lowest state becomes the j-th highest.

Otherwise a possible assignment must be searched for. If it is cheap, exact inference draws uniformly from all possible
assignments. Otherwise max-product decodes the model with random unary tables, several times, for at most `SEARCHES`
starts. If no assignment is found, an error is raised.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import MemoryLimitError, no_convergence_warnings
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import first_states
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.inference.support import Support, support_of
from isinglass.potentials import Potentials
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray, Mask

CHEAP = 2e6  # entries that exact inference may take for a start
TRIES = 20  # of max-product
SEARCHES = 8  # for different starts; further chains share them


def dispersed_states(potentials: Potentials, n: int, random: list[np.random.Generator]) -> IntArray:
    """Return states (variables, n) that are possible; `random` has a generator for each component."""
    graph, support = potentials.graph, support_of(potentials)
    states = np.zeros((graph.n_variables, n), np.int64)
    product = product_components(potentials, support)
    for k in range(graph.n_components):
        members = np.flatnonzero(graph.variable_component == k)
        if product[k]:
            states[members] = _product_states(graph, support, members, n, random[k])
        else:
            states[members] = _searched_states(component_of(potentials, k), n, random[k]).T
    return states


def product_components(potentials: Potentials, support: Support) -> Mask:
    """Tell in which components every combination of the states that are left is possible."""
    graph, first = potentials.graph, first_states(potentials.graph)
    found = np.ones(graph.n_components, bool)
    if support.full:
        return found
    for group, part in iter_groups(graph):
        if not len(group) or group.arity < 2:
            continue
        left = support.entries[part].reshape(len(group), *group.shape)
        free = np.ones(left.shape, bool)
        for slot, card in enumerate(group.shape):
            places = first[group.scopes[:, slot]][:, None] + np.arange(card)
            shape = [len(group)] + [card if k == slot else 1 for k in range(group.arity)]
            free &= support.states[places].reshape(shape)
        whole = (left == free).reshape(len(group), -1).all(axis=1)
        found[graph.factor_component[group.factors[~whole]]] = False
    return found


def _product_states(
    graph: FactorGraph, support: Support, members: IntArray, n: int, rng: np.random.Generator
) -> IntArray:
    """Return states (members, n): all lowest, all highest, then random ones and their mirror images."""
    first, cards = first_states(graph)[members], graph.cards[members]
    ends = starts(cards)
    places = np.arange(ends[-1]) + np.repeat(first - ends[:-1], cards)
    left = support.states[places]
    count = np.add.reduceat(left, ends[:-1], dtype=np.int64) if len(cards) else cards
    low = np.zeros((-(-n // 2), len(members)), np.int64)
    low[1:] = rng.integers(0, np.broadcast_to(count, low[1:].shape))
    ranks = np.stack([low, count - 1 - low], axis=1).reshape(2 * len(low), len(members))[:n]
    allowed = np.flatnonzero(left) - np.repeat(ends[:-1], count)  # the states that are left, variable by variable
    return np.asarray(allowed[starts(count)[:-1] + ranks].T)


def _searched_states(potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
    """Return possible assignments (n, variables) of one component."""
    graph = potentials.graph
    flat = [np.where(tables > -np.inf, 0.0, -np.inf) for tables in potentials.groups]
    uniform = Potentials._build(graph, flat, potentials.table_ids, potentials.evidence)
    if Exact().cost(uniform).bytes <= 8 * CHEAP:
        return Exact().sample(uniform, n, rng)
    found: IntArray = np.array([_decoded(uniform, rng) for _ in range(min(n, SEARCHES))])
    return found[np.arange(n) % SEARCHES]


def _decoded(potentials: Potentials, rng: np.random.Generator) -> IntArray:
    """Search one assignment by max-product with random unary tables."""
    graph = potentials.graph
    for _ in range(TRIES):
        noisy = _with_noise(potentials, rng.gumbel(size=int(first_states(graph)[-1])))
        with no_convergence_warnings():
            found = BeliefPropagation(schedule="sequential", damping=0.1, max_iter=50).maximise(noisy)[0]
        if potentials.log_score(found.states) > -np.inf:
            return found.states
    try:
        one: IntArray = Exact().sample(potentials, 1, rng)[0]
        return one
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"no assignment that the hard zeros allow was found in {TRIES} tries, and exact inference does not fit; "
            "start the chains from one that is known (init=), or soften the hard zeros"
        ) from error


def _with_noise(potentials: Potentials, noise: FloatArray) -> Potentials:
    """Return the model with a further unary factor at each variable."""
    graph = potentials.graph
    first = first_states(graph)
    tables = [noise[first[i] : first[i + 1]] for i in range(graph.n_variables)]
    larger = FactorGraph(graph.cards, [*graph.scopes, *((i,) for i in range(graph.n_variables))])
    return Potentials(larger, [*potentials.log_tables, *tables], potentials.evidence)


def component_of(potentials: Potentials, k: int) -> Potentials:
    """Return one component of a batch as potentials of their own."""
    graph = potentials.graph
    members = np.flatnonzero(graph.variable_component == k)
    place = np.full(graph.n_variables, -1)
    place[members] = np.arange(len(members))
    factors = np.flatnonzero(graph.factor_component == k).tolist()
    scopes = [tuple(place[list(graph.scopes[a])].tolist()) for a in factors]
    evidence = {int(place[i]): state for i, state in potentials.evidence.items() if place[i] >= 0}
    tables = [potentials.log_tables[a] for a in factors]
    return Potentials(FactorGraph(graph.cards[members], scopes), tables, evidence)
