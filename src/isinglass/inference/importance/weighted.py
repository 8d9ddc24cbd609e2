"""The base of importance sampling and annealed importance sampling: beliefs and log Z from weighted assignments.

Chain c of a component has the state x_c and the weight w_c, such that for any function h

    E[ w_c h(x_c) ]  =  (Z / Z_q) E_p[ h(x) ]

So log Z = log Z_q + log mean w. With n weights:

    standard error of log mean w:      sd(w) / (sqrt(n) mean(w))             (delta method)
    effective size:                    (sum_c w_c)² / sum_c w_c²

A belief is the weighted average of conditional probabilities, with the standard error

    ( sum_c v_c² (h(x_c) - mean)² )^(1/2),        v_c = w_c / sum w

A run counts as converged if, in every component, the effective size of the weights is at least `LEAST_SIZE`. That is a
diagnostic, no proof: what no assignment has visited remains undetected.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.layout import belief_components, belief_entries, first_beliefs, first_states
from isinglass.inference.algorithm import Algorithm, Cost, Progress, Taping, streams
from isinglass.inference.result import FactorBeliefs, Info, Result, VariableBeliefs
from isinglass.inference.sampling.algorithm import NO_PROOF
from isinglass.inference.sampling.chains import Chains, States, state_type
from isinglass.inference.sampling.estimate import trace_parts
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.inference.sampling.starts import dispersed_states
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import bytes_text

LEAST_SIZE = 50.0


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
    """States (variables, chains) with the logarithms of their weights (components, chains), log Z_q included."""

    states: States
    log_weights: FloatArray


@dataclass(frozen=True, eq=False)
class LogZ:
    """log Z of each component, with the standard errors and effective sizes of its weights."""

    value: FloatArray
    stderr: FloatArray
    ess: FloatArray

    @classmethod
    def mean(cls, log_weights: FloatArray) -> LogZ:
        """Average the weights (components, chains)."""
        return cls(*np.array([log_mean(row) for row in log_weights]).reshape(-1, 3).T)

    @property
    def reliable(self) -> Mask:
        """Tell in which components nothing speaks against the weights."""
        return np.asarray(self.ess >= LEAST_SIZE)

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
        variables, factors = weighted_beliefs(potentials, found)
        details |= {
            "stderr_variables": variables[1],
            "stderr_factors": factors[1],
            "stderr_log_z": log_z.stderr,
            "ess_weights": log_z.ess,
        }
        good = log_z.reliable
        share = float(good.mean()) if len(good) else 1.0
        residual = float(np.max(np.concatenate([variables[1], factors[1]]), initial=0.0))
        stderr, converged = log_z.total_stderr, bool(good.all())
        note = NO_PROOF if converged else ""
        info = Info(
            self.name, converged, self.steps, residual, None, 0.0, share, note=note, stderr=stderr, details=details
        )
        graph = potentials.graph
        beliefs = VariableBeliefs(graph, variables[0]), FactorBeliefs(graph, factors[0])
        return Result(potentials, log_z.value, *beliefs, info)

    def remedy(self, info: Info) -> str:
        """Say what is wrong with the weights."""
        ess = float(np.min(info.details["ess_weights"], initial=np.inf))
        needed = f"needed: {LEAST_SIZE:.0f}"
        return f"the weights are degenerate: effective size {ess:.1f} of {self.lanes} ({needed}); {self.more}"

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


def weighted_beliefs(potentials: Potentials, found: WeightedStates) -> tuple[FloatArray, FloatArray]:
    """Return the beliefs of variables and factors with their standard errors, each (2, entries)."""
    graph, weights = potentials.graph, normalised(found.log_weights)
    variables, factors = np.zeros((2, int(first_states(graph)[-1]))), np.zeros((2, belief_entries(graph)))
    of_state, of_entry = belief_components(graph)
    for part in trace_parts(GibbsSampler(potentials), found.states[None]):
        variables[:, part.states] = _averages(part.of_variables[:, :, 0], weights[of_state[part.states]])
        factors[:, part.entries] = _averages(part.of_factors[:, :, 0], weights[of_entry[part.entries]])
    for group in graph.groups:
        if group.arity == 0:  # a constant
            factors[0, first_beliefs(graph)[group.factors]] = 1.0
    return variables, factors


def _averages(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weighted means of rows (entries, chains), and their standard errors, (2, entries)."""
    total = np.einsum("ec,ec->e", np.ones_like(values), weights)  # one, rounded as the sums of values are
    means = np.einsum("ec,ec->e", values, weights) / total
    errors = np.sqrt(np.einsum("ec,ec->e", (values - means[:, None]) ** 2, weights**2))
    return np.stack([means, errors])
