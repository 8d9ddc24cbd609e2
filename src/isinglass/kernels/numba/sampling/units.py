"""Draw layers of binary units from their log-odds, by the counted random numbers of each chain.

    x_cj = 1   if   u_cj (1 + exp(-l_cj)) < 1,        u_cj: number `drawn` + j of chain c

As in `isinglass.kernels.numba.sampling.binary`, log-odds beyond +-708 count as +-708.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.exponential import LARGEST, exponential
from isinglass.kernels.numba.sampling.random import STEP, uniform_of
from isinglass.runtime.compilation.jit import compiled


@compiled
def draw_units(log_odds, keys, drawn, states):
    """Write the drawn states, 0.0 or 1.0, of log-odds (chains, units)."""
    units = np.uint64(log_odds.shape[1])
    for c in range(np.uint64(len(keys))):
        first = keys[c] + STEP * drawn
        for j in range(units):
            x = min(max(-log_odds[c, j], -LARGEST), LARGEST)
            states[c, j] = 1.0 if uniform_of(first + STEP * j) * (1.0 + exponential(x)) < 1.0 else 0.0
