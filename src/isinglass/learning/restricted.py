"""Maximum likelihood of restricted Boltzmann machines by block Gibbs sampling.

The gradient of minus the log-likelihood of a batch of n samples is, with q(v) = E[h | v],

    by W:  n E_model[ v q(v)' ] - sum_i v_i q(v_i)'       by a:  n E_model[ v ] - sum_i v_i       by b: likewise with q

and E_model is a mean over chains: "cd" starts them at the samples of the batch each time, "pcd" and "sml" go on with
theirs (`isinglass.learning.markov.likelihood.sampled` has the citations). As the hidden units are summed out, no
clamped chains are needed. What is reported as the value is sum_i F(v_i) - n E_model[F], whose derivative this is for
given states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from isinglass.errors import InputError
from isinglass.inference.restricted.gibbs import BlockGibbs, LayerChains
from isinglass.learning.markov.likelihood.sampled import SampledLikelihood
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.fingerprints import fingerprint
from isinglass.learning.training.problem import TrainingProblem
from isinglass.models.products import times
from isinglass.models.spins.restricted import RestrictedBoltzmannMachine
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray

SPREAD = 0.5  # the standard deviation of the first weights, over the root of the number of units


@dataclass(frozen=True, kw_only=True)
class RestrictedChoices(Choices):
    """What the parameters of a restricted Boltzmann machine stand for."""

    method: SampledLikelihood
    n_hidden: int
    random_state: int


def machine_of(theta: FloatArray, visible: int, hidden: int) -> RestrictedBoltzmannMachine:
    """Return the machine whose weights and biases, a then b, lie one after the other in a vector."""
    cut = visible * hidden
    weights, biases = theta[:cut].reshape(visible, hidden), theta[cut:]
    return RestrictedBoltzmannMachine(weights, biases[:visible], biases[visible:])


def independent(X: FloatArray) -> FloatArray:
    """Return the log-odds of each column by itself, with half a sample more of either state."""
    ones = X.sum(axis=0) + 0.5
    return np.asarray(np.log(ones) - np.log(len(X) + 1.0 - ones))


def first_parameters(X: FloatArray, hidden: int, random_state: int) -> FloatArray:
    """Return where training begins: small weights, and biases that give each visible unit its mean."""
    spread = SPREAD / np.sqrt(X.shape[1] + hidden)
    weights = np.random.default_rng([random_state, 0]).normal(0, spread, X.shape[1] * hidden)
    return np.concatenate([weights, independent(X), np.zeros(hidden)])


@dataclass(eq=False)
class ChainMemory:
    """The chains after the last evaluation and before it, so that a checkpoint can have either."""

    evaluations: int = 0
    now: LayerChains | None = None
    before: LayerChains | None = None

    def push(self, chains: LayerChains | None) -> None:
        """Keep the chains after one more evaluation."""
        self.evaluations, self.now, self.before = self.evaluations + 1, chains, self.now


@dataclass(frozen=True, eq=False)
class RestrictedProblem(TrainingProblem):
    """The training of a restricted Boltzmann machine."""

    chosen: RestrictedChoices
    X: FloatArray
    chains: ChainMemory = field(default_factory=ChainMemory, init=False, repr=False)

    @property
    def size(self) -> int:
        """The number of parameters."""
        visible, hidden = int(self.X.shape[1]), self.chosen.n_hidden
        return visible * hidden + visible + hidden

    @property
    def n_examples(self) -> int:
        """How many samples there are."""
        return len(self.X)

    def objective(self) -> RestrictedObjective:
        """Return what is minimised."""
        return self.part_objective(np.arange(len(self.X)))

    def part_objective(self, rows: IntArray) -> RestrictedObjective:
        """Return the objective of some samples, with their share of the penalty."""
        return RestrictedObjective(self, self.X[rows], self.chosen.l2 * len(rows) / len(self.X))

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen = self.chosen
        return fingerprint(chosen.method, chosen.optimizer, chosen.l2, chosen.random_state, start, self.X)

    def memory(self, evaluations: int) -> Mapping[str, Array]:
        """Return the chains after so many evaluations: the last one, or the one before it."""
        kept = self.chains
        if evaluations not in (kept.evaluations, kept.evaluations - 1):
            raise RuntimeError(f"the chains after {evaluations} evaluations are no longer there")
        found = kept.now if evaluations == kept.evaluations else kept.before
        return {} if found is None else {f"chains.{name}": array for name, array in vars(found).items()}

    def restore(self, evaluations: int, memory: Mapping[str, Array]) -> None:
        """Go on with chains of a checkpoint."""
        self.chains.evaluations = evaluations
        if evaluations and self.chosen.method.persistent is not None:
            self.chains.now = _restored(memory, self.first_chains)

    @cached_property
    def first_chains(self) -> LayerChains:
        """The chains that go on from one evaluation to the next, at their start."""
        rng = np.random.default_rng([self.chosen.random_state, self.chosen.method.random_state, 1])
        assert self.chosen.method.persistent is not None
        return LayerChains.start(independent(self.X), self.chosen.method.persistent, rng)

    def next_chains(self, X: FloatArray) -> LayerChains:
        """Return chains to advance: at the samples of a batch, or those of the last evaluation."""
        if self.chosen.method.persistent is None:
            seed = [self.chosen.random_state, self.chosen.method.random_state, 2, self.chains.evaluations]
            return LayerChains.at(X, np.random.default_rng(seed))
        return (self.chains.now or self.first_chains).copy()


class RestrictedObjective:
    """A function of the parameters whose gradients are estimates; every evaluation advances the chains."""

    converged_share = 0.0  # of no chain is it known that it has converged

    def __init__(self, problem: RestrictedProblem, X: FloatArray, l2: float) -> None:
        self.problem, self.X, self.l2 = problem, X, l2
        self.iterations, self.size = problem.chosen.method.sweeps, problem.size

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        visible, hidden = self.X.shape[1], self.problem.chosen.n_hidden
        machine, chains = machine_of(theta, visible, hidden), self.problem.next_chains(self.X)
        BlockGibbs(machine).advance(chains, self.iterations, self.problem.chosen.jobs)
        share = len(self.X) / chains.n
        value = float(machine.free_energy(self.X).sum() - share * machine.free_energy(chains.visible).sum())
        slope = share * _moments(machine, chains.visible) - _moments(machine, self.X)
        weights = np.where(np.arange(len(theta)) < visible * hidden, theta, 0.0)
        self.problem.chains.push(chains if self.problem.chosen.method.persistent is not None else None)
        return value + self.l2 * float((weights**2).sum()), slope + 2 * self.l2 * weights

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the free energy of the samples; log Z is not known."""
        machine = machine_of(theta, self.X.shape[1], self.problem.chosen.n_hidden)
        return float(machine.free_energy(self.X).sum())


def _moments(machine: RestrictedBoltzmannMachine, v: FloatArray) -> FloatArray:
    """Return the sums over rows of v q(v)', v and q(v), in one vector."""
    hidden = expit(machine.hidden_log_odds(v))
    return np.concatenate([times(v.T, hidden).ravel(), v.sum(axis=0), hidden.sum(axis=0)])


def _restored(memory: Mapping[str, Array], like: LayerChains) -> LayerChains:
    """Return chains of a checkpoint, which must be such as this problem has."""
    found = {}
    for name, expected in vars(like).items():
        array = memory.get(f"chains.{name}")
        fits = array is not None and array.dtype == expected.dtype and array.shape == expected.shape
        if array is None or not fits or (name == "visible" and not np.isin(array, (0.0, 1.0)).all()):
            got = "none" if array is None else f"{array.dtype} {array.shape}"
            raise InputError("checkpoint", f"chains of this problem (chains.{name})", got, "remove the file")
        found[name] = array.copy()
    return LayerChains(**found)
