"""Sums of conditional probabilities over sweeps, of variables and of the factors that they own.

    sum_t p(x_i | rest of x^t)                  of variable i
    sum_t p(x_i | rest of x^t) [x_j = x_j^t]    of a factor of i and j that i owns, and alike of larger factors

Each chain has sums of its own, in the order of the sweeps, so that neither threads nor the number of sweeps in a call
change a bit.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.exponential import LARGEST, exponential
from isinglass.kernels.numba.sampling.gibbs import conditional
from isinglass.runtime.compilation.jit import compiled, inner


@compiled
def add_conditionals(begin, end, owners, sites, model, states, p, sums):
    """Add the probabilities of listed variables in states (sweeps, variables, chains) to sums (rows, chains).

    Return whether all of them had a possible state.
    """
    one = np.uint64(1)
    for v in range(begin, end):
        i, row = owners.variable[v], owners.row[v]
        for d in range(np.uint64(states.shape[0])):
            for c in range(np.uint64(states.shape[2])):
                norm = conditional(i, c, d, sites, model, states, p)
                if norm == 0:
                    return False
                for a in range(sites.cards[i]):
                    p[a] /= norm
                    sums[row + a, c] += p[a]
                for f in range(owners.first[v], owners.first[v + one]):
                    entry = owners.base[f]
                    for r in range(owners.rest[f], owners.rest[f + one]):
                        entry += owners.stride[r] * np.uint64(states[d, owners.other[r], c])
                    for a in range(sites.cards[i]):
                        sums[entry + a * owners.own[f], c] += p[a]
    return True


@inner
def add_pair(low, high, near, rows, sweeps, chains, acc, sums):
    """Add the entries of a pair: its owner has the probabilities low and high, the other variable the states near.

    `rows` are those of the configurations (low, 0), (low, 1), (high, 0) and (high, 1). `acc` takes their sums
    meanwhile, side by side: that is faster.
    """
    two, three = 2 * chains, 3 * chains
    for k in range(4):
        for c in range(chains):
            acc[k * chains + c] = sums[rows[k], c]
    for d in range(sweeps):
        first = d * chains
        for c in range(chains):
            there = low[first + c] * near[first + c]  # zero, or what it was
            acc[c] += low[first + c] - there
            acc[chains + c] += there
        for c in range(chains):
            there = high[first + c] * near[first + c]
            acc[two + c] += high[first + c] - there
            acc[three + c] += there
    for k in range(4):
        for c in range(chains):
            sums[rows[k], c] = acc[k * chains + c]


@compiled
def add_odds(begin, end, owners, model, states, sweeps, h, low, high, acc, sums):
    """Do the same for binary variables with links of two; states are (variables, lanes), a lane for sweep and chain."""
    one = np.uint64(1)
    lanes = np.uint64(states.shape[1])
    chains = lanes // sweeps
    for v in range(begin, end):
        for lane in range(lanes):
            h[lane] = -model.bias[v]
        for e in range(model.first[v], model.first[v + one]):
            slope, near = model.slope[e], states[np.uint64(model.other[e])]
            for lane in range(lanes):
                h[lane] -= slope * near[lane]
        for lane in range(lanes):
            odds = exponential(min(max(h[lane], -LARGEST), LARGEST))
            high[lane] = 1.0 / (1.0 + odds)
            low[lane] = odds * high[lane]
        row = owners.row[v]
        for d in range(sweeps):
            for c in range(chains):
                sums[row, c] += low[d * chains + c]
                sums[row + one, c] += high[d * chains + c]
        for f in range(owners.first[v], owners.first[v + one]):
            base, step, own = owners.base[f], owners.stride[f], owners.own[f]
            rows = base, base + step, base + own, base + own + step
            add_pair(low, high, states[owners.other[f]], rows, sweeps, chains, acc, sums)
