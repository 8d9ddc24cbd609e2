"""Other ways to the minimum of a convex free energy, for comparison; all share the system of `convex_newton`.

- *primal*: Domke's (2009) algorithm 1. The bound x log x <= x (log x0 - 1) + x² / x0 is minimised in the place of the
  energy, and beliefs that come out negative are set to (10 c)^-2, c counting how often. From consistent beliefs such a
  step is exactly half a Newton step, so that convergence is linear.
- *dual*: Newton's method on the Lagrange dual g(lambda) = -w'b(lambda) - lambda'd with b(lambda) =
  exp(-(v + A'lambda) / w - 1) (section 4.3). Along the step rho = d / b, log b moves by t rho, and g grows by
  sum w b (t rho (1 + rho) - (e^{t rho} - 1)).
- *lbfgs*: L-BFGS on the dual, which looks at gradients A b - d only.
- *messages*: norm-product (see `isinglass.kernels.numba.norm_product`); weights must not depend on configurations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import coo_array

from isinglass.errors import InputError
from isinglass.inference.convex_newton import Newton
from isinglass.inference.convex_problem import FLOOR, LOWEST, Problem
from isinglass.inference.convex_system import ranges
from isinglass.inference.sums import sum_at

Solver = Callable[[Newton, float, int], None]

ARMIJO = 1e-4
SHORTEST = 1e-8
LARGEST_EXPONENT = 30.0


def primal(newton: Newton, tol: float, max_iter: int) -> None:
    """Minimise quadratic bounds, one after the other."""
    step, problem = newton.step, newton.problem
    counts = [np.ones(len(b)) for b in (step.p, step.q)]
    owners = (problem.shape.state_component, problem.shape.entry_component)
    members = np.arange(problem.n_components)
    for _ in range(max_iter):
        newton.direction(members, scale=2.0)
        newton.keep_multipliers()
        change = np.maximum(_largest(step.dp, owners[0], newton), _largest(step.dq, owners[1], newton))
        for b, d, count, owner in zip((step.p, step.q), (step.dp, step.dq), counts, owners, strict=True):
            moving = np.isin(owner, members)
            new = b + d
            low = moving & ~(new > 0)
            b[moving] = new[moving]
            b[low] = 1 / (10 * count[low]) ** 2
            count[low] += 1
        newton.iterations[members] += 1
        members = members[change[members] > tol / 10]
        if not len(members):
            break


def dual(newton: Newton, tol: float, max_iter: int) -> None:
    """Newton's method on the dual, with a line search for each component."""
    step, problem = newton.step, newton.problem
    _require_positive(problem, "dual")
    step.p[:], step.q[:] = _dual_start(problem)
    owners = (problem.shape.state_component, problem.shape.entry_component)
    members = np.arange(problem.n_components)
    for _ in range(max_iter):
        newton.direction(members)
        newton.keep_multipliers()
        change = np.maximum(_largest(step.dp, owners[0], newton), _largest(step.dq, owners[1], newton))
        rho = (step.dp / step.p, step.dq / step.q)
        length = _line_search(problem, (step.p, step.q), rho, owners)
        for b, r, owner in zip((step.p, step.q), rho, owners, strict=True):
            moving = np.isin(owner, members)
            b[moving] = np.maximum(b * np.exp(np.minimum(length[owner] * r, LARGEST_EXPONENT)), LOWEST)[moving]
        newton.iterations[members] += 1
        members = members[~((change[members] <= tol) & (length[members] == 1))]
        if not len(members):
            break


def lbfgs(newton: Newton, tol: float, max_iter: int) -> None:
    """L-BFGS on the dual, all components at once."""
    problem, blocks = newton.problem, newton.problem.shape.blocks
    _require_positive(problem, "lbfgs")
    w, v = np.concatenate([problem.wp, problem.wq]), np.concatenate([problem.vp, problem.vq])
    constraints = _constraints(problem)
    right = np.zeros(constraints.shape[0])
    right[: len(blocks.cards)] = 1

    def negative(multipliers: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        exponent = -(v + constraints.T @ multipliers) / w - 1
        b = np.exp(np.minimum(exponent, 300.0))
        return float(w @ b + multipliers @ right), right - constraints @ b

    found = minimize(
        negative, np.zeros(len(right)), jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20},
    )  # fmt: skip
    b = np.maximum(np.exp(-(v + constraints.T @ found.x) / w - 1), FLOOR)
    newton.step.p[:], newton.step.q[:] = b[: len(problem.wp)], b[len(problem.wp) :]
    newton.iterations[:] = found.nit


