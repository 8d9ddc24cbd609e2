"""The result of inference: beliefs, log Z, and a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import first_states
from isinglass.graph.names import VariableLike, variable_keys, variable_number, variable_numbers
from isinglass.graph.views import View
from isinglass.inference.cotangents import cotangents
from isinglass.inference.frames import beliefs_frame
from isinglass.inference.queries import Queries
from isinglass.pages import Table
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.deferring import defer, twin
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import Array, IntArray
from isinglass.validation import bytes_text, read_only, whole_number

if TYPE_CHECKING:
    from isinglass.inference.algorithm import Algorithm
    from isinglass.inference.sampling.traces import Traces

MOST_ROWS = 12  # that notebooks show

Bound = Literal["exact", "upper", "lower"] | None


@dataclass(frozen=True)
class Info:
    """A report on how inference went.

    Attributes
    ----------
    algorithm : str
        The name of the algorithm.
    converged : bool
        Whether it reached its tolerance; true for algorithms that do not iterate. For a sampler: whether its
        diagnostics found no problem, which is no proof.
    iterations : int
        The number of iterations; for a sampler, the number of sweeps of a chain.
    residual : float
        The distance from a fixed point: the largest change of a normalised message (or belief) in the last iteration.
        If it is within the tolerance, it is an upper bound on how much one more iteration can change any probability,
        also a small one (`isinglass.kernels.numba.messages.changes`). For a sampler: the largest standard error of a
        belief.
    bound : {"exact", "upper", "lower"} or None
        Whether log_z is exact, or an upper or lower bound on the true log Z; None if nothing is guaranteed.
    seconds : float
        The elapsed time.
    converged_share : float
        The fraction of components (examples of a batch) that converged.
    stable : bool or None
        Whether the fixed point is stable: small changes of the messages decay. None if this was not checked.
    note : str
        A remark for the user, for example why log_z is not a number; usually empty. It is also given as a warning,
        except by samplers, where it says what `converged` means.
    stderr : float or None
        The standard error of log_z; None if log_z is not a Monte Carlo estimate.
    details : mapping of str to number or array
        Other diagnostics of the algorithm. Some names have a fixed meaning. "stderr_variables" and "stderr_factors":
        standard errors of the beliefs, as flat arrays (factors: group by group, like ``FactorBeliefs.groups``). "ess"
        and "rhat": effective sample sizes and split R-hat of the variable beliefs, flat. "ess_factors" and
        "rhat_factors": those of the factor beliefs.
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
    stderr: float | None = field(default=None, repr=False)
    details: Mapping[str, float | Array] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.converged_share < 0:
            object.__setattr__(self, "converged_share", float(self.converged))

    @property
    def r_hat(self) -> float | None:
        """The largest R-hat of a belief of a variable or factor; None if the algorithm reports none."""
        found = self._details("rhat", "rhat_factors")
        return None if found is None else float(np.fmax.reduce(found, initial=1.0))

    @property
    def ess(self) -> float | None:
        """The smallest effective sample size of a belief; None if the algorithm reports none."""
        found = self._details("ess", "ess_factors")
        return None if found is None else float(np.min(found, initial=np.inf))

    def _repr_html_(self) -> str:
        rows = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in ("details", "note")]
        rows += [(name, value) for name, value in (("R-hat", self.r_hat), ("ESS", self.ess)) if value is not None]
        return f"<p>Info: {escape(self.algorithm)}</p>{Table(['', ''], rows).html()}<p>{escape(self.note)}</p>"

    def _details(self, *names: str) -> Array | None:
        known = [np.ravel(self.details[name]) for name in names if name in self.details]
        return np.concatenate(known) if known else None


class VariableBeliefs(View[Array]):
    """The belief of each variable, an array (states,); `flat` holds all of them, concatenated.

    They can be given by a function, which is called at first use.
    """

    def __init__(self, graph: FactorGraph, flat: Array | Callable[[], Array]) -> None:
        self._given = flat
        self._first = first_states(graph)

    @cached_property
    def flat(self) -> Array:
        """All beliefs, concatenated."""
        return read_only(self._given() if callable(self._given) else self._given)

    def __len__(self) -> int:
        return len(self._first) - 1

    def item(self, i: int) -> Array:
        """Return the belief of variable i."""
        return self.flat[self._first[i] : self._first[i + 1]]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        cards = np.diff(self._first)
        if (cards != cards[:1]).any():
            raise InputError("variables", "equal cardinalities", "mixed ones", "index it, or use .flat")
        table = self.flat.reshape(len(self), int(self._first[1]) if len(self) else 0)
        return np.array(table, dtype=dtype, copy=copy)


