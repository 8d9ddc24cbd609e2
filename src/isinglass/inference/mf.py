"""Naive mean field: a lower bound on log Z at every iterate (equations in `isinglass.kernels.numba.meanfield`).

The start is uniform. In a component with hard zeros a uniform start would put mass on what is forbidden; there it is
a possible assignment instead, from max-product messages or, where it fits, from exact inference; if neither finds one,
the run is refused. From a start of finite bound every iterate has one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import ConvergenceWarning, ImpossibleEvidenceError, MemoryLimitError
from isinglass.graph.edges import Edges, edges_of
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, register
from isinglass.inference.bp import BeliefPropagation
from isinglass.inference.evidence import impossible
from isinglass.inference.exact import Exact
from isinglass.inference.link_model import (
    LinkModel,
    move_unary_bars,
    share_unary_beliefs,
    table_gradients,
)
from isinglass.inference.result import (
    FactorBeliefs,
    Gradients,
    Info,
    Result,
    VariableBeliefs,
    belief_entries,
    first_beliefs,
)
from isinglass.potentials import LogTables, Potentials
from isinglass.validation import IntArray, bytes_text, number, whole_number


@register
@dataclass(frozen=True)
class MeanField(Algorithm):
    """Naive mean field by coordinate ascent.

    Parameters
    ----------
    iterations : int, optional
        Run exactly so many sweeps over the variables. By default: until `tol`, at most `max_iter`.
    tol : float
        Stop when no belief changes by more than this.
    max_iter : int

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    >>> r = ig.infer(p, "mf")
    >>> r.info.bound, bool(r.log_z <= ig.infer(p, "exact").log_z)
    ('lower', True)
    """

    iterations: int | None = None
    tol: float = 1e-8
    max_iter: int = 1000

    name: ClassVar[str] = "mf"
    facts: ClassVar[Facts] = Facts(
        "naive mean field: a lower bound at every iterate",
        exact="never",
        bound="lower",
        iterative=True,
        local=True,
        envelope=True,
    )

    def cost(self, potentials: Potentials) -> Cost:
        """Say what one sweep over the variables takes."""
        edges = edges_of(potentials.graph)
        steps = float((edges.size * np.diff(edges.first_slot) ** 2).sum())
        needed = 8.0 * float(2 * edges.first_state[-1] + edges.size.sum())
        return Cost(needed, steps, f"{bytes_text(needed)}, {steps:.3g} steps a sweep")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: bool = False, init: Result | None = None
    ) -> Result:
        """Ascend and read out the bound and the beliefs."""
        ascent = _Ascent(potentials, _start(potentials) if init is None else init.variables.flat.copy())
        limit = whole_number(self.max_iter, "max_iter", 1)
        if self.iterations is not None:
            limit = whole_number(self.iterations, "iterations")
        tol = number(self.tol, "tol", 0, np.inf) if self.iterations is None else -1.0
        ascent.run(limit, tol, tape, progress)
        log_z, factors = ascent.read_out()
        converged = bool((ascent.residual <= self.tol).all()) and limit > 0
        info = Info(
            self.name, converged, int(ascent.iterations.max(initial=0)), float(ascent.residual.max(initial=0.0)),
            "lower", 0.0,
        )  # fmt: skip
        return Result(
            potentials,
            log_z,
            VariableBeliefs(potentials.graph, ascent.q),
            FactorBeliefs(potentials.graph, factors),
            info,
            reverse=ascent.backward if tape else None,
        )


@dataclass(eq=False)
class _Ascent:
    """Coordinate ascent from a start q; keeps what the backward pass needs."""

    potentials: Potentials
    q: NDArray[Any]
    steps: list[tuple[NDArray[np.bool_], NDArray[Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph = self.potentials.graph
        self.edges: Edges = edges_of(graph)
        n = graph.n_components
        self.model = LinkModel.of(self.potentials, np.ones(len(self.edges.size)))
        self.first_belief = first_beliefs(graph)[self.edges.link_factor]
        self.slot_of = np.empty(len(self.edges.slot_edge), np.int64)
        self.slot_of[self.edges.slot_edge] = np.arange(len(self.edges.slot_edge))
        self.residual, self.iterations = np.full(n, np.inf), np.zeros(n, np.int64)
        self.t = np.zeros(int(graph.cards.max(initial=1)), self.potentials.dtype)
        self.digits = np.zeros(int(np.diff(self.edges.first_slot).max(initial=1)), np.int64)

    def run(self, limit: int, tol: float, taped: bool, progress: Progress | None) -> None:
        """Sweep until every component has converged or used up its sweeps."""
        from isinglass.kernels.numba.meanfield import ascend

        active = np.ones(len(self.residual), bool)
        possible, residual = active.copy(), np.zeros(len(active))
        for t in range(limit):
            if not active.any():
                break
            log = np.empty(self.q.size if taped else 0, self.q.dtype)
            ascend(
                self.edges, self.slot_of, self.model.phi, self.model.psi, self.model.table, self.q, log, active,
                residual, possible, self.t, self.digits,
            )  # fmt: skip
            if not possible.all():
                raise ImpossibleEvidenceError(impossible(self.potentials))
            if taped:
                self.steps.append((active.copy(), log))
            self.residual[active], self.iterations[active] = residual[active], t + 1
            active = active & (residual > tol)
            if progress is not None:
                progress(f"sweep {t + 1}, change {residual.max(initial=0.0):.1e}", (t + 1) / limit)

    def read_out(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the bound of each component, and the flat beliefs of factors."""
        from isinglass.kernels.numba.meanfield import lower_bound

        graph, model = self.potentials.graph, self.model
        log_z = model.constant.copy()
        factors = np.zeros(belief_entries(graph), self.q.dtype)
        lower_bound(
            self.edges, model.phi, model.psi, model.table, self.q, log_z, factors, self.first_belief, self.digits
        )
        share_unary_beliefs(graph, self.q, factors)
        if (log_z.real == -np.inf).any():
            raise ImpossibleEvidenceError(impossible(self.potentials))
        return log_z, factors

    def backward(self, z_bar: NDArray[Any], variables_bar: NDArray[Any], factors_bar: NDArray[Any]) -> Gradients:
        """Carry derivatives back through the bound and every sweep."""
        from isinglass.kernels.numba import meanfield

        edges, model = self.edges, self.model
        q, q_bar = self.q.copy(), variables_bar.astype(self.q.dtype)
        move_unary_bars(self.potentials.graph, factors_bar, q_bar)
        phi_bar, table_bar = np.zeros_like(model.phi), np.zeros(int(edges.size.sum()), self.q.dtype)
        first_bar = np.concatenate([[0], np.cumsum(edges.size)])[:-1].astype(np.int64)
        meanfield.read_out_back(
            edges, model.phi, model.psi, model.table, q, z_bar, factors_bar, self.first_belief, q_bar, phi_bar,
            table_bar, first_bar, self.t, self.digits,
        )  # fmt: skip
        for active, log in reversed(self.steps):
            meanfield.ascend_back(
                edges, self.slot_of, model.psi, model.table, q, log, active, q_bar, phi_bar, table_bar, first_bar,
                self.t, self.digits,
            )  # fmt: skip
        groups = table_gradients(self.potentials, phi_bar, table_bar, first_bar, z_bar)
        of_factors = LogTables(self.potentials.graph, groups, self.potentials.table_ids)
        return Gradients(groups, of_factors, np.zeros(0), 0.0, np.zeros(self.potentials.graph.n_factors))