def messages(newton: Newton, tol: float, max_iter: int) -> None:
    """Norm-product sweeps, forwards and backwards in turns."""
    from isinglass.kernels.numba.norm_product import link_beliefs, sweep

    problem, blocks = newton.problem, newton.problem.shape.blocks
    _require_positive(problem, "messages")
    _require_plain(problem)
    states, blocks = _all_digits(problem)
    order = np.argsort(blocks.slot_variable, kind="stable")
    at = np.searchsorted(blocks.slot_variable[order], np.arange(len(blocks.cards) + 1))
    links = np.repeat(np.arange(len(blocks.kind)), np.diff(blocks.first_slot))[order]
    card = int(blocks.cards.max(initial=1))
    n, mu = np.zeros(int(blocks.slot_first[-1])), np.zeros(int(blocks.slot_first[-1]))
    room = [np.zeros(card) for _ in range(3)]
    for c in range(problem.n_components):
        for t in range(max_iter):
            change = sweep(
                blocks, states, at, links, order, c, t % 2 == 1, problem.wp, problem.wq, problem.vp, problem.vq, n,
                newton.step.p, mu, *room, np.zeros(1, np.int64),
            )  # fmt: skip
            newton.iterations[c] = t + 1
            if change <= tol / 100:
                break
        link_beliefs(blocks, states, c, problem.wq, problem.vq, n, newton.step.q)
    for b in (newton.step.p, newton.step.q):
        np.maximum(b, LOWEST, out=b)


SOLVERS: dict[str, Solver] = {"primal": primal, "dual": dual, "lbfgs": lbfgs, "messages": messages}


def _largest(d: NDArray[Any], owner: NDArray[np.int64], newton: Newton) -> NDArray[np.float64]:
    """Return the largest step of each component."""
    largest = np.zeros(newton.problem.n_components)
    np.maximum.at(largest, owner, np.where(np.isfinite(d), np.abs(d), np.inf))
    return largest


def _line_search(problem: Problem, beliefs: Any, rho: Any, owners: Any) -> NDArray[np.float64]:
    """Halve the steps of components until the dual grows enough."""
    n, weights = problem.n_components, (problem.wp, problem.wq)
    steepest = np.full(n, 1e-300)
    for r, owner in zip(rho, owners, strict=True):
        np.maximum.at(steepest, owner, r)
    length = np.minimum(1.0, LARGEST_EXPONENT / steepest)
    curve = sum(sum_at(o, w * b * r * r, n) for w, b, r, o in zip(weights, beliefs, rho, owners, strict=True))
    while True:
        grown: Any = np.zeros(n)
        for w, b, r, o in zip(weights, beliefs, rho, owners, strict=True):
            grown = grown + sum_at(o, w * b * (length[o] * r * (1 + r) - np.expm1(length[o] * r)), n)
        short = (grown < ARMIJO * length * curve) & (curve > 1e-20) & (length > SHORTEST)
        if not short.any():
            return length
        length[short] /= 2


def _dual_start(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return beliefs b(lambda): uniform ones of variables, and links that take over their costs, normalised."""
    blocks = problem.shape.blocks
    p, _ = problem.start()
    variable = np.repeat(np.arange(len(blocks.cards)), blocks.cards)
    degree = np.bincount(blocks.slot_variable, minlength=len(blocks.cards))
    cost = problem.wp * (np.log(p) + 1) + problem.vp
    mean = sum_at(variable, cost, len(degree)) / blocks.cards
    share = (cost - mean[variable]) / np.maximum(degree, 1)[variable]
    constraints = _constraints(problem)[len(blocks.cards) :]
    place = ranges(blocks.first_state[blocks.slot_variable], blocks.cards[blocks.slot_variable])
    of_entries = -constraints[:, len(p) :]
    cost_q = problem.vq + of_entries.T @ share[place]
    link = np.repeat(np.arange(len(blocks.kind)), np.diff(blocks.first_entry))
    alone = degree == 0
    own = np.flatnonzero(alone[variable])
    q = _normalised(cost_q, problem.wq, link, len(blocks.kind))
    p[own] = _normalised(problem.vp[own], problem.wp[own], variable[own], len(degree))
    return np.maximum(p, LOWEST), np.maximum(q, LOWEST)


def _normalised(cost: Any, w: Any, owner: Any, n: int) -> NDArray[np.float64]:
    """Return exp(-(cost + k) / w - 1) with a constant k for each owner that makes the sum one, by bisection."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, owner, -cost - 100 * w)
    np.maximum.at(high, owner, -cost + 100 * w)
    low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    for _ in range(100):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            above = np.bincount(owner, np.exp(-(cost + middle[owner]) / w - 1), n) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.exp(-(cost + high[owner]) / w - 1))


