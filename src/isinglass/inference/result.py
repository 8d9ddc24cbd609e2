"""What an inference returns: beliefs, log Z and an honest report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import belief_entries, first_states
from isinglass.graph.views import View
from isinglass.potentials import Potentials
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import Array, IntArray
from isinglass.validation import array_of, bytes_text, read_only, variables_of, whole_number

Bound = Literal["exact", "upper", "lower"] | None


@dataclass(frozen=True)
class Info:
    """How an inference went.

    Attributes
    ----------
    algorithm : str
    converged : bool
        Whether it reached its tolerance; true for algorithms that do not iterate.
    iterations : int
    residual : float
        How far from a fixed point it is: the largest change of a normalised message (or belief) in the last iteration.
        Where that is within the tolerance, the most that another iteration can do to any probability, which is never
        less and also sees what happens to small ones (`isinglass.kernels.numba.messages.changes`).
    bound : {"exact", "upper", "lower"} or None
        What log_z is guaranteed to be of the true log Z; None if nothing is guaranteed.
    seconds : float
    converged_share : float
        The share of components (examples of a batch) that reached the tolerance.
    stable : bool or None
        Whether the fixed point is stable: small changes of the messages die out; None where it was not asked.
    note : str
        What else there is to know, for instance why log_z is not a number; mostly empty.
    """

    algorithm: str
    converged: bool
    iterations: int
    residual: float
    bound: Bound
    seconds: float
    converged_share: float = field(default=-1.0, repr=False)  # not given: all or none
    stable: bool | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.converged_share < 0:
            object.__setattr__(self, "converged_share", float(self.converged))


class VariableBeliefs(View[Array]):
    """The belief of each variable, an array (states,); all of them in `flat`, one after the other."""

    def __init__(self, graph: FactorGraph, flat: Array) -> None:
        self.flat = read_only(flat)
        self._first = first_states(graph)

    def __len__(self) -> int:
        return len(self._first) - 1

    def item(self, i: int) -> Array:
        """Return the belief of variable i."""
        return self.flat[self._first[i] : self._first[i + 1]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if len(np.unique(np.diff(self._first))) > 1:
            raise InputError("variables", "equal cardinalities", "mixed ones", "index it, or use .flat")
        table = self.flat.reshape(len(self), int(self._first[1]) if len(self) else 0)
        return np.array(table, dtype=dtype, copy=copy)


class FactorBeliefs(View[Array]):
    """The belief of each factor, shaped like its table; `groups` holds them as (factors, k_1, ..., k_r)."""

    def __init__(self, graph: FactorGraph, flat: Array) -> None:
        self._place = graph.place
        frozen = read_only(flat)
        self.groups = tuple(frozen[part].reshape(len(group), *group.shape) for group, part in iter_groups(graph))

    def __len__(self) -> int:
        return len(self._place[0])

    def item(self, i: int) -> Array:
        """Return the belief of factor i."""
        belief: Array = self.groups[self._place[0][i]][self._place[1][i]]
        return belief


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of a loss, from `Result.backward`.

    Attributes
    ----------
    groups : tuple of arrays (tables, k_1, ..., k_r)
        By the log tables, like `Potentials.groups`: summed over all factors that share a table.
        With potentials for each iteration, that is a first axis.
    log_tables : sequence of arrays
        For each factor, the derivative by the table that it uses (with potentials for each iteration: a list of those).
    initial_messages : array
        By the logarithms of the messages that the run began with, flat.
    damping : float
    counting_numbers : array (factors,)
        By the counting number of each factor of arity two or more; zero for the others. Found when first asked for.
    parameters : mapping of str to array
        By the parameters of the algorithm, where it has some (`Algorithm.parameters`).
    """

    groups: tuple[Array, ...]
    log_tables: Sequence[Any]
    initial_messages: Array
    damping: Any
    by_counting: Callable[[], Array]

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Derivatives by the parameters of the algorithm; none, unless a subclass has some."""
        return {}

    @cached_property
    def counting_numbers(self) -> Array:
        """Derivatives by the counting numbers."""
        return self.by_counting()


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Beliefs and log Z.

    Attributes
    ----------
    potentials : Potentials
        What was inferred on, evidence included.
    component_log_z : array (components,)
        log Z of each component (example) of the graph, in nats.
    variables : sequence of arrays (states,)
        The belief of each variable; one-hot where it is observed.
    factors : sequence of arrays
        The belief of each factor, in the shape of its table.
    info : Info
    """

    potentials: Potentials
    component_log_z: Array
    variables: VariableBeliefs
    factors: FactorBeliefs
    info: Info
    joint_of: Callable[[IntArray], Array] | None = None
    messages_of: Callable[[], Array] | None = None
    reverse: Callable[[Array, Array, Array], Gradients] | None = None

    @cached_property
    def messages(self) -> Array | None:
        """The logarithms of the messages that message passing ended with, flat; None for other algorithms."""
        return None if self.messages_of is None else self.messages_of()

    @property
    def log_z(self) -> Any:
        """The natural logarithm of the partition function, of all components together."""
        return self.component_log_z.sum().item()

    def variable(self, i: int) -> Array:
        """Return the belief of variable i, an array (states,)."""
        return self.variables[_index(i, "i", len(self.variables), "variables")]

    def factor(self, a: int) -> Array:
        """Return the belief of factor a, shaped like its table."""
        return self.factors[_index(a, "a", len(self.factors), "factors")]

    def joint(self, variables: ArrayLike) -> Array:
        """Return the joint belief of any variables, one axis for each, in the given order.

        Only algorithms that hold the whole distribution can give it ("exact" and "brute").
        """
        wanted = variables_of(variables, self.potentials.graph.n_variables)
        needed = 8.0 * math.prod(self.potentials.graph.cards[wanted].astype(float).tolist())
        what = f"the joint table of {len(wanted)} variables needs {bytes_text(needed)}"
        require_memory(needed, memory_limit_bytes(None), what, "ask for fewer variables")
        if self.joint_of is None:
            raise InputError("variables", "an algorithm with joint beliefs", self.info.algorithm, 'use "exact"')
        return self.joint_of(wanted)

    def backward(
        self,
        log_z: ArrayLike = 0.0,
        variables: Sequence[ArrayLike] | ArrayLike | None = None,
        factors: Sequence[ArrayLike | None] | Array | None = None,
    ) -> Gradients:
        """Carry derivatives by log Z and the beliefs back to the log tables, through what really ran.

        Parameters
        ----------
        log_z : float or array (components,)
            Derivative of the loss by log Z.
        variables : sequence of arrays (states,) or one flat array
            Derivative by the belief of each variable.
        factors : sequence of (array or None), or one flat array
            Derivative by the belief of each factor, in the shape of its table; flat: group after group, like
            ``FactorBeliefs.groups``.

        Returns
        -------
        Gradients
        """
        if self.reverse is None:
            raise InputError("tape", "True when the result was inferred", "no tape", "infer(..., tape=True)")
        return self.reverse(*cotangents(self, log_z, variables, factors))

    def __getstate__(self) -> dict[str, Any]:
        """Keep the messages themselves; a tape stays behind."""
        kept = _Kept(self.messages) if self.messages_of is not None else None
        return {**self.__dict__, "messages_of": kept, "reverse": None}

    def __repr__(self) -> str:
        return f"Result: log_z = {self.log_z:.10g}, {self.info}"


