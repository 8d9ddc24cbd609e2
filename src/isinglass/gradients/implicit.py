"""Implicit differentiation: the derivative of a converged inference through the equations that it solves.

At a fixed point s = F(s, phi) the implicit function theorem gives, for a loss L(s, phi),

    dL/dphi  =  dL/dphi (s fixed) + (dF/dphi)' y,      (I - J') y  =  dL/ds,      J = dF/ds,

(Domke 2009, section 4.5). For belief propagation and its kin s are the logarithms of the normalised messages, and F is
one undamped iteration of flooding; for mean field s are the beliefs, and F one sweep. The system is not symmetric; it
is solved by GMRES (Saad and Schultz 1986), to which one reverse iteration is one product with J'. A convex free energy
has a symmetric system of its own, which its backward solves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.gradients.rule import GradientRule, one_stage, register
from isinglass.inference import ALGORITHMS, Algorithm, FixedPoint, Result, infer
from isinglass.inference.cotangents import cotangents
from isinglass.losses.loss import Evaluation, ResultLoss, Stages
from isinglass.runtime.blas import one_blas_thread
from isinglass.typing import Array

ACCURACY = 1e-11  # of the linear system, relative to its right-hand side
RESTART, RESTARTS = 60, 20
SINGULAR = 1e8  # the growth from right-hand side to solution that is warned about
REMEDY = "use gradient='unrolled', which differentiates the iterations that ran, add damping or shrink the potentials"


@register
@dataclass(frozen=True)
class Implicit(GradientRule):
    """Through the equations of the fixed point or minimum."""

    name: ClassVar[str] = "implicit"
    summary: ClassVar[str] = (
        "the derivative of the fixed point or minimum, by a linear system; any loss, converged runs"
    )
    of_parameters: ClassVar[bool] = True

    def evaluate(
        self, potentials: Stages, algorithm: Algorithm, loss: ResultLoss, init: Result | None = None
    ) -> Evaluation:
        """Infer, and solve the system."""
        potentials = one_stage(potentials, self.name)
        by_backward = algorithm.facts.implicit == "backward"
        result = infer(potentials, algorithm, tape=by_backward, init=init)
        if not result.info.converged:
            _warn(f"the derivative is that of a fixed point, and {algorithm.name!r} has not reached one")
        bars = loss(result)
        if by_backward:
            found = result.backward(bars.log_z, bars.variables, bars.factors)
            return Evaluation(bars.value, found.groups, (result.info,), found.parameters)
        flat = cotangents(result, bars.log_z, bars.variables, bars.factors)
        groups = _through(algorithm.linearised(result), result, *flat)
        return Evaluation(bars.value, groups, (result.info,))

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Need an energy with a minimum or stationary point, and a converged run."""
        if algorithm.facts.implicit is None:
            able = ", ".join(repr(name) for name, cls in ALGORITHMS.items() if cls.facts.implicit is not None)
            return f"it needs an inference that minimises an energy ({able})"
        if algorithm.iterations is not None:
            return (
                "a fixed number of iterations does not reach the fixed point: leave out iterations, or use 'unrolled'"
            )
        return None


def _through(
    equations: FixedPoint,
    result: Result,
    z_bar: Array,
    variables_bar: Array,
    factors_bar: Array,
) -> tuple[Array, ...]:
    """Add what goes through the state to the direct derivatives."""
    from scipy.sparse.linalg import LinearOperator, gmres

    if result.potentials.dtype.kind == "c":
        raise InputError("potentials", "real log tables for an implicit gradient", "complex ones")
    state_bar, direct = equations.read_out_back(z_bar, variables_bar, factors_bar)
    size = float(np.linalg.norm(state_bar))
    if size == 0:
        return direct
    product = LinearOperator((len(state_bar),) * 2, lambda y: y - equations.back(y.ravel())[0], dtype=np.float64)
    restart = min(len(state_bar), RESTART)
    with one_blas_thread():
        y, status = gmres(product, state_bar, rtol=ACCURACY, atol=0.0, restart=restart, maxiter=RESTARTS)
    if status:
        left = float(np.linalg.norm(product @ y - state_bar)) / size
        _warn(f"the implicit system was solved to a relative residual of {left:.1e} only")
    if np.linalg.norm(y) > SINGULAR * size:
        _warn("the implicit system is nearly singular (the fixed point is about to vanish or to split)")
    return tuple(a + b for a, b in zip(direct, equations.back(y)[1], strict=True))


def _warn(what: str) -> None:
    warn_of_convergence(f"{what}; {REMEDY}", stacklevel=3)