def _start(potentials: Potentials) -> NDArray[Any]:
    """Uniform beliefs; in components with hard zeros, a possible assignment."""
    graph, edges = potentials.graph, edges_of(potentials.graph)
    q: NDArray[Any] = np.repeat(1.0 / graph.cards, graph.cards).astype(potentials.dtype)
    hard = np.zeros(graph.n_components, bool)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        zero = (tables.reshape(len(tables), -1).real == -np.inf).any(axis=1)[ids]
        hard[graph.factor_component[group.factors[zero]]] = True
    if hard.any():
        states = _possible(potentials)
        of_hard = hard[graph.variable_component]
        q[np.repeat(of_hard, graph.cards)] = 0
        q[(edges.first_state[:-1] + states)[of_hard]] = 1
    return q


def _possible(potentials: Potentials) -> IntArray:
    """Find an assignment that no hard zero forbids."""
    real = Potentials._build(
        potentials.graph, [g.real for g in potentials.groups], potentials.table_ids, potentials.evidence
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        states = BeliefPropagation(schedule="sequential", damping=0.1, max_iter=50).maximise(real)[0].states
    if real.log_score(states) > -np.inf:
        return states
    try:
        return Exact().maximise(real)[0].states
    except MemoryLimitError as error:
        raise MemoryLimitError(
            "mean field found no assignment that the hard zeros allow, and exact inference does not fit; "
            "start from an earlier result (init=) with a finite log_z"
        ) from error