@dataclass(frozen=True)
class _Kept:
    """A function that returns what it was made with."""

    value: Array | None

    def __call__(self) -> Any:
        return self.value


@dataclass(frozen=True, eq=False)
class Assignment:
    """A decoded assignment.

    Attributes
    ----------
    states : int array (variables,)
    score : float
        Its log-score, sum_a phi_a(x_a).
    bound : float
        No assignment scores higher than this; inf if the algorithm proves nothing.
    optimal : bool
        Whether the algorithm proved that no assignment scores higher.
    locally_optimal : bool
        Whether the algorithm proved that none does among those that differ from it only on variables which, with the
        factors that touch them, form trees and single loops (or at all: then `optimal` is true as well).
    """

    states: IntArray
    score: float
    bound: float
    optimal: bool
    locally_optimal: bool = False


def ranked(states: IntArray, scores: Array) -> list[Assignment]:
    """Return assignments of which the best is a best one at all, by falling score; equal up to rounding is optimal."""
    order = np.argsort(-scores, kind="stable")
    top = float(scores[order[0]])
    slack = 1e-12 * max(1.0, abs(top))
    found = []
    for i in order:
        optimal = bool(scores[i] >= top - slack)
        found.append(Assignment(states[i], float(scores[i]), top, optimal, optimal))
    return found


