"""Exchanges between temperatures, and the scores that they need.

A replica at inverse temperature b has log p = b S(x) - log Z_b, with the log-score S. Two replicas exchange their
states with probability min(1, exp((b - b') (S' - S))). (Swendsen and Wang 1986; Geyer 1991.)
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.random import uniform
from isinglass.runtime.compilation.jit import compiled


@compiled
def log_scores(component, first_slot, variable, stride, at, tables, states, out):
    """Add the log-scores of all factors to `out` (components, chains)."""
    chains = np.uint64(states.shape[1])
    for f in range(len(at)):
        first, last, entry, of = first_slot[f], first_slot[f + 1], np.uint64(at[f]), np.uint64(component[f])
        if last - first == 1:
            i, one = np.uint64(variable[first]), np.uint64(stride[first])
            for c in range(chains):
                out[of, c] += tables[entry + one * np.uint64(states[i, c])]
        elif last - first == 2:
            i, one = np.uint64(variable[first]), np.uint64(stride[first])
            j, two = np.uint64(variable[first + 1]), np.uint64(stride[first + 1])
            for c in range(chains):
                out[of, c] += tables[entry + one * np.uint64(states[i, c]) + two * np.uint64(states[j, c])]
        else:
            for c in range(chains):
                place = entry
                for k in range(first, last):
                    place += np.uint64(stride[k]) * np.uint64(states[np.uint64(variable[k]), c])
                out[of, c] += tables[place]


@compiled
def exchange(begin, member, inverse, scores, streams, place, odd, chains, states, accepted):
    """Exchange the states of neighbouring replicas of each component, of every second pair.

    The variables of component k are ``member[begin[k]:begin[k + 1]]``. Column ``r * chains + c`` of `states` is replica
    r of chain c; `accepted` counts by component and pair.
    """
    replicas = len(inverse)
    for of in range(scores.shape[0]):
        for r in range(odd, replicas - 1, 2):
            for c in range(chains):
                low, high = r * chains + c, (r + 1) * chains + c
                ratio = (inverse[r] - inverse[r + 1]) * (scores[of, high] - scores[of, low])
                number = streams.drawn[of] + place[of]
                if ratio >= 0 or uniform(streams.keys[of, low], number) < np.exp(ratio):
                    accepted[of, r] += 1
                    for v in range(begin[of], begin[of + 1]):
                        i = member[v]
                        states[i, low], states[i, high] = states[i, high], states[i, low]
