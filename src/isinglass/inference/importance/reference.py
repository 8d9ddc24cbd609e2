"""Reference distributions: q(x), whose normalisation is known and which can be sampled exactly.

q is a product over the variables and over some factors F that form a forest:

    "uniform"        q(x) = 1 / number of combinations of the states that hard zeros and evidence leave
    "tree"           q(x) ~ exp( sum over factors of one variable, and over F, of phi_a(x_a) )
    an algorithm     q(x) ~ prod_i b_i(x_i) prod_{a in F} b_a(x_a) / prod_{i in a} b_i(x_i),    its beliefs b

F is a maximum spanning forest: factors are taken by falling information, the Kullback-Leibler divergence between a
belief (for "tree": the normalised table) and the product of its marginals, unless they close a cycle (Kruskal 1956).
With the beliefs of mean field no factor has any, and q is a product.

Wherever the model is possible, q must be positive. So the beliefs are mixed with a little of the uniform distribution
on what arc consistency leaves: at most 1 %, and in larger components less, so that a tenth of a variable is drawn from
it on average. That changes the variance of the weights, but no mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from isinglass.errors import InputError, no_convergence_warnings
from isinglass.graph.factor_graph import FactorGraph, FactorGroup, iter_groups
from isinglass.graph.layout import first_states
from isinglass.inference.algorithm import ALGORITHMS, Algorithm, make
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.result import Result
from isinglass.inference.sampling.starts import component_of
from isinglass.inference.support import Support, support_of
from isinglass.potentials import Potentials
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray, Mask

MIXED, MOST_MIXED, LEAST_MIXED = 0.1, 0.01, 1e-4  # variables drawn uniformly, and the share of each of them
LEAST_INFORMATION = 1e-9  # nats

Start: TypeAlias = str | Algorithm


@dataclass(frozen=True, eq=False)
class Reference:
    """A distribution on the variables of a model, as potentials on a forest of the same components."""

    potentials: Potentials
    log_z: FloatArray  # (components,)

    @classmethod
    def of(cls, potentials: Potentials, start: Start) -> Reference:
        """Build the reference distribution that `start` names."""
        support = support_of(potentials)
        if start == "uniform":
            found = _uniform(potentials, support)
        elif start == "tree":
            found = _model_tree(potentials, support)
        else:
            found = _belief_tree(potentials, support, approximation(start))
        return cls(found, np.asarray(Exact().run(found).component_log_z))

    def draw(self, n: int, random: Sequence[np.random.Generator]) -> IntArray:
        """Draw `n` assignments, (n, variables), each component by its own generator."""
        graph = self.potentials.graph
        if graph.n_components == 1:
            return Exact().sample(self.potentials, n, random[0])
        states = np.zeros((n, graph.n_variables), np.int64)
        for k in range(graph.n_components):
            members = np.flatnonzero(graph.variable_component == k)
            states[:, members] = Exact().sample(component_of(self.potentials, k), n, random[k])
        return states


def approximation(start: Start) -> Algorithm:
    """Return the algorithm whose beliefs are wanted; samplers and max-product are refused."""
    if isinstance(start, str) and start not in ALGORITHMS:
        names = [repr(name) for name, cls in ALGORITHMS.items() if _serves(cls)]
        raise InputError("start", f"'uniform', 'tree' or an algorithm ({', '.join(names)})", repr(start))
    chosen = make(start, {})
    if not _serves(type(chosen)):
        expected = "an algorithm whose beliefs are marginals, and no estimates by sampling"
        raise InputError("start", expected, repr(chosen.name), "use 'mf', 'bp' or 'trw'")
    return chosen


def _serves(cls: type[Algorithm]) -> bool:
    return cls.facts.semiring == "sum" and not cls.facts.stochastic


def _uniform(potentials: Potentials, support: Support) -> Potentials:
    unary = np.where(support.states, 0.0, -np.inf)
    return _on_forest(potentials, unary, np.zeros(0, np.int64), [None] * len(potentials.groups))


def _model_tree(potentials: Potentials, support: Support) -> Potentials:
    """Keep the tables of single variables and of a spanning forest."""
    graph, first = potentials.graph, first_states(potentials.graph)
    unary = np.where(support.states, 0.0, -np.inf)
    information, tables = np.zeros(graph.n_factors), []
    for group, values, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        tables.append(values[ids])
        if group.arity == 1 and len(group):
            np.add.at(unary, first[group.scopes[:, 0]][:, None] + np.arange(group.shape[0]), values[ids])
        elif group.arity > 1 and len(group):
            rows = values.reshape(len(values), -1)
            p = np.exp(rows - rows.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            information[group.factors] = _information(p.reshape(values.shape))[ids]
    return _on_forest(potentials, unary, spanning_factors(graph, information), tables)


def _belief_tree(potentials: Potentials, support: Support, algorithm: Algorithm) -> Potentials:
    """Keep the beliefs of variables and of a spanning forest."""
    graph, first = potentials.graph, first_states(potentials.graph)
    with no_convergence_warnings():
        result: Result = algorithm.run(potentials)
    members = np.bincount(graph.variable_component, minlength=graph.n_components)
    share = np.clip(MIXED / np.maximum(members, 1), LEAST_MIXED, MOST_MIXED)
    beliefs_i, of_variables = np.asarray(result.variables.flat), share[graph.variable_component]
    unary = _log(_mixed(beliefs_i, support.states, first, of_variables))
    information, tables = np.zeros(graph.n_factors), []
    for (group, part), beliefs in zip(iter_groups(graph), result.factors.groups, strict=True):
        allowed = support.entries[part]
        if group.arity < 2 or not len(group):
            tables.append(np.zeros((len(group), *group.shape)))
            continue
        each = starts(np.full(len(group), group.table_size))
        of_factors = share[graph.factor_component[group.factors]]
        information[group.factors] = _information(np.asarray(beliefs))
        joint = _mixed(np.asarray(beliefs).ravel(), allowed, each, of_factors).reshape(beliefs.shape)
        table = _log(joint)
        for slot, card in enumerate(group.shape):
            places = first[group.scopes[:, slot]][:, None] + np.arange(card)
            shape = [len(group)] + [card if k == slot else 1 for k in range(group.arity)]
            log_b = np.where(support.states[places], unary[places], 0.0)
            table = table - log_b.reshape(shape)
        tables.append(table)
    return _on_forest(potentials, unary, spanning_factors(graph, information), tables)


def _mixed(beliefs: FloatArray, allowed: Mask, first: IntArray, share: FloatArray) -> FloatArray:
    """Mix beliefs with a share of the uniform distribution on what is allowed; elsewhere they are zero."""
    counts = np.diff(first)
    owner = np.repeat(np.arange(len(counts)), counts)
    uniform = allowed / np.bincount(owner, allowed, len(counts))[owner]
    kept = np.where(allowed, beliefs, 0.0)
    total = np.bincount(owner, kept, len(counts))[owner]
    believed = np.where(total > 0, kept / np.where(total > 0, total, 1.0), uniform)
    return np.asarray(believed + share[owner] * (uniform - believed))


def _log(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _information(p: FloatArray) -> FloatArray:
    """Return the divergence of distributions (rows, k_1, ..., k_r) from the product of their marginals, rounded."""
    from scipy.special import xlogy

    axes = tuple(range(1, p.ndim))
    total = xlogy(p, p).sum(axis=axes)
    for axis in axes:
        marginal = p.sum(axis=tuple(a for a in axes if a != axis))
        total = total - xlogy(marginal, marginal).sum(axis=1)
    return np.asarray(np.round(total, 9))


def spanning_factors(graph: FactorGraph, information: FloatArray) -> IntArray:
    """Return the factors of a maximum spanning forest, in their order; those without information are left out.

    Examples
    --------
    >>> ring = FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0)])
    >>> spanning_factors(ring, np.array([0.1, 0.3, 0.2])).tolist()
    [1, 2]
    """
    from isinglass.graph.forests.disjoint_sets import acyclic_subset

    flat = graph.flat_scopes
    order = np.argsort(-information, kind="stable")
    order = order[information[order] > LEAST_INFORMATION]
    count = np.diff(flat.first_slot)[order]
    slots = ranges(flat.first_slot[order], count)
    taken = acyclic_subset(starts(count), flat.variable[slots], np.arange(len(order)), graph.n_variables)
    return np.sort(order[taken])


def _on_forest(
    potentials: Potentials, unary: FloatArray, factors: IntArray, tables: Sequence[FloatArray | None]
) -> Potentials:
    """Build potentials with one unary factor for each variable and with some of the factors of the model.

    `tables` has those of all factors of each group. The unary factor of variable i is number i; the others follow.
    """
    graph, first = potentials.graph, first_states(potentials.graph)
    groups, values, n = [], [], graph.n_variables
    for card in np.unique(graph.cards):
        mine = np.flatnonzero(graph.cards == card)
        groups.append(FactorGroup(mine[:, None], (int(card),), mine))
        values.append(unary[first[mine][:, None] + np.arange(card)])
    for group, of_group in zip(graph.groups, tables, strict=True):
        rows = np.flatnonzero(np.isin(group.factors, factors))
        if of_group is not None and len(rows):
            numbers = n + np.searchsorted(factors, group.factors[rows])
            groups.append(FactorGroup(group.scopes[rows], group.shape, numbers))
            values.append(of_group[rows])
    component = np.concatenate([graph.variable_component, graph.factor_component[factors]])
    forest = FactorGraph._build(graph.cards, groups, graph.variable_component, component, graph.n_components)
    return Potentials._build(forest, values, [np.arange(len(v)) for v in values], potentials.evidence)
