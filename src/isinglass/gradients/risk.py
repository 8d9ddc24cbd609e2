"""Derivatives of a loss by all that steers an inference and a decision, in one call.

    L  =  loss(decision(inference(phi; m_0, damping, counting numbers); temperature), y)

The derivatives by the log tables phi, by the first messages m_0, by damping and by the counting numbers of message
passing come from one way back through the iterations that ran (`Result.backward`); those by options of the loss, such
as the temperature of its decoder, from the loss (Stoyanov, Ropson and Eisner 2011, section 9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.inference.algorithm import Algorithm, make
from isinglass.inference.api import infer
from isinglass.inference.result import Gradients, Result
from isinglass.losses import BeliefLoss, Loss
from isinglass.losses import make as make_loss
from isinglass.potentials import Potentials
from isinglass.typing import Array


@dataclass(frozen=True, eq=False)
class RiskGradients(Gradients):
    """The derivatives of a loss, beside its value; see `Gradients`.

    Attributes
    ----------
    value : array (components,)
    options : mapping of str to array (components,)
        By options of the loss that are real numbers: "temperature", for losses of decisions.
    """

    value: Array
    options: Mapping[str, Array]


def risk_gradients(
    potentials: Potentials,
    algorithm: str | Algorithm,
    loss: str | Loss,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    init: Result | None = None,
    **options: Any,
) -> RiskGradients:
    """Return a loss of beliefs or decisions, with its derivatives by all that steers it.

    Parameters
    ----------
    potentials : Potentials
    algorithm : str or Algorithm
        One that keeps a tape.
    loss : str or Loss
        Of beliefs, or of decisions.
    labels : int array (variables,)
        -1 where a variable is hidden.
    weights : array (variables,), optional
    init : Result, optional
        Whose messages inference begins with.
    **options
        Options of the algorithm.

    Returns
    -------
    RiskGradients

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(2, 2, 2), [np.eye(4)[:, :2], 0.5 * np.eye(2)[None]])
    >>> found = ig.gradients.risk_gradients(p, "bp", "l1", [0, 1, 0, 1], iterations=3, damping=0.1)
    >>> [round(float(x), 3) for x in (found.value[0], found.damping, found.options["temperature"][0])]
    [0.311, -0.01, 0.58]
    """
    made = make_loss(loss)
    if not isinstance(made, BeliefLoss):
        raise InputError("loss", "one of beliefs or of decisions", repr(made.name))
    result = infer(potentials, make(algorithm, options), tape=True, init=init)
    found = made(result, labels, weights)
    back = result.backward(found.log_z, found.variables, found.factors)
    later: Callable[[], Array] = lambda: back.counting_numbers  # noqa: E731
    return RiskGradients(
        back.groups, back.log_tables, back.initial_messages, back.damping, later, found.value, found.options
    )
