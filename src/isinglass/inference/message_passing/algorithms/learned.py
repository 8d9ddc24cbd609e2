"""Options of message passing that are learned together with a model (Stoyanov, Ropson and Eisner 2011, section 9).

A number in an interval is learned as a number without bounds, u:

    damping  =  1 / (1 + exp(-u)),        dL/du  =  damping (1 - damping) dL/ddamping
    counting number c of all factors  =  exp(u),        dL/du  =  c sum_a dL/dc_a.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.result import Gradients
from isinglass.typing import Array
from isinglass.validation import items

DAMPING, COUNTING = LEARNED = ("damping", "counting_numbers")


@dataclass(frozen=True, eq=False)
class LearnedGradients(Gradients):
    """Derivatives of a loss, with those by what is learned.

    Attributes
    ----------
    values : mapping of str to float
        The options that are learned, and what they were.
    """

    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Derivatives by the unbounded numbers."""
        found = {}
        for name, value in self.values.items():
            slope = value * (1 - value) * self.damping if name == DAMPING else value * self.counting_numbers.sum()
            found[name] = np.reshape(slope, 1)
        return found


def with_learned(gradients: Gradients, values: Mapping[str, float]) -> Gradients:
    """Return derivatives with those by what is learned."""
    g = gradients
    return LearnedGradients(g.groups, g.log_tables, g.initial_messages, g.damping, lambda: g.counting_numbers, values)


def checked_names(given: Collection[str]) -> tuple[str, ...]:
    """Refuse names of what cannot be learned.

    Examples
    --------
    >>> checked_names(["damping"])
    ('damping',)
    """
    names = tuple(items([given] if isinstance(given, str) else given, "learn", "names of options"))
    for name in names:
        if name not in LEARNED:
            raise InputError("learn", f"some of {', '.join(map(repr, LEARNED))}", f"{name!r:.40}")
    return names


def unbounded(name: str, value: float) -> float:
    """Return the number that is learned in place of an option.

    Examples
    --------
    >>> unbounded("damping", 0.5), unbounded("counting_numbers", 1.0)
    (0.0, 0.0)
    """
    if name == DAMPING:
        if not 0 < value < 1:
            raise InputError(name, "a number between 0 and 1 where it is learned", f"{value:g}", "begin with 0.1")
        return float(np.log(value) - np.log1p(-value))
    return float(np.log(value))


def bounded(name: str, given: Array) -> float:
    """Return the option that belongs to a learned number."""
    if np.iscomplexobj(given):
        expected = f"one without products of the Hessian, where {name!r} is learned"
        raise InputError("optimizer", expected, "one with them", "use 'lbfgs' or 'adam'")
    value = float(np.reshape(given, ()))
    return float(1 / (1 + np.exp(-value))) if name == DAMPING else float(np.exp(value))
