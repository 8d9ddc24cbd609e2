"""Other ways to the minimum of a convex free energy, for comparison; all share the system of `convex_newton`.

On small graphs of mixed arity, with weights in [.1, 1], all of them and Newton's method agree in every belief to 1e-8,
and with a conic solver to 1e-7.

- *primal*: Domke's (2009) algorithm 1. The bound x log x <= x (log x0 - 1) + x² / x0 is minimised in the place of the
  energy, and beliefs that come out negative are set to (10 c)^-2, c counting how often. From consistent beliefs such a
  step is exactly half a Newton step, so that convergence is linear.
- *blocks*: algorithm 2, the same for parts of the beliefs in turns (see `solvers.blocks`).
- *dual*: Newton's method on the Lagrange dual g(lambda) = -w'b(lambda) - lambda'd with b(lambda) =
  exp(-(v + A'lambda) / w - 1) (section 4.3). Along the step rho = d / b, log b moves by t rho, and g grows by
  sum w b (t rho (1 + rho) - (e^{t rho} - 1)).
- *lbfgs*: L-BFGS on the dual, which looks at gradients A b - d only.
- *messages*: norm-product (see `kernels.numba.free_energy.norm_product`); weights must not depend on configurations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_array

from isinglass.errors import InputError
from isinglass.inference.free_energy.linear.system import ranges
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import FLOOR, LOWEST, Problem
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray

Solver = Callable[[Newton, float, int], None]  # sets `converged` where it is done; the KKT residual is looked at after

ARMIJO = 1e-4
SHORTEST = 1e-8
LARGEST_EXPONENT = 30.0
LARGEST_LOGARITHM = 300.0
FASTEST = 1e50  # step of a logarithm, whose square times the lowest belief is nothing


def primal(newton: Newton, tol: float, max_iter: int) -> None:
    """Minimise quadratic bounds, one after the other.

    The change halves from step to step, so that any `tol` above rounding is reached, in about log2(1 / tol) iterations
    once no belief comes out negative. A belief may do so until (10 c)^-2 has fallen to its true size or below `tol`:
    30 iterations where all beliefs are above 1e-5, 400 at 1e-8, ten thousand for a `tol` of 1e-8 where some vanish.
    """
    step, problem = newton.step, newton.problem
    counts = [np.ones(len(b)) for b in (step.p, step.q)]
    owners = (problem.shape.state_component, problem.shape.entry_component)
    members = np.arange(problem.n_components)
    for _ in range(max_iter):
        newton.direction(members, scale=2.0)
        newton.keep_multipliers()
        change = newton.gaps(members, 2.0)
        for b, d, count, owner in zip((step.p, step.q), (step.dp, step.dq), counts, owners, strict=True):
            moving = np.flatnonzero(np.isin(owner, members))
            b[moving], low = kept_positive(b[moving] + d[moving], count, moving)
            np.maximum.at(change, owner[low], b[low])
        newton.iterations[members] += 1
        newton.converged[members] = change[members] <= tol / 5
        members = members[~newton.converged[members]]
        if not len(members):
            break


def kept_positive(new: Array, count: FloatArray, at: IntArray) -> tuple[Array, IntArray]:
    """Return beliefs with those that are not positive set to (10 c)^-2, and where; their counts, at `at`, go up."""
    low = at[~(new > 0)]
    new[~(new > 0)] = 1 / (10 * count[low]) ** 2
    count[low] += 1
    return new, low


def dual(newton: Newton, tol: float, max_iter: int) -> None:
    """Newton's method on the dual, with a line search for each component; quadratic, down to rounding (1e-14)."""
    step, problem = newton.step, newton.problem
    require_positive(problem, "dual")
    b = np.maximum(np.exp(_exponents(problem, _constraints(problem), _dual_start(problem))), LOWEST)
    step.p[:], step.q[:] = b[: len(step.p)], b[len(step.p) :]
    owners = (problem.shape.state_component, problem.shape.entry_component)
    members = np.arange(problem.n_components)
    for _ in range(max_iter):
        newton.direction(members)
        newton.keep_multipliers()
        change = newton.gaps(members)
        members = members[np.isfinite(change[members])]  # else a system was not solved
        rho = tuple(_log_steps(d, b) for d, b in ((step.dp, step.p), (step.dq, step.q)))
        length = _line_search(problem, (step.p, step.q), rho, owners)
        for b, r, owner in zip((step.p, step.q), rho, owners, strict=True):
            moving = np.isin(owner, members)
            b[moving] = np.maximum(b * np.exp(np.minimum(length[owner] * r, LARGEST_EXPONENT)), LOWEST)[moving]
        newton.iterations[members] += 1
        newton.converged[members] = (change[members] <= tol) & (length[members] == 1)
        members = members[~newton.converged[members]]
        if not len(members):
            break


def _log_steps(d: Array, b: Array) -> Array:
    """Return steps of logarithms, none where there is no step."""
    return np.asarray(np.clip(np.where(np.isfinite(d), d, 0) / b, -FASTEST, FASTEST))


