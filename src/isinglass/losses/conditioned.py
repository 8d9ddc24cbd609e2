"""The conditional likelihood of labels where other variables are hidden, by conditioning the labels out of the graph.

    L  =  log Z(x) - log Z(x, y)             (Stoyanov, Ropson and Eisner 2011, section 3.1)

It is the loss "cl". There, the inference that gives log Z(x, y) carries the labelled variables along as evidence; here
it runs on the graph of the hidden variables alone (`isinglass.models.conditioning`), which is smaller. Both have the
same fixed points. It is for inferences without options that are arrays over the factors of the whole graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from isinglass.graph.message_graph import pool_of, share_pool
from isinglass.losses.likelihood import Likelihood, log_z_loss
from isinglass.losses.loss import Differentiate, Evaluation, LossProblem
from isinglass.losses.observed import component_weights, known_states
from isinglass.models.conditioning import Conditioning
from isinglass.potentials import Potentials
from isinglass.typing import IntArray


@dataclass(frozen=True)
class ConditionedLikelihood(Likelihood):
    """Minus the log-probability of all labels, with labelled variables conditioned out.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.chain_graph(3, 2), [*np.eye(3)[:, :2], [[0, 1], [2, 3]], [[0, 5], [1, 0]]])
    >>> exact, problem = ig.gradients.forward(ig.Exact()), ig.losses.LossProblem(p, np.array([1, -1, 0]))
    >>> [loss.evaluate(problem, exact).value.round(6).tolist() for loss in (Likelihood(), ConditionedLikelihood())]
    [[2.44019], [2.44019]]
    """

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Return log Z - log Z(y), the latter on the graph of what is hidden."""
        potentials, weights = problem.shared(self.name), problem.weights
        labels = known_states(problem.labels, potentials)
        if potentials.evidence or self.fully_observed(potentials, labels):
            return super().evaluate(problem, differentiate)
        log_z = log_z_loss(component_weights(weights, potentials.graph))
        free, smaller = differentiate(potentials, log_z), _conditioning(potentials, labels)
        found = differentiate(smaller.potentials(potentials), log_z)
        groups = smaller.back(found.groups) if found.groups else ()
        return free - Evaluation(found.value, groups, found.infos)


def _conditioning(potentials: Potentials, labels: IntArray) -> Conditioning:
    """Return what is left given the labels; it is prepared once for a graph."""
    sizes = [len(tables) for tables in potentials.groups]

    def make() -> Conditioning:
        made = Conditioning(potentials.graph, potentials.table_ids, sizes, labels)
        share_pool(made.graph, pool_of(potentials.graph))
        return made

    return potentials.graph.cached(("conditioning", labels.tobytes()), make)
