"""Transition matrices by enumeration, from the definitions of the samplers alone."""

from __future__ import annotations

from itertools import product

import numpy as np

import isinglass as ig


class Joint:
    """All possible assignments of a model that agree with its evidence, and their probabilities."""

    def __init__(self, p):
        every = np.array(list(product(*(range(k) for k in p.graph.cards))), np.int64).reshape(-1, p.graph.n_variables)
        score = p.log_score(every)
        self.p, self.states = p, every[score > -np.inf]
        weights = np.exp(score[score > -np.inf] - score.max())
        self.pi = weights / weights.sum()
        self.number = {tuple(x): k for k, x in enumerate(self.states.tolist())}
        self.free = [i for i in range(p.graph.n_variables) if i not in p.evidence and p.graph.cards[i] > 1]

    def __len__(self):
        return len(self.states)

    def block(self, variables):
        """Draw some variables, given all others."""
        fixed = [i for i in range(self.states.shape[1]) if i not in set(variables)]
        same = (self.states[:, None, fixed] == self.states[None, :, fixed]).all(axis=2)
        matrix = np.where(same, self.pi[None, :], 0.0)
        return matrix / matrix.sum(axis=1, keepdims=True)

    def clusters(self, draw):
        """Average over all bonds; `draw` tells which clusters are drawn anew, and with which probability.

        The strengths J come from the table: log t(0, 0) t(1, 1) / t(0, 1) t(1, 0) / 2 of two states, else the gain of
        the diagonal.
        """
        graph, matrix = self.p.graph, np.zeros((len(self), len(self)))
        links = []
        for scope, table in zip(graph.scopes, self.p.log_tables, strict=True):
            if len(scope) == 2 and table.shape[0] > 1:
                links.append((scope, (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) / 2))
        for a, x in enumerate(self.states):
            ready = [(scope, J) for scope, J in links if J and (x[scope[0]] == x[scope[1]]) == (J > 0)]
            for bonds in product((False, True), repeat=len(ready)):
                taken = list(zip(ready, bonds, strict=True))
                chance = np.prod([1 - np.exp(-abs(J)) if b else np.exp(-abs(J)) for (_, J), b in taken])
                parts = components(len(x), [scope for (scope, _), b in taken if b])
                for share, chosen in draw(parts):
                    matrix[a] += chance * share * self._relabelled(x, chosen)
        return matrix

    def _relabelled(self, x, parts):
        """Return the distribution after drawing each of the parts from its unary terms."""
        found = [(1.0, x)]
        for part in parts:
            moved = []
            for chance, y in found:
                options = []
                for label in range(self.p.graph.cards[part[0]]):
                    z = y.copy()
                    if self.p.graph.cards[part[0]] == 2:
                        z[part] = y[part] ^ (y[part[0]] ^ label)
                    else:
                        z[part] = label
                    options.append((self._unary(z, part), z))
                top = max(w for w, _ in options)
                total = sum(np.exp(w - top) for w, _ in options)
                moved += [(chance * np.exp(w - top) / total, z) for w, z in options if w > -np.inf]
            found = moved
        row = np.zeros(len(self))
        for chance, y in found:
            if tuple(y.tolist()) in self.number:
                row[self.number[tuple(y.tolist())]] += chance
        return row

    def _unary(self, x, part):
        """Return the terms of single variables at a cluster: unary tables, evidence, and what pairs have of them."""
        total = 0.0
        for i in part:
            if i in self.p.evidence and x[i] != self.p.evidence[i]:
                return -np.inf
        for scope, table in zip(self.p.graph.scopes, self.p.log_tables, strict=True):
            if len(scope) == 1 and scope[0] in part:
                total += table[x[scope[0]]]
            if len(scope) == 2:
                k, other = table.shape
                J = (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) / 2 if min(k, other) > 1 else 0.0
                left = table - J * np.eye(k, other)  # f(x) + g(y)
                if scope[0] in part:
                    total += left[x[scope[0]], 0]
                if scope[1] in part:
                    total += left[0, x[scope[1]]]
        return total


def components(n, links):
    """Return the connected parts of n vertices, as sorted lists."""
    label = list(range(n))
    for a, b in links:
        low, high = sorted((label[a], label[b]))
        label = [low if k == high else k for k in label]
    return [[i for i in range(n) if label[i] == k] for k in sorted(set(label))]


def composed(matrices):
    """Return the matrix of several steps, the first one first."""
    whole = None
    for matrix in matrices:
        whole = matrix if whole is None else whole @ matrix
    return whole


def of_sampler(joint, sampler, name):
    """Return the matrix of one sweep of a sampler of the library, which tells its order and its blocks."""
    n = len(joint.free)
    if not n:
        return np.eye(len(joint))
    if name == "gibbs chromatic":
        colours = ig.graph.incidences.colours_of(joint.p.graph)
        return composed([joint.block([i]) for i in sorted(joint.free, key=lambda i: (colours[i], i))])
    if name == "gibbs systematic":
        return composed([joint.block([i]) for i in joint.free])
    if name == "gibbs random":
        return np.linalg.matrix_power(sum(joint.block([i]) for i in joint.free) / n, n)
    if name == "tree-gibbs":
        bounds = zip(sampler.blocks.begin, sampler.blocks.begin[1:], strict=False)
        return composed([joint.block(sampler.blocks.variable[a:b].tolist()) for a, b in bounds])
    several = [i for i in range(joint.p.graph.n_variables) if joint.p.graph.cards[i] > 1]
    if name == "swendsen-wang":
        return joint.clusters(lambda parts: [(1.0, parts)])

    def one(parts):
        return [(len(set(part) & set(several)) / len(several), [part]) for part in parts]

    return np.linalg.matrix_power(joint.clusters(one), int(sampler.steps[0]))
