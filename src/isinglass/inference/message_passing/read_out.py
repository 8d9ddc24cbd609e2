"""The read-out: from messages to beliefs and log Z.

The beliefs of links, and log Z, need a separate pass. If no product in it can underflow, it is deferred until they are
used (see `outcome`). Otherwise it is made at once, because a component that underflows must be run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import belief_entries
from isinglass.graph.message_graph import edges_of, first_link_beliefs
from isinglass.inference.message_passing.checks.domain import log_z_range
from isinglass.inference.message_passing.model.group_places import layout_of, share_unary_beliefs
from isinglass.inference.message_passing.model.log_model import LinkModel, observed_entries
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.passes import read_out_links, read_out_variables
from isinglass.inference.message_passing.plan import Plan
from isinglass.inference.message_passing.run import Run, widths_of
from isinglass.inference.message_passing.shares import component_sums, fill, logarithms, smallest
from isinglass.inference.support import support_of
from isinglass.kernels.layout import SAFE, Beliefs, Edges
from isinglass.potentials import Potentials
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, Mask

CLEAR = 1e-280  # products above this are far from an underflow


@dataclass(frozen=True, eq=False)
class ReadOut:
    """Reads out what the runs of an engine have found; potentials and model are the last ones, if there are several."""

    potentials: Potentials
    model: LinkModel
    plan: Plan
    initial: Array | None  # the first messages, if they were given
    spread: ThreadMap

    @property
    def graph(self) -> FactorGraph:
        """The graph."""
        return self.potentials.graph

    @property
    def edges(self) -> Edges:
        """Its edges."""
        return edges_of(self.graph)

    def read(self, run: Run, move: Move, flagged: Mask, outcome: Outcome) -> None:
        """Read the beliefs out; those of links later, where no component can be flagged for them."""
        active = run.wanted & ~flagged
        whole = bool(active.all())
        outcome.begin(run.spread, whole)
        if not active.any():
            return
        if not whole:
            fill(run.spread, run.log_zi, 0)
        plain = run.is_linear and not self.plan.powers and self.potentials.dtype.kind == "f"
        if plain:
            least = move.read_out(run, beliefs_of(self.graph, run, outcome), active)
            if whole and self._cannot_underflow(run, outcome, least):
                outcome.later.append(self._links_later(run, active, flagged))
                return
        self._read_links(run, active, flagged, outcome, not plain)
        fine = active & ~flagged
        if not run.is_linear or not np.isfinite(outcome.log_z_so_far.real[fine]).all():
            self._mark_runaways(fine, outcome)
            outcome.normalise_large(fine, self.edges, beliefs_of(self.graph, run, outcome))

    def _read_links(
        self, run: Run, active: Mask, flagged: Mask, outcome: Outcome, with_variables: bool = False
    ) -> None:
        """Read the beliefs of links out, those of variables too unless that has been done, and log Z."""
        self._make_room(outcome)
        run.log_za = np.zeros(len(self.edges.component), self.potentials.dtype)
        values, beliefs = run.models[-1], beliefs_of(self.graph, run, outcome)
        read_out_links(run, values, beliefs, active, flagged)
        if with_variables:
            read_out_variables(run, values, beliefs, active)
        fine = active & ~flagged
        outcome.log_z_so_far[fine] += self._log_z(run)[fine]

    def _links_later(self, run: Run, active: Mask, flagged: Mask) -> Callable[[Outcome], None]:
        """Return what reads the links out; Ctrl-C may end it anywhere, so that it always begins at the beginning."""
        linear = run.log_zi

        def read(outcome: Outcome) -> None:
            run.log_zi, outcome.log_z_so_far = linear, self.model.constant.copy()
            self._read_links(run, active, flagged, outcome)

        return read

    def _make_room(self, outcome: Outcome) -> None:
        """Allocate the beliefs of factors, unless there is room for them."""
        with outcome.lock:
            if not len(outcome.factors_so_far):
                outcome.factors_so_far = np.zeros(belief_entries(self.graph), self.potentials.dtype)

    def _cannot_underflow(self, run: Run, outcome: Outcome, least: float | None) -> bool:
        """Tell whether no product of the beliefs of links can be too small; `least` as in `stays_clear`, if known."""
        if least is None:
            least = smallest(run.spread, outcome.variables, 1.0) * smallest(run.spread, run.log_zi, 1.0)
        clear = self.stays_clear(run, least)
        return clear and (self.model.bounded or bool(np.isfinite(outcome.log_z_so_far).all()))

    def stays_clear(self, run: Run, least: float) -> bool:
        """Tell whether a lower bound of all products of the beliefs of links is far from an underflow.

        What a variable sends is at least phi prod m over all its messages, that is b_i Z_i, as no message exceeds one.
        `least` is a lower bound of all b_i Z_i.
        """
        top = 1.0 if self.initial is None else max(1.0, float(run.m.max(initial=1.0)))
        smallest_entry = SAFE / run.models[-1].limit
        return smallest_entry * (least / top) ** widths_of(self.graph).slots > CLEAR

    def _mark_runaways(self, among: Mask, outcome: Outcome) -> None:
        """Make log Z NaN where no beliefs could give it: messages diverged, or every assignment is impossible.

        Hard zeros in loops can let logarithms of messages grow without bound, until they are infinite or NaN.
        """
        log_z = outcome.log_z_so_far.real
        low, high = (-np.inf, np.inf) if self.plan.maximise else log_z_range(self.potentials, self.plan.counting)
        off = among & ~(np.isfinite(log_z) & (log_z >= low) & (log_z <= high))
        if not np.isfinite(log_z[off]).all():
            support_of(self.potentials)  # raises if every assignment is proved to be impossible
        outcome.log_z_so_far[off] = np.nan
        outcome.converged[off], outcome.residual[off] = False, np.maximum(outcome.residual[off], self.plan.tol)
        outcome.off_domain |= off

    def _log_z(self, run: Run) -> Array:
        """Turn the Z of the read-out into logarithms; add them up for each component, without the constants."""
        edges, layout, n = self.edges, layout_of(self.graph), self.graph.n_components
        with np.errstate(divide="ignore", invalid="ignore"):
            if run.is_linear:
                run.log_zi, run.log_za = (logarithms(run.spread, zs) for zs in (run.log_zi, run.log_za))
            if self.plan.powers and len(edges.size):
                scale = np.log(run.scratch.scale) if run.is_linear else run.scratch.scale
                run.log_za += np.add.reduceat(scale[edges.slot_edge], edges.first_slot[:-1])
            of_variable: Array = 1.0 - np.diff(edges.first_edge)  # its counting number
            if self.plan.powers:
                link = np.repeat(np.arange(len(edges.size)), np.diff(edges.first_slot))
                of_variable = 1.0 - np.bincount(edges.slot_variable, self.plan.counting[link], len(edges.cards))
            of_variables = np.where(of_variable == 0, 0, of_variable * run.log_zi)
            of_links = self.plan.counting * run.log_za
            one = component_sums(run.spread, edges.variable_component, layout.variable_starts, of_variables, n)
            two = component_sums(run.spread, edges.component, layout.link_starts, of_links, n)
            return np.asarray(one + two)

    def finish(self, outcome: Outcome) -> None:
        """Round observed variables to one-hot; give factors of arity one their variable's belief, constants theirs."""
        outcome.begin(self.spread, False)
        if self.potentials.evidence:
            observed, seen = observed_entries(self.edges, self.potentials.evidence)
            outcome.variables[observed] = 0
            outcome.variables[seen] = 1
        outcome.later.append(self._share_unary)

    def _share_unary(self, outcome: Outcome) -> None:
        self._make_room(outcome)
        share_unary_beliefs(self.graph, outcome.variables, outcome.factors_so_far, self.spread)


def beliefs_of(graph: FactorGraph, run: Run, outcome: Outcome) -> Beliefs:
    """Return where a run reads its beliefs out to; those of links, if there is room for them."""
    links = first_link_beliefs(graph) if len(outcome.factors_so_far) else np.zeros(0, np.int64)
    return Beliefs(outcome.variables, outcome.factors_so_far, links, run.log_zi, run.log_za)
