"""Time a flooding sweep of PGMax; runs in an environment of its own (see pgmax_peer.py) and prints milliseconds.

python pgmax_script.py SIDE ...
"""

from __future__ import annotations

import json
import sys
import time
import types

import jax
import jax.extend.backend
import jax.lib
import numpy as np

# PGMax 0.6.1 asks for the backend where JAX no longer keeps it.
jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)

from pgmax import fgraph, fgroup, infer, vgroup  # noqa: E402


def sweep_ms(side: int, repetitions: int = 7) -> float:
    """Return the median milliseconds of a sum-product sweep without damping on a binary grid."""
    sites = vgroup.NDVarArray(num_states=2, shape=(side, side))
    right = [[sites[r, c], sites[r, c + 1]] for r in range(side) for c in range(side - 1)]
    down = [[sites[r, c], sites[r + 1, c]] for r in range(side - 1) for c in range(side)]
    graph = fgraph.FactorGraph(sites)
    table = 0.3 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=right + down, log_potential_matrix=table))
    bp = infer.BP(graph.bp_state, temperature=1.0)
    arrays = bp.init(evidence_updates={sites: np.random.default_rng(0).normal(size=(side, side, 2))})
    run = jax.jit(lambda a, n: bp.run(a, num_iters=n, damping=0.0, temperature=1.0), static_argnums=1)

    def timed(iterations: int) -> float:
        start = time.perf_counter()
        jax.block_until_ready(run(arrays, iterations).ftov_msgs)
        return time.perf_counter() - start

    timed(25), timed(5)  # compiles
    return 1e3 * float(np.median([timed(25) - timed(5) for _ in range(repetitions)])) / 20


if __name__ == "__main__":
    print(json.dumps({side: sweep_ms(int(side)) for side in sys.argv[1:]}))
