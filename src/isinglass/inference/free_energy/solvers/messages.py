"""Norm-product message passing (see `kernels.numba.free_energy.norm_product`).

Weights must not depend on configurations.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import LOWEST, Problem
from isinglass.inference.free_energy.solvers.shared import all_states, require_positive


def messages(newton: Newton, tol: float, max_iter: int) -> None:
    """Norm-product sweeps, forwards and backwards in turns; any `tol` above 1e-13 or so, by linear convergence."""
    from isinglass.kernels.numba.free_energy.norm_product import link_beliefs, sweep

    problem, blocks = newton.problem, newton.problem.shape.blocks
    require_positive(problem, "messages")
    _require_plain(problem)
    states, blocks = all_states(problem)
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


def _require_plain(problem: Problem) -> None:
    blocks = problem.shape.blocks
    for w, first in ((problem.wp, blocks.first_state), (problem.wq, blocks.first_entry)):
        if len(w) and (np.maximum.reduceat(w, first[:-1]) != np.minimum.reduceat(w, first[:-1])).any():
            expected = "'newton' where weights depend on the configuration"
            raise InputError("solver", expected, "'messages'")
