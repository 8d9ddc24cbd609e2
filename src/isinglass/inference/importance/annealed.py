"""Annealed importance sampling (Neal 2001): log Z with a standard error.

With 0 = b_0 < b_1 < ... < b_T = 1 and the path f_b of `isinglass.inference.importance.path`, each chain starts with
x_1 ~ q, and x_{t+1} is drawn from x_t by sweeps of Gibbs sampling that leave f_{b_t} invariant. Its weight is

    w = prod_{t=1}^{T} f_{b_t}(x_t) / f_{b_{t-1}}(x_t),        log w = sum_t (b_t - b_{t-1}) log( f(x_t) / q(x_t) )

and E[w] = Z / Z_q exactly, whether the sweeps mix or not. By Jensen's inequality, E[log w] is at most log(Z / Z_q).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.inference.algorithm import Facts, Progress, register, streams
from isinglass.inference.importance.path import Path
from isinglass.inference.importance.reference import Reference, Start
from isinglass.inference.importance.weighted import LogZ, Weighted, WeightedStates, revive
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.potentials import Potentials
from isinglass.typing import Array
from isinglass.validation import RandomState, generator, jobs_of, whole_number


@register
@dataclass(frozen=True)
class AnnealedImportance(Weighted):
    """Annealed importance sampling: from a simple distribution to the model in small steps.

    Parameters
    ----------
    temperatures : int
        The number of steps from the initial distribution to the model.
    chains : int
        The number of chains, each of which has one weight.
    sweeps : int
        The number of Gibbs sweeps at each temperature.
    start : str or Algorithm
        The initial distribution: "uniform"; "tree" (the model restricted to the factors of a spanning forest); or an
        approximate inference such as "mf" or "bp", whose beliefs on a spanning forest are used.
    random_state : int, Generator or None
        The seed; None: a random seed.
    n_jobs : int, optional
        The number of threads that share the chains. It does not change the result.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.3)
    >>> r = ig.infer(p, "ais", random_state=0)
    >>> r.info.converged, bool(abs(r.log_z - ig.infer(p, "exact").log_z) < 3 * r.info.stderr < 0.1)
    (True, True)
    """

    temperatures: int = 100
    chains: int = 200
    sweeps: int = 1
    start: Start = "uniform"
    random_state: RandomState = None
    n_jobs: int | None = None

    name: ClassVar[str] = "ais"
    facts: ClassVar[Facts] = Facts(
        "annealed importance sampling: log Z with a standard error",
        exact="never",
        bound=None,
        stochastic=True,
        threads=True,
    )

    def checked(self) -> None:
        """Check the options."""
        for name, least in (("temperatures", 1), ("chains", 2), ("sweeps", 1)):
            whole_number(getattr(self, name), name, least)
        jobs_of(self.n_jobs)

    @property
    def lanes(self) -> int:
        """Number of chains."""
        return self.chains

    @property
    def steps(self) -> int:
        """Sweeps of a chain."""
        return (self.temperatures - 1) * self.sweeps

    @property
    def more(self) -> str:
        """What helps against degenerate weights."""
        return "raise temperatures or chains, or use another start ('tree', 'mf', 'bp')"

    def weigh(self, potentials: Potentials, progress: Progress | None) -> tuple[WeightedStates, LogZ, dict[str, Array]]:
        """Anneal the chains, from the reference to the model."""
        rng = generator(self.random_state)
        path = Path.of(potentials, Reference.of(potentials, self.start))
        b, threads = np.linspace(0.0, 1.0, self.temperatures + 1), jobs_of(self.n_jobs)
        chains = Chains.at(potentials, path.reference.draw(self.chains, streams(potentials, rng)), rng)
        log_w = np.tile(path.reference.log_z[:, None], (1, self.chains))
        for t in range(1, self.temperatures + 1):
            log_w += (b[t] - b[t - 1]) * path.log_ratio(chains.states)
            if t == 1:
                revive(potentials, chains, np.asarray(log_w == -np.inf), 0)
            if t < self.temperatures:
                if progress is not None:
                    progress(self.name, t / self.temperatures)
                GibbsSampler(path.at(b[t])).advance(chains, self.sweeps, threads)
        return WeightedStates(chains, log_w), LogZ.mean(log_w), {"log_weights": log_w}
