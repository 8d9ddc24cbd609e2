"""Sparse regressions of each variable on all others (Ravikumar, Wainwright and Lafferty 2010; Jalali et al. 2011).

Each variable is coded by contrasts z_i of its states, orthogonal, of unit variance if all states are alike: for two
states, the spin -1 or +1. The conditional of variable i is a softmax regression with logits z_i(x) . (b_i + sum_j W_ij
z_j), and

    neighbourhood   minimise  - mean log p(x_i | x_rest) + strength sum_j ||W_ij||,   for each i by itself
    group-l1        the sum over all i, with W_ij = W_ji', and each edge penalised once  (Murphy 2012, section 19.6.3)

||.|| is the Euclidean norm of all entries of a block, so that blocks, that is edges, are exactly zero or not. For two
states W_ij is the coupling of an Ising model, and the penalty an l1 penalty. The neighbourhoods of i and j may
disagree: the rule "and" keeps an edge that both have, "or" one that either has.

Both are minimised by accelerated proximal gradients with restarts (Beck and Teboulle 2009; O'Donoghue and Candes 2015),
all variables at once. Stability selection repeats the search on random halves of the samples, and keeps edges that are
found often (Meinshausen and Buehlmann 2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.builders import pairwise_graph
from isinglass.graph.factor_graph import FactorGraph
from isinglass.learning.structure.learner import Observations, StructureLearner, register
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import bytes_text, number, whole_number

RULES = ("and", "or")


def coding(k: int) -> FloatArray:
    """Return the contrasts (states, k - 1) of a variable of k states.

    Examples
    --------
    >>> coding(2).tolist()
    [[-1.0], [1.0]]
    >>> np.allclose(coding(3).T @ coding(3) / 3, np.eye(2))
    True
    """
    found = np.zeros((k, k - 1))
    for c in range(1, k):  # Helmert's contrasts: state c against the mean of those before it
        found[:c, c - 1], found[c, c - 1] = -1.0, c
    return np.asarray(found * np.sqrt(k / (found**2).sum(axis=0, initial=0.0)), np.float64)


class _Regressions:
    """The regressions of all variables on all others."""

    def __init__(self, data: Observations) -> None:
        self.cards = data.cards
        size = float((data.cards - 1).sum())
        needed = 8 * (4 * size * size + 4 * size * len(data.states))
        what = f"regressions on {size:.0f} contrasts need {bytes_text(needed)}"
        require_memory(needed, memory_limit_bytes(None), what, "number the states from 0 on, without gaps")
        self.codes = [coding(int(k)) for k in data.cards]
        self.first = np.concatenate([[0], np.cumsum(data.cards - 1)])
        self.owner = np.repeat(np.arange(len(data.cards)), data.cards - 1)
        columns = [code[data.states[:, i]] for i, code in enumerate(self.codes)]
        self.z = np.concatenate([np.zeros((len(data.states), 0)), *columns], axis=1)
        self.states, self.share = data.states, data.weights / data.total
        self.same = self.owner[:, None] == self.owner[None, :]
        most = max((int(k) for k in data.cards), default=2)
        top = np.linalg.eigvalsh((self.z * self.share[:, None]).T @ self.z).max(initial=1.0)
        self.curvature = (1.0 if most == 2 else most / 2) * (top + 1.0)  # a bound of the second derivative

    def gradient(self, weights: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the mean loss by weights (inputs, outputs) and bias."""
        inner = self.z @ weights + bias
        slopes = np.empty_like(inner)
        for k in np.unique(self.cards[self.cards > 1]).tolist():
            which = np.flatnonzero(self.cards == k)
            columns = self.first[which][:, None] + np.arange(k - 1)
            slopes[:, columns] = self._slopes(inner[:, columns], self.states[:, which], coding(k))
        slopes *= self.share[:, None]
        return np.where(self.same, 0.0, self.z.T @ slopes), slopes.sum(axis=0)

    def _slopes(self, inner: FloatArray, states: IntArray, code: FloatArray) -> FloatArray:
        """Return the derivatives of -log p by the inner products (samples, variables, k - 1)."""
        if len(code) == 2:  # spins
            return np.asarray(np.tanh(inner) - (2.0 * states - 1.0)[:, :, None], np.float64)
        logits = inner @ code.T
        mass = np.exp(logits - logits.max(axis=2, keepdims=True))
        mass /= mass.sum(axis=2, keepdims=True)
        return np.asarray((mass - (states[:, :, None] == np.arange(len(code)))) @ code, np.float64)

    def norms(self, weights: FloatArray) -> FloatArray:
        """Return the norm of the block of each pair (input, output)."""
        squares = np.add.reduceat(np.add.reduceat(weights**2, self.starts, axis=0), self.starts, axis=1)
        found = np.zeros((len(self.cards), len(self.cards)))
        kept = np.flatnonzero(self.cards > 1)
        found[np.ix_(kept, kept)] = np.sqrt(squares)
        return found

    @property
    def starts(self) -> IntArray:
        """Where the blocks of variables with more than one state start."""
        return np.asarray(self.first[:-1][self.cards > 1], np.int64)

    def shrunk(self, weights: FloatArray, by: float) -> FloatArray:
        """Shrink each block by a length, to zero if it is shorter."""
        norms = self.norms(weights)
        factor = np.maximum(0.0, 1.0 - by / np.where(norms > 0, norms, np.inf))
        return np.asarray(weights * factor[self.owner[:, None], self.owner[None, :]], np.float64)


