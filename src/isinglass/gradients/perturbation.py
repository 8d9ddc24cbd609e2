"""Gradients by perturbation: one more inference, on complex potentials.

Where log Z is a smooth function of the log potentials phi and its gradient is the beliefs b (exact inference, and
converged variational fixed points), the Jacobian db/dphi is symmetric. So the derivative of a loss L(b) is the
derivative of the beliefs along dL/db:

    dL/dphi  =  d/dh b(phi + h dL/db)  =  Im b(phi + i h dL/db) / h    with h so small that h² vanishes

(Domke 2010; the complex step of Squire and Trapp 1998). A fixed point depends on phi only through the sum of all
tables, so a loss of a variable's belief perturbs the smallest factor that contains the variable.

`isinglass.inference.linear_response` describes how an iterative algorithm continues from its converged messages.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.graph.names import EvidenceLike
from isinglass.inference.algorithm import Algorithm, make
from isinglass.inference.complex_step import along_beliefs
from isinglass.inference.cotangents import cotangents
from isinglass.inference.evidence import checked
from isinglass.inference.linear_response import refused, require_stationary, settled
from isinglass.inference.result import Gradients, Result
from isinglass.potentials import Potentials


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
    """Compute the derivatives of a loss with respect to the log tables, by one more inference on complex potentials.

    It needs no tape, so memory does not grow with the number of iterations. It is valid for exact inference and for
    *converged* runs of algorithms whose fixed points make log Z stationary; truncated runs and max-product are refused.

    Parameters
    ----------
    potentials : Potentials
        Real potentials; their evidence is used.
    algorithm : str or Algorithm
    log_z, variables, factors
        Derivatives of the loss with respect to log Z and the beliefs, as in `Result.backward`.
    evidence : mapping of int to int, optional
        Additional observed variables and their states.
    init : Result, optional
        An earlier result on the same graph, from which an iterative algorithm starts.
    **options
        Options of the algorithm.

    Returns
    -------
    Gradients
        With respect to the log tables. Initial messages have no derivative, damping has zero. Derivatives with respect
        to counting numbers are zero for exact inference, otherwise not available (nan).

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])
    >>> d = ig.perturbation(p, "bp", variables=[[0.0, 1.0], [0.0, 0.0]])  # of b_0(1) = 0.7
    >>> d.log_tables[0].round(4).tolist()
    [[-0.07, -0.14], [0.09, 0.12]]
    """
    clamped = checked(potentials, evidence)
    chosen = make(algorithm, options)
    require_stationary(chosen)
    exact = chosen.facts.exact == "always"
    result = chosen.run(clamped, tape=exact, init=init)
    if not result.info.converged:
        raise refused(
            "an inference that converges",
            f"residual {result.info.residual:.2g} after {result.info.iterations} iterations of {chosen.name!r}",
            "raise max_iter or add damping",
        )
    bars = cotangents(result, log_z, variables, factors)
    if exact and result.reverse is not None:
        return result.reverse(*bars)
    gradients = along_beliefs(partial(settled, chosen, result), clamped, *bars)
    if exact:
        return gradients
    return replace(gradients, by_counting=lambda: np.full(clamped.graph.n_factors, np.nan))
