"""What a file holds of a fitted Markov random field beside its parameters, checked."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.estimators.persistence import Saved
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import Names
from isinglass.learning.markov.data import Categories
from isinglass.models import Model
from isinglass.typing import Mask


def graph_arrays(graph: object) -> dict[str, ArrayLike]:
    """Return a graph as arrays; refuse models, which a safe file cannot hold."""
    if not isinstance(graph, FactorGraph):
        expected, got = "a FactorGraph, which a safe file can hold", type(graph).__name__
        raise InputError("graph", expected, got, "pickle the estimator, or save theta_")
    return {"cards": graph.cards, "scopes": graph.flat_scopes.variable, "scope-starts": graph.flat_scopes.first_slot}


def saved_graph(saved: Saved) -> FactorGraph:
    """Return the graph in a file, with its names."""
    cards, flat, starts = (saved.array(name, "i", (-1,)) for name in ("cards", "scopes", "scope-starts"))
    if not len(starts) or starts[0] != 0 or starts[-1] != len(flat) or (np.diff(starts) < 0).any():
        raise saved.error("scopes of factors, one after the other", "something else")
    graph = FactorGraph(cards, [flat[a:b].tolist() for a, b in pairwise(starts.tolist())])
    return graph.with_names(saved_names(saved, graph))


def saved_categories(saved: Saved, graph: FactorGraph) -> Categories | None:
    """Return the labels of states in a file."""
    found = saved.optional("categories", list)
    if found is None:
        return None
    fits = len(found) == graph.n_variables and all(
        labels is None or (isinstance(labels, list) and len(labels) <= card)
        for labels, card in zip(found, graph.cards.tolist(), strict=True)
    )
    if not fits:
        raise saved.error("labels of states for each variable", f"{found!a:.60}")
    return found  # type: ignore[no-any-return]


def saved_zeros(saved: Saved, model: Model) -> tuple[Mask, ...] | None:
    """Return the hard zeros in a file."""
    if "zeros" not in saved.file.arrays:
        return None
    shapes = [tables.shape for tables in model.potentials(np.zeros(model.size)).groups]
    sizes = [math.prod(shape) for shape in shapes]
    flat = saved.array("zeros", "i", (sum(sizes),)) != 0
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def names_contents(graph: FactorGraph) -> dict[str, Any] | None:
    """Return the names of variables and states as a file holds them."""
    if graph.names is None:
        return None
    states = [None if labels is None else list(labels) for labels in graph.names.states]
    return {"variables": list(graph.names.variables), "states": states}


def saved_names(saved: Saved, graph: FactorGraph) -> Names | None:
    """Return the names of variables and states in a file."""
    found = saved.optional("names", dict)
    if found is None:
        return None
    variables, states = found.get("variables"), found.get("states")
    for listed in (variables, states):
        if not isinstance(listed, list) or len(listed) != graph.n_variables:
            raise saved.error("a name for each variable", f"{listed!a:.60}")
    for name, labels, card in zip(variables or [], states or [], graph.cards.tolist(), strict=True):
        known = [] if labels is None else labels
        if type(name) is not str or not isinstance(known, list) or any(type(s) is not str for s in known):
            raise saved.error("names, which are strings", f"{name!a:.60}")
        if labels is not None and len(set(known)) != card:
            raise saved.error(f"{card} names of states", f"{known!a:.60}")
    return Names(variables or [], states or [])
