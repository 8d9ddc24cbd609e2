"""Sums of conditional probabilities over sweeps, of variables and of the factors that they own.

    sum_t p(x_i | rest of x^t)                  of variable i
    sum_t p(x_i | rest of x^t) [x_j = x_j^t]    of a factor of i and j that i owns, and alike of larger factors

Each chain has sums of its own, in the order of the sweeps, so that neither threads nor the number of sweeps in a call
change a bit.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.gibbs import conditional
from isinglass.runtime.compilation.jit import compiled


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
