"""What the engine returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.inference.message_passing.run import Run
from isinglass.inference.message_passing.tape import Tape
from isinglass.kernels.layout import Edges
from isinglass.typing import Array, FloatArray, IntArray, Mask

EXACT = 1e-9  # the largest error, besides rounding, of a belief that is called exact


@dataclass(eq=False)
class Outcome:
    """The result of the engine; beliefs are flat, those of links are stored by groups of factors."""

    component_log_z: Array
    variables: Array
    factors: Array
    converged: Mask
    iterations: IntArray
    residual: FloatArray
    runs: list[tuple[Run, Tape | None]]
    off_domain: Mask  # whether no beliefs could give such a log Z: the messages diverged

    def exact_on_forests(self, edges: Edges) -> Mask:
        """Tell which components have the true messages, if they are forests with counting numbers of one.

        There a message is off by no more than the residuals of all messages that it depends on add up to: updates
        never widen a change.
        """
        if not self.residual.any():
            return self.converged
        certain: Mask = self.converged & (self.messages(edges) * self.residual <= EXACT)
        return certain

    def messages(self, edges: Edges) -> IntArray:
        """Return the number of messages of each component."""
        return np.bincount(edges.component[edges.edge_link], minlength=len(self.residual))

    def normalise(self, among: Mask, edges: Edges, first_belief: IntArray) -> None:
        """Let beliefs sum to one where logarithms are so large that rounding took more than that from them."""
        variables, links = np.flatnonzero(among[edges.variable_component]), np.flatnonzero(among[edges.component])
        places = [(self.variables, edges.first_state[i], edges.cards[i]) for i in variables]
        places += [(self.factors, first_belief[f], edges.size[f]) for f in links]
        for beliefs, first, size in places:
            belief = beliefs[first : first + size]
            total = belief.sum()
            if total.real > 0:
                belief /= total
