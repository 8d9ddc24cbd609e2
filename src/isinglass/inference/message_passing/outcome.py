"""What the engine returns.

The beliefs of factors and log Z need a pass over the links, and many losses do not use them. If it is certain that
nothing underflows in this pass, it is made at their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock

import numpy as np

from isinglass.inference.message_passing.run import Run
from isinglass.inference.message_passing.shares import fill
from isinglass.inference.message_passing.tape import Tape
from isinglass.kernels.layout import Beliefs, Edges
from isinglass.runtime.deferring import defer
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, FloatArray, IntArray, Mask

EXACT = 1e-9  # the largest error, besides rounding, of a belief that is called exact
LARGE = 1e5  # nats: their rounding is about 1e-11


@dataclass(eq=False)
class Outcome:
    """The result of the engine; beliefs are flat, those of links are stored by groups of factors.

    Attributes
    ----------
    log_z_so_far, factors_so_far : array
        Complete when nothing is in `later`.
    later : list of functions of the outcome
        What is left to do for them. None refers to the outcome itself: it is freed as soon as nobody uses it.
    """

    log_z_so_far: Array
    variables: Array
    factors_so_far: Array
    converged: Mask
    iterations: IntArray
    residual: FloatArray
    runs: list[tuple[Run, Tape | None]]
    off_domain: Mask  # whether no beliefs could give such a log Z: the messages diverged
    begun: bool = False  # whether `variables`, which is not initialised, has been prepared
    later: list[Callable[[Outcome], None]] = field(default_factory=list)
    lock: RLock = field(default_factory=RLock)

    @property
    def component_log_z(self) -> Array:
        """Log Z of each component."""
        self.complete()
        return self.log_z_so_far

    @property
    def factors(self) -> Array:
        """The beliefs of all factors."""
        self.complete()
        return self.factors_so_far

    def begin(self, spread: ThreadMap, all_at_once: bool) -> None:
        """Prepare `variables` for a read-out: with zeros, unless it writes the beliefs of all variables."""
        with self.lock:
            if not (self.begun or all_at_once):
                fill(spread, self.variables, 0)
            self.begun = True

    def complete(self) -> None:
        """Do what was left for later."""
        with self.lock:
            while self.later:
                self.later[0](self)
                self.later.pop(0)

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
        places += [(beliefs.factors, beliefs.first_belief[f], edges.size[f]) for f in links]
        for flat, first, size in places:
            belief = flat[first : first + size]
            total = belief.sum()
            if total.real > 0:
                belief /= total


defer(Outcome, "log_z_so_far")
