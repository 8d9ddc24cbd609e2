"""Small helpers on observed variables that several algorithms share."""

from __future__ import annotations

import numpy as np

from isinglass.potentials import Potentials
from isinglass.validation import IntArray


def base_states(potentials: Potentials) -> IntArray:
    """Return the assignment of the observed variables; zero elsewhere."""
    states = np.zeros(potentials.graph.n_variables, np.int64)
    for variable, state in potentials.evidence.items():
        states[variable] = state
    return states


def impossible(potentials: Potentials) -> str:
    """Say why nothing has positive probability."""
    if potentials.evidence:
        return (
            f"the evidence ({len(potentials.evidence)} observed variables) has probability zero: every assignment "
            "that agrees with it meets a hard zero; check the observed states"
        )
    return "every assignment has probability zero: the hard zeros (-inf) of the log tables leave none"
