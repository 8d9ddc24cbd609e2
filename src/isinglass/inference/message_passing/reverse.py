"""The reverse of a run: from derivatives with respect to log Z and the beliefs to those with respect to all inputs.

A run with a given number of iterations is reversed iteration by iteration. So is a run that did not converge, and a
forward and backward pass on trees. Any other run, which converged, is differentiated at its fixed point m* = F(m*),
which does not depend on the initial messages:

    dL/dphi  =  sum_k  (dF/dphi)' (J')^k dL/dm,       dF/dphi, J = dF/dm at m*.

F is one iteration as it was run, damped or not. It is reversed repeatedly at the final messages, until the terms of the
sum vanish. Reversing the iterations that led to m* would not be enough: a run that starts close to its fixed point, as
in training from zero, has too few of them, and J at earlier messages can be very different from J at m*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.message_graph import entry_components, pool_of
from isinglass.inference.cotangents import is_nothing
from isinglass.inference.message_passing.engine import Engine, entries_of
from isinglass.inference.message_passing.model.group_places import move_unary_bars
from isinglass.inference.message_passing.model.table_places import table_places
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.passes import read_out_back
from isinglass.inference.message_passing.read_out import beliefs_of
from isinglass.inference.message_passing.run import Derivatives, Run
from isinglass.inference.message_passing.shares import zeros
from isinglass.inference.message_passing.tape import Tape
from isinglass.inference.result import Gradients
from isinglass.kernels.layout import BeliefBars
from isinglass.potentials import LogTables
from isinglass.runtime.deferring import deferred, twin
from isinglass.segments import Largest
from isinglass.typing import Array, Mask

ROUNDING = 1e-15  # a derivative has died out below this share of its first size
LEAST_STEPS = 100  # tried before a derivative is refused
HOPELESS = 1e12  # a derivative that grows by this factor is refused at once


@dataclass(frozen=True, eq=False)
class Cotangents:
    """Derivatives of a loss by log Z of each component, and by the flat beliefs of variables and factors."""

    log_z: Array
    variables: Array
    factors: Array


def gradients(engine: Engine, outcome: Outcome, bars: Cotangents) -> Gradients:
    """Carry derivatives back through the read-out and every iteration.

    Those by the counting numbers take longer, and are computed when they are first needed.
    """
    total, initial = _derivatives(engine, outcome, bars, counting=False)
    groups = _by_tables(engine, total, bars.log_z)
    first = engine.potentials
    by_factor: Sequence[Any] = LogTables(engine.graph, groups, first.table_ids)
    if len(engine.per_iteration) > 1:
        by_factor = [
            LogTables(engine.graph, [group[t] for group in groups], potentials.table_ids)
            for t, potentials in enumerate(engine.per_iteration)
        ]
    return Gradients(groups, by_factor, initial, total.damping[0], lambda: _by_counting(engine, outcome, bars))


def _derivatives(engine: Engine, outcome: Outcome, bars: Cotangents, counting: bool) -> tuple[Derivatives, Array]:
    """Reverse all runs; return the totals and the derivatives by the initial messages."""
    edges, dtype = engine.edges, engine.potentials.dtype
    size, total = edges.start[-1], _nothing_yet(engine, counting)
    if not is_nothing(bars.factors):
        variables = bars.variables.copy()
        move_unary_bars(engine.graph, bars.factors, variables)
        bars = Cotangents(bars.log_z, variables, bars.factors)
    initial = np.zeros(size if len(outcome.runs) > 1 else 0, dtype)
    for run, tape in outcome.runs:
        assert tape is not None
        total.m = deferred(lambda: np.zeros(size, dtype))
        _reverse(engine, run, tape, outcome, bars, total)
        if len(outcome.runs) == 1:
            return total, deferred(lambda: total.m)
        entries = entries_of(edges, run.wanted)
        initial[entries] += total.m[entries]
    return total, initial


def _nothing_yet(engine: Engine, counting: bool) -> Derivatives:
    """Return derivatives that are zero so far."""
    dtype, pool = engine.potentials.dtype, pool_of(engine.graph)
    places = [table_places(p, model) for p, model in zip(engine.per_iteration, engine.models, strict=True)]
    total = Derivatives(
        np.empty(0, dtype),
        pool.take((int(engine.edges.start[-1]),), dtype),
        [zeros(engine.spread, model.phi.shape, dtype) for model in engine.models],
        [np.zeros(of.size, dtype) for of in places],
        places,
        np.zeros(len(engine.edges.size) if counting else 0, dtype),
        np.zeros(1, dtype),
        np.zeros(engine.graph.n_components, bool),
    )
    pool.give_back_with(total, total.n)
    return total


def messages_back(engine: Engine, outcome: Outcome, messages_bar: Array) -> tuple[Array, tuple[Array, ...]]:
    """Carry derivatives by the logs of the last messages back to those of the first ones, and to the tables."""
    total, initial = _nothing_yet(engine, False), np.zeros_like(messages_bar)
    for run, tape in outcome.runs:
        assert tape is not None
        total.m = messages_bar.copy()
        _steps_back(run, tape, total, run.wanted)
        entries = entries_of(engine.edges, run.wanted)
        initial[entries] = total.m[entries]
    return initial, _by_tables(engine, total, np.zeros(engine.graph.n_components, messages_bar.dtype))


def _reverse(engine: Engine, run: Run, tape: Tape, outcome: Outcome, bars: Cotangents, total: Derivatives) -> None:
    """Reverse the read-out and the iterations of one run."""
    last = len(engine.models) - 1
    by_links = bool(bars.log_z.any() or len(total.counting) or not is_nothing(bars.factors))
    unrolled = bool(engine.plan.iterations) and run.wanted.all() and not by_links
    if unrolled and tape.last_move.read_out_back(run, outcome.variables, bars.variables, total):
        _steps_back(run, tape, total, run.wanted)
        return
    if by_links:
        outcome.complete()
    factors_bar = np.require(bars.factors if by_links else np.zeros(0, bars.variables.dtype), requirements=["C", "W"])
    given = BeliefBars(bars.log_z, bars.variables, factors_bar, by_links)
    read_out_back(run, run.models[last], beliefs_of(engine.graph, run, outcome), given, total.bars(last), run.wanted)
    converged = run.wanted & outcome.converged
    one_pass = run.settled and not len(total.counting)  # with other counting numbers it is no fixed point
    if engine.plan.iterations is not None or one_pass or not converged.any():
        _steps_back(run, tape, total, run.wanted)
        return
    if (run.wanted & ~converged).any():
        _steps_back(run, tape, total, run.wanted & ~converged)
    started = total.m.copy()
    started[entries_of(engine.edges, converged)] = 0  # a fixed point does not depend on the first messages
    _fixed_point_back(engine, run, tape, outcome, converged, total)
    total.m = started


def _fixed_point_back(
    engine: Engine, run: Run, tape: Tape, outcome: Outcome, converged: Mask, total: Derivatives
) -> None:
    """Reverse the last iteration at the last messages of the converged components until nothing is left.

    A derivative dies out about as fast as the run converged, so sizes are checked from half of that time on, at times
    that depend on the component alone.
    """
    again = replace(run, m=run.m.copy(), spare=None, uniform=False)
    step = tape.last_move.at_rest(again, converged)
    limit = max(engine.plan.max_iter, LEAST_STEPS)
    largest = Largest(entry_components(engine.edges), engine.graph.n_components)
    most = largest.parts(total.m)
    enough, died = HOPELESS * most.max(axis=0), max(engine.plan.tol, ROUNDING)
    missing = converged & (most != 0).any(axis=0)
    t, looks, half = 0, step.move.looks(again), (outcome.iterations + 1) // 2
    while t < limit and missing.any():
        next_look = np.minimum(-(-np.maximum(half, t + 1) // looks) * looks, limit)
        until = int(next_look[missing].min())
        step.move.repeat_back(again, step, missing, total, until - t)
        t, due = until, missing & (next_look == until)
        now = step.move.sizes_back(again, total, largest)
        most = np.where(due, np.maximum(most, now), most)
        missing = missing & ~(due & (now <= died * most).all(axis=0))
        if not (now <= enough)[:, due & missing].all():
            break
    step.move.finish_back(again, total)
    if not missing.any():
        return
    raise InputError(
        "tape",
        "a fixed point whose derivative converges",
        f"one where it grows, or has not converged after {limit} iterations",
        "the fixed point is not stable (start_noise=1e-3 may leave it), or raise max_iter; a likelihood (loss='cl') is "
        "trained without this derivative by gradient='envelope'",
    )


def _steps_back(run: Run, tape: Tape, total: Derivatives, among: Mask) -> None:
    """Reverse the iterations of some components of a run, on a copy of it."""
    run, final = twin(run), run
    previous: Move | None = None
    for step in tape.backwards(run):
        if previous is not None and step.move is not previous and not (step.move.floods and previous.floods):
            previous.finish_back(run, total)
        if step.move.in_place and run.m is final.m:
            run.m = final.m.copy()
        step.move.backward(run, step, step.active & among, total)
        previous = step.move
    if previous is not None:
        previous.finish_back(run, total)


def _by_tables(engine: Engine, total: Derivatives, z_bar: Array) -> tuple[Array, ...]:
    """Return the derivatives by the distinct tables; with a model for each iteration, stacked along a first axis."""
    by_model = []
    for t, (potentials, model) in enumerate(zip(engine.per_iteration, engine.models, strict=True)):
        constant = z_bar if t == len(engine.per_iteration) - 1 else np.zeros_like(z_bar)
        psi_bar = total.places[t].sums(total.psi[t], len(model.psi))
        by_model.append(model.gradients(potentials, total.phi[t], psi_bar, constant))
    if len(by_model) == 1:
        return by_model[0]
    return tuple(np.stack(group) for group in zip(*by_model, strict=True))


def _by_counting(engine: Engine, outcome: Outcome, bars: Cotangents) -> Array:
    """Return the derivative by the counting number of each factor of arity two or more; zero for the others.

    Through the effective tables psi = phi / c it is -<psi_bar, psi> / c, for which every link needs its own.
    """
    edges = engine.edges
    apart = Engine(engine.per_iteration, engine.plan, engine.initial, own_tables=True, kernels=engine.kernels)
    replayed = apart.run("full")
    total, _ = _derivatives(apart, replayed, bars, counting=True)
    counting = total.counting
    for model, psi_bar in zip(apart.models, total.psi, strict=True):
        product = psi_bar * np.where(model.psi.real > -np.inf, model.psi, 0)
        for block in model.blocks:
            shape = engine.graph.groups[block.group].shape
            rows = model._rows(block, shape, product).sum(axis=1)
            counting[block.links] -= rows / engine.plan.counting[block.links]
    by_factor = np.zeros(engine.graph.n_factors, engine.potentials.dtype)
    by_factor[edges.link_factor] = counting
    return by_factor
