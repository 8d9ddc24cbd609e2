"""Evidence: what several algorithms need to know about observed variables."""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import Evidence


def checked(potentials: object, evidence: Evidence | None) -> Potentials:
    """Check the potentials of a call, and add its evidence to theirs."""
    if not isinstance(potentials, Potentials):
        raise InputError("potentials", "Potentials", type(potentials).__name__, "build them with ig.Potentials")
    return potentials if evidence is None else potentials.with_evidence(evidence)


def base_states(potentials: Potentials) -> IntArray:
    """Return an assignment with the observed states, and state 0 for the other variables."""
    states = np.zeros(potentials.graph.n_variables, np.int64)
    for variable, state in potentials.evidence.items():
        states[variable] = state
    return states


def impossible(potentials: Potentials) -> str:
    """Return the message of an error: no assignment has positive probability."""
    if potentials.evidence:
        return (
            f"the evidence ({len(potentials.evidence)} observed variables) has probability zero: every assignment "
            "that agrees with it meets a hard zero; check the observed states"
        )
    return "every assignment has probability zero: the hard zeros (-inf) of the log tables leave none"
