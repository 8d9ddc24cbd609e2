"""Which variables are decided on: masks of outputs, and the outputs of each component (example)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.typing import Array, IntArray, Mask
from isinglass.validation import array_of


def checked_outputs(outputs: ArrayLike | None, graph: FactorGraph) -> Mask:
    """Check a mask of the variables to decide on; None is all of them.

    Examples
    --------
    >>> checked_outputs(None, FactorGraph([2, 2], [])).tolist()
    [True, True]
    """
    if outputs is None:
        return np.ones(graph.n_variables, bool)
    expected = f"a bool array ({graph.n_variables},), one for each variable"
    mask = array_of(outputs, "outputs", expected)
    if mask.dtype != bool or mask.shape != (graph.n_variables,):
        raise InputError("outputs", expected, f"shape {mask.shape} of dtype {mask.dtype}")
    component = graph.variable_component
    counts, sizes = (np.bincount(where, minlength=graph.n_components) for where in (component[mask], component))
    empty = (counts == 0) & (sizes > 0)
    if empty.any():
        got = f"none in example {int(np.argmax(empty))}"
        raise InputError("outputs", "at least one variable to decide on in each example", got, "leave the example out")
    return np.array(mask)


def outputs_by_component(mask: Mask, graph: FactorGraph) -> list[IntArray]:
    """Return the outputs of each component, in their order; none for a component without.

    Examples
    --------
    >>> [one.tolist() for one in outputs_by_component(np.array([True, False, True]), FactorGraph([2, 2, 2], []))]
    [[0, 2]]
    """
    chosen = np.flatnonzero(mask)
    component = graph.variable_component[chosen]
    chosen = chosen[np.argsort(component, kind="stable")]
    counts = np.bincount(component, minlength=graph.n_components)
    return np.split(chosen, np.cumsum(counts)[:-1]) if len(counts) else []


def beliefs_of(given: Result | Potentials, remedy: str = 'infer first, or use "map"') -> Array:
    """Return the flat beliefs of a result; refuse potentials."""
    if not isinstance(given, Result):
        raise InputError("given", "the Result of an inference", type(given).__name__, remedy)
    return given.variables.flat


def potentials_of(given: Result | Potentials) -> Potentials:
    """Return the potentials, or those that a result was inferred on."""
    if not isinstance(given, Result | Potentials):
        raise InputError("given", "Potentials, or the Result of an inference", type(given).__name__)
    return given.potentials if isinstance(given, Result) else given
