"""Gibbs sampling of binary variables each of whose links have one slope, such as those of a lattice with one coupling.

The log-odds h_i of `isinglass.kernels.numba.sampling.binary` then depend on nothing but the number of neighbours with
state 1, and 1 + exp(-h_i) comes from a table. What is drawn has the same bits as there.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.binary import LANES
from isinglass.kernels.numba.sampling.exponential import LARGEST, exponential
from isinglass.kernels.numba.sampling.random import STEP, uniform_of
from isinglass.runtime.compilation.jit import compiled, inner


@compiled
def odds_factors(log_odds, out):
    """Write 1 + exp(-h) of a table of log-odds."""
    for r in range(log_odds.shape[0]):
        for n in range(log_odds.shape[1]):
            out[r, n] = 1.0 + exponential(min(max(-log_odds[r, n], -LARGEST), LARGEST))


@inner
def positions(begin, end, c, streams, s, z):
    """Write the positions in the random streams of some variables; in a single component, variable v has place v."""
    if len(streams.drawn) == 1:
        base = streams.keys[0, c] + STEP * (streams.drawn[0] + s * streams.numbers[0] + begin)
        for lane in range(end - begin):
            z[lane] = base + STEP * lane
    else:
        for v in range(begin, end):
            of = streams.component[v]
            z[v - begin] = streams.keys[of, c] + STEP * (streams.drawn[of] + s * streams.numbers[of] + streams.place[v])


@compiled
def equal_sweeps(bounds, model, streams, states, sweeps, c, factor, z, new):
    """Advance chain c; colour k has the variables bounds[k]:bounds[k + 1]."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    other = model.other
    for s in range(sweeps):
        for k in range(np.uint64(len(bounds)) - one):
            for begin in range(bounds[k], bounds[k + one], np.uint64(LANES)):
                end = min(begin + np.uint64(LANES), bounds[k + one])
                e = model.first[begin]
                for v in range(begin, end):
                    links, n = np.uint64(model.links[v]), np.uint64(0)
                    if links == four:
                        n = np.uint64(states[np.uint64(other[e]), c]) + np.uint64(states[np.uint64(other[e + one]), c])
                        n += np.uint64(states[np.uint64(other[e + two]), c])
                        n += np.uint64(states[np.uint64(other[e + three]), c])
                    else:
                        for k_link in range(links):
                            n += np.uint64(states[np.uint64(other[e + k_link]), c])
                    e += links
                    factor[v - begin] = model.factors[np.uint64(model.row[v]), n]
                positions(begin, end, c, streams, s, z)
                for lane in range(end - begin):
                    new[lane] = uniform_of(z[lane]) * factor[lane] < 1.0
                for v in range(begin, end):
                    states[np.uint64(model.variable[v]), c] = new[v - begin]
