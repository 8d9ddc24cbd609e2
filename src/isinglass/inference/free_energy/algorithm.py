"""Convex free energies: the minimum of sum w b log b + sum v b over locally consistent beliefs, v = -log tables.

    minimise    sum_i sum_x w_i(x) b_i(x) log b_i(x) + sum_a sum_x w_a(x) b_a(x) log b_a(x) - sum_a <b_a, phi_a>
    subject to  sum_x b_i(x) = 1,    sum_{x_a with x_i} b_a(x_a) = b_i(x_i)

(Domke 2009, chapter 4, who uses weights of one for factors and .01 for variables). The tables of factors of arity one
are added to their variables. log Z is minus the minimum. The energy is convex if all weights are positive. If variables
have negative weights, it is convex as long as the system that `newton` factorises is positive definite. The Bethe
weights satisfy this on forests, where the result is exact.

At the minimum the implicit function theorem gives the derivatives with respect to costs and weights. They solve the
same system, with the derivative of the loss with respect to the beliefs in place of the gradient (see `derivative`):

    dL/dv = m,    dL/dw = m (log b + 1),    m = argmin (dL/db)'m + m'Hm / 2  over m that keep b consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import belief_entries, first_states
from isinglass.graph.message_graph import edges_of
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, Taping, register
from isinglass.inference.free_energy.linear.iterative import require_multigrid
from isinglass.inference.free_energy.linear.system import SYSTEMS
from isinglass.inference.free_energy.minimum import ConvexGradients, ConvexInfo, Minimum
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import Problem
from isinglass.inference.free_energy.solvers import SOLVERS
from isinglass.inference.free_energy.weights import EntropyTable, EntropyWeights, WeightGradients, covers, resolved
from isinglass.inference.result import Bound, FactorBeliefs, Result, VariableBeliefs
from isinglass.models import Model
from isinglass.models.entropy import FACTORS, VARIABLES, EntropyModel
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray
from isinglass.validation import bytes_text, number, whole_number

__all__ = ["SOLVERS", "ConvexFreeEnergy", "ConvexGradients", "ConvexInfo", "EntropyWeights", "WeightGradients"]


@register
@dataclass(frozen=True)
class ConvexFreeEnergy(Algorithm):
    """Minimise a convex free energy.

    Parameters
    ----------
    weights : EntropyWeights, mapping, "A", "B", "C" or "bethe", optional
        The weights of the entropies of variables and factors. By default entropy A: one for factors, .01 for variables.
        A mapping such as ``{"variables": [0.1, 0.2], "factors": 1.0}`` gives all variables the same weights, and all
        factors the same weights: one number, or one for each state or configuration.
    tol : float
        A component has converged when a Newton step changes no belief by more than this, no constraint is violated by
        more than this, and `rtol` is satisfied.
    rtol : float
        The relative tolerance: no belief, however small, changes by more than this fraction of itself (beliefs below
        1e-15 are refined in extra steps). Infinity skips this test, which saves half of the iterations if some beliefs
        are small. Derivatives then use the last system without refinement, and are less accurate.
    max_iter : int
        The maximal number of Newton steps (for each step of the homotopy, if one is needed), or of iterations of
        another solver.
    solver : {"auto", "newton", "primal", "blocks", "dual", "lbfgs", "cg", "messages"}
        "auto" is "newton". The others are slower; see `isinglass.inference.free_energy.solvers`. With any solver,
        `info.converged` is true only if the KKT residual is below `tol`. "dual", "lbfgs", "cg" and "messages" ignore
        `init`.
    reuse : bool
        In training, start the inference of an example from its beliefs in the last evaluation (warm start). This needs
        about a third of the iterations. The learned parameters of two runs then agree within the tolerance, but not
        bit for bit.
    system : {"auto", "factorised", "iterative", "multigrid"}
        How linear systems over variables are solved. "factorised": by a banded or sparse factorisation. "iterative": by
        conjugate gradients with an incomplete factorisation. "multigrid": by conjugate gradients with algebraic
        multigrid, which suits strong couplings if beliefs are not very small (it needs PyAMG). "auto" is "factorised"
        unless the factor of a component would take more than 256 MiB; then it is "iterative". If a system is not solved
        accurately enough, `info.converged` is false; for a derivative there is a warning. Components with variables
        that are tied by hard zeros are always factorised.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    >>> r = ig.infer(p, "convex")
    >>> r.info.converged, r.info.bound, bool(r.log_z >= ig.infer(p, "exact").log_z)
    (True, 'upper', True)
    >>> d = ig.infer(p, ig.ConvexFreeEnergy(weights="B"), tape=True).backward(variables=np.eye(18)[0])
    >>> [round(float(a[0, 0]), 4) for a in (d.groups[0], d.groups[1][0])]
    [0.1019, 0.1718]
    """

    weights: EntropyWeights | EntropyTable | Mapping[str, ArrayLike] | str | None = None
    tol: float = 1e-9
    max_iter: int = 100
    solver: str = "auto"
    rtol: float = 1e-3
    reuse: bool = False
    system: str = "auto"

    name: ClassVar[str] = "convex"
    facts: ClassVar[Facts] = Facts(
        "a convex free energy with given entropy weights, minimised by Newton's method",
        exact="never",
        bound="upper",
        iterative=True,
        envelope=True,
        implicit="backward",
        blockwise=True,
    )

    @property
    def splits(self) -> bool:
        """Whether examples can be run apart: not with weights of single variables or factors."""
        return super().splits and not isinstance(self.weights, EntropyWeights)

    def check(self, graph: FactorGraph) -> None:
        """Refuse tables of weights that do not fit a graph, or are not symmetric where they are to be."""
        if isinstance(self.weights, EntropyTable):
            self.weights.check(graph)

    def learned(self, model: Model) -> Model:
        """Return a model with the logarithms of the weights as parameters, where these are to be fitted."""
        table = self.weights
        if not (isinstance(table, EntropyTable) and table.fit):
            return model
        return EntropyModel(model, table.variables, table.factors, symmetric=table.symmetric)

    def fitted_values(self, named: Mapping[str, Array], n_states: int) -> dict[str, FloatArray] | None:
        """Return the weights of states and of pairs of states; None for "bethe", or weights of single variables."""
        try:
            table = EntropyTable.of(self.weights)
        except InputError:
            return None
        variables, factors = np.full(n_states, table.variables), np.full((n_states, n_states), table.factors)
        if table.fit:
            variables = variables * np.exp(named[VARIABLES][0])
            factors = factors * np.exp(named[f"{FACTORS}/1"][0])
        return {"variables": variables, "factors": factors}

    def with_parameters(self, values: Mapping[str, Array]) -> ConvexFreeEnergy:
        """Return the energy with these entropy weights: of all states, and of the configurations of each group."""
        groups = [values[f"{FACTORS}/{g}"] for g in range(len(values) - 1)]
        return replace(self, weights=EntropyWeights(values[VARIABLES], groups))

    def cost(self, potentials: Potentials) -> Cost:
        """Return the cost of the beliefs and of one step, without its linear system."""
        entries = float(belief_entries(potentials.graph) + potentials.graph.cards.sum())
        slots = float(len(edges_of(potentials.graph).slot_variable))
        needed = 8 * (12 * entries + 8 * slots)
        return Cost(needed, 10 * entries, f"{bytes_text(needed)} and a factorised system")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Minimise, and read out the beliefs."""
        graph = potentials.graph
        tol, limit = number(self.tol, "tol", 0, np.inf), whole_number(self.max_iter, "max_iter", 1)
        relative = self.rtol if self.rtol == np.inf else number(self.rtol, "rtol", 0, np.inf)
        wp, wq = resolved(self.weights, graph)
        if self.system not in SYSTEMS:
            raise InputError("system", " or ".join(map(repr, SYSTEMS)), repr(self.system))
        if self.system == "multigrid":
            require_multigrid()
        problem = Problem.of(potentials, wp, wq, self.system)
        minimum = Minimum(problem, Newton(problem, *_given(init, potentials)), loose=relative == np.inf)
        if self.solver in ("auto", "newton"):
            minimum.newton.minimise(tol, limit, relative, progress)
            minimum.certify(tol, limit, relative)
            minimum.finish(last_step=True)
        elif self.solver in SOLVERS:
            SOLVERS[self.solver](minimum.newton, tol, limit)
            minimum.newton.confirm(np.flatnonzero(minimum.newton.converged), tol)
            minimum.measure()
            minimum.newton.converged &= minimum.residual <= tol
            minimum.finish()
        else:
            raise InputError("solver", " or ".join(map(repr, ("auto", "newton", *SOLVERS))), repr(self.solver))
        variables, factors = problem.beliefs(minimum.p, minimum.q)
        sure = minimum.newton.converged & covers(graph, wp, wq)
        exact = self.weights == "bethe" if isinstance(self.weights, str) else False
        bound: Bound = "upper" if sure.all() else None
        if exact and graph.is_forest and minimum.newton.converged.all():
            bound = "exact"
        return Result(
            potentials,
            -problem.energy(minimum.p, minimum.q),
            VariableBeliefs(graph, variables),
            FactorBeliefs(graph, factors),
            minimum.info(self.name, bound),
            reverse=minimum.backward if tape else None,
        )


def _given(init: Result | None, potentials: Potentials) -> tuple[Array, Array] | tuple[None, None]:
    """Return the flat beliefs of an earlier result on the same graph."""
    if init is None:
        return None, None
    entries = belief_entries(potentials.graph)
    if not isinstance(init, Result):
        raise InputError("init", "an earlier result on this graph", type(init).__name__)
    factors = np.concatenate([np.zeros(0), *(g.ravel() for g in init.factors.groups)])
    if len(factors) != entries or init.variables.flat.size != int(first_states(potentials.graph)[-1]):
        raise InputError("init", f"a result on this graph ({entries} configurations)", f"{len(factors)}")
    return init.variables.flat, factors
