"""Conditionals of observed variables some of whose neighbours are hidden: exact sums over what is hidden.

Let M be the hidden variables that i reaches through hidden variables alone. Given all that is observed,

    p(y_i | observed)  =  sum_{x_M} exp s(y_i, x_M)  /  sum_{x_i, x_M} exp s(x_i, x_M),

where s adds the tables of all factors at i or at M: every other variable of theirs is observed. The derivative of minus
its logarithm by s(x_i, x_M) is p(x_i, x_M | observed) - p(x_i, x_M | observed, y_i). A term has k_i times the joint
states of M; those with more than a limit are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.potentials import Potentials
from isinglass.segments import distinct_rows, sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask

_CHUNK = 2**20  # table entries that are looked up at a time
_KEPT = 2**23  # of which so many at most are found once and kept


class HiddenTerms(NamedTuple):
    """Terms, each with its joint states, and the tables that score them.

    A pair is a term and one of its factors, sorted by term. Entry j of a pair, for joint state j of the term, lies at
    ``base + sum_s stride_s ((j // place_s) % card_s)`` in the tables of all groups, one after the other.

    Attributes
    ----------
    variable : int array (terms,)
        The observed variable i.
    states : int array (terms,)
        Joint states of i and its hidden variables; the state of i is the fastest digit.
    first_pair : int array (terms + 1,)
    base : int array (pairs,)
    stride, place, card : int arrays (pairs, slots)
        Of the slots whose variables are summed over, or i; 0, 1, 1 for others.
    """

    variable: IntArray
    states: IntArray
    first_pair: IntArray
    base: IntArray
    stride: IntArray
    place: IntArray
    card: IntArray


class _Members(NamedTuple):
    """The variables of each term, i first, sorted by term; `place`: the step in joint states when its state grows."""

    term: IntArray
    variable: IntArray
    place: IntArray


def hidden_terms(potentials: Potentials, y: IntArray, asked: Mask, limit: int) -> HiddenTerms:
    """Lay out the terms of variables that have hidden neighbours, but not too many.

    Parameters
    ----------
    potentials : Potentials
        Their tables are not looked at.
    y : int array (variables,)
        Known states; -1 is hidden.
    asked : bool array (variables,)
        Which variables; they must be observed.
    limit : int
        The most joint states of a term.
    """
    graph = potentials.graph
    factor = np.repeat(np.arange(graph.n_factors), np.diff(graph.flat_scopes.first_slot))
    part = _parts(graph, factor, y)
    variable, members = _members(graph, factor, part, asked, limit)
    term, at = _pairs(graph, factor, members)
    return _located(potentials, y, variable, members, term, at)


def _parts(graph: FactorGraph, factor: IntArray, y: IntArray) -> IntArray:
    """Return the connected part of each hidden variable, through factors and hidden variables; -1: observed."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    variable = graph.flat_scopes.variable
    hidden = y[variable] < 0
    n, size = graph.n_variables, graph.n_variables + graph.n_factors
    ends = variable[hidden], n + factor[hidden]
    joined = coo_array((np.ones(len(ends[0]), np.int8), ends), (size, size))
    found = connected_components(joined, directed=False)[1][:n].astype(np.int64)
    return np.where(y < 0, found, -1)


def _members(
    graph: FactorGraph, factor: IntArray, part: IntArray, asked: Mask, limit: int
) -> tuple[IntArray, _Members]:
    """Return the variable of each term, and all variables that it runs through."""
    slots, cards = graph.flat_scopes.variable, graph.cards
    of_factor = np.full(graph.n_factors, -1)
    of_factor[factor[part[slots] >= 0]] = part[slots[part[slots] >= 0]]  # hidden variables of one factor are connected
    beside = asked[slots] & (of_factor[factor] >= 0)
    pairs = np.stack([slots[beside], of_factor[factor[beside]]], axis=1)
    i, near = pairs[distinct_rows(pairs)[0]].T
    hidden = np.flatnonzero(part >= 0)
    hidden = hidden[np.argsort(part[hidden], kind="stable")]
    count = np.bincount(part[hidden], minlength=int(part.max(initial=0)) + 1)
    size = np.bincount(part[hidden], np.log(cards[hidden]), len(count))
    logs = np.log(cards) + np.bincount(i, size[near], graph.n_variables)
    fits = logs[i] <= np.log(limit) + 1e-9
    i, near = i[fits], near[fits]
    variable, rank = np.unique(i, return_inverse=True)
    start = np.concatenate([[0], np.cumsum(count)])[near]
    which = hidden[np.repeat(start - _before(count[near]), count[near]) + np.arange(count[near].sum())]
    term = np.concatenate([np.arange(len(variable)), np.repeat(rank.ravel(), count[near])])
    order = np.argsort(term, kind="stable")
    members = np.concatenate([variable, which])[order]
    return variable, _Members(term[order], members, _places(term[order], cards[members]))


def _before(counts: IntArray) -> IntArray:
    """Return the sum of all counts before each."""
    return np.cumsum(counts) - counts


def _places(term: IntArray, cards: IntArray) -> IntArray:
    """Return the product of the cards before each variable within its term."""
    place = np.ones(len(term), np.int64)
    for at in range(1, int(np.bincount(term).max(initial=0))):  # few: 2^at is at most the limit
        later = np.flatnonzero(term[at:] == term[:-at]) + at
        place[later] *= cards[later - at]
    return place


def _pairs(graph: FactorGraph, factor: IntArray, members: _Members) -> tuple[IntArray, IntArray]:
    """Return all pairs of a term and a factor at one of its variables."""
    by_variable = np.argsort(graph.flat_scopes.variable, kind="stable")
    degree = np.bincount(graph.flat_scopes.variable, minlength=graph.n_variables)
    count, start = degree[members.variable], _before(degree)[members.variable]
    slots = by_variable[np.repeat(start - _before(count), count) + np.arange(count.sum())]
    keys = np.unique(np.repeat(members.term, count) * max(1, graph.n_factors) + factor[slots])
    return keys // max(1, graph.n_factors), keys % max(1, graph.n_factors)


def _located(
    potentials: Potentials, y: IntArray, variable: IntArray, members: _Members, term: IntArray, at: IntArray
) -> HiddenTerms:
    """Find the entries of tables that score the joint states of terms."""
    graph = potentials.graph
    flat, n = graph.flat_scopes, max(1, graph.n_variables)
    arity = np.diff(flat.first_slot)[at]
    wide = int(arity.max(initial=1))
    base, keys = _first_entries(potentials)[at], members.term * n + members.variable
    order = np.argsort(keys)
    shape = (len(at), wide)
    stride, place, card = np.zeros(shape, np.int64), np.ones(shape, np.int64), np.ones(shape, np.int64)
    for s in range(wide):
        rows = np.flatnonzero(arity > s)
        slot = flat.first_slot[at[rows]] + s
        v = flat.variable[slot]
        runs = (y[v] < 0) | (v == variable[term[rows]])
        base[rows[~runs]] += flat.stride[slot[~runs]] * y[v[~runs]]
        rows, slot, v = rows[runs], slot[runs], v[runs]
        found = order[np.searchsorted(keys[order], term[rows] * n + v)]
        stride[rows, s], place[rows, s], card[rows, s] = flat.stride[slot], members.place[found], graph.cards[v]
    states = np.ones(len(variable), np.int64)
    np.maximum.at(states, members.term, members.place * graph.cards[members.variable])
    first = np.searchsorted(term, np.arange(len(variable) + 1))
    return HiddenTerms(variable, states, first, base, stride, place, card)


def _first_entries(potentials: Potentials) -> IntArray:
    """Return where the table of each factor begins in the tables of all groups, one after the other."""
    found, start = np.zeros(potentials.graph.n_factors, np.int64), 0
    for group, tables, ids in zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True):
        found[group.factors] = start + ids * group.table_size
        start += tables.size
    return found


class _Chunk(NamedTuple):
    """Some terms: their joint states, which of those have the label of i, and the table entries they add up."""

    variable: IntArray  # (terms,)
    states: IntArray  # (terms,)
    right: Mask  # (joint states,)
    entries: IntArray  # (entries,)
    where: IntArray  # (entries,) the joint state of each


class HiddenSums:
    """The terms of a pseudolikelihood that sum over hidden variables, for any log tables.

    Parameters
    ----------
    terms : HiddenTerms
    graph : FactorGraph
    y : int array (variables,)
        Known states.
    """

    def __init__(self, terms: HiddenTerms, graph: FactorGraph, y: IntArray) -> None:
        self.terms, self.graph, self.y = terms, graph, y
        small = int((terms.states * np.diff(terms.first_pair)).sum()) <= _KEPT
        self.kept = list(self._made()) if small else None

    @property
    def variable(self) -> IntArray:
        """The observed variable of each term."""
        return self.terms.variable

    def evaluate(self, tables: Array, weight: FloatArray) -> tuple[Array, Array]:
        """Return minus the log-conditional of each term, inf where it is impossible, and the derivative of their sum.

        Parameters
        ----------
        tables : array
            The log tables of all groups, flat, one after the other; the derivative is like it.
        weight : array (variables,)
            Of the terms in the derivative.
        """
        values, slopes = [np.zeros(0, tables.dtype)], np.zeros_like(tables)
        for chunk in self._made() if self.kept is None else self.kept:
            scores = sum_at(chunk.where, tables[chunk.entries], len(chunk.right))
            free, free_mass = _log_sums(scores, chunk.states)
            known, known_mass = _log_sums(np.where(chunk.right, scores, -np.inf), chunk.states)
            values.append(free - known)
            bars = np.repeat(weight[chunk.variable], chunk.states) * (free_mass - known_mass)
            slopes += sum_at(chunk.entries, bars[chunk.where], len(tables))
        return np.concatenate(values), slopes

    def _made(self) -> Iterator[_Chunk]:
        """Cut the terms into runs that look up about as many entries each."""
        terms = self.terms
        done = np.cumsum(terms.states * np.diff(terms.first_pair)) // _CHUNK
        ends = [0, *(np.flatnonzero(np.diff(done)) + 1).tolist(), len(terms.variable)]
        for a, b in pairwise(ends):
            states, i = terms.states[a:b], terms.variable[a:b]
            joint = np.arange(states.sum()) - np.repeat(_before(states), states)
            digit = joint % np.repeat(self.graph.cards[i], states)
            if b > a:
                yield _Chunk(i, states, digit == np.repeat(self.y[i], states), *_entries(terms, a, b))


def _entries(terms: HiddenTerms, a: int, b: int) -> tuple[IntArray, IntArray]:
    """Return the table entries that the joint states of some terms add up, and the joint state of each."""
    pairs = slice(int(terms.first_pair[a]), int(terms.first_pair[b]))
    of_pair = np.repeat(np.arange(b - a), np.diff(terms.first_pair[a : b + 1]))
    states = terms.states[a:b]
    count = states[of_pair]
    j = np.arange(count.sum()) - np.repeat(_before(count), count)
    entries = np.repeat(terms.base[pairs], count)
    for stride, place, card in zip(terms.stride[pairs].T, terms.place[pairs].T, terms.card[pairs].T, strict=True):
        entries += np.repeat(stride, count) * (j // np.repeat(place, count) % np.repeat(card, count))
    return entries, np.repeat(_before(states)[of_pair], count) + j


def _log_sums(scores: Array, states: IntArray) -> tuple[Array, Array]:
    """Return log sum exp of the scores of each term, and the share of each score; nothing where all are -inf."""
    first = _before(states)
    top = np.maximum.reduceat(scores.real, first)
    top[top == -np.inf] = 0.0
    mass = np.exp(scores - np.repeat(top, states))
    total = np.add.reduceat(mass, first)
    possible = total.real > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(possible, np.log(total), -np.inf)
    return logs + top, mass / np.repeat(np.where(possible, total, 1.0), states)
