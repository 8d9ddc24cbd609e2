"""Loopy belief propagation.

It is message passing with counting numbers of one: the equations are in `kernels.numba.messages.updates` (messages) and
`passes` (log Z). It is exact on forests; elsewhere log Z is the Bethe approximation, which is not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isinglass.inference.algorithm import Facts, register
from isinglass.inference.message_passing.algorithms.base import MessagePassing


@register
@dataclass(frozen=True)
class BeliefPropagation(MessagePassing):
    """Sum-product belief propagation; exact on forests.

    Parameters
    ----------
    iterations : int, optional
        Run exactly this number of iterations. By default: until `tol`, at most `max_iter`.
    tol : float
        Stop when one more iteration cannot change any probability by more than this.
    max_iter : int
        The maximal number of iterations.
    damping : float
        In [0, 1): the weight of the old message in a geometric mean with the new one.
    schedule : {"auto", "flooding", "tree", "grid", "sequential", "residual"}
        The order of updates. "auto" is flooding, and an exact tree schedule on forests.
    random_state, start_noise, check_stability, reuse, n_jobs
        As for all message-passing algorithms (see `message_passing.algorithms.base.MessagePassing`).

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), 0.3 * np.eye(2)[None]])
    >>> r = ig.infer(p, ig.BeliefPropagation(damping=0.2))
    >>> r.info.converged, round(r.log_z, 4)
    (True, 8.1728)
    """

    powers: ClassVar[bool] = False
    name: ClassVar[str] = "bp"
    facts: ClassVar[Facts] = Facts(
        "belief propagation: Bethe approximation, exact on forests",
        exact="forests",
        bound=None,
        maximises="one",
        iterative=True,
        threads=True,
        envelope=True,
        implicit="equations",
    )
