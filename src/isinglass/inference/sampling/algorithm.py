"""The base class of samplers as inference algorithms: options, chains, beliefs, and the test of convergence.

A run has converged if, for every belief of variables and factors, R-hat is below `R_HAT` and the effective sample size
is at least `ESS`, from at least `CHAINS` chains; and if it is proved that the chains can reach every possible
assignment (`isinglass.inference.sampling.diagnostics`). R-hat sees only modes in which some chain starts. So what looks
converged is compared with many short chains from other starts (as by Margossian et al. 2024), which settle in more
modes: they must find nothing that the run has overlooked (`isinglass.inference.sampling.estimate.overlooked`). That is
a diagnostic, no proof: modes that no chain has visited remain undetected.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import belief_components, belief_entries, first_states
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, Taping
from isinglass.inference.result import FactorBeliefs, Info, Result, VariableBeliefs
from isinglass.inference.sampling.chains import Chains, state_type
from isinglass.inference.sampling.diagnostics import Diagnostics, ergodic_components, split_r_hat
from isinglass.inference.sampling.estimate import AT_ONCE, OTHERS, Estimate, estimate, overlooked, settled
from isinglass.inference.sampling.means import Recorder, RunningMeans, batches_of, rows_of
from isinglass.inference.sampling.sampler import Sampler
from isinglass.inference.sampling.traces import Traces
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import RandomState, bytes_text, jobs_of, whole_number

R_HAT, ESS, CHAINS = 1.01, 400, 4
NUMBERS = 2**20  # of all traces, beyond which draws are kept less often
DRAWS = 400  # of a chain, that are kept in any case
THIN = 10  # sweeps between samples
FEWEST, APART = 20, 1.2  # samples of each chain, and R-hat, from which on `sample` warns
NO_PROOF = "converged is a diagnostic, no proof: modes that no chain has visited remain undetected"
SEPARATED = "hard zeros may separate the assignments, so that chains do not reach them all; soften them"


def sampler_facts(summary: str) -> Facts:
    """Return the facts of a sampler."""
    return Facts(summary, exact="never", bound=None, samples=True, stochastic=True, log_z=False, threads=True)


@dataclass(frozen=True)
class MonteCarlo(Algorithm):
    """Base class of samplers; its options are those of all of them.

    Parameters
    ----------
    sweeps : int
        The number of sweeps of each chain in `infer`, including the burn-in.
    chains : int
        The number of chains, which start far apart. At least 4 are needed to report convergence.
    burn_in : int, optional
        The number of initial sweeps that are discarded; by default a quarter of `sweeps`.
    thin : int, optional
        Keep one sample of every `thin` sweeps. By default `infer` keeps as many as its diagnostics can process in
        reasonable time, at least 400 of each chain, and `sample` keeps one of 10. Beliefs are means over all sweeps.
    random_state : int, Generator or None
        The seed; None: a random seed.
    n_jobs : int, optional
        The number of threads that share the chains; -1: one for each processor.
        The result does not depend on it.
    """

    sweeps: int = 2000
    chains: int = 8
    burn_in: int | None = None
    thin: int | None = None
    random_state: RandomState = None
    n_jobs: int | None = None

    facts: ClassVar[Facts]

    @abstractmethod
    def sampler(self, potentials: Potentials, held: Iterable[int] = ()) -> Sampler:
        """Return what moves the chains of a model; variables that are `held` keep their states."""

    def proved(self, potentials: Potentials) -> Mask:
        """Tell in which components the chains are proved to reach every possible assignment."""
        return ergodic_components(potentials)

    def cost(self, potentials: Potentials) -> Cost:
        """Say what a sweep of all chains takes, and the memory of the draws."""
        graph = potentials.graph
        draws = self._draws(graph, max(0, self.sweeps - self._burn_in()))[0]
        needed = float(draws * graph.n_variables * self.chains * np.dtype(state_type(graph)).itemsize)
        entries = int(first_states(graph)[-1]) + belief_entries(graph)
        sums = 8.0 * entries * self.chains * (3 + batches_of(self.chains, entries))
        steps = self.chains * float(np.diff(graph.flat_scopes.first_slot).sum() + graph.n_variables)
        held = f"{bytes_text(needed)} of draws and {bytes_text(sums)} of sums"
        return Cost(needed + sums, steps, f"{held}, {steps:.3g} steps a sweep")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Advance the chains, keep draws, and average conditional probabilities."""
        self.checked()
        if self._burn_in() >= self.sweeps:
            expected = f"fewer sweeps than the {self.sweeps} of a chain"
            raise InputError("burn_in", expected, str(self.burn_in), "raise sweeps")
        if potentials.dtype.kind == "c":
            raise InputError("potentials", "real log tables", "complex ones", "samplers have no derivatives")
        sampler = self.sampler(potentials)
        before = _earlier(init, potentials, sampler.replicas)
        traces = self._continued(sampler, before, progress)
        assert traces.means is not None
        found = estimate(sampler, traces.draws, traces.means)
        info = self._info(sampler, traces, found)
        graph = potentials.graph
        return Result(
            potentials,
            np.full(graph.n_components, np.nan),
            VariableBeliefs(graph, found.variables),
            FactorBeliefs(graph, found.factors),
            info,
            traces=traces,
        )

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` assignments: of each chain, one after every `thin` sweeps, in turn; warn if they cannot be right."""
        self.checked()
        sampler, threads = self.sampler(potentials), jobs_of(self.n_jobs)
        used = min(n, self.chains)
        if n == 0:
            return np.zeros((0, potentials.graph.n_variables), np.int64)
        chains, found = Chains.start(potentials, used * sampler.replicas, rng), []
        sampler.advance(chains, self._burn_in(), threads)
        for _ in range(-(-n // used)):
            sampler.advance(chains, THIN if self.thin is None else self.thin, threads)
            found.append(chains.assignments[:used])
        complaint = self._against(potentials, found)
        if complaint:
            warn_of_convergence(f"{self.name}: {complaint}", stacklevel=3)
        return np.concatenate(found)[:n]

    def _against(self, potentials: Potentials, draws: Sequence[IntArray]) -> str:
        """Say what was found against draws of `sample`, each (chains, variables); nothing, if nothing was.

        They are few, so only what is plainly wrong counts: chains that disagree by R-hat of some variable's states, and
        hard zeros that may separate assignments.
        """
        if not self.proved(potentials).all():
            return SEPARATED
        chains, n = draws[0].shape
        if chains < CHAINS or len(draws) < FEWEST:
            return ""
        step, worst = max(1, AT_ONCE // (chains * len(draws))), 1.0
        for first in range(0, n, step):
            trace = np.stack([draw[:, first : first + step].T for draw in draws], axis=2).astype(np.float64)
            worst = max(worst, float(split_r_hat(trace).max(initial=1.0)))
        if worst <= APART:
            return ""
        return (
            f"the chains disagree, so the samples are not those of the model yet: R-hat is {worst:.3g} for some "
            f"variable; raise burn_in and thin, or use a sampler that mixes better; infer reports on all beliefs"
        )

    def checked(self) -> None:
        """Check the options."""
        for name, least in (("sweeps", 1), ("chains", 1)):
            whole_number(getattr(self, name), name, least)
        if self.burn_in is not None:
            whole_number(self.burn_in, "burn_in")
        if self.thin is not None:
            whole_number(self.thin, "thin", 1)
        jobs_of(self.n_jobs)

    def remedy(self, info: Info) -> str:
        """Say what the diagnostics found."""
        if not np.all(info.details["ergodic"]):
            return SEPARATED
        if info.details["chains"] < CHAINS:
            return f"{CHAINS} chains are needed for a verdict, better 8"
        if np.any(info.details["overlooked"]):
            return (
                f"{OTHERS} short chains from other starts met states that these {info.details['chains']:.0f} hardly "
                "visited, so they may have missed a mode; raise chains and sweeps, or use a sampler that mixes better"
            )
        return (
            f"R-hat is {info.r_hat:.4g} (needed: below {R_HAT}) and the effective sample size {info.ess:.0f} (needed: "
            f"{ESS}); raise sweeps, go on with init=, or use a sampler that mixes better"
        )

    def _burn_in(self) -> int:
        return self.sweeps // 4 if self.burn_in is None else self.burn_in

    def _draws(self, graph: FactorGraph, sweeps: int) -> tuple[int, int]:
        """Return how many draws of a chain are kept of so many sweeps, and how far they are apart."""
        if self.thin is not None:
            return sweeps // self.thin, self.thin
        entries = int(first_states(graph)[-1]) + belief_entries(graph)
        most = max(DRAWS, NUMBERS // max(1, entries * self.chains))
        thin = max(1, sweeps // most)
        return sweeps // thin, thin

    def _continued(self, sampler: Sampler, before: Traces | None, progress: Progress | None) -> Traces:
        """Run the chains, from the start or from where they were; keep draws, and sum up all sweeps."""
        potentials = sampler.potentials
        if before is None:
            chains = Chains.start(potentials, self.chains * sampler.replicas, self.random_state)
            before, burn_in = _untraced(chains, sampler.replicas), self._burn_in()
        else:
            chains, burn_in = before.chains.copy(), self.burn_in or 0
        same = replace(self, thin=before.thin) if before.thin and self.thin is None else self
        sweeps = self.sweeps - burn_in
        count, thin = same._draws(sampler.graph, sweeps)
        threads, used = jobs_of(self.n_jobs), chains.n // sampler.replicas
        rows = rows_of(potentials)
        means = before.means.lengthened(sweeps) if before.means else RunningMeans.start(rows.number, used, sweeps)
        sampler.advance(chains, burn_in, threads)
        recorder = Recorder(sampler, rows, means, threads)
        kept, done = np.empty((count, len(chains.states), used), chains.states.dtype), 0
        for block in recorder.run(chains, sweeps):
            some = block[(thin - 1 - done) % thin :: thin]
            kept[done // thin : done // thin + len(some)] = some
            done += len(block)
            if progress is not None:
                progress(self.name, done / sweeps)
        draws = np.concatenate([before.draws, kept]) if len(before.draws) else kept
        names = sampler.graph.names
        known = None if names is None else names.variables
        return Traces(draws, chains, before.sweeps + self.sweeps, before.burn_in + burn_in, thin, means, known)

    def report(self, sampler: Sampler) -> Mapping[str, float | FloatArray]:
        """Return further diagnostics of a sampler, by name, after a run."""
        return {}

    def _info(self, sampler: Sampler, traces: Traces, found: Estimate) -> Info:
        """Report on the diagnostics of all beliefs."""
        potentials, graph = sampler.potentials, sampler.graph
        proved, more = self.proved(potentials), self.report(sampler)
        good = proved & (traces.draws.shape[2] >= CHAINS)
        for component, of in zip(belief_components(graph), (found.of_variables, found.of_factors), strict=True):
            good &= np.bincount(component[~passed(of)], minlength=graph.n_components) == 0
        missed = np.zeros(graph.n_components, bool)
        if good.all() and graph.n_components:
            others = settled(sampler, traces.chains, jobs_of(self.n_jobs))
            missed = overlooked(sampler, others, np.r_[found.variables, found.factors], found.independent)
        errors = np.concatenate([found.of_variables.stderr, found.of_factors.stderr])
        details: dict[str, float | FloatArray] = {
            "stderr_variables": found.of_variables.stderr,
            "stderr_factors": found.of_factors.stderr,
            "rhat": found.of_variables.r_hat,
            "rhat_factors": found.of_factors.r_hat,
            "ess": found.of_variables.ess,
            "ess_factors": found.of_factors.ess,
            "chains": float(traces.draws.shape[2]),
            "ergodic": proved.astype(np.float64),
            "overlooked": missed.astype(np.float64),
            **more,
        }
        good &= ~missed
        share = float(good.mean()) if len(good) else 1.0
        residual = float(np.max(errors, initial=0.0))
        converged = bool(good.all())
        note = NO_PROOF if converged else ""
        return Info(self.name, converged, traces.sweeps, residual, None, 0.0, share, note=note, details=details)


def passed(found: Diagnostics) -> Mask:
    """Tell which quantities look converged."""
    return np.asarray((found.ess >= ESS) & (found.r_hat < R_HAT))


def _untraced(chains: Chains, replicas: int) -> Traces:
    """Return the traces of chains that begin here."""
    return Traces(np.zeros((0, len(chains.states), chains.n // replicas), chains.states.dtype), chains, 0, 0, 0)


def _earlier(init: Result | None, potentials: Potentials, replicas: int) -> Traces | None:
    """Return the traces to go on from; those of other potentials are left out, but not the states of the chains."""
    if init is None:
        return None
    traces = init.traces
    if traces is None:
        raise InputError("init", "a result of a sampler", f"one of {init.info.algorithm!r}")
    if traces.chains.states.shape[0] != potentials.graph.n_variables:
        raise InputError("init", "a result on the same graph", f"{len(init.variables)} variables")
    if traces.chains.n % replicas or traces.chains.n // replicas != traces.draws.shape[2]:
        raise InputError("init", "a result of the same sampler", f"one of {init.info.algorithm!r}")
    if init.potentials is potentials or _same(init.potentials, potentials):
        return traces
    chains = traces.chains.copy()
    for i, state in potentials.evidence.items():
        chains.states[i] = state
    return _untraced(chains, replicas)


def _same(one: Potentials, two: Potentials) -> bool:
    """Tell whether potentials are equal."""
    if not _same_structure(one.graph, two.graph) or one.evidence != two.evidence:
        return False
    pairs = [*zip(one.groups, two.groups, strict=True), *zip(one.table_ids, two.table_ids, strict=True)]
    return all(a is b or np.array_equal(a, b) for a, b in pairs)


def _same_structure(one: FactorGraph, two: FactorGraph) -> bool:
    """Tell whether graphs are equal, as those before and after pickling are."""
    if one is two:
        return True
    if len(one.groups) != len(two.groups) or not np.array_equal(one.variable_component, two.variable_component):
        return False
    groups = zip(one.groups, two.groups, strict=True)
    return np.array_equal(one.cards, two.cards) and all(
        np.array_equal(a.scopes, b.scopes) and np.array_equal(a.factors, b.factors) for a, b in groups
    )
