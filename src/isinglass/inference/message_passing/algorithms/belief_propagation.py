"""Loopy belief propagation.

It is message passing with counting numbers of one: the equations are in `kernels.numba.messages.updates` (messages) and
`passes` (log Z). It is exact on forests; elsewhere log Z is the Bethe approximation, which is not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.algorithm import Facts, FixedPoint, Progress, register
from isinglass.inference.assignment import Assignment
from isinglass.inference.message_passing.algorithms.base import MessagePassing
from isinglass.inference.message_passing.algorithms.narrow import dtype_of, least_tol, name_of, narrow_share, narrowed
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Plan
from isinglass.inference.result import Info
from isinglass.kernels.layout import WIDE
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray


@register
@dataclass(frozen=True)
class BeliefPropagation(MessagePassing):
    """Sum-product belief propagation; exact on forests.

    Parameters
    ----------
    iterations : int, optional
        Run exactly this number of iterations. By default: until `tol`, at most `max_iter`.
    tol : float
        Stop when one more iteration cannot change any probability by more than this.
    max_iter : int
        The maximal number of iterations.
    damping : float
        In [0, 1): the weight of the old message in a geometric mean with the new one.
    schedule : {"auto", "flooding", "tree", "grid", "sequential", "random", "residual"}
        The order of updates. "auto" is flooding, and an exact tree schedule on forests.
    random_state, start_noise, check_stability, reuse, n_jobs
        As for all message-passing algorithms (see `message_passing.algorithms.base.MessagePassing`).
    dtype : {"float64", "float32"}, or np.float64 or np.float32
        The type of messages and of the tape. "float32" halves the memory and, in grid sweeps of large grids, about
        halves the time; beliefs and gradients have about five digits. It is available for undamped flooding and grid
        sweeps with real potentials on regular grids of one size, and refused otherwise. If `tol` is too small for it,
        it is raised, to 1.4e-6 for two states. Potentials, beliefs, log Z and derivatives remain float64. Components
        with hard zeros (also from evidence) or with products below 1e-25 are run with float64. ``info.details`` has
        "float32", the share of components that used it, and "tol", the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), 0.3 * np.eye(2)[None]])
    >>> r = ig.infer(p, ig.BeliefPropagation(damping=0.2))
    >>> r.info.converged, round(r.log_z, 4)
    (True, 8.1728)
    >>> r = ig.infer(p, "bp", dtype="float32")
    >>> r.info.converged, round(r.log_z, 4), r.info.details["float32"], round(r.info.details["tol"], 7)
    (True, 8.1728, 1.0, 1.4e-06)
    """

    dtype: str = field(default="float64", metadata={"fingerprint": "unless default"})

    powers: ClassVar[bool] = False
    name: ClassVar[str] = "bp"
    facts: ClassVar[Facts] = Facts(
        "belief propagation: Bethe approximation, exact on forests",
        exact="forests",
        bound=None,
        maximises="one",
        iterative=True,
        threads=True,
        envelope=True,
        implicit="equations",
    )

    def __post_init__(self) -> None:
        """Keep the name of a dtype that is given as NumPy has it, so that equal options are equal."""
        object.__setattr__(self, "dtype", name_of(self.dtype))

    def tape_bytes(self, graph: FactorGraph, item: int = 8) -> FloatArray:
        """Return the bytes of all messages, times the iterations that may be run."""
        return super().tape_bytes(graph, dtype_of(self.dtype).itemsize if item == 8 else item)

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Pass max-product messages, which are float64 logarithms, and decode one assignment."""
        return MessagePassing.maximise(replace(self, dtype="float64"), potentials, n, progress)

    def _plan(self, potentials: Potentials) -> Plan:
        plan = super()._plan(potentials)
        return plan if dtype_of(self.dtype) == WIDE else narrowed(plan, potentials)

    def _flooding(self, potentials: Potentials, messages: Array | None) -> FixedPoint:
        return MessagePassing._flooding(replace(self, dtype="float64"), potentials, messages)

    def _info(self, potentials: Potentials, outcome: Outcome) -> Info:
        info = super()._info(potentials, outcome)
        if dtype_of(self.dtype) == WIDE:
            return info
        return replace(
            info, details={"float32": narrow_share(outcome), "tol": max(self.tol, least_tol(potentials.graph))}
        )
