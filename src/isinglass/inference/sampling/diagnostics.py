"""Diagnostics of Markov chains: R-hat, effective sample sizes, standard errors, and whether chains reach everything.

A trace has shape (quantities, chains, draws). With the S values of all chains, of variance s²:

    R-hat = ((n - 1) / n + B / W)^(1/2),       of halves of chains, n draws long: W is the mean of their variances,
                                               and B the variance of their means (Gelman et al. 2013)
    ESS = s² / error²,                         the standard error of the mean comes from means of batches (Jones et al.
                                               2006), at most `BATCHES` of each chain

With the means b_kc of K batches of consecutive draws in each of C chains, less their mean:

    g_t = 1 / (K C) sum_kc b_kc b_(k+t)c,        error^2 = 1 / (K C - 1) (g_0 + 2 sum_t g_t)

The sum over t ends where a pair g_2s + g_2s+1 is negative, and pairs are made monotone (Geyer 1992). If batches are
independent, that is after the first pair. If chains stay apart it is never, and the error is that of the means of the
chains: they are compared with the mean of all, not each with its own.

Single-variable moves can reach every possible assignment from every other (irreducibility) if there are no hard zeros,
or if every combination of the remaining states is possible: the variables can be set one by one. In small components
the graph of possible assignments is searched: two are joined if they differ in one variable. Otherwise nothing is
claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.inference.sampling.starts import component_of, product_components
from isinglass.inference.support import support_of
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask

LEAST_DRAWS = 4  # of a chain: two in each half
BATCHES = 128  # of a chain, at most
SEARCHED = 2**14  # assignments of a component


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Diagnostics of some quantities, arrays (quantities,).

    Attributes
    ----------
    r_hat : array
        Split R-hat. It is 1 for what never changes, and infinite where no chain moves, but chains differ.
    ess : array
        Effective sample size of all chains together; that of what never changes is the number of draws.
    stderr : array
        Monte Carlo standard errors of the means.
    """

    r_hat: FloatArray
    ess: FloatArray
    stderr: FloatArray


def diagnose(trace: FloatArray) -> Diagnostics:
    """Return the diagnostics of a trace (quantities, chains, draws); unknown, with fewer than four draws in a chain.

    What is unknown has infinite R-hats and standard errors, and effective sizes of zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = diagnose(rng.normal(size=(1, 4, 1000)))
    >>> bool(found.r_hat[0] < 1.01), bool(found.ess[0] > 3000), round(float(found.stderr[0]), 2)
    (True, True, 0.02)
    """
    quantities, chains, draws = trace.shape
    if draws < LEAST_DRAWS:
        unknown = np.full(quantities, np.inf)
        return Diagnostics(unknown, np.zeros(quantities), unknown)
    trace = trace - trace[:, :1, :1]  # what never changes is zero exactly
    length = -(-draws // BATCHES)
    count = draws // length
    batches = trace[..., : count * length].reshape(quantities, chains, count, length) @ np.full(length, 1 / length)
    stderr = batch_errors(batches.transpose(2, 0, 1))
    variance, size = trace.reshape(quantities, chains * draws).var(axis=1, ddof=1), float(chains * draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(stderr > 0, variance / stderr**2, size)
    return Diagnostics(split_r_hat(trace), ess, stderr)


def split_r_hat(trace: FloatArray) -> FloatArray:
    """Return R-hat of the halves of all chains; one where nothing varies.

    Examples
    --------
    >>> apart = np.array([[[0.0, 0.1, 0.0, 0.1], [1.0, 0.9, 1.0, 0.9]], [[0.0] * 4, [0.0] * 4]])
    >>> split_r_hat(apart).round(1).tolist()
    [7.4, 1.0]
    """
    quantities, chains, draws = trace.shape
    half = draws // 2
    parts = trace[..., : 2 * half].reshape(quantities, 2 * chains, half)
    within, between = parts.var(axis=2, ddof=1).mean(axis=1), parts.mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((half - 1) / half + between / within)
    return np.where(within > 0, found, np.where(between > 0, np.inf, 1.0))


def batch_errors(batches: FloatArray) -> FloatArray:
    """Return the standard errors of the means of batches (batches, rows, chains).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> float(batch_errors(rng.normal(size=(16, 1, 8)))[0].round(2))  # 1 / 128^(1/2) = .09
    0.08
    >>> apart = np.broadcast_to([-1.0, 1.0], (16, 1, 2))
    >>> float(batch_errors(apart)[0].round(1))  # that of two numbers, not of 32
    0.7
    """
    k, rows, chains = batches.shape
    size = float(k * chains)
    x = batches - batches[:1, :, :1]  # what never changes is zero exactly
    x -= x.mean(axis=(0, 2), keepdims=True)
    spread, least, left = -_lagged(x, 0), np.full(rows, np.inf), np.arange(rows)
    low = -spread / np.log10(size)
    for t in range(0, k - k % 2, 2):
        pair = _lagged(x, t) + _lagged(x, t + 1)
        on = pair > 0
        x, left = x[:, on], left[on]
        least = np.minimum(least[on], pair[on])
        spread[left] += 2 * least
    return np.asarray(np.sqrt(np.maximum(spread, low) / (size * (size - 1))))


def _lagged(x: FloatArray, lag: int) -> FloatArray:
    """Return the sums of products of batches and those so many batches later, (rows,)."""
    return np.asarray(np.einsum("krc,krc->r", x[: len(x) - lag], x[lag:]))


def ergodic_components(potentials: Potentials) -> Mask:
    """Tell in which components single-variable moves are proved to reach every possible assignment.

    Examples
    --------
    >>> import isinglass as ig
    >>> equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    >>> ergodic_components(ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [equal])).tolist()
    [False]
    """
    graph = potentials.graph
    found = product_components(potentials, support_of(potentials))
    for k in np.flatnonzero(~found):
        size = np.log(graph.cards[graph.variable_component == k].astype(float)).sum()
        found[k] = size <= np.log(SEARCHED) + 1e-9 and _is_connected(component_of(potentials, int(k)))
    return found


def _is_connected(potentials: Potentials) -> bool:
    """Tell whether the possible assignments are connected by changes of one variable."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cards = potentials.graph.cards
    states: IntArray = np.indices(tuple(cards)).reshape(len(cards), -1).T
    number = np.arange(len(states)).reshape(tuple(cards))
    possible = (potentials.log_score(states) > -np.inf).reshape(tuple(cards))
    rows, columns = [], []
    for axis in range(len(cards)):
        for step in range(1, cards[axis]):
            ahead = [slice(None)] * len(cards)
            behind = ahead.copy()
            ahead[axis], behind[axis] = slice(step, None), slice(None, -step)
            both = possible[tuple(ahead)] & possible[tuple(behind)]
            rows.append(number[tuple(ahead)][both])
            columns.append(number[tuple(behind)][both])
    one, two = np.concatenate(rows), np.concatenate(columns)
    links = coo_array((np.ones(len(one), np.int8), (one, two)), (len(states), len(states)))
    labels = connected_components(links, directed=False)[1]
    return len(np.unique(labels[possible.ravel()])) == 1