def cotangents(result: Result, log_z: ArrayLike, variables: Any, factors: Any) -> tuple[Array, Array, Array]:
    """Lay out derivatives by log Z (for each component), variable beliefs and factor beliefs as flat arrays."""
    graph = result.potentials.graph
    given = array_of(log_z, "log_z", "a number, or one for each component")
    z_bar = np.broadcast_to(given.astype(result.variables.flat.dtype), graph.n_components).copy()
    bars = z_bar, _flat_cotangent(result.variables, variables), _factor_cotangent(graph, result, factors)
    for argument, bar in zip(("log_z", "variables", "factors"), bars, strict=True):
        if not np.isfinite(bar if bar.strides != (0,) else bar[:1]).all():
            raise InputError(argument, "finite derivatives", "inf or nan", "does the loss divide by a belief of zero?")
    return bars


def nothing(length: int, dtype: Any) -> Array:
    """Return zeros that take no room, and that `is_nothing` knows."""
    return np.broadcast_to(np.zeros((), dtype), (length,))


def is_nothing(values: Array) -> bool:
    """Tell whether all values are zero."""
    return values.strides == (0,) or not values.any()


def _index(value: int, argument: str, length: int, what: str) -> int:
    index = whole_number(value, argument)
    if index >= length:
        raise InputError(argument, f"a number below {length}, that of the {what}", str(index))
    return index


def _flat_cotangent(beliefs: VariableBeliefs, given: Any) -> Array:
    """Lay out derivatives by variable beliefs like the flat beliefs."""
    if given is None:
        return np.zeros_like(beliefs.flat)
    if not isinstance(given, np.ndarray):
        given = np.concatenate([np.zeros(0), *(array_of(g, "variables", "numbers").ravel() for g in given)])
    given = array_of(given, "variables", "numbers")
    if given.size != beliefs.flat.size:
        raise InputError("variables", f"{beliefs.flat.size} numbers, one for each state", str(given.size))
    bars: Array = given.reshape(-1).astype(beliefs.flat.dtype, copy=False)
    return bars


def _factor_cotangent(graph: FactorGraph, result: Result, given: Any) -> Array:
    """Lay out derivatives by factor beliefs group by group."""
    dtype = result.variables.flat.dtype
    if given is None:
        return nothing(belief_entries(graph), dtype)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.size == belief_entries(graph):
        flat: Array = given.astype(dtype, copy=False)
        return flat
    if len(given) != graph.n_factors:
        raise InputError("factors", f"one entry for each of {graph.n_factors} factors", str(len(given)))
    parts = [np.zeros(0, dtype)]
    for group, beliefs in zip(graph.groups, result.factors.groups, strict=True):
        bars = np.zeros(beliefs.shape, dtype)
        for row, a in enumerate(group.factors.tolist()):
            if given[a] is not None:
                bar = array_of(given[a], f"factors[{a}]", f"numbers of shape {group.shape}")
                if bar.shape != group.shape:
                    raise InputError(f"factors[{a}]", f"shape {group.shape}", f"shape {bar.shape}")
                bars[row] = bar
        parts.append(bars.ravel())
    return np.concatenate(parts)
