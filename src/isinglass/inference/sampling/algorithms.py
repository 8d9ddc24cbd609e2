"""The samplers that `infer` and `sample` know by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from isinglass.errors import InputError
from isinglass.inference.algorithm import Facts, register
from isinglass.inference.sampling.algorithm import MonteCarlo, sampler_facts
from isinglass.inference.sampling.gibbs import SCANS, GibbsSampler, Scan
from isinglass.inference.sampling.sampler import Sampler
from isinglass.potentials import Potentials


@register
@dataclass(frozen=True)
class Gibbs(MonteCarlo):
    """Gibbs sampling: every variable is drawn given all others. It serves every model.

    Parameters
    ----------
    sweeps, chains, burn_in, thin, random_state, threads
        As for all samplers (`MonteCarlo`).
    scan : {"chromatic", "systematic", "random"}
        The sequence of the variables in a sweep: by colours (variables of one colour share no factor), by number, or
        chosen at random, with replacement.

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
