"""The base of importance sampling and annealed importance sampling: beliefs and log Z from weighted assignments.

Chain c of a component has the state x_c and the weight w_c, such that for any function h

    E[ w_c h(x_c) ]  =  (Z / Z_q) E_p[ h(x) ]

So log Z = log Z_q + log mean w. With n weights:

    standard error of log mean w:      sd(w) / (sqrt(n) mean(w))             (delta method)
    effective size:                    (sum_c w_c)² / sum_c w_c²

A belief is the weighted average of conditional probabilities h, with the standard error

    ( sum_c v_c² (h(x_c) - mean)² )^(1/2),        v_c = w_c / sum w

Weights say nothing of what no x_c has visited: those of a proposal that has lost a mode are all alike. So short chains
from dispersed starts look at the model from another side, with assignments y_1, ..., y_m. If their weights can be
computed (importance sampling), r_j = w(y_j) Z_q / Z estimate errors by means over p instead of q, as
E_q[w²] = E_p[w] Z / Z_q:

    variance of log mean w:             (mean r - 1) / n
    variance of a belief:               mean of r_j (h(y_j) - belief)², over n
    effective size:                     n exp( - mean log r ),      as exp KL(p, q) draws are needed, and enough
                                                                    (Chatterjee and Diaconis 2018)

The worse of both sides counts. What no draw has seen may be as large as the largest share of a draw: of w_c / sum w and
r_j / n. Standard errors s include it, as (s² + share²)^(1/2) (`isinglass.inference.sampling.estimate.with_unseen`).

A run counts as converged if, in every component, the effective size is at least `LEAST_SIZE`, the standard error of
log Z at most `MOST_ERROR`, and the chains find nothing that the beliefs have overlooked. That is a diagnostic, no
proof: what neither has visited remains undetected.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.layout import belief_components, first_beliefs, first_states
from isinglass.inference.algorithm import Algorithm, Cost, Progress, Taping, streams
from isinglass.inference.result import FactorBeliefs, Info, Result, VariableBeliefs
from isinglass.inference.sampling.algorithm import NO_PROOF
from isinglass.inference.sampling.chains import Chains, States, state_type
from isinglass.inference.sampling.estimate import OTHERS, conditionals_of, overlooked, settled, with_unseen
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.inference.sampling.starts import dispersed_states
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import bytes_text

LEAST_SIZE, MOST_ERROR = 50.0, 0.5
LARGEST = 300.0  # logarithm of a ratio, beyond which it overflows


class LogMean(NamedTuple):
    """The logarithm of a mean of weights, and how far it can be trusted."""

    value: float
    stderr: float
    ess: float


def log_mean(log_weights: FloatArray) -> LogMean:
    """Return the logarithm of the mean weight.

    Examples
    --------
    >>> found = log_mean(np.log([1.0, 2.0, 3.0]))
    >>> round(float(np.exp(found.value)), 12), round(found.ess, 3), round(found.stderr, 4)
    (2.0, 2.571, 0.2887)
    """
    n, top = len(log_weights), float(log_weights.max())
    if top == -np.inf:
        return LogMean(-np.inf, np.inf, 0.0)
    w = np.exp(log_weights - top)
    mean, spread = float(w.mean()), float(w.std(ddof=1)) if n > 1 else np.inf
    ess = float(w.sum() ** 2 / (w**2).sum())
    error = float(spread / (np.sqrt(n) * mean))
    return LogMean(top + float(np.log(mean)), error, ess)


def normalised(log_weights: FloatArray) -> FloatArray:
    """Return weights that sum to one along the last axis; equal ones where all are zero.

    Examples
    --------
    >>> normalised(np.array([[0.0, 0.0], [-np.inf, -np.inf], [-np.inf, 5.0]])).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    """
    top = log_weights.max(axis=-1, keepdims=True)
    w = np.exp(log_weights - np.where(top > -np.inf, top, 0.0))
    w = np.where(top > -np.inf, w, 1.0)
    return np.asarray(w / w.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class WeightedStates:
    """Chains of states (variables, chains) with log-weights (components, chains), log Z_q included.

    `log_weights_of` computes those of other states, if that is possible.
    """

    chains: Chains
    log_weights: FloatArray
    log_weights_of: Callable[[States], FloatArray] | None = None


@dataclass(frozen=True, eq=False)
class LogZ:
    """log Z of each component, with the standard errors and effective sizes of its weights."""

    value: FloatArray
    stderr: FloatArray
    ess: FloatArray
    share: FloatArray  # of the largest weight

    @classmethod
    def mean(cls, log_weights: FloatArray) -> LogZ:
        """Average the weights (components, chains)."""
        value, stderr, ess = np.array([log_mean(row) for row in log_weights]).reshape(-1, 3).T
        return cls(value, stderr, ess, normalised(log_weights).max(axis=1))

    def seen_by(self, log_ratios: FloatArray, n: int) -> LogZ:
        """Return the worse of these errors and sizes, of `n` draws, and of those by log r (components, others)."""
        excess = np.exp(np.minimum(log_ratios, LARGEST)).mean(axis=1) - 1.0
        size = n * np.exp(-np.clip(log_ratios.mean(axis=1), 0.0, LARGEST))
        stderr = np.sqrt(np.maximum(excess, 0.0) / n)
        share = np.exp(np.minimum(log_ratios, LARGEST).max(axis=1)) / n
        worse = np.maximum([self.stderr, self.share], [stderr, share])
        return LogZ(self.value, worse[0], np.minimum(self.ess, size), worse[1])

    def with_unseen(self) -> LogZ:
        """Return it with standard errors that include the largest share of a draw."""
        return LogZ(self.value, np.hypot(self.stderr, self.share), self.ess, self.share)

    @property
    def reliable(self) -> Mask:
        """Tell in which components nothing speaks against the weights."""
        return np.asarray((self.ess >= LEAST_SIZE) & (self.stderr <= MOST_ERROR))

    @property
    def total_stderr(self) -> float:
        """The standard error of the sum over components, which draw independent random numbers."""
        return float(np.sqrt((self.stderr**2).sum()))


class Weighted(Algorithm):
    """Base class of algorithms that weight assignments."""

    @abstractmethod
    def checked(self) -> None:
        """Check the options."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """Number of assignments."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of sweeps that lead to an assignment."""

    @abstractmethod
    def weigh(self, potentials: Potentials, progress: Progress | None) -> tuple[WeightedStates, LogZ, dict[str, Array]]:
        """Draw assignments and weigh them; return them, log Z, and further details."""

    def cost(self, potentials: Potentials) -> Cost:
        """Say what the states and a sweep over them take."""
        graph = potentials.graph
        needed = float(self.lanes * graph.n_variables * np.dtype(state_type(graph)).itemsize)
        work = self.lanes * float(len(graph.flat_scopes.variable) + graph.n_variables)
        return Cost(needed, work, f"{bytes_text(needed)} of states, {work:.3g} steps a sweep")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Weigh assignments; average conditional probabilities."""
        self.checked()
        if potentials.dtype.kind == "c":
            raise InputError("potentials", "real log tables", "complex ones", "samplers have no derivatives")
        found, log_z, details = self.weigh(potentials, progress)
        sampler, graph = GibbsSampler(potentials), potentials.graph
        component, own = np.concatenate(belief_components(graph)), log_z.stderr
        others = settled(sampler, found.chains) if graph.n_components else found.chains.states[:, :0]
        beliefs, errors = weighted_beliefs(sampler, found.chains.states, normalised(found.log_weights))
        if found.log_weights_of is not None and graph.n_components:
            with np.errstate(invalid="ignore"):
                log_r = np.nan_to_num(found.log_weights_of(others) - log_z.value[:, None], nan=LARGEST)
            log_z, ratios = log_z.seen_by(log_r, self.lanes), np.exp(np.minimum(log_r, LARGEST))
            errors = np.maximum(errors, _errors_of(sampler, others, ratios, beliefs, self.lanes))
        log_z, size = log_z.with_unseen(), 1 / np.minimum(log_z.share, 1.0)[component]
        errors, split = with_unseen(potentials, beliefs, errors, self.lanes, size), int(first_states(graph)[-1])
        missed = overlooked(sampler, others, beliefs, size)
        details |= {
            "stderr_variables": errors[:split],
            "stderr_factors": errors[split:],
            "stderr_log_z": log_z.stderr,
            "ess_weights": log_z.ess,
            "stderr_of_weights": own,
            "overlooked": missed.astype(np.float64),
        }
        good = log_z.reliable & ~missed
        share = float(good.mean()) if len(good) else 1.0
        residual = float(np.max(errors, initial=0.0))
        stderr, converged = log_z.total_stderr, bool(good.all())
        note = NO_PROOF if converged else ""
        info = Info(
            self.name, converged, self.steps, residual, None, 0.0, share, note=note, stderr=stderr, details=details
        )
        both = VariableBeliefs(graph, beliefs[:split]), FactorBeliefs(graph, beliefs[split:])
        return Result(potentials, log_z.value, *both, info)

    def remedy(self, info: Info) -> str:
        """Say what is wrong with the weights."""
        ess, stderr = np.min(info.details["ess_weights"], initial=np.inf), np.max(info.details["stderr_log_z"])
        if ess < LEAST_SIZE or stderr > MOST_ERROR:
            size = f"effective size {ess:.1f} of {self.lanes} (needed: {LEAST_SIZE:.0f})"
            return (
                f"the weights are degenerate: {size}, standard error {stderr:.2g} (at most {MOST_ERROR}); {self.more}"
            )
        return f"{OTHERS} short chains met states that have hardly any weight: a mode may be missing; {self.more}"

    @property
    @abstractmethod
    def more(self) -> str:
        """What helps against degenerate weights."""


def revive(potentials: Potentials, chains: Chains, dead: Mask, seed: int) -> None:
    """Give chains of weight zero (components, chains) some possible state, so that samplers can go on with them."""
    if not dead.any():
        return
    possible = dispersed_states(potentials, 1, streams(potentials, seed))[:, 0]
    for k, c in np.argwhere(dead):
        members = np.flatnonzero(potentials.graph.variable_component == k)
        chains.states[members, c] = possible[members]


def weighted_beliefs(sampler: GibbsSampler, states: States, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the beliefs of variables and then factors, and their standard errors; weights sum to one."""
    graph, component = sampler.graph, np.concatenate(belief_components(sampler.graph))
    found = np.zeros((2, len(component)))
    for entries, values in conditionals_of(sampler, states):
        found[:, entries] = _averages(values, weights[component[entries]])
    for group in graph.groups:
        if group.arity == 0:  # a constant
            found[0, int(first_states(graph)[-1]) + first_beliefs(graph)[group.factors]] = 1.0
    return found[0], found[1]


def _errors_of(sampler: GibbsSampler, states: States, ratios: FloatArray, beliefs: FloatArray, n: int) -> FloatArray:
    """Return the standard errors of beliefs of `n` draws, from other states and their ratios (components, others)."""
    component, found = np.concatenate(belief_components(sampler.graph)), np.zeros(len(beliefs))
    for entries, values in conditionals_of(sampler, states):
        squares = (values - beliefs[entries, None]) ** 2
        found[entries] = np.einsum("ec,ec->e", squares, ratios[component[entries]]) / (n * states.shape[1])
    return np.sqrt(found)


def _averages(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weighted means of rows (entries, chains), and their standard errors, (2, entries)."""
    total = np.einsum("ec,ec->e", np.ones_like(values), weights)  # one, rounded as the sums of values are
    means = np.einsum("ec,ec->e", values, weights) / total
    errors = np.sqrt(np.einsum("ec,ec->e", (values - means[:, None]) ** 2, weights**2))
    return np.stack([means, errors])
