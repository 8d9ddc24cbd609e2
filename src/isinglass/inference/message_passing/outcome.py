"""What the engine returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.inference.message_passing.run import Run
from isinglass.inference.message_passing.tape import Tape
from isinglass.kernels.layout import Beliefs, Edges
from isinglass.typing import Array, FloatArray, IntArray, Mask

EXACT = 1e-9  # the largest error, besides rounding, of a belief that is called exact
LARGE = 1e5  # nats: their rounding is about 1e-11


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

    def normalise_large(self, among: Mask, edges: Edges, beliefs: Beliefs) -> None:
        """Let beliefs sum to one where logarithms are so large that their rounding shows in the sum."""
        large = np.zeros_like(among)
        for components, logs in ((edges.variable_component, beliefs.z_variables), (edges.component, beliefs.z_links)):
            large[components[~(np.abs(logs.real) < LARGE)]] = True
        large &= among
        variables, links = np.flatnonzero(large[edges.variable_component]), np.flatnonzero(large[edges.component])
        places = [(self.variables, edges.first_state[i], edges.cards[i]) for i in variables]
        places += [(self.factors, beliefs.first_belief[f], edges.size[f]) for f in links]
        for flat, first, size in places:
            belief = flat[first : first + size]
            total = belief.sum()
            if total.real > 0:
                belief /= total
