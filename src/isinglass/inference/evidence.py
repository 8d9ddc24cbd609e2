"""Small helpers on observed variables that several algorithms share."""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import Evidence


def checked(potentials: Potentials, evidence: Evidence | None) -> Potentials:
    """Return the potentials of a call, with the evidence that it adds."""
    if not isinstance(potentials, Potentials):
        raise InputError("potentials", "Potentials", type(potentials).__name__, "build them with ig.Potentials")
    return potentials if evidence is None else potentials.with_evidence(evidence)


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
