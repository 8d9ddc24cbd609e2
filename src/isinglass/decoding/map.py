"""A most probable assignment (Domke 2009, eq. 3.21).

    x  =  argmax_x sum_a phi_a(x_a)

Under exact maximisation no assignment is right as a whole with higher probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
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

    def __call__(self, given: Result | Potentials) -> IntArray:
        """Return a most probable assignment of the potentials, or of those that a result was inferred on."""
        potentials = given.potentials if isinstance(given, Result) else given
        return map_assignment(potentials, self.algorithm).states
