"""How much of a run is kept to go back through it: all of its iterations, or, where those take much memory, a few.

A full tape keeps the messages of each iteration: their bytes times the iterations that may be run. Beyond `FULL_BYTES`
the tape is "sqrt" (see `inference.message_passing.tape`): T iterations leave about 2 sqrt(T) copies of the messages,
and going back costs one more forward pass. Derivatives are the same to the last bit.
"""

from __future__ import annotations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.inference import Algorithm
from isinglass.inference.algorithm import Taping
from isinglass.inference.message_passing.algorithms import MessagePassing
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray

FULL_BYTES = 2**29


def full_tape_bytes(graph: FactorGraph, algorithm: Algorithm, item: int = 8) -> FloatArray:
    """Return the most bytes that a full tape of message passing takes for each component; 0 for other inferences.

    Examples
    --------
    >>> import isinglass as ig
    >>> full_tape_bytes(ig.grid_graph(2, 2, 2), ig.BeliefPropagation(iterations=3))  # 3 times 8 messages of 16 bytes
    array([384.])
    """
    if not isinstance(algorithm, MessagePassing):
        return np.zeros(graph.n_components)
    edges = edges_of(graph)
    entries = np.bincount(edges.component[edges.edge_link], np.diff(edges.start), graph.n_components)
    most = algorithm.max_iter if algorithm.iterations is None else algorithm.iterations
    once = graph.forest_components & (algorithm.iterations is None and algorithm.damping == 0)
    return np.asarray(item * entries * np.where(once, 1, most), np.float64)


def taping(potentials: Potentials, algorithm: Algorithm) -> Taping:
    """Return the tape for a run: a full one, unless it might be too large."""
    needed = full_tape_bytes(potentials.graph, algorithm, potentials.dtype.itemsize).sum()
    return "sqrt" if needed > FULL_BYTES else True
