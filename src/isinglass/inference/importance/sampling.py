"""Importance sampling: assignments are drawn from a reference distribution q and weighted by w = f(x) / q(x).

    Z = E_q[ f(x) / q(x) ]

q comes from the beliefs of an approximate inference (`isinglass.inference.importance.reference`). Those of a product,
such as mean field, are too narrow where variables are coupled. Then q is a defensive mixture (Hesterberg 1995) with the
uniform distribution u on what hard zeros leave, from which `FLAT` of the samples are drawn:

    q(x)  =  (1 - FLAT) b(x) + FLAT u(x)

So weights are bounded by f(x) / (FLAT u(x)), and no mode of a small model is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.inference.algorithm import Facts, Progress, register, streams
from isinglass.inference.importance.path import Path
from isinglass.inference.importance.reference import Reference, Start
from isinglass.inference.importance.weighted import LogZ, Weighted, WeightedStates, revive
from isinglass.inference.sampling.chains import Chains, States
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import RandomState, generator, whole_number

FLAT = 0.2


@register
@dataclass(frozen=True)
class ImportanceSampling(Weighted):
    """Importance sampling, with the beliefs of an approximate inference as the proposal.

    Parameters
    ----------
    samples : int
        The number of samples.
    proposal : str or Algorithm
        The proposal distribution: an approximate inference ("bp", "mf", "trw", ...), whose beliefs on a spanning forest
        are used; "tree": the model restricted to the factors of a spanning forest; or "uniform". Where the proposal is
        a product ("mf"), a fifth of the samples is drawn uniformly.
    random_state : int, Generator or None
        The seed; None: a random seed.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.2, field=0.1)
    >>> r = ig.infer(p, "importance", random_state=0)
    >>> r.info.converged, bool(abs(r.log_z - ig.infer(p, "exact").log_z) < 3 * r.info.stderr < 0.05)
    (True, True)
    """

    samples: int = 4000
    proposal: Start = "bp"
    random_state: RandomState = None

    name: ClassVar[str] = "importance"
    facts: ClassVar[Facts] = Facts(
        "importance sampling from the beliefs of an approximation: log Z with a standard error",
        exact="never",
        bound=None,
        stochastic=True,
    )

    def checked(self) -> None:
        """Check the options."""
        whole_number(self.samples, "samples", 2)

    @property
    def lanes(self) -> int:
        """Number of samples."""
        return self.samples

    @property
    def steps(self) -> int:
        """One draw."""
        return 1

    @property
    def more(self) -> str:
        """What helps against degenerate weights."""
        return "raise samples, use another proposal, or 'ais'"

    def weigh(self, potentials: Potentials, progress: Progress | None) -> tuple[WeightedStates, LogZ, dict[str, Array]]:
        """Draw from the proposal."""
        rng = generator(self.random_state)
        first = Path.of(potentials, Reference.of(potentials, self.proposal))
        random = streams(potentials, rng)
        states = first.reference.draw(self.samples, random)
        coupled = _coupled(potentials) & ~_coupled(first.reference.potentials)
        flat = round(FLAT * self.samples) if self.proposal != "uniform" and coupled.any() else 0
        paths = [(first, np.where(coupled, 1 - flat / self.samples, 1.0))]
        if flat:
            uniform = Path.of(potentials, Reference.of(potentials, "uniform"))
            mixed = coupled[potentials.graph.variable_component]
            states[-flat:, mixed] = uniform.reference.draw(flat, random)[:, mixed]
            paths.append((uniform, np.where(coupled, flat / self.samples, 0.0)))
        chains = Chains.at(potentials, states, rng)

        def log_weights(states: States) -> FloatArray:
            each = []
            for path, share in paths:
                log_share = np.log(np.where(share > 0, share, 1.0))
                ratio = path.log_ratio(states) + (path.reference.log_z - log_share)[:, None]
                each.append(np.where(share[:, None] > 0, ratio, np.inf))
            return np.asarray(-np.logaddexp.reduce(np.negative(each), axis=0))

        log_w = log_weights(chains.states)
        revive(potentials, chains, np.asarray(log_w == -np.inf), 0)
        return WeightedStates(chains, log_w, log_weights), LogZ.mean(log_w), {"log_weights": log_w}


def _coupled(potentials: Potentials) -> Mask:
    """Tell which components have factors of two or more variables."""
    graph = potentials.graph
    found = np.zeros(graph.n_components, np.bool_)
    for group in graph.groups:
        if group.arity > 1:
            found[graph.factor_component[group.factors]] = True
    return found