def sparse_weights(data: Observations, strength: float, symmetric: bool, tol: float, max_iter: int) -> FloatArray:
    """Minimise the penalised regressions; return the norm of each block (variables, variables)."""
    problem = _Regressions(data)
    size = problem.z.shape[1]
    weights, bias = np.zeros((size, size)), np.zeros(size)
    ahead, ahead_bias, momentum = weights, bias, 1.0
    step = 1.0 / problem.curvature / (2.0 if symmetric else 1.0)
    for _ in range(max_iter):
        slope, by_bias = problem.gradient(ahead, ahead_bias)
        if symmetric:
            slope = slope + slope.T
        new = problem.shrunk(ahead - step * slope, step * strength)
        new_bias = ahead_bias - step * by_bias
        moved, moved_bias = new - weights, new_bias - bias
        if ((ahead - new) * moved).sum() + ((ahead_bias - new_bias) * moved_bias).sum() > 0:
            momentum = 1.0  # the momentum points uphill: start it anew
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        factor = (momentum - 1) / following
        ahead, ahead_bias = new + factor * moved, new_bias + factor * moved_bias
        weights, bias, momentum = new, new_bias, following
        if max(np.abs(moved).max(initial=0.0), np.abs(moved_bias).max(initial=0.0)) <= tol * step * problem.curvature:
            break
    else:
        text = f"the sparse regressions stopped after {max_iter} iterations; raise max_iter, tol or strength"
        warn_of_convergence(text, stacklevel=5)
    return problem.norms(weights)


@dataclass(frozen=True)
class _Sparse(StructureLearner):
    """What the two methods share: their options, and stability selection."""

    strength: float | None = None
    rule: Literal["and", "or"] = "and"
    stability: float | None = None
    repeats: int = 50
    tol: float = 1e-4
    max_iter: int = 2000
    random_state: int = 0

    symmetric: ClassVar[bool] = False

    def learn(self, data: Observations) -> FactorGraph:
        """Return a graph with an edge for each block that is not zero."""
        if self.rule not in RULES:
            raise InputError("rule", " or ".join(map(repr, RULES)), repr(self.rule))
        number(self.tol, "tol", 0, math.inf)
        whole_number(self.max_iter, "max_iter", 1)
        chosen = self._edges(data) if self.stability is None else self._stable(data)
        edges = np.argwhere(np.triu(chosen, 1))
        return pairwise_graph(len(data.cards), edges, data.cards)

    def _edges(self, data: Observations) -> Mask:
        n, data = len(data.cards), data.of_seen_states()
        default = math.sqrt(math.log(max(n, 2)) / data.total)
        strength = default if self.strength is None else number(self.strength, "strength", 0, math.inf)
        found = sparse_weights(data, strength, self.symmetric, self.tol, self.max_iter) > 0
        return np.asarray(found & found.T if self.rule == "and" else found | found.T)

    def _stable(self, data: Observations) -> Mask:
        """Return the edges that are found on at least a share of random halves."""
        share = number(self.stability, "stability", 0, 1.0 + 1e-12)
        rng, n = np.random.default_rng(whole_number(self.random_state, "random_state")), len(data.states)
        repeats = whole_number(self.repeats, "repeats", 1)
        counts = np.zeros((len(data.cards), len(data.cards)))
        for _ in range(repeats):
            rows = np.sort(rng.permutation(n)[: max(1, n // 2)])
            counts += self._edges(Observations(data.states[rows], data.weights[rows], data.cards))
        return np.asarray(counts >= share * repeats - 1e-9)


@register
@dataclass(frozen=True)
class NeighbourhoodSelection(_Sparse):
    """A sparse regression of each variable on all others: ``"neighbourhood"``.

    Parameters
    ----------
    strength : float, optional
        Of the penalty, against the *mean* over samples. By default sqrt(log(variables) / samples).
    rule : "and" or "or", default="and"
        Whether both ends of an edge must choose it.
    stability : float, optional
        Keep edges that are found on at least this share of random halves of the samples, say 0.8.
    repeats : int, default=50
        How many halves.
    tol, max_iter
        The change of a weight at which the regressions end, and their most iterations.
    random_state : int, default=0
        Seed of the halves.
    """

    name: ClassVar[str] = "neighbourhood"
    summary: ClassVar[str] = "a sparse regression of each variable on all others"


@register
@dataclass(frozen=True)
class GroupLasso(_Sparse):
    """A pseudolikelihood with a penalty on whole edges, all at once: ``"group-l1"``.

    Parameters
    ----------
    strength, rule, stability, repeats, tol, max_iter, random_state
        As for `NeighbourhoodSelection`; the two ends of an edge always agree.
    """

    name: ClassVar[str] = "group-l1"
    summary: ClassVar[str] = "a sparse pseudolikelihood of all edges"
    symmetric: ClassVar[bool] = True
