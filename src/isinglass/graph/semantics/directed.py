"""Directed acyclic graphs: moral graphs, ancestral graphs and d-separation (Murphy 2012, section 19.2.2).

A and B are d-separated by C in a directed graph exactly if C separates them in the moral graph of the ancestral graph
of A, B and C (Lauritzen et al. 1990). The ancestral graph keeps these variables and all their ancestors; moralising
joins the parents of each variable and drops the directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, UnknownNameError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import nearest
from isinglass.graph.semantics.adjacency import Variables, adjacency, disjoint, reachable, variable_set
from isinglass.validation import array_of, integers, items, variables_of, whole_number

if TYPE_CHECKING:
    import networkx as nx

Parents = tuple[tuple[int, ...], ...]


@runtime_checkable
class Network(Protocol):
    """What has parents and names, such as a Bayesian network."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""

    @property
    def parents(self) -> Parents:
        """The parents of each variable."""


Dag: TypeAlias = "Sequence[Sequence[int]] | Mapping[str, Sequence[str]] | nx.DiGraph | Network"


def parents_of(dag: Dag) -> Parents:
    """Return the parents of each variable of a directed acyclic graph.

    Parameters
    ----------
    dag : sequence of sequences of int, mapping, or networkx.DiGraph
        The parents of each variable, by number; a mapping from the name of each variable to the names of its parents;
        or a graph. Variables are numbered in the order in which they are listed.

    Examples
    --------
    >>> parents_of([(), (0,), (0, 1)])
    ((), (0,), (0, 1))
    >>> parents_of({"rain": [], "wet": ["rain"]})
    ((), (0,))
    >>> parents_of([(1,), (0,)])
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: dag: expected a graph without directed cycles, got the cycle 0 -> 1 -> 0
    """
    found, names = _listed(dag), dag_names(dag)
    if cycle := find_cycle(found):
        got = "the cycle " + " -> ".join(str(i) if names is None else names[i] for i in cycle)
        raise InputError("dag", "a graph without directed cycles", got)
    return found


def dag_names(dag: Dag) -> list[str] | None:
    """Return the names of the variables of a directed graph: keys of a mapping, or nodes that are strings."""
    if isinstance(dag, Network):
        return list(dag.names)
    nodes = list(dag) if isinstance(dag, Mapping) else list(getattr(dag, "nodes", []))
    return [str(node) for node in nodes] if nodes and all(isinstance(node, str) for node in nodes) else None


def _listed(dag: Dag) -> Parents:
    """Return the parents in all forms of input."""
    if isinstance(dag, Network):
        return dag.parents
    if isinstance(dag, Mapping):
        number = {name: i for i, name in enumerate(dag)}
        for name, above in dag.items():
            if isinstance(above, str):
                raise InputError(f"dag[{name!r}]", "the parents in a list", repr(above), f"write [{above!r}]")
            for parent in items(above, f"dag[{name!r}]", "the names of its parents"):
                if parent not in number:
                    raise UnknownNameError(
                        f"dag[{name!r}]", "names of variables", repr(parent), nearest(parent, number)
                    )
        return tuple(tuple(number[parent] for parent in above) for above in dag.values())
    if not isinstance(dag, Sequence) and hasattr(dag, "is_directed"):
        if not dag.is_directed():
            raise InputError("dag", "a directed graph", type(dag).__name__, "an undirected one: ig.from_networkx")
        number = {node: i for i, node in enumerate(dag.nodes)}
        return tuple(tuple(number[p] for p in dag.predecessors(node)) for node in dag.nodes)
    listed = items(dag, "dag", "the parents of each variable, or a networkx.DiGraph")
    checked = [variables_of(list(p), len(listed), f"dag[{i}]").tolist() for i, p in enumerate(listed)]
    return tuple(tuple(p) for p in checked)


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return a directed cycle, its first variable at both ends; empty where there is none.

    Examples
    --------
    >>> find_cycle([(), (0,)]), find_cycle([(2,), (0,), (1,)])
    ([], [0, 1, 2, 0])
    """
    waiting = [len(p) for p in parents]
    children = children_of(parents)
    ready = [i for i, n in enumerate(waiting) if not n]
    while ready:
        for child in children[ready.pop()]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    left = [i for i, n in enumerate(waiting) if n]
    if not left:
        return []
    path = [left[0]]  # each of those left has a parent among them: go up until one comes again
    while True:
        up = next(p for p in parents[path[-1]] if waiting[p])
        if up in path:
            k = path.index(up)
            ring = [up, *path[:k:-1]]
            first = ring.index(min(ring))
            return [*ring[first:], *ring[:first], ring[first]]
        path.append(up)


def children_of(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the children of each variable."""
    children: list[list[int]] = [[] for _ in parents]
    for i, listed in enumerate(parents):
        for p in listed:
            children[p].append(i)
    return children


