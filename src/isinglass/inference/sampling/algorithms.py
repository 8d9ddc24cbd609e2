"""The samplers that `infer` and `sample` know by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.algorithm import Facts, register
from isinglass.inference.sampling.algorithm import MonteCarlo, sampler_facts
from isinglass.inference.sampling.clusters import SwendsenWangSampler, WolffSampler
from isinglass.inference.sampling.forests import TreeGibbsSampler
from isinglass.inference.sampling.gibbs import SCANS, GibbsSampler, Scan
from isinglass.inference.sampling.sampler import Sampler
from isinglass.inference.sampling.tempering import TemperingSampler
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray
from isinglass.validation import whole_number


@register
@dataclass(frozen=True)
class Gibbs(MonteCarlo):
    """Gibbs sampling: each variable in turn is drawn given all others. It works for every model.

    Parameters
    ----------
    sweeps, chains : int
        The number of sweeps of each chain, including the burn-in, and the number of chains.
    burn_in : int, optional
        The number of initial sweeps that are discarded; by default a quarter of `sweeps`.
    thin : int, optional
        Keep one sample of every `thin` sweeps. Beliefs are means over all sweeps.
    random_state : int, Generator or None
        The seed; None: a random seed.
    n_jobs : int, optional
        The number of threads that share the chains.
    scan : {"chromatic", "systematic", "random"}
        The order of the variables in a sweep: by colours (variables of one colour share no factor), by number, or
        drawn at random with replacement.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.2, field=0.1)
    >>> r = ig.infer(p, "gibbs", sweeps=2000, random_state=0)
    >>> r.info.converged, bool(r.info.r_hat < 1.01), bool(r.info.ess > 400)
    (True, True, True)
    >>> bool(abs(r.variable(5)[1] - ig.infer(p, "exact").variable(5)[1]) < 0.01)
    True
    """

    scan: Scan = "chromatic"

    name: ClassVar[str] = "gibbs"
    facts: ClassVar[Facts] = sampler_facts("Gibbs sampling: each variable given all others")

    def checked(self) -> None:
        """Check the options."""
        super().checked()
        if self.scan not in SCANS:
            raise InputError("scan", " or ".join(map(repr, SCANS)), repr(self.scan))

    def sampler(self, potentials: Potentials, held: Iterable[int] = ()) -> Sampler:
        """Return the Gibbs sampler of a model."""
        return GibbsSampler(potentials, self.scan, held)


@register
@dataclass(frozen=True)
class TreeGibbs(MonteCarlo):
    """Blocked Gibbs sampling: the blocks are forests, each drawn exactly given all other variables.

    It works for every model, and mixes faster than `Gibbs` if couplings are strong. On a forest, every sweep is an
    independent sample.

    Parameters
    ----------
    sweeps, chains, burn_in, thin, random_state, n_jobs
        As for all samplers (`MonteCarlo`).

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.chain_graph(30, 2)).potentials(coupling=1.0, field=0.1)
    >>> ig.infer(p, "tree-gibbs", random_state=0).info.converged
    True
    """

    name: ClassVar[str] = "tree-gibbs"
    facts: ClassVar[Facts] = sampler_facts("Gibbs sampling of blocks that are forests")

    def sampler(self, potentials: Potentials, held: Iterable[int] = ()) -> Sampler:
        """Return the sampler of forests of a model."""
        return TreeGibbsSampler(potentials, held)


@register
@dataclass(frozen=True)
class SwendsenWang(MonteCarlo):
    """Swendsen-Wang sampling of Ising and Potts models: whole clusters of equal states are redrawn.

    It works for binary models with factors of one or two variables and, with more states, for couplings that prefer
    equal states, J [x = y] with J >= 0. Unary tables (fields) are allowed. It is most efficient near the critical
    temperature of a model without fields, and inefficient with strong fields or frustration.

    Parameters
    ----------
    sweeps, chains, burn_in, thin, random_state, n_jobs
        As for all samplers (`MonteCarlo`).

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(16, 16, 2)).potentials(coupling=0.44)
    >>> x = ig.sample(p, 10, "swendsen-wang", burn_in=100, random_state=0)
    >>> x.shape
    (10, 256)
    """

    name: ClassVar[str] = "swendsen-wang"
    facts: ClassVar[Facts] = sampler_facts("clusters of equal states, all at once (Ising, Potts)")

    def sampler(self, potentials: Potentials, held: Iterable[int] = ()) -> Sampler:
        """Return the cluster sampler of a model."""
        return SwendsenWangSampler(potentials, held)


@register
@dataclass(frozen=True)
class Wolff(MonteCarlo):
    """Wolff sampling of Ising and Potts models: one cluster of equal states at a time.

    It works for the same models as `SwendsenWang`.

    Parameters
    ----------
    sweeps, chains, burn_in, thin, random_state, n_jobs
        As for all samplers (`MonteCarlo`).
    clusters : int, optional
        The number of clusters in a sweep; by default the square root of the number of variables.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.44)
    >>> ig.sample(p, 10, "wolff", burn_in=100, random_state=0).shape
    (10, 64)
    """

    clusters: int | None = None

    name: ClassVar[str] = "wolff"
    facts: ClassVar[Facts] = sampler_facts("clusters of equal states, one at a time (Ising, Potts)")

    def checked(self) -> None:
        """Check the options."""
        super().checked()
        if self.clusters is not None:
            whole_number(self.clusters, "clusters", 1)

    def sampler(self, potentials: Potentials, held: Iterable[int] = ()) -> Sampler:
        """Return the cluster sampler of a model."""
        return WolffSampler(potentials, self.clusters, held)


@register
@dataclass(frozen=True)
class ParallelTempering(MonteCarlo):
    """Parallel tempering: replicas at higher temperatures cross barriers, and exchange states with colder ones.

    The replicas of a chain have geometrically spaced inverse temperatures, from 1 to `hottest`, and are updated by
    Gibbs sampling. It works for every model; hard zeros remain at every temperature.
    ``info.details["exchange_rates"]`` has the acceptance rate of exchanges between neighbouring temperatures. If it is
    below about 0.2, use more replicas.

    Parameters
    ----------
    sweeps, chains, burn_in, thin, random_state, n_jobs
        As for all samplers (`MonteCarlo`).
    replicas : int
        The number of temperatures.
    hottest : float
        The smallest inverse temperature, above 0 and at most 1.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.9)
    >>> ig.infer(p, "tempering", sweeps=4000, random_state=0).info.converged
    True
    """

    replicas: int = 8
    hottest: float = 0.1

    name: ClassVar[str] = "tempering"
    facts: ClassVar[Facts] = sampler_facts("parallel tempering of Gibbs samplers")

    def checked(self) -> None:
        """Check the options."""
        super().checked()
        whole_number(self.replicas, "replicas", 1)
        if not isinstance(self.hottest, int | float) or not 0 < self.hottest <= 1:
            raise InputError("hottest", "an inverse temperature above 0 and at most 1", repr(self.hottest))

    def sampler(self, potentials: Potentials, held: Iterable[int] = ()) -> TemperingSampler:
        """Return the replicas of a model."""
        return TemperingSampler(potentials, np.geomspace(1.0, self.hottest, self.replicas), held)

    def report(self, sampler: Sampler) -> Mapping[str, float | FloatArray]:
        """Report how often states were exchanged."""
        return {"exchange_rates": sampler.exchange_rates} if isinstance(sampler, TemperingSampler) else {}
