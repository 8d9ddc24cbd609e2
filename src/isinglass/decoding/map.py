"""A most probable assignment (Domke 2009, eq. 3.21).

    x  =  argmax_x sum_a phi_a(x_a)

Under exact maximisation no assignment is right as a whole with higher probability. It has no differentiable version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.decoding.outputs import checked_outputs
from isinglass.errors import memory_remedy
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.api import map_assignment
from isinglass.inference.map.solver import Solver
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.typing import IntArray


@register
@dataclass(frozen=True)
class MAP(Decoder):
    """Take a most probable assignment: ``"map"``.

    With a mask of outputs, hidden variables are maximised over, too, and then left out.

    Parameters
    ----------
    algorithm : str, Algorithm or Solver
        What maximises; any algorithm or solver that `map_assignment` takes.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.0]]])
    >>> ig.decoding.MAP("bp")(p).tolist()
    [0, 1]
    """

    algorithm: str | Algorithm | Solver = "exact"

    name: ClassVar[str] = "map"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "x = argmax_x sum_a phi_a(x_a)", uses="potentials", optimal="the whole assignment right most probably"
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> IntArray:
        """Return a most probable assignment of the potentials, or of those that a result was inferred on."""
        potentials = given.potentials if isinstance(given, Result) else given
        with memory_remedy("as a decoder, ig.decoding.MAP('trws') or another solver does not need as much"):
            states = map_assignment(potentials, self.algorithm).states
        return states if outputs is None else np.where(checked_outputs(outputs, potentials.graph), states, -1)
