"""Composite likelihood: blocks of variables, each given all others (Lindsay 1988; Varin, Reid and Firth 2011).

    L  =  - sum_B log p(y_B | y_rest)  =  sum_B ( log Z(y_rest) - log Z(y) ),

log Z(y_rest) clamped to the labels of all variables outside of B. The blocks here are a partition into few sets whose
variables form trees, so that exact inference inside a block takes linear time. Blocks of one variable would give the
pseudolikelihood, one block the likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.elimination.order import interaction_graph
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.forests.disjoint_sets import root_of
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import MarkovObjective, Task, total
from isinglass.learning.markov.samples import Copies
from isinglass.losses.likelihood import Likelihood, log_z_loss
from isinglass.losses.loss import Differentiate, Evaluation
from isinglass.losses.observed import component_weights, known_states
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import items, variables_of


def tree_blocks(graph: FactorGraph) -> IntArray:
    """Return a block number for each variable: the variables of a block form a forest.

    Variables are taken in their order; each goes to the first block in which it closes no cycle.

    Examples
    --------
    >>> import isinglass as ig
    >>> tree_blocks(ig.grid_graph(3, 3, 2)).tolist()
    [0, 0, 0, 0, 1, 0, 0, 0, 1]
    """
    return graph.cached("tree_blocks", lambda: _tree_blocks(graph))


def _tree_blocks(graph: FactorGraph) -> IntArray:
    first, neighbours = (a.tolist() for a in interaction_graph(graph, np.arange(graph.n_variables)))
    block, parent = [-1] * graph.n_variables, list(range(graph.n_variables))
    for i in range(graph.n_variables):
        near: dict[int, list[int]] = {}
        for j in neighbours[first[i] : first[i + 1]]:
            if block[j] >= 0:
                near.setdefault(block[j], []).append(root_of(parent, j))
        b = 0
        while len(set(near.get(b, []))) < len(near.get(b, [])):  # two neighbours in one tree: a cycle
            b += 1
        block[i] = b
        for r in near.get(b, []):
            parent[r] = i
    return np.array(block, np.int64)


def composite(
    potentials: Potentials,
    labels: IntArray,
    weights: FloatArray | None,
    blocks: IntArray,
    differentiate: Differentiate,
) -> Evaluation:
    """Return the composite likelihood of given blocks, one number for each variable."""
    like, graph = Likelihood(), potentials.graph
    y = known_states(labels, potentials)
    by_component = component_weights(weights, graph)
    found: Evaluation | None = None
    used = np.zeros(graph.n_components)  # how many blocks of each component show something
    for b in range(int(blocks.max(initial=-1)) + 1):
        inside = blocks == b
        inside[list(potentials.evidence)] = False
        shows = np.zeros(graph.n_components, np.bool_)
        shows[graph.variable_component[inside & (y >= 0)]] = True
        weight = np.where(shows, by_component, 0.0)
        one = differentiate(like.clamp(potentials, np.where(inside, -1, y)), log_z_loss(weight))
        found = one if found is None else found + one
        used += shows
    if found is None:
        return differentiate(like.clamp(potentials, y), log_z_loss(np.zeros(graph.n_components)))
    if like.fully_observed(potentials, y):
        return found - Evaluation(*like.score(potentials, y, (used * by_component)[graph.variable_component]))
    return found - differentiate(like.clamp(potentials, y), log_z_loss(used * by_component))


class BlockObjective(MarkovObjective):
    """The composite likelihood of given blocks."""

    def __init__(self, task: Task, blocks: IntArray) -> None:
        super().__init__(task)
        self.blocks = blocks

    @cached_property
    def copies(self) -> Copies:
        """A copy of the graph for each sample."""
        return Copies(self.model, self.samples)

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return the sum over all samples and blocks."""
        copies = self.copies
        every = np.tile(self.blocks, len(self.samples.weights))
        differentiate = self.task.rule.differentiate(self.task.algorithm)
        found = composite(copies.potentials(potentials), copies.labels, copies.variable_weights, every, differentiate)
        return total(found.value, found.groups, found.infos)


@register
@dataclass(frozen=True)
class Composite(Method):
    """Composite likelihood: ``"composite"``.

    Parameters
    ----------
    blocks : sequence of sequences of int, optional
        The variables of each block, a partition. By default few blocks whose variables form trees.
    """

    blocks: Sequence[Sequence[int]] | None = None

    name: ClassVar[str] = "composite"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "- sum_B log p(x_B | x_rest)",
        consistent=True,
        convex=True,
        missing=True,
        virtual=False,
        note="inference inside blocks alone; between pseudolikelihood (single variables) and likelihood (one block)",
    )

    def objective(self, task: Task) -> BlockObjective:
        """Return minus the composite log-likelihood."""
        graph = task.model.graph
        return BlockObjective(task, tree_blocks(graph) if self.blocks is None else self._numbered(graph.n_variables))

    def _numbered(self, n: int) -> IntArray:
        """Return the block of each variable."""
        listed = items(self.blocks, "method.blocks", "the variables of each block")
        block = np.full(n, -1, np.int64)
        for b, members in enumerate(listed):
            inside = variables_of(list(members), n, f"method.blocks[{b}]")
            if (block[inside] >= 0).any():
                twice = int(inside[np.argmax(block[inside] >= 0)])
                raise InputError(f"method.blocks[{b}]", "variables of no other block", f"{twice}")
            block[inside] = b
        if (block < 0).any():
            raise InputError("method.blocks", "a block for each variable", f"none for {int(np.argmin(block))}")
        return block
