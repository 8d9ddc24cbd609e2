"""Maximum posterior marginals: the most believed state of each variable (Domke 2009, eq. 3.22).

    x_i  =  argmax_x b_i(x)

Under exact inference no assignment has more variables right in expectation. A tie goes to the lowest state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.errors import InputError
from isinglass.graph.layout import state_blocks
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.typing import IntArray


@register
@dataclass(frozen=True)
class MPM(Decoder):
    """Take the most believed state of each variable: ``"mpm"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[4.0, 1.0], [3.0, 3.0]])])
    >>> ig.decoding.MPM()(ig.infer(p)).tolist(), ig.decoding.MAP()(p).tolist()
    ([1, 0], [0, 0])
    """

    name: ClassVar[str] = "mpm"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "x_i = argmax_x b_i(x)", uses="beliefs", optimal="most variables right in expectation"
    )

    def __call__(self, given: Result | Potentials) -> IntArray:
        """Return the most believed state of each variable."""
        if not isinstance(given, Result):
            raise InputError("given", "the Result of an inference", type(given).__name__, 'infer first, or use "map"')
        graph, beliefs = given.potentials.graph, given.variables.flat.real
        states = np.zeros(graph.n_variables, np.int64)
        for variables, entries in state_blocks(graph):
            states[variables] = beliefs[entries].argmax(axis=1)
        return states