def lbfgs(newton: Newton, tol: float, max_iter: int) -> None:
    """L-BFGS on the dual, all components at once.

    Near the maximum g is flat: its values tell lambda apart to the square root of rounding only, and a line search
    fails at residuals of about 1e-8. So it begins anew from where it stopped, with values measured from there,

        g(lambda) - g(lambda + delta)  =  sum w b (e^r - 1 - r) + delta'(d - A b),    r = -A'delta / w,

    whose rounding is relative to the difference. Residuals of 1e-11 are reached, on small graphs in 50 iterations where
    all weights are about one, in 1400 with a weight of .01 for variables.
    """
    problem, blocks = newton.problem, newton.problem.shape.blocks
    require_positive(problem, "lbfgs")
    w, constraints = np.concatenate([problem.wp, problem.wq]), _constraints(problem)
    right = np.zeros(constraints.shape[0])
    right[: len(blocks.cards)] = 1
    multipliers, used = _dual_start(problem), 0
    while used < max_iter:
        b = np.exp(_exponents(problem, constraints, multipliers))
        slack = right - constraints @ b
        if np.abs(slack).max(initial=0.0) <= tol / 100:
            break

        def fall(delta: FloatArray, b: Any = b, slack: Any = slack) -> tuple[float, FloatArray]:
            r = np.minimum(-(constraints.T @ delta) / w, LARGEST_LOGARITHM)
            growth = np.expm1(r)
            return float(w @ (b * (growth - r)) + delta @ slack), slack - constraints @ (b * growth)

        options = {"maxiter": max_iter - used, "maxfun": 2 * max_iter, "gtol": tol / 100, "ftol": 0.0, "maxcor": 20}
        found = minimize(fall, np.zeros(len(right)), jac=True, method="L-BFGS-B", options=options)
        multipliers, used = multipliers + found.x, used + int(found.nit)
        if not found.fun < 0:
            break
    b = np.maximum(np.exp(_exponents(problem, constraints, multipliers)), FLOOR)
    newton.step.p[:], newton.step.q[:] = b[: len(problem.wp)], b[len(problem.wp) :]
    newton.iterations[:], newton.converged[:] = used, True


def messages(newton: Newton, tol: float, max_iter: int) -> None:
    """Norm-product sweeps, forwards and backwards in turns; any `tol` above 1e-13 or so, by linear convergence."""
    from isinglass.kernels.numba.free_energy.norm_product import link_beliefs, sweep

    problem, blocks = newton.problem, newton.problem.shape.blocks
    require_positive(problem, "messages")
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
    newton.converged[:] = True


def _line_search(problem: Problem, beliefs: Any, rho: Any, owners: Any) -> FloatArray:
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


def _dual_start(problem: Problem) -> FloatArray:
    """Return lambda with uniform beliefs of variables, and links that take over their costs, normalised."""
    blocks = problem.shape.blocks
    n, links = len(blocks.cards), len(blocks.kind)
    p, _ = problem.start()
    variable = np.repeat(np.arange(n), blocks.cards)
    degree = np.bincount(blocks.slot_variable, minlength=n)
    cost = problem.wp * (np.log(p) + 1) + problem.vp
    mean = sum_at(variable, cost, n) / blocks.cards
    share = (cost - mean[variable]) / np.maximum(degree, 1)[variable]
    of_slots = share[ranges(blocks.first_state[blocks.slot_variable], blocks.cards[blocks.slot_variable])]
    cost_q = problem.vq - _constraints(problem)[n:, len(p) :].T @ of_slots
    of_links = _normalising(cost_q, problem.wq, np.repeat(np.arange(links), np.diff(blocks.first_entry)), links)
    own = np.flatnonzero(degree[variable] == 0)
    of_variables = np.where(degree > 0, -mean, _normalising(problem.vp[own], problem.wp[own], variable[own], n))
    first = blocks.first_slot[:-1]
    np.add.at(of_variables, blocks.slot_variable[first], of_links)
    first_states = ranges(blocks.slot_first[first], blocks.cards[blocks.slot_variable[first]])
    of_slots[first_states] += np.repeat(of_links, blocks.cards[blocks.slot_variable[first]])
    return np.concatenate([of_variables, -of_slots])


def _exponents(problem: Problem, constraints: Any, multipliers: FloatArray) -> FloatArray:
    """Return log b(lambda) = -(v + A'lambda) / w - 1."""
    cost, w = np.concatenate([problem.vp, problem.vq]), np.concatenate([problem.wp, problem.wq])
    return np.asarray(np.minimum(-(cost + constraints.T @ multipliers) / w - 1, LARGEST_LOGARITHM))


def _normalising(cost: Any, w: Any, owner: Any, n: int) -> FloatArray:
    """Return a constant k for each owner for which exp(-(cost + k) / w - 1) adds up to one, by bisection."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, owner, -cost - 100 * w)
    np.maximum.at(high, owner, -cost + 100 * w)
    low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    for _ in range(100):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            above = np.bincount(owner, np.exp(-(cost + middle[owner]) / w - 1), n) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


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


def _all_digits(problem: Problem) -> tuple[IntArray, Any]:
    """Return the states of every configuration of every link, and blocks that say where they begin."""
    from isinglass.kernels.numba.free_energy.newton import GENERAL

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


def require_positive(problem: Problem, name: str) -> None:
    """Refuse what only Newton's method takes."""
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
