"""Gradients by perturbation: one more inference, on complex potentials.

Where log Z is a smooth function of the log potentials phi and its gradient is the beliefs b (exact inference, and
converged variational fixed points), the Jacobian db/dphi is symmetric. So the derivative of a loss L(b) is the
derivative of the beliefs along dL/db:

    dL/dphi  =  d/dh b(phi + h dL/db)  =  Im b(phi + i h dL/db) / h    with h so small that h² vanishes

(Domke 2010; the complex step of Squire and Trapp 1998). A fixed point depends on phi only through the sum of all
tables, so a loss of a variable's belief perturbs the smallest factor that holds the variable.

An iterative algorithm goes on from its converged messages. Their real parts stand still; the imaginary parts follow the
linearised iteration, which contracts as fast as the run itself did, until they change little *relative to their size*:
an absolute tolerance means nothing to numbers around h.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import EvidenceLike
from isinglass.inference.algorithm import Algorithm, make, with_fact
from isinglass.inference.complex_step import along_beliefs
from isinglass.inference.cotangents import cotangents
from isinglass.inference.evidence import checked
from isinglass.inference.result import Gradients, Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray

STEP = 1e-20
BLOCK = 10  # iterations between two looks at the imaginary parts
ROUNDING = 1e-13  # no smaller relative change is waited for
LEFT = 1e-5  # the movement of a belief that shows that a run has left its fixed point
NOISE = 1e-15  # nor a smaller one of derivatives along a direction of size one


def perturbation(
    potentials: Potentials,
    algorithm: str | Algorithm,
    log_z: ArrayLike = 0.0,
    variables: Any = None,
    factors: Any = None,
    evidence: EvidenceLike | None = None,
    *,
    init: Result | None = None,
    **options: Any,
) -> Gradients:
    """Carry derivatives by log Z and the beliefs to the log tables, by one more inference.

    It needs no tape, however many iterations a run takes. It holds for exact inference and for *converged* runs of
    algorithms whose fixed point makes log Z stationary; truncated runs and max-product are refused.

    Parameters
    ----------
    potentials : Potentials
        Real ones; their own evidence is used.
    algorithm : str or Algorithm
    log_z, variables, factors
        Derivatives of the loss by log Z and the beliefs, as in `Result.backward`.
    evidence : mapping of int to int, optional
        More observed variables and their states.
    init : Result, optional
        An earlier result on the same graph, from which an iterative algorithm starts.
    **options
        Options of the algorithm.

    Returns
    -------
    Gradients
        Those by initial messages (none) and damping (zero) are trivial; those by counting numbers are not given (nan)
        unless inference is exact, where they are zero.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])
    >>> d = ig.perturbation(p, "bp", variables=[[0.0, 1.0], [0.0, 0.0]])  # of b_0(1) = 0.7
    >>> d.log_tables[0].round(4).tolist()
    [[-0.07, -0.14], [0.09, 0.12]]
    """
    clamped = checked(potentials, evidence)
    chosen = make(algorithm, options).fixed(clamped)
    _require_stationary(chosen)
    exact = chosen.facts.exact == "always"
    result = chosen.run(clamped, tape=exact, init=init)
    if not result.info.converged:
        raise _refused(
            "an inference that converges",
            f"residual {result.info.residual:.2g} after {result.info.iterations} iterations of {chosen.name!r}",
            "raise max_iter or add damping",
        )
    bars = cotangents(result, log_z, variables, factors)
    if exact and result.reverse is not None:
        return result.reverse(*bars)
    gradients = along_beliefs(partial(_settled, chosen, result), clamped, *bars)
    if exact:
        return gradients
    return replace(gradients, by_counting=lambda: np.full(clamped.graph.n_factors, np.nan))


def _settled(algorithm: Algorithm, start: Result, perturbed: Potentials) -> Result:
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
    raise _refused(
        "an inference whose derivative converges",
        f"a relative change of {change:.2g} after {done} more iterations of {algorithm.name!r}",
        "raise max_iter or add damping",
    )


def require_same_point(start: Result, now: Result, tol: float) -> None:
    """Refuse a run on complex potentials whose real parts went elsewhere, or are no numbers: it left a saddle."""
    moved = np.abs(now.variables.flat.real - start.variables.flat.real).max(initial=0.0)
    if not moved <= max(LEFT, 100 * tol) or not np.isfinite(now.variables.flat.imag).all():
        raise _refused("a stable fixed point", "one that small changes lead away from", "leave it by start_noise=1e-3")


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


def _require_stationary(algorithm: Algorithm) -> None:
    if not algorithm.facts.envelope:
        expected = "one for which, once it has converged, the gradient of log Z is the beliefs"
        raise _refused(expected, repr(algorithm.name), with_fact("envelope"))
    if algorithm.iterations is not None:
        raise InputError(
            "iterations",
            "None: the rule holds where inference has converged",
            repr(algorithm.iterations),
            "leave it out, or use infer(..., tape=True).backward for the gradient of what really ran",
        )


def _refused(expected: str, got: str, remedy: str = "") -> InputError:
    other = "use infer(..., tape=True).backward for the gradient of what really ran"
    return InputError("algorithm", expected, got, f"{remedy}, or {other}" if remedy else other)