def ancestors(parents: Parents, variables: Iterable[int]) -> set[int]:
    """Return variables and all that have a directed path to one of them."""
    return reachable([frozenset(p) for p in parents], variables, frozenset())


def ancestral_graph(dag: Dag, variables: Variables) -> Parents:
    """Return the parents of each variable in the graph of some variables and their ancestors.

    Variables keep their numbers; those that are left out have no parents and no children.

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.ancestral_graph([(), (), (0, 1), (2,)], [2])
    ((), (), (0, 1), ())
    """
    parents = parents_of(dag)
    kept = ancestors(parents, variable_set(variables, len(parents), "variables", moralise(dag)))
    return tuple(p if i in kept else () for i, p in enumerate(parents))


def moralise(dag: Dag, cards: ArrayLike = 2) -> FactorGraph:
    """Return the moral graph of a directed acyclic graph: one factor for each variable and its parents.

    Parameters
    ----------
    dag : sequence of sequences of int, mapping, or networkx.DiGraph
        The parents of each variable, by numbers or by names; or a graph. Nodes that are strings are names.
    cards : int or int array (variables,)
        The numbers of states.

    Returns
    -------
    FactorGraph
        Factor i has the scope ``(*parents of i, i)``, which fits a conditional probability table whose last axis is
        the variable's own.

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.moralise([(), (), (0, 1)]).scopes[:]
    [(0,), (1,), (0, 1, 2)]
    """
    parents = parents_of(dag)
    given = array_of(cards, "cards", "one number, or one for each variable")
    if given.ndim == 0:
        given = np.full(len(parents), whole_number(given[()], "cards", 1))
    card = integers(given, "cards", 1)
    if len(card) != len(parents):
        raise InputError("cards", f"one number, or one for each of {len(parents)} variables", f"{len(card)} numbers")
    graph, names = FactorGraph(card, [(*p, i) for i, p in enumerate(parents)]), dag_names(dag)
    return graph if names is None else graph.with_names(names)


def d_separated(dag: Dag, A: Variables, B: Variables, given: Variables = ()) -> bool:
    """Tell whether A and B are d-separated by `given`: independent, given these, in every network on this graph.

    Parameters
    ----------
    dag : sequence of sequences of int, mapping, networkx.DiGraph, or BayesianNetwork
        The parents of each variable, by numbers or by names; or a graph, whose nodes are numbered in the order that it
        lists them; or a network, as `read_bif` returns it.
    A, B, given : int, or sequence of int
        By numbers, or by names where there are some. Disjoint.

    Examples
    --------
    Two causes are independent, until their common effect is seen:

    >>> import isinglass as ig
    >>> collider = [(), (), (0, 1)]
    >>> ig.d_separated(collider, 0, 1), ig.d_separated(collider, 0, 1, given=2)
    (True, False)
    >>> ig.d_separated({"rain": [], "sprinkler": [], "wet": ["rain", "sprinkler"]}, "rain", "sprinkler", given="wet")
    False
    """
    parents, whole = parents_of(dag), moralise(dag)
    found = {name: variable_set(v, len(parents), name, whole) for name, v in (("A", A), ("B", B), ("given", given))}
    disjoint(found)
    moral = adjacency(moralise(ancestral_graph(parents, sorted(frozenset().union(*found.values())))))
    return found["B"].isdisjoint(reachable(moral, found["A"], found["given"]))
