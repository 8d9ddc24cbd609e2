"""Common parts of the solvers: the Lagrange dual, and the beliefs and weights that they accept.

With costs v and constraints A b = d, the beliefs of multipliers lambda are

    b(lambda)  =  exp(-(v + A'lambda) / w - 1),        g(lambda)  =  -w'b(lambda) - lambda'd,

g the dual function (Domke 2009, section 4.3). Rows of A: the sum of each variable, then for each slot and state the
belief of the variable minus the marginal of the link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import Problem
from isinglass.segments import ranges, starts, sum_at
from isinglass.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from isinglass.kernels.numba.free_energy.newton import Blocks

Solver = Callable[[Newton, float, int], None]  # sets `converged` where it is done; the KKT residual is checked after

LARGEST_LOGARITHM = 300.0


def require_positive(problem: Problem, name: str) -> None:
    """Refuse what only Newton's method takes."""
    if problem.potentials.dtype.kind == "c":
        raise InputError("solver", "'newton' for complex potentials", repr(name))
    if not (problem.wp > 0).all():
        raise InputError("solver", "'newton' where weights of variables are not positive", repr(name))
    if len(problem.shape.layout.ties.unknown):
        raise InputError("solver", "'newton' where hard zeros tie variables", repr(name))


def kept_positive(new: Array, count: FloatArray, at: IntArray) -> tuple[Array, IntArray]:
    """Return beliefs with those that are not positive set to (10 c)^-2, and where; their counts, at `at`, go up."""
    low = at[~(new > 0)]
    new[~(new > 0)] = 1 / (10 * count[low]) ** 2
    count[low] += 1
    return new, low


def dual_start(problem: Problem) -> FloatArray:
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
    cost_q = problem.vq - constraint_matrix(problem)[n:, len(p) :].T @ of_slots
    of_links = _normalising(cost_q, problem.wq, np.repeat(np.arange(links), np.diff(blocks.first_entry)), links)
    alone = np.flatnonzero(degree[variable] == 0)
    of_variables = np.where(degree > 0, -mean, _normalising(problem.vp[alone], problem.wp[alone], variable[alone], n))
    first = blocks.first_slot[:-1]
    np.add.at(of_variables, blocks.slot_variable[first], of_links)
    first_states = ranges(blocks.slot_first[first], blocks.cards[blocks.slot_variable[first]])
    of_slots[first_states] += np.repeat(of_links, blocks.cards[blocks.slot_variable[first]])
    return np.concatenate([of_variables, -of_slots])


def log_beliefs(problem: Problem, constraints: csr_array, multipliers: FloatArray) -> FloatArray:
    """Return log b(lambda) = -(v + A'lambda) / w - 1."""
    cost, w = np.concatenate([problem.vp, problem.vq]), np.concatenate([problem.wp, problem.wq])
    return np.asarray(np.minimum(-(cost + constraints.T @ multipliers) / w - 1, LARGEST_LOGARITHM))


def _normalising(cost: FloatArray, w: FloatArray, owner: IntArray, n: int) -> FloatArray:
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


def constraint_matrix(problem: Problem) -> csr_array:
    """Return A: sums of variables, then, for each slot and state, its belief minus the marginal of the link's."""
    from scipy.sparse import coo_array

    states, blocks = all_states(problem)
    n, variable = len(blocks.cards), np.repeat(np.arange(len(blocks.cards)), blocks.cards)
    slots = len(blocks.slot_variable)
    slot_of = np.repeat(np.arange(slots), blocks.cards[blocks.slot_variable])
    row = n + np.arange(len(slot_of))
    state = blocks.first_state[blocks.slot_variable[slot_of]] + np.arange(len(slot_of)) - blocks.slot_first[slot_of]
    arity, sizes = np.diff(blocks.first_slot), np.diff(blocks.first_entry)
    link = np.repeat(np.arange(len(arity)), arity * sizes)
    inside = np.arange(len(link)) - blocks.first_digit[link]
    entry = blocks.first_entry[link] + inside // np.maximum(arity[link], 1)
    slot = blocks.first_slot[link] + inside % np.maximum(arity[link], 1)
    rows = np.concatenate([variable, row, n + blocks.slot_first[slot] + states])
    columns = np.concatenate([np.arange(len(variable)), state, len(variable) + entry])
    values = np.concatenate([np.ones(len(variable)), np.ones(len(row)), -np.ones(len(entry))])
    shape = (n + len(slot_of), len(variable) + len(problem.wq))
    return coo_array((values, (rows, columns)), shape).tocsr()


def all_states(problem: Problem) -> tuple[IntArray, Blocks]:
    """Return the states of every configuration of every link, and blocks that say where they begin."""
    from isinglass.kernels.numba.free_energy.newton import GENERAL

    blocks = problem.shape.blocks
    arity, sizes = np.diff(blocks.first_slot), np.diff(blocks.first_entry)
    first = starts(arity * sizes)
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
