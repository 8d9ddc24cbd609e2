"""How much of a run is kept to go back through it: all of its iterations, or, where those take much memory, a few.

A full tape keeps the messages of each iteration: their bytes times the iterations that may be run. Beyond `FULL_BYTES`
the tape is "sqrt" (see `inference.message_passing.tape`): T iterations leave about 2 sqrt(T) copies of the messages,
and going back costs one more forward pass. Derivatives are the same to the last bit.
"""

from __future__ import annotations

from isinglass.inference import Algorithm
from isinglass.inference.algorithm import Taping
from isinglass.potentials import Potentials

FULL_BYTES = 2**29


def taping(potentials: Potentials, algorithm: Algorithm) -> Taping:
    """Return the tape for a run: a full one, unless it might be too large."""
    needed = algorithm.tape_bytes(potentials.graph, potentials.dtype.itemsize).sum()
    return "sqrt" if needed > FULL_BYTES else True
