"""Evidence: what several algorithms need to know about observed variables."""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.names import SHOWN, EvidenceLike
from isinglass.potentials import Potentials
from isinglass.typing import IntArray


def checked(potentials: object, evidence: EvidenceLike | None) -> Potentials:
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
            f"the evidence ({_observed(potentials)}) has probability zero: every assignment "
            "that agrees with it meets a hard zero; check the observed states"
        )
    return "every assignment has probability zero: the hard zeros (-inf) of the log tables leave none"


def _observed(potentials: Potentials) -> str:
    """Say what is observed: a few variables with names, or how many there are."""
    names, count = potentials.graph.names, len(potentials.evidence)
    if names is None or count > SHOWN:
        return f"{count} observed variables"
    cards = potentials.graph.cards
    pairs = ((names.variables[i], names.state_names(i, int(cards[i]))[s]) for i, s in potentials.evidence.items())
    return ", ".join(f"{name} = {state}" for name, state in pairs)