def _constraints(problem: Problem) -> Any:
    """Return A: sums of variables, then, for each slot and state, its belief minus the marginal of the link's."""
    states, blocks = _all_digits(problem)
    n, variable = len(blocks.cards), np.repeat(np.arange(len(blocks.cards)), blocks.cards)
    slots = len(blocks.slot_variable)
    slot_of = np.repeat(np.arange(slots), blocks.cards[blocks.slot_variable])
    row = n + np.arange(len(slot_of))
    own = blocks.first_state[blocks.slot_variable[slot_of]] + np.arange(len(slot_of)) - blocks.slot_first[slot_of]
    arity, sizes = np.diff(blocks.first_slot), np.diff(blocks.first_entry)
    link = np.repeat(np.arange(len(arity)), arity * sizes)
    inside = np.arange(len(link)) - blocks.first_digit[link]
    entry = blocks.first_entry[link] + inside // np.maximum(arity[link], 1)
    slot = blocks.first_slot[link] + inside % np.maximum(arity[link], 1)
    rows = np.concatenate([variable, row, n + blocks.slot_first[slot] + states])
    columns = np.concatenate([np.arange(len(variable)), own, len(variable) + entry])
    values = np.concatenate([np.ones(len(variable)), np.ones(len(row)), -np.ones(len(entry))])
    shape = (n + len(slot_of), len(variable) + len(problem.wq))
    return coo_array((values, (rows, columns)), shape).tocsr()


def _all_digits(problem: Problem) -> tuple[NDArray[np.int64], Any]:
    """Return the states of every configuration of every link, and blocks that say where they begin."""
    from isinglass.kernels.numba.convex import GENERAL

    blocks = problem.shape.blocks
    arity, sizes = np.diff(blocks.first_slot), np.diff(blocks.first_entry)
    first = np.concatenate([[0], np.cumsum(arity * sizes)]).astype(np.int64)
    states = np.zeros(int(first[-1]), np.int64)
    general = blocks.kind == GENERAL
    link = np.repeat(np.arange(len(arity)), arity * sizes)
    inside = np.arange(len(link)) - first[link]
    listed = general[link]
    states[listed] = blocks.digits[blocks.first_digit[link[listed]] + inside[listed]]
    pair = ~listed
    columns = blocks.cards[blocks.slot_variable[blocks.first_slot[link[pair]] + 1]]
    entry, side = inside[pair] // 2, inside[pair] % 2
    states[pair] = np.where(side == 0, entry // columns, entry % columns)
    return states, blocks._replace(first_digit=first[:-1])


def _require_positive(problem: Problem, name: str) -> None:
    if problem.potentials.dtype.kind == "c":
        raise InputError("solver", "'newton' for complex potentials", repr(name))
    if not (problem.wp > 0).all():
        raise InputError("solver", "'newton' where weights of variables are not positive", repr(name))
    if len(problem.shape.layout.ties.unknown):
        raise InputError("solver", "'newton' where hard zeros tie variables", repr(name))


def _require_plain(problem: Problem) -> None:
    blocks = problem.shape.blocks
    for w, first in ((problem.wp, blocks.first_state), (problem.wq, blocks.first_entry)):
        if len(w) and (np.maximum.reduceat(w, first[:-1]) != np.minimum.reduceat(w, first[:-1])).any():
            expected = "'newton' where weights depend on the configuration"
            raise InputError("solver", expected, "'messages'")
