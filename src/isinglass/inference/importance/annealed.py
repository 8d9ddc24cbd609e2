"""Annealed importance sampling (Neal 2001): log Z with a standard error.

With 0 = b_0 < b_1 < ... < b_T = 1 and the path f_b of `isinglass.inference.importance.path`, each chain starts with
x_1 ~ q, and x_{t+1} is drawn from x_t by sweeps of Gibbs sampling that leave f_{b_t} invariant. Its weight is

    w = prod_{t=1}^{T} f_{b_t}(x_t) / f_{b_{t-1}}(x_t),        log w = sum_t (b_t - b_{t-1}) log( f(x_t) / q(x_t) )

and E[w] = Z / Z_q exactly, whether the sweeps mix or not. By Jensen's inequality, E[log w] is at most log(Z / Z_q).

In reverse (Grosse, Ghahramani and Adams 2015), x_T is drawn from the model, and the same sweeps in reverse order lead
to q. The mean of the inverse weights is s Z_q / Z, so the estimate of log Z tends to be too large. Together with the
forward estimate it brackets log Z. Here s is the probability under q of the assignments that the hard zeros of the
model allow (one if there are none); it is estimated by samples of q. Bridge sampling combines both directions, whose
sweeps must be reversals of each other (`isinglass.inference.importance.weights`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.inference.algorithm import Facts, Progress, register
from isinglass.inference.importance.path import Path
from isinglass.inference.importance.reference import Reference, Start
from isinglass.inference.importance.weighted import LogZ, Weighted, WeightedStates, revive
from isinglass.inference.importance.weights import bridge
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.inference.sampling.starts import component_of
from isinglass.inference.streams import streams
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, assignments, generator, jobs_of, whole_number

Direction = Literal["forward", "reverse", "both"]
DIRECTIONS = ("forward", "reverse", "both")


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
    direction : {"forward", "reverse", "both"}
        "forward": the estimate of Z is unbiased, and that of log Z tends to be too small. "reverse": starts from
        samples of the model, and log Z tends to be too large. "both": the bridge estimate of the two; `info.details`
        has each of them, "log_z_forward" and "log_z_reverse".
    data : int array (n, variables), optional
        Samples of the model, for "reverse" and "both". By default exact inference draws one for each chain.
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
    direction: Direction = "forward"
    data: ArrayLike | None = None
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
        if self.direction not in DIRECTIONS:
            raise InputError("direction", " or ".join(map(repr, DIRECTIONS)), repr(self.direction))
        if self.data is not None and self.direction == "forward":
            raise InputError("data", "none in direction 'forward'", "some", "direction='reverse' or 'both'")

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
        """Anneal the chains, forward, in reverse, or both."""
        rng = generator(self.random_state)
        path = Path.of(potentials, Reference.of(potentials, self.start))
        shift = path.reference.log_z[:, None]
        if self.direction == "forward":
            up = self._forward(path, rng, progress)
            return up, LogZ.mean(up.log_weights), {"log_weights": up.log_weights}
        start = self._data(potentials, rng)
        down = self._reverse(path, start, rng, progress) - shift  # of s / Z
        if self.direction == "reverse":
            equal = np.zeros((len(down), len(start)))
            found = WeightedStates(Chains.at(potentials, start).states, equal)
            drawn = path.reference.draw(self.chains, streams(potentials, rng))
            ratios = path.log_ratio(Chains.at(potentials, drawn).states)
            return found, _inverse(down, ratios), {"log_weights": down}
        up = self._forward(path, rng, progress)
        forward, reverse = LogZ.mean(up.log_weights), _inverse(down, up.log_weights)
        joined = np.array([bridge(one, two) for one, two in zip(up.log_weights, down, strict=True)]).reshape(-1, 2)
        lost = forward.value == -np.inf  # no forward chain met a possible assignment: the reverse ones are left
        joined[lost] = np.stack([reverse.value, reverse.stderr], axis=1)[lost]
        size, k = np.minimum(forward.ess, reverse.ess), np.maximum(forward.pareto_k, reverse.pareto_k)
        details: dict[str, Array] = {"log_weights": up.log_weights, "log_weights_reverse": down}
        for name, one in (("forward", forward), ("reverse", reverse)):
            details |= {f"log_z_{name}": one.value, f"stderr_{name}": one.stderr}
        return up, LogZ(joined[:, 0], joined[:, 1], size, k, forward.short & reverse.short), details

    def _data(self, potentials: Potentials, rng: np.random.Generator) -> IntArray:
        """Return assignments of the model."""
        graph = potentials.graph
        if self.data is not None:
            given = assignments(self.data, graph.cards, "data")
            if given.ndim != 2 or len(given) < 2:
                raise InputError("data", "at least two assignments, shape (n, variables)", f"shape {given.shape}")
            if not (potentials.log_score(given) > -np.inf).all():
                raise InputError("data", "samples of the model", "one of probability zero")
            return given
        states = np.zeros((self.chains, graph.n_variables), np.int64)
        for k, one in enumerate(streams(potentials, rng)):
            members = np.flatnonzero(graph.variable_component == k)
            states[:, members] = Exact().sample(component_of(potentials, k), self.chains, one)
        return states

    def _forward(self, path: Path, rng: np.random.Generator, progress: Progress | None) -> WeightedStates:
        """Go from the reference to the model."""
        model, b = path.model, np.linspace(0.0, 1.0, self.temperatures + 1)
        chains = Chains.at(model, path.reference.draw(self.chains, streams(model, rng)), rng)
        log_w = np.tile(path.reference.log_z[:, None], (1, self.chains))
        for t in range(1, self.temperatures + 1):
            log_w += (b[t] - b[t - 1]) * path.log_ratio(chains.states)
            if t == 1:
                revive(model, chains, np.asarray(log_w == -np.inf), 0)
            if t < self.temperatures:
                self._advance(GibbsSampler(path.at(b[t])), chains, t, progress)
        return WeightedStates(chains.states, log_w)

    def _reverse(self, path: Path, start: IntArray, rng: np.random.Generator, progress: Progress | None) -> FloatArray:
        """Go from the model to the reference; return the logarithms of the inverse weights, (components, chains)."""
        b = np.linspace(0.0, 1.0, self.temperatures + 1)
        chains = Chains.at(path.model, start, rng)
        log_w = np.zeros((path.graph.n_components, chains.n))
        for t in range(self.temperatures, 0, -1):
            log_w -= (b[t] - b[t - 1]) * path.log_ratio(chains.states)
            if t > 1:
                sampler = GibbsSampler(path.at(b[t - 1]), backwards=True)
                self._advance(sampler, chains, self.temperatures - t, progress)
        return log_w

    def _advance(self, sampler: GibbsSampler, chains: Chains, t: int, progress: Progress | None) -> None:
        if progress is not None:
            progress(self.name, t / self.temperatures)
        sampler.advance(chains, self.sweeps, jobs_of(self.n_jobs))


def _inverse(down: FloatArray, of_reference: FloatArray) -> LogZ:
    """Return log Z by inverse weights, given the weights of draws of the reference; those of -inf are impossible.

    If all are, the estimate is an upper bound, and its standard error infinite.
    """
    found, n = LogZ.mean(down), of_reference.shape[1]
    share = (of_reference > -np.inf).mean(axis=1)
    some = share > 0
    shift = np.log(np.where(some, share, 1.0))
    variance = np.where(some, (1 - share) / np.where(some, share * n, 1.0), np.inf)
    return LogZ(shift - found.value, np.sqrt(found.stderr**2 + variance), found.ess, found.pareto_k, found.short)