class FactorBeliefs(View[Array]):
    """The belief of each factor, shaped like its table; `groups` holds them as (factors, k_1, ..., k_r).

    They can be given by a function, which is called at first use.
    """

    def __init__(self, graph: FactorGraph, flat: Array | Callable[[], Array]) -> None:
        self._graph, self._given, self._place = graph, flat, graph.place

    @cached_property
    def flat(self) -> Array:
        """All beliefs, group by group, concatenated."""
        self._given = read_only(self._given() if callable(self._given) else self._given)
        return self._given

    @cached_property
    def groups(self) -> tuple[Array, ...]:
        """The beliefs, group by group."""
        groups = iter_groups(self._graph)
        return tuple(self.flat[part].reshape(len(group), *group.shape) for group, part in groups)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the beliefs themselves."""
        return {"_graph": self._graph, "_given": self.flat, "_place": self._place}

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
        With respect to the log tables, like `Potentials.groups`: summed over all factors that share a table.
        With different potentials in each iteration, the iteration is the first axis.
    log_tables : sequence of arrays
        With respect to the log table of each factor. With different potentials in each iteration: a list of these
        sequences.
    initial_messages : array
        With respect to the logarithms of the initial messages, flat.
    damping : float
        With respect to the damping.
    counting_numbers : array (factors,)
        With respect to the counting number of each factor of arity two or more; zero for the others. Computed at first
        use.
    parameters : mapping of str to array
        With respect to the parameters of the algorithm, if it has any (`Algorithm.parameters`).
    """

    groups: tuple[Array, ...]
    log_tables: Sequence[Array] | Sequence[Sequence[Array]]
    initial_messages: Array
    damping: complex
    by_counting: Callable[[], Array]

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Derivatives by the parameters of the algorithm; none, unless a subclass has some."""
        return {}

    @cached_property
    def counting_numbers(self) -> Array:
        """Derivatives by the counting numbers."""
        return self.by_counting()


defer(Gradients, "initial_messages")


@dataclass(frozen=True, eq=False, repr=False)
class Result(Queries):
    """The result of inference: beliefs and log Z.

    Attributes
    ----------
    potentials : Potentials
        The model, with the evidence.
    log_z : float
        The natural logarithm of the partition function, of all components together.
    component_log_z : array (components,)
        log Z of each component (example of a batch), in nats. It can be given as `deferred`; then it is computed at
        first use.
    variables : sequence of arrays (states,)
        The belief of each variable; one-hot if it is observed.
    factors : sequence of arrays
        The belief of each factor, in the shape of its table.
    info : Info
    traces : Traces or None
        The samples and the chains of a sampler; ``infer(..., init=result)`` continues the chains.
    algorithm : Algorithm or None
        The algorithm, with its options.
    """

    potentials: Potentials
    component_log_z: Array
    variables: VariableBeliefs
    factors: FactorBeliefs
    info: Info
    joint_of: Callable[[IntArray], Array] | None = None
    messages_of: Callable[[], Array | None] | None = None
    reverse: Callable[[Array, Array, Array], Gradients] | None = None
    traces: Traces | None = None
    algorithm: Algorithm | None = None

    @cached_property
    def messages(self) -> Array | None:
        """The logarithms of the final messages, flat; None for algorithms without messages."""
        return None if self.messages_of is None else self.messages_of()

    @property
    def log_z(self) -> Any:
        """The natural logarithm of the partition function, of all components together."""
        return self.component_log_z.sum().item()

    def variable(self, i: VariableLike) -> Array:
        """Return the belief of variable i, given by its number or name, an array (states,)."""
        return self.variables[variable_number(self.potentials.graph, i, "i")]

    def factor(self, a: int) -> Array:
        """Return the belief of factor a, shaped like its table."""
        return self.factors[_index(a, "a", len(self.factors), "factors")]

    def joint(self, variables: ArrayLike | Sequence[VariableLike]) -> Array:
        """Return the joint belief of any set of variables, one axis for each, in the given order.

        Only some algorithms can compute it ("exact" and "brute").
        """
        wanted = variable_numbers(self.potentials.graph, variables)
        needed = 8.0 * math.prod(self.potentials.graph.cards[wanted].astype(float).tolist())
        what = f"the joint table of {len(wanted)} variables needs {bytes_text(needed)}"
        require_memory(needed, memory_limit_bytes(None), what, "ask for fewer variables")
        if self.joint_of is None:
            from isinglass.inference.algorithm import with_fact  # which imports this module

            raise InputError("variables", "an algorithm with joint beliefs", self.info.algorithm, with_fact("joints"))
        return self.joint_of(wanted)

    def to_frame(self) -> Any:
        """Return the beliefs of all variables as a pandas DataFrame, one row for each state.

        The columns are variable, state and belief, with names if the graph has names. A batch also has a column
        component.

        Examples
        --------
        >>> import isinglass as ig
        >>> g = ig.FactorGraph({"rain": ["no", "yes"]}, [("rain",)])
        >>> ig.infer(ig.Potentials.from_values(g, [[1, 3]])).to_frame()
          variable state  belief
        0     rain    no    0.25
        1     rain   yes    0.75
        """
        return beliefs_frame(self)

    def backward(
        self,
        log_z: ArrayLike = 0.0,
        variables: Sequence[ArrayLike] | ArrayLike | None = None,
        factors: Sequence[ArrayLike | None] | Array | None = None,
    ) -> Gradients:
        """Compute the derivatives of a loss with respect to the log tables, given those with respect to the beliefs.

        This is back-propagation through the computation that was run, iteration by iteration. It needs a result
        of ``infer(..., tape=True)``.

        Parameters
        ----------
        log_z : float or array (components,)
            Derivative of the loss with respect to log Z.
        variables : sequence of arrays (states,) or one flat array
            Derivative with respect to the belief of each variable.
        factors : sequence of (array or None), or one flat array
            Derivative with respect to the belief of each factor, shaped like its table; flat: group by group, like
            ``FactorBeliefs.groups``.

        Returns
        -------
        Gradients
        """
        if self.reverse is None:
            raise InputError("tape", "True when the result was inferred", "no tape", "infer(..., tape=True)")
        return self.reverse(*cotangents(self, log_z, variables, factors))

    def without_tape(self) -> Result:
        """Return the result without its tape; it keeps the messages, so another inference can start from them."""
        if self.messages_of is None:
            return twin(self, reverse=None)
        computed = {
            "component_log_z": self.component_log_z,
            "factors": FactorBeliefs(self.potentials.graph, self.factors.flat),
        }
        return twin(self, messages_of=_Constant(self.messages), reverse=None, **computed)

    def _repr_html_(self) -> str:
        keys = variable_keys(self.potentials.graph)
        rows = [
            [str(key), ", ".join(f"{b:.3f}" for b in np.real(belief).tolist())]
            for key, belief in zip(keys[:MOST_ROWS], self.variables, strict=False)
        ]
        more = f"<p>… and {len(keys) - MOST_ROWS} more</p>" if len(keys) > MOST_ROWS else ""
        return f"<p>{escape(repr(self))}</p>{Table(['variable', 'belief'], rows).html()}{more}"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the messages and log Z themselves; the tape is dropped."""
        return {**self.without_tape().__dict__, "component_log_z": self.component_log_z}

    def __repr__(self) -> str:
        error = "" if self.info.stderr is None else f" (standard error {self.info.stderr:.2g})"
        return f"Result: log_z = {self.log_z:.10g}{error}, {self.info}"


defer(Result, "component_log_z")


@dataclass(frozen=True)
class _Constant:
    """A function without arguments that always returns the same value, and that can be pickled."""

    value: Array | None

    def __call__(self) -> Array | None:
        return self.value


def _index(value: int, argument: str, length: int, what: str) -> int:
    index = whole_number(value, argument)
    if index >= length:
        raise InputError(argument, f"a number below {length}, the number of {what}", str(index))
    return index
