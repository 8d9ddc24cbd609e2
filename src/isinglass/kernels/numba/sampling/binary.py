"""Gibbs sampling of binary variables with links of two: many variables (or chains) at once.

With states 0 and 1, the log-odds of variable i given its neighbours are linear in their states:

    h_i = bias_i + sum_{j at i} slope_ij x_j,       p(x_i = 1 | rest) = 1 / (1 + exp(-h_i))

Variables of one colour share no link, so that the sequence inside a colour does not matter. A block of them times the
chains gives *lanes*: the log-odds of a block are gathered into a buffer, then random numbers, exponentials and states
are computed for all lanes by vector instructions. The new state is 1 if u (1 + exp(-h)) < 1.

Log-odds beyond +-708 count as +-708: the probability of the other state is then below 1e-307, and as u is between 2^-53
and 1 - 2^-53, it is never drawn.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.exponential import LARGEST, exponential
from isinglass.kernels.numba.sampling.gibbs import write_states
from isinglass.kernels.numba.sampling.random import STEP, uniform_of
from isinglass.runtime.compilation.jit import compiled, inner

LANES = 1024


@inner
def gather_one(begin, end, c, model, states, streams, s, h, z):
    """Write the log-odds and the positions in the random streams of some variables, of one chain."""
    e = model.first[begin]
    for v in range(begin, end):
        total, last = model.bias[v], model.first[v + np.uint64(1)]
        while e < last:
            total += model.slope[e] * states[np.uint64(model.other[e]), c]
            e += np.uint64(1)
        lane = v - begin
        h[lane] = total
        of = streams.component[v]
        number = streams.drawn[of] + s * streams.numbers[of] + streams.place[v]
        z[lane] = streams.keys[of, c] + STEP * number


@inner
def gather_many(begin, end, first_chain, width, model, states, streams, s, h, z):
    """Write the same for several chains; the lanes of a variable lie side by side."""
    for v in range(begin, end):
        lane = (v - begin) * width
        of = streams.component[v]
        position = STEP * (streams.drawn[of] + s * streams.numbers[of] + streams.place[v])
        bias = model.bias[v]
        for c in range(width):
            h[lane + c] = bias
            z[lane + c] = streams.keys[of, first_chain + c] + position
        for e in range(model.first[v], model.first[v + np.uint64(1)]):
            slope, j = model.slope[e], np.uint64(model.other[e])
            for c in range(width):
                h[lane + c] += slope * states[j, first_chain + c]


@inner
def draw(lanes, h, z, new):
    """Draw the new states of all lanes."""
    for lane in range(lanes):
        x = min(max(-h[lane], -LARGEST), LARGEST)
        new[lane] = uniform_of(z[lane]) * (1.0 + exponential(x)) < 1.0


@compiled
def binary_sweeps(bounds, model, streams, states, record, sweeps, first_chain, last_chain, h, z, new):
    """Advance the chains from `first_chain` to `last_chain`; colour k has the variables bounds[k]:bounds[k + 1].

    The states after each sweep are written to `record` (sweeps, variables, chains), unless it has no variables.
    """
    one = np.uint64(1)
    width = min(last_chain - first_chain, np.uint64(LANES))
    variables = np.uint64(LANES) // max(width, one)
    for s in range(sweeps):
        for k in range(np.uint64(len(bounds)) - one):
            for begin in range(bounds[k], bounds[k + one], variables):
                end = min(begin + variables, bounds[k + one])
                for c in range(first_chain, last_chain, max(width, one)):
                    w = min(width, last_chain - c)
                    if w == one:
                        gather_one(begin, end, c, model, states, streams, s, h, z)
                    else:
                        gather_many(begin, end, c, w, model, states, streams, s, h, z)
                    draw((end - begin) * w, h, z, new)
                    for v in range(begin, end):
                        i, lane = model.variable[v], (v - begin) * w
                        for d in range(w):
                            states[i, c + d] = new[lane + d]
        if record.shape[1] > 0:
            write_states(states, first_chain, last_chain, record[s])
