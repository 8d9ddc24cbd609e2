"""Naive mean field: a lower bound on log Z at every iteration (equations in `isinglass.kernels.numba.mean_field`).

The initial beliefs are uniform over the states that the unary factors allow. If other factors of a component have hard
zeros, uniform beliefs would give probability to forbidden assignments, and the bound would be minus infinity. Such a
component starts from an allowed assignment, found by max-product or, if it fits in memory, by exact inference. If
neither finds one, the run is refused. From an allowed start the bound is finite at every iteration. `ascent` describes
how saddle points are left and how derivatives are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError, MemoryLimitError, no_convergence_warnings
from isinglass.graph.message_graph import edges_of
from isinglass.graph.neighbours import Neighbours, neighbours_of
from isinglass.inference.algorithm import Cost, Facts, FixedPoint, Groups, register
from isinglass.inference.evidence import impossible
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.mean_field.ascent import Ascent, MeanFieldAlgorithm, given_beliefs
from isinglass.inference.mean_field.bound import Bars, MeanFieldBound
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.inference.message_passing.model.log_model import LinkModel, links_with
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import RandomState, bytes_text


@register
@dataclass(frozen=True)
class MeanField(MeanFieldAlgorithm):
    """Naive mean field by coordinate ascent.

    Parameters
    ----------
    iterations : int, optional
        Run exactly this number of sweeps over the variables. By default: until `tol`, at most `max_iter`.
    tol : float
        Stop when no belief changes by more than this. The change is measured by tanh(d / 4), where d is the largest
        change of the log-odds of two states of a variable: the largest change of a probability that d can cause.
    max_iter : int
        The maximal number of sweeps.
    check_stability : bool
        Report in `info.stable` whether the beliefs are a local maximum of the bound. (Without `iterations`, a run that
        starts at a saddle point, or is kept there by symmetry, always leaves it.)
    random_state : int or Generator
        The seed. It decides in which direction a run leaves a saddle point.

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
    check_stability: bool = False
    random_state: RandomState = 0

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

    def ascent(self, potentials: Potentials, init: Result | None) -> Ascent:
        """Ascend by single variables."""
        return _Ascent(potentials, init)

    def linearised(self, result: Result) -> FixedPoint:
        """Return one sweep at the beliefs of a result, in reverse."""
        return _Sweep(result)


