"""Naive mean field: a lower bound on log Z at every iterate (equations in `isinglass.kernels.numba.meanfield`).

The start is uniform over the states that a variable's own potential allows. In a component whose links have hard zeros
that would put mass on what is forbidden; there it is a possible assignment instead, from max-product messages or, where
it fits, from exact inference; if neither finds one, the run is refused. From a start of finite bound every iterate has
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import (
    ImpossibleEvidenceError,
    InputError,
    MemoryLimitError,
    no_convergence_warnings,
)
from isinglass.graph.edges import Edges, edges_of
from isinglass.graph.neighbours import Neighbours, neighbours_of
from isinglass.inference.algorithm import Algorithm, Cost, Facts, FixedPoint, Groups, Progress, Taping, register
from isinglass.inference.bp import BeliefPropagation
from isinglass.inference.evidence import impossible
from isinglass.inference.exact import Exact
from isinglass.inference.link_model import LinkModel
from isinglass.inference.mean_field_bound import Bars, MeanFieldBound
from isinglass.inference.result import FactorBeliefs, Gradients, Info, Result, VariableBeliefs, belief_entries
from isinglass.potentials import Potentials
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
        implicit="equations",
    )

    def cost(self, potentials: Potentials) -> Cost:
        """Say what one sweep over the variables takes."""
        edges = edges_of(potentials.graph)
        steps = float((edges.size * np.diff(edges.first_slot) ** 2).sum())
        needed = 8.0 * float(2 * edges.first_state[-1] + edges.size.sum())
        return Cost(needed, steps, f"{bytes_text(needed)}, {steps:.3g} steps a sweep")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Ascend and read out the bound and the beliefs."""
        ascent = _Ascent(potentials, init)
        limit, tol = stopping(self.iterations, self.max_iter, self.tol)
        ascent.run(limit, tol, bool(tape), progress)
        log_z, factors = ascent.read_out()
        share = float((ascent.residual <= self.tol).mean()) if limit and len(ascent.residual) else float(limit > 0)
        info = Info(
            self.name, share == 1, int(ascent.iterations.max(initial=0)), float(ascent.residual.max(initial=0.0)),
            "lower", 0.0, share,
        )  # fmt: skip
        return Result(
            potentials,
            log_z,
            VariableBeliefs(potentials.graph, ascent.q),
            FactorBeliefs(potentials.graph, factors),
            info,
            reverse=ascent.backward if tape else None,
        )

    def linearised(self, result: Result) -> FixedPoint:
        """Return one sweep at the beliefs of a result, in reverse."""
        return _Sweep(result)


class _Sweep(FixedPoint):
    """The fixed-point equations of beliefs: after one more sweep they are what they were."""

    def __init__(self, result: Result) -> None:
        self.ascent = _Ascent(result.potentials, result)
        self.start = self.ascent.q.copy()
        self.ascent.run(1, -1.0, True, None)

    def read_out_back(
        self, z_bar: NDArray[Any], variables_bar: NDArray[Any], factors_bar: NDArray[Any]
    ) -> tuple[NDArray[Any], Groups]:
        """Reverse the bound and the beliefs of factors."""
        bound = self.ascent.bound
        bars = bound.backward(self.start, np.zeros(0, self.start.dtype), z_bar, variables_bar, factors_bar)
        return bars.q, bars.gradients(self.ascent.potentials, z_bar).groups

    def back(self, state_bar: NDArray[Any]) -> tuple[NDArray[Any], Groups]:
        """Reverse the sweep."""
        model = self.ascent.bound.model
        bars = Bars(model, state_bar.copy(), np.zeros(0), np.zeros_like(model.phi), np.zeros_like(model.psi))
        self.ascent.sweeps_back(self.ascent.q.copy(), bars)
        nothing = np.zeros(self.ascent.potentials.graph.n_components, state_bar.dtype)
        return bars.q, bars.gradients(self.ascent.potentials, nothing).groups


