"""log Z of a restricted Boltzmann machine by annealed importance sampling (Salakhutdinov and Murray 2008).

With the hidden units summed out, the path from independent visible units with biases a0 to the machine is

    f_t(v) = exp(((1 - t) a0 + t a)'v) prod_j (1 + exp(t (b_j + (v'W)_j))),        0 <= t <= 1

whose sum at t = 0 is 2^H prod_i (1 + exp(a0_i)). Each f_t is the marginal of a restricted Boltzmann machine, so that a
sweep of block Gibbs sampling leaves it as it is. The weights are those of `isinglass.inference.importance.annealed`;
their mean is an estimate of Z without bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.errors import warn_of_convergence
from isinglass.inference.importance.weighted import LogZ
from isinglass.inference.restricted.gibbs import LayerChains
from isinglass.models.products import times
from isinglass.models.spins.restricted import RestrictedBoltzmannMachine
from isinglass.typing import FloatArray
from isinglass.validation import RandomState, whole_number


class PartitionEstimate(NamedTuple):
    """log Z and how far it can be trusted.

    Attributes
    ----------
    log_z, stderr : float
    ess : float
        The effective size of the weights; infinite for an exact value.
    pareto_k : float
        The shape of the tail of the weights: above 0.7 they are not reliable.
    converged : bool
        Whether the weights say nothing against the estimate. They cannot see modes that no chain has met.
    """

    log_z: float
    stderr: float
    ess: float
    pareto_k: float
    converged: bool


def annealed_log_z(
    machine: RestrictedBoltzmannMachine,
    base: FloatArray,
    temperatures: int = 1000,
    chains: int = 100,
    random_state: RandomState = None,
) -> PartitionEstimate:
    """Estimate log Z, beginning with independent visible units of log-odds `base` (visible,).

    Examples
    --------
    >>> machine = RestrictedBoltzmannMachine(np.full((6, 3), 0.7), hidden_bias=-1.0)
    >>> found = annealed_log_z(machine, np.zeros(6), 100, random_state=0)
    >>> found.converged, bool(abs(found.log_z - machine.log_z()) < 3 * found.stderr < 0.1)
    (True, True)
    """
    steps, n = whole_number(temperatures, "temperatures", 1), whole_number(chains, "chains", 2)
    log_w = annealed_log_weights(machine, base, steps, n, random_state)
    found = LogZ.mean(log_w[None])
    numbers = found.value, found.stderr, found.ess, found.pareto_k
    log_z, stderr, ess, k = (float(array[0]) for array in numbers)
    estimate = PartitionEstimate(log_z, stderr, ess, k, bool(found.reliable[0]))
    if not estimate.converged:
        text = f"the weights of annealing are degenerate: effective size {ess:.1f} of {n}, Pareto shape "
        warn_of_convergence(f"{text}{k:.2f}; raise temperatures or chains", stacklevel=3)
    return estimate


def annealed_log_weights(
    machine: RestrictedBoltzmannMachine, base: FloatArray, temperatures: int, n: int, random_state: RandomState
) -> FloatArray:
    """Return the logarithms of `n` weights, whose mean estimates Z."""
    t = np.linspace(0.0, 1.0, temperatures + 1)
    chains = LayerChains.start(base, n, random_state)
    lift, numbers = (machine.visible_bias - base)[:, None], np.uint64(machine.n_hidden + machine.n_visible)
    log_w = np.full(n, machine.n_hidden * np.log(2.0) + np.logaddexp(0.0, base).sum())
    for k in range(1, temperatures + 1):
        odds = machine.hidden_log_odds(chains.visible)
        log_w += (t[k] - t[k - 1]) * times(chains.visible, lift)[:, 0]
        log_w += (np.logaddexp(0.0, t[k] * odds) - np.logaddexp(0.0, t[k - 1] * odds)).sum(axis=1)
        if k < temperatures:
            hidden = chains.draw(t[k] * odds)
            visible_odds = (1.0 - t[k]) * base + t[k] * machine.visible_log_odds(hidden)
            chains.visible = chains.draw(visible_odds, machine.n_hidden)
            chains.drawn += numbers
    return log_w