class _Sweep(FixedPoint):
    """The fixed-point equations of beliefs: one more sweep does not change them."""

    def __init__(self, result: Result) -> None:
        self.ascent = _Ascent(result.potentials, result)

    def read_out_back(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> tuple[Array, Groups]:
        """Reverse the bound and the beliefs of factors."""
        ascent = self.ascent
        bars = ascent.bound.backward(ascent.q, ascent.factors, z_bar, variables_bar, factors_bar)
        return bars.q, bars.gradients(ascent.potentials, z_bar).groups

    def back(self, state_bar: Array) -> tuple[Array, Groups]:
        """Reverse the sweep."""
        components = self.ascent.potentials.graph.n_components
        bars = Bars.of(self.ascent.model, state_bar.copy(), np.zeros(0))
        self.ascent.sweep_back(np.ones(components, bool), bars)
        self.ascent.finish_back(bars)
        return bars.q, bars.gradients(self.ascent.potentials, np.zeros(components, state_bar.dtype)).groups


class _Ascent(Ascent):
    """Coordinate ascent, one variable after the other."""

    starts_possible = True

    def __init__(self, potentials: Potentials, init: Result | None) -> None:
        graph = potentials.graph
        near: Neighbours = graph.cached("neighbours", lambda: neighbours_of(graph))
        bound = MeanFieldBound(potentials, np.zeros(len(edges_of(graph).size), bool), near)
        super().__init__(bound, begin(potentials, bound.model, ~bound.chosen, init))
        self.steps: list[tuple[Mask, Array]] = []
        self.possible = np.ones(graph.n_components, bool)

    def sweep(self, active: Mask, residual: FloatArray, taped: bool) -> None:
        """Update every variable of the active components."""
        from isinglass.kernels.numba.mean_field import ascend

        if taped:
            self.steps.append((active.copy(), self.q.copy()))
        ascend(self.field, self.q, active, residual, self.possible)
        if not self.possible.all():
            raise ImpossibleEvidenceError(impossible(self.potentials))

    def forget(self, components: Mask) -> None:
        """Remove the sweeps of components from the tape."""
        self.steps = [(active & ~components, before) for active, before in self.steps]

    def sweep_back(self, active: Mask, bars: Bars) -> None:
        """Reverse a sweep at the fixed point."""
        from isinglass.kernels.numba.mean_field import ascend_back_at_rest

        if not len(bars.targets):
            bars.targets = np.zeros_like(self.q)
        ascend_back_at_rest(self.field, self.q, active, bars.q, bars.targets, self.q[:0])

    def finish_back(self, bars: Bars) -> None:
        """Add what all sweeps at the fixed point mean for potentials and tables."""
        from isinglass.kernels.numba.mean_field import expect_back

        if len(bars.targets):
            variables, everything = np.arange(len(self.edges.cards)), np.ones(len(self.residual), bool)
            unused = np.zeros_like(self.q)
            expect_back(variables, everything, self.field, self.q, bars.targets, unused, bars.phi, bars.table)

    def tape_back(self, active: Mask, bars: Bars) -> None:
        """Reverse the sweeps that ran."""
        from isinglass.kernels.numba.mean_field import ascend_back

        q = self.q.copy()
        for taken, before in reversed(self.steps):
            ascend_back(self.field, q, before, taken & active, bars.q, bars.phi, bars.table)


def begin(potentials: Potentials, model: LinkModel, links: Mask, init: Result | None = None) -> Array:
    """Return the flat beliefs to start from: those of `init`, or uniform ones over what a variable's potential allows.

    In components in which some of the `links` have hard zeros, a possible assignment. Components in which `init` gives
    a probability to what is forbidden start as without it.
    """
    graph, edges = potentials.graph, edges_of(potentials.graph)
    allowed = model.phi.real > -np.inf
    given, usable = np.zeros(0), np.zeros(graph.n_components, bool)
    if init is not None:
        given = given_beliefs(init, int(edges.first_state[-1])).astype(potentials.dtype)
        usable = ~_components_with_forbidden(potentials, given.real, allowed)
        if usable.all():
            return given
    number_of = np.add.reduceat(allowed, edges.first_state[:-1], dtype=np.int64) if len(allowed) else graph.cards
    if (number_of == 0).any():
        raise ImpossibleEvidenceError(impossible(potentials))
    q: Array = np.where(allowed, np.repeat(1.0 / number_of, graph.cards), 0.0).astype(potentials.dtype)
    hard = np.zeros(graph.n_components, bool)
    hard[edges.component[links & links_with(model.psi.real == -np.inf, model.table, edges.size)]] = True
    hard &= ~usable
    if hard.any():
        states = _possible(potentials)
        of_hard = hard[graph.variable_component]
        q[np.repeat(of_hard, graph.cards)] = 0
        q[(edges.first_state[:-1] + states)[of_hard]] = 1
    return np.where(np.repeat(usable[graph.variable_component], graph.cards), given, q) if len(given) else q


def _components_with_forbidden(potentials: Potentials, q: FloatArray, allowed: Mask) -> Mask:
    """Tell in which components a product of beliefs gives a probability to a forbidden state or configuration."""
    graph, first = potentials.graph, edges_of(potentials.graph).first_state
    found = np.zeros(graph.n_components, bool)
    found[np.repeat(graph.variable_component, graph.cards)[(q > 0) & ~allowed]] = True
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        zeros = tables.real == -np.inf
        if group.arity < 2 or not zeros.any():
            continue
        reached = zeros[ids]
        for slot, card in enumerate(group.shape):
            shape = [len(group)] + [card if k == slot else 1 for k in range(group.arity)]
            reached = reached & (q[first[group.scopes[:, slot]][:, None] + np.arange(card)] > 0).reshape(shape)
        found[graph.factor_component[group.factors[reached.reshape(len(group), -1).any(axis=1)]]] = True
    return found


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


def _forbidden(potentials: Potentials, states: IntArray) -> Mask:
    """Tell for which components an assignment has probability zero."""
    graph = potentials.graph
    found = np.zeros(graph.n_components, bool)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        values = tables[(ids, *(states[column] for column in group.scopes.T))]
        found[graph.factor_component[group.factors[values == -np.inf]]] = True
    return found