class _Ascent:
    """Coordinate ascent; keeps what the backward pass needs."""

    def __init__(self, potentials: Potentials, init: Result | None) -> None:
        graph = potentials.graph
        self.potentials = potentials
        self.steps: list[tuple[NDArray[np.bool_], NDArray[Any]]] = []
        self.edges: Edges = edges_of(graph)
        self.near: Neighbours = graph.cached("neighbours", lambda: neighbours_of(graph))
        self.bound = MeanFieldBound(potentials, np.zeros(len(self.edges.size), bool))
        self.q = begin(potentials, self.bound.model, ~self.bound.chosen, init)
        self.at = self.bound.model.table[self.near.link].astype(np.uint64)
        self.residual, self.iterations = np.full(graph.n_components, np.inf), np.zeros(graph.n_components, np.int64)

    def run(self, limit: int, tol: float, taped: bool, progress: Progress | None) -> None:
        """Sweep until every component has converged or used up its sweeps."""
        from isinglass.kernels.numba.meanfield import ascend

        active = np.ones(len(self.residual), bool)
        possible, residual = active.copy(), np.zeros(len(active))
        for t in range(limit):
            if not active.any():
                break
            if taped:
                self.steps.append((active.copy(), self.q.copy()))
            ascend(
                self.near, self.edges, self.at, self.bound.model.phi, self.bound.model.psi, self.q, active, residual,
                possible, self.bound.row, self.bound.digits,
            )  # fmt: skip
            if not possible.all():
                raise ImpossibleEvidenceError(impossible(self.potentials))
            self.residual[active], self.iterations[active] = residual[active], t + 1
            active = active & (residual > tol)
            if progress is not None:
                progress(f"sweep {t + 1}, change {residual.max(initial=0.0):.1e}", (t + 1) / limit)

    def read_out(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the bound of each component, and the flat beliefs of factors."""
        factors = np.zeros(belief_entries(self.potentials.graph), self.q.dtype)
        log_z = self.bound.value(self.q, factors)
        if (log_z.real == -np.inf).any():
            raise ImpossibleEvidenceError(impossible(self.potentials))
        return log_z, factors

    def backward(self, z_bar: NDArray[Any], variables_bar: NDArray[Any], factors_bar: NDArray[Any]) -> Gradients:
        """Carry derivatives back through the bound and every sweep."""
        q, factors = self.q.copy(), np.zeros(0, self.q.dtype)
        bars = self.bound.backward(q, factors, z_bar, variables_bar, factors_bar)
        self.sweeps_back(q, bars)
        return bars.gradients(self.potentials, z_bar)

    def sweeps_back(self, q: NDArray[Any], bars: Bars) -> None:
        """Carry derivatives by the beliefs back through every sweep; q is brought back to where they began."""
        from isinglass.kernels.numba.meanfield import ascend_back

        for active, before in reversed(self.steps):
            ascend_back(
                self.near, self.edges, self.at, self.bound.model.psi, q, before, active, bars.q, bars.phi, bars.table,
                self.bound.row, self.bound.digits,
            )  # fmt: skip


def stopping(iterations: int | None, max_iter: int, tol: float) -> tuple[int, float]:
    """Return how many sweeps to make at most, and the change at which to stop (-1: at none)."""
    limit, least = whole_number(max_iter, "max_iter", 1), number(tol, "tol", 0, np.inf)
    return (limit, least) if iterations is None else (whole_number(iterations, "iterations"), -1.0)


def begin(
    potentials: Potentials, model: LinkModel, links: NDArray[np.bool_], init: Result | None = None
) -> NDArray[Any]:
    """Return the flat beliefs to start from: those of `init`, or uniform ones over what a variable's potential allows.

    In components in which some of the `links` have hard zeros, a possible assignment.
    """
    graph, edges = potentials.graph, edges_of(potentials.graph)
    if init is not None:
        return _given(init, int(edges.first_state[-1])).astype(potentials.dtype)
    allowed = model.phi.real > -np.inf
    number_of = np.add.reduceat(allowed, edges.first_state[:-1], dtype=np.int64) if len(allowed) else graph.cards
    if (number_of == 0).any():
        raise ImpossibleEvidenceError(impossible(potentials))
    q: NDArray[Any] = np.where(allowed, np.repeat(1.0 / number_of, graph.cards), 0.0).astype(potentials.dtype)
    zeros = np.concatenate([[0], np.cumsum(model.psi.real == -np.inf)])
    hard = np.zeros(graph.n_components, bool)
    hard[edges.component[links & (zeros[model.table + edges.size] > zeros[model.table])]] = True
    if hard.any():
        states = _possible(potentials)
        of_hard = hard[graph.variable_component]
        q[np.repeat(of_hard, graph.cards)] = 0
        q[(edges.first_state[:-1] + states)[of_hard]] = 1
    return q


def _given(init: Result, size: int) -> NDArray[Any]:
    if not isinstance(init, Result):
        raise InputError("init", "an earlier result on this graph", type(init).__name__)
    if init.variables.flat.size != size:
        raise InputError("init", f"a result on this graph ({size} states)", f"{init.variables.flat.size} states")
    return init.variables.flat


def _possible(potentials: Potentials) -> IntArray:
    """Find an assignment that no hard zero forbids; of a component, the same one whatever is beside it."""
    real = Potentials._build(
        potentials.graph, [g.real for g in potentials.groups], potentials.table_ids, potentials.evidence
    )
    with no_convergence_warnings():
        states = BeliefPropagation(schedule="sequential", damping=0.1, max_iter=50).maximise(real)[0].states
    forbidden = _forbidden(real, states)[real.graph.variable_component]
    if not forbidden.any():
        return states
    try:
        return np.where(forbidden, Exact().maximise(real)[0].states, states)
    except MemoryLimitError as error:
        raise MemoryLimitError(
            "mean field found no assignment that the hard zeros allow, and exact inference does not fit; "
            "start from an earlier result (init=) with a finite log_z"
        ) from error


def _forbidden(potentials: Potentials, states: IntArray) -> NDArray[np.bool_]:
    """Tell for which components an assignment has probability zero."""
    graph = potentials.graph
    found = np.zeros(graph.n_components, bool)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        values = tables[(ids, *(states[column] for column in group.scopes.T))]
        found[graph.factor_component[group.factors[values == -np.inf]]] = True
    return found
