"""Linear response of a converged inference: the derivatives of its beliefs with respect to the log potentials.

Where the gradient of log Z is the beliefs b, their derivative by a field on state a of variable i is a covariance:

    d b_j(c) / d phi_i(a)  =  p(x_i = a, x_j = c) - p(x_i = a) p(x_j = c)

It is exact for exact beliefs. For converged fixed points it is the estimate of the pair marginal of variables that
share no factor (Welling and Teh 2004, "Linear response algorithms for approximate inference in graphical models").

The derivative is Im b(phi + i h field) / h, with h so small that h² vanishes. An iterative algorithm continues from its
converged messages. Their real parts do not change. Their imaginary parts follow the linearised iteration, which
converges as fast as the run itself. They have converged when they change little *relative to their size*, because an
absolute tolerance is useless for numbers of the size of h.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states
from isinglass.inference.algorithm import Algorithm, with_fact
from isinglass.inference.complex_step import along_beliefs
from isinglass.inference.result import Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray

STEP = 1e-20
BLOCK = 10  # iterations between two looks at the imaginary parts
ROUNDING = 1e-13  # no smaller relative change is waited for
LEFT = 1e-5  # the movement of a belief that shows that a run has left its fixed point
NOISE = 1e-15  # nor a smaller one of derivatives along a direction of size one


def covariance(result: Result, algorithm: Algorithm, i: int, j: int) -> FloatArray:
    """Return the covariances of the states of variables i and j, an array (states of i, states of j).

    Parameters
    ----------
    result : Result
        Converged.
    algorithm : Algorithm
        The one that inferred it.
    i, j : int
    """
    require_stationary(algorithm)
    if not result.info.converged:
        raise refused("an inference that converged", f"residual {result.info.residual:.2g}", "raise max_iter")
    graph, first = result.potentials.graph, first_states(result.potentials.graph)
    where = _slot_of(graph, j)
    found = np.zeros((int(graph.cards[i]), int(graph.cards[j])))
    if where is None:  # no factor holds j
        return found
    nothing = np.zeros(sum(len(g) * g.table_size for g in graph.groups))
    for a in range(len(found) - 1):
        field = np.zeros(int(first[-1]))
        field[first[i] + a] = 1.0
        run = partial(settled, algorithm, result)
        slopes = along_beliefs(run, _untied(result.potentials), np.zeros(graph.n_components), field, nothing).log_tables
        table = np.asarray(slopes[where[0]])
        found[a] = table.sum(axis=tuple(k for k in range(table.ndim) if k != where[1]))
    found[-1] = -found[:-1].sum(axis=0)  # the probabilities of all states sum to one
    return found


def _untied(potentials: Potentials) -> Potentials:
    """Return potentials with a table for each factor, so that derivatives by shared tables are not summed."""
    tables = [t[ids] for t, ids in zip(potentials.groups, potentials.table_ids, strict=True)]
    ids = [np.arange(len(t)) for t in tables]
    return Potentials._build(potentials.graph, tables, ids, potentials.evidence)


def _slot_of(graph: FactorGraph, j: int) -> tuple[int, int] | None:
    """Return a factor that holds a variable, and the variable's axis in its table; None where there is none."""
    for group in graph.groups:
        rows, axes = np.nonzero(group.scopes == j)
        if len(rows):
            return int(group.factors[rows[0]]), int(axes[0])
    return None


def settled(algorithm: Algorithm, start: Result, perturbed: Potentials) -> Result:
    """Infer on perturbed potentials, from a converged start, until the imaginary parts of the beliefs stand still."""
    if not algorithm.facts.iterative:
        return algorithm.run(perturbed)
    if not perturbed.graph.n_factors:
        return start
    block = algorithm.resumed(BLOCK)
    tol, limit = max(algorithm.tol, ROUNDING), algorithm.max_iter or 0  # type: ignore[attr-defined]
    now, done, change = complex_start(start), 0, np.inf
    before = _imaginary(now)
    while done < max(limit, BLOCK):
        now = block.run(perturbed, init=now)
        require_same_point(start, now, tol)
        done += max(1, now.info.iterations)
        after = _imaginary(now)
        change = _relative_change(perturbed.graph, before, after)
        if change <= tol:
            return now
        before = after
    raise refused(
        "an inference whose derivative converges",
        f"a relative change of {change:.2g} after {done} more iterations of {algorithm.name!r}",
        "raise max_iter or add damping",
    )


def require_same_point(start: Result, now: Result, tol: float) -> None:
    """Refuse a run on complex potentials whose real parts went elsewhere, or are no numbers: it left a saddle."""
    moved = np.abs(now.variables.flat.real - start.variables.flat.real).max(initial=0.0)
    if not moved <= max(LEFT, 100 * tol) or not np.isfinite(now.variables.flat.imag).all():
        raise refused("a stable fixed point", "one that small changes lead away from", "leave it by start_noise=1e-3")


def complex_start(result: Result) -> Result:
    """Return a result whose beliefs, which some algorithms start from, are complex."""
    flat = result.variables.flat.astype(np.complex128)
    return replace(result, variables=VariableBeliefs(result.potentials.graph, flat))


def _imaginary(result: Result) -> list[FloatArray]:
    return [result.variables.flat.imag, *(g.imag for g in result.factors.groups)]


def _relative_change(graph: FactorGraph, before: list[Array], after: list[Array]) -> float:
    """Return the largest change of an imaginary part in a component, relative to the component's largest."""
    change, size = np.zeros(graph.n_components), np.zeros(graph.n_components)
    owners = [np.repeat(graph.variable_component, graph.cards)]
    owners += [graph.factor_component[group.factors] for group in graph.groups]
    for owner, old, new in zip(owners, before, after, strict=True):
        inner = tuple(range(1, new.ndim))
        np.maximum.at(change, owner, np.abs(new - old).max(axis=inner, initial=0.0))
        np.maximum.at(size, owner, np.abs(new).max(axis=inner, initial=0.0))
    change[change <= NOISE * STEP] = 0  # nothing but rounding is left, where the beliefs do not move
    share = np.divide(change, size, out=np.zeros_like(change), where=size != 0)
    return float(np.where(np.isnan(share), np.inf, share).max(initial=0.0))


def require_stationary(algorithm: Algorithm) -> None:
    """Refuse an algorithm whose beliefs, once it has converged, are not the gradient of log Z."""
    if not algorithm.facts.envelope:
        expected = "one for which, once it has converged, the gradient of log Z is the beliefs"
        raise refused(expected, repr(algorithm.name), with_fact("envelope"))
    if algorithm.iterations is not None:
        raise InputError(
            "iterations",
            "None, because this rule needs converged inference",
            repr(algorithm.iterations),
            "leave it out, or use infer(..., tape=True).backward for the gradient through the iterations that were run",
        )


def refused(expected: str, got: str, remedy: str = "") -> InputError:
    """Return an error that names the other way to a gradient."""
    other = "use infer(..., tape=True).backward for the gradient through the iterations that were run"
    return InputError("algorithm", expected, got, f"{remedy}, or {other}" if remedy else other)
