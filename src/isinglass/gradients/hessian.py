"""Hessian-vector products: the gradient at a complex step.

With g(phi) the gradient of a loss through the inference, and h so small that h² vanishes,

    H v  =  d/dt g(phi + t v)  =  Im g(phi + i h v) / h

(Squire and Trapp 1998; Pearlmutter 1994). The kernels are analytic in every value, forward and backward, so the product
is exact up to rounding and costs about two gradients. With a given number of iterations T it is the product of these T
iterations, otherwise that of the fixed point; then a run continues until the imaginary parts have converged, too.

Exact inference already uses a complex step for the gradient of belief losses, and there is no second imaginary unit. A
loss of log Z alone does not need it: H v = Im b(phi + i h v) / h. For other losses g is differentiated along v by
finite differences of order eight at t = k u, 0 < |k| <= 4. The unit u is such that it changes the score of no
assignment by more than 0.02. As a function of complex t, Z has no zero where scores change by less than pi/2, that is
78 units. So the differences converge fast, and the remaining error is mostly rounding: about 1e-14 / u, relative to v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, no_convergence_warnings
from isinglass.graph.names import EvidenceLike
from isinglass.inference.algorithm import Algorithm, make
from isinglass.inference.api import infer
from isinglass.inference.evidence import checked
from isinglass.inference.linear_response import STEP, complex_start, require_same_point
from isinglass.inference.result import Gradients, Result
from isinglass.potentials import LogTables, Potentials, sum_tables
from isinglass.typing import FloatArray
from isinglass.validation import real_numbers

Loss = Callable[[Result], tuple[Any, Any, Any]]
"""From a result to the derivatives of a loss by log Z, variable beliefs and factor beliefs (each may be None)."""

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # of the central differences at 1, 2, 3, 4 steps
REACH = 0.02  # the largest change of a log-score in one step


def hessian_vector_product(
    potentials: Potentials,
    algorithm: str | Algorithm,
    direction: Any,
    log_z: ArrayLike = 0.0,
    variables: Any = None,
    factors: Any = None,
    *,
    loss: Loss | None = None,
    evidence: EvidenceLike | None = None,
    **options: Any,
) -> Gradients:
    """Multiply the Hessian of a loss, with respect to the log tables, by a direction.

    Parameters
    ----------
    potentials : Potentials
        Real potentials.
    algorithm : str or Algorithm
        With ``iterations=T`` the T iterations are differentiated; a run that converges is differentiated at its fixed
        point.
    direction : sequence of arrays, or Gradients
        One array for each factor, in the shape of its table, the same for factors that share a table; or an object
        whose `groups` hold one for each distinct table. Hard zeros do not change.
    log_z, variables, factors
        Derivatives, as in `Result.backward`, of a loss that is linear in log Z and the beliefs.
    loss : callable, optional
        Instead of these: a function of the result that returns these three derivatives of any loss. It is called with
        complex log Z and beliefs and must be analytic in them (no abs, max or conjugate; comparisons by ``.real``).
    evidence : mapping of int to int, optional
        Additional observed variables and their states.
    **options
        Options of the algorithm.

    Returns
    -------
    Gradients
        `groups` and `log_tables` hold the product. The other fields hold the directional derivatives of the gradients
        with the same name.

    Examples
    --------
    The Hessian of log Z is the covariance of the indicators; here that of one variable:

    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> ig.hessian_vector_product(p, "bp", [[0.0, 1.0]], log_z=1.0).log_tables[0].round(4).tolist()
    [-0.1875, 0.1875]

    A loss that is not linear, -log b_0(0), returns its derivative with respect to the beliefs:

    >>> def loss(r):
    ...     return 0.0, [[-1 / r.variable(0)[0], 0.0]], None
    >>> ig.hessian_vector_product(p, "bp", [[0.0, 1.0]], loss=loss).log_tables[0].round(4).tolist()
    [-0.1875, 0.1875]
    """
    clamped, chosen = checked(potentials, evidence), make(algorithm, options)
    if clamped.dtype.kind == "c":
        raise InputError("potentials", "real log tables", "complex ones", "the direction is a further argument")
    given = variables is not None or factors is not None
    if loss is not None and (given or np.any(np.asarray(log_z) != 0)):
        raise InputError("loss", "either a function or log_z, variables and factors", "both")
    steps = _direction(clamped, direction)
    if chosen.facts.exact == "always" and (loss is not None or given):
        return _differences(clamped, chosen, steps, loss or (lambda r: (log_z, variables, factors)))
    moved = _moved(clamped, steps, 1j * STEP)
    if chosen.facts.exact == "always":
        return _covariances(infer(moved, chosen), log_z)
    by_tolerance = chosen.facts.iterative and chosen.facts.implicit != "backward" and chosen.iterations is None
    if not by_tolerance:  # what ran, from its own start, or a minimum whose backward is that of the minimum
        result = infer(moved, chosen, tape=True)
    else:
        with no_convergence_warnings():
            start = infer(clamped, chosen)
        result = infer(moved, chosen, tape=True, init=complex_start(start))
        require_same_point(start, result, chosen.tol)  # type: ignore[attr-defined]
    return _map(lambda x: x.imag / STEP, clamped, [_carried_back(result, loss, log_z, variables, factors)])


def _carried_back(result: Result, loss: Loss | None, log_z: Any, variables: Any, factors: Any) -> Gradients:
    bars = (log_z, variables, factors) if loss is None else loss(result)
    return result.backward(0.0 if bars[0] is None else bars[0], bars[1], bars[2])


def _direction(potentials: Potentials, given: Any) -> list[FloatArray]:
    """Lay out a direction like `Potentials.groups`."""
    groups = getattr(given, "groups", None)
    if groups is None:
        return _from_factors(potentials, given)
    shapes = [np.shape(g) for g in groups]
    expected = [g.shape for g in potentials.groups]
    if shapes != expected:
        raise InputError("direction", f"groups of shapes {expected}", f"{shapes}")
    return [real_numbers(g, "direction", "real numbers") for g in groups]


def _from_factors(potentials: Potentials, given: Sequence[ArrayLike]) -> list[FloatArray]:
    n = potentials.graph.n_factors
    if not isinstance(given, Sequence | np.ndarray) or len(given) != n:
        got = f"{len(given)}" if hasattr(given, "__len__") else type(given).__name__
        raise InputError("direction", f"one array for each of {n} factors, or Gradients", got)
    steps = [np.full(tables.shape, np.nan) for tables in potentials.groups]
    of_group, row = potentials.graph.place
    for a, (g, r, array) in enumerate(zip(of_group.tolist(), row.tolist(), given, strict=True)):
        t, array = potentials.table_ids[g][r], real_numbers(array, f"direction[{a}]", "real numbers")
        table = steps[g][t]
        if array.shape != table.shape:
            raise InputError(f"direction[{a}]", f"shape {table.shape}", f"shape {array.shape}")
        if not np.isnan(table).all() and (table != array).any():
            raise InputError(
                f"direction[{a}]", "the direction of the other factors with this table", "another one",
                "give the directions of the distinct tables as an object with `groups`",
            )  # fmt: skip
        steps[g][t] = array
    return [np.where(np.isnan(s), 0.0, s) for s in steps]  # tables that no factor uses


def _moved(potentials: Potentials, steps: list[FloatArray], by: complex) -> Potentials:
    tables = [t + by * s for t, s in zip(potentials.groups, steps, strict=True)]
    return Potentials._build(potentials.graph, tables, potentials.table_ids, potentials.evidence)


def _covariances(result: Result, log_z: ArrayLike) -> Gradients:
    """Return the derivative of the beliefs, which are the gradient of log Z."""
    potentials, graph = result.potentials, result.potentials.graph
    weights = np.broadcast_to(np.asarray(log_z, np.float64), graph.n_components)
    slopes = []
    for group, belief in zip(graph.groups, result.factors.groups, strict=True):
        weight = weights[graph.factor_component[group.factors]].reshape((-1,) + (1,) * group.arity)
        slopes.append(weight * belief.imag / STEP)
    groups = sum_tables(potentials, slopes)
    of_factors = LogTables(graph, groups, potentials.table_ids)
    return Gradients(groups, of_factors, np.zeros(0), 0.0, lambda: np.zeros(graph.n_factors))


def _differences(potentials: Potentials, algorithm: Algorithm, steps: list[FloatArray], loss: Loss) -> Gradients:
    """Differentiate the gradient of a loss by exact inference along a direction."""
    reach = 0.0
    for step, ids in zip(steps, potentials.table_ids, strict=True):
        reach += float(np.abs(step).max(axis=tuple(range(1, step.ndim)), initial=0.0)[ids].sum())
    unit = REACH / reach if reach > 0 else 1.0
    points = [sign * k * unit for k in range(1, len(WEIGHTS) + 1) for sign in (1, -1)]
    weights = [sign * w / unit for w in WEIGHTS for sign in (1, -1)]
    gradients = []
    for point, weight in zip(points, weights, strict=True):
        result = infer(_moved(potentials, steps, point), algorithm, tape=True)
        one = _carried_back(result, loss, 0.0, None, None)
        gradients.append(_map(lambda x, w=weight: w * x, potentials, [one]))
    return _map(lambda *x: sum(x), potentials, gradients)


def _map(f: Callable[..., Any], potentials: Potentials, all_of: Sequence[Gradients]) -> Gradients:
    """Apply a function to each field of gradients."""
    groups = tuple(f(*g) for g in zip(*(one.groups for one in all_of), strict=True))
    return Gradients(
        groups,
        LogTables(potentials.graph, groups, potentials.table_ids),
        f(*(one.initial_messages for one in all_of)),
        f(*(one.damping for one in all_of)),
        lambda: f(*(one.counting_numbers for one in all_of)),
    )
