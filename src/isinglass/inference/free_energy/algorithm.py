"""Convex free energies: the minimum of sum w b log b + sum v b over locally consistent beliefs, v = -log tables.

    minimise    sum_i sum_x w_i(x) b_i(x) log b_i(x) + sum_a sum_x w_a(x) b_a(x) log b_a(x) - sum_a <b_a, phi_a>
    subject to  sum_x b_i(x) = 1,    sum_{x_a with x_i} b_a(x_a) = b_i(x_i)

(Domke 2009, chapter 4, who minimises with weights of one for factors and .01 for variables). Factors of arity one
belong to their variables. log Z is minus the minimum. The energy is convex where all weights are positive, and, for
weights of variables below zero, as long as the system that `convex_newton` factorises is positive definite: Bethe's
weights are on forests, where the minimum is the exact answer.

At the minimum the beliefs follow costs and weights by the implicit function theorem: with the same system and the
derivative of a loss by the beliefs in the place of the gradient (see `convex_derivative`),

    dL/dv = m,    dL/dw = m (log b + 1),    m = argmin (dL/db)'m + m'Hm / 2  over m that keep b consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import belief_entries, first_states
from isinglass.graph.message_graph import edges_of
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, Taping, register
from isinglass.inference.free_energy.derivative import Derivative
from isinglass.inference.free_energy.linear.iterative import require_multigrid
from isinglass.inference.free_energy.linear.system import ENOUGH, STEP, SYSTEMS
from isinglass.inference.free_energy.newton import SOUND, Newton
from isinglass.inference.free_energy.problem import FLOOR, INSIDE, Problem
from isinglass.inference.free_energy.solvers.blocks import blocks
from isinglass.inference.free_energy.solvers.others import Solver, dual, lbfgs, messages, primal
from isinglass.inference.free_energy.weights import EntropyTable, EntropyWeights, WeightGradients, covers, resolved
from isinglass.inference.result import Bound, FactorBeliefs, Gradients, Info, Result, VariableBeliefs
from isinglass.models import Model
from isinglass.models.entropy import FACTORS, VARIABLES, EntropyModel
from isinglass.potentials import LogTables, Potentials, sum_tables
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import bytes_text, number, whole_number

__all__ = ["SOLVERS", "ConvexFreeEnergy", "ConvexGradients", "ConvexInfo", "EntropyWeights", "WeightGradients"]


SOLVERS: dict[str, Solver] = {"primal": primal, "blocks": blocks, "dual": dual, "lbfgs": lbfgs, "messages": messages}


@dataclass(frozen=True)
class ConvexInfo(Info):
    """How the minimisation of a convex free energy went.

    `residual` is the KKT residual of the beliefs: the largest difference between a belief and what the multipliers
    imply for it, or between the two sides of a constraint. Very small beliefs, of which rounding decides what the
    multipliers imply, could hide that they are to grow: where they leave a doubt, and for every solver other than
    Newton's method, a component counts as converged only if Newton steps from its beliefs, moved into the interior,
    come back to them.

    Attributes
    ----------
    duality_gap : float
        Between the energy and the Lagrange dual at the multipliers, with beliefs below 1e-12 counted as that large; nan
        where a weight is not positive.
    rescued : int
        Components that converged only by the homotopy.
    component_converged, component_iterations, component_residual : arrays (components,)
    """

    duality_gap: float = np.nan
    rescued: int = 0
    component_converged: Any = field(default=None, compare=False, repr=False)
    component_iterations: Any = field(default=None, compare=False, repr=False)
    component_residual: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class ConvexGradients(Gradients):
    """Derivatives of a loss at the minimum, by the log tables and by the entropy weights.

    Attributes
    ----------
    weights : WeightGradients
        `variables`, flat by state, and `groups`, (factors, k_1, ..., k_r), zero for factors of arity below two.
    """

    weights: WeightGradients

    @property
    def parameters(self) -> dict[str, Array]:
        """Derivatives by the entropy weights, by the names that `ConvexFreeEnergy.with_parameters` knows."""
        groups = {f"{FACTORS}/{g}": slopes for g, slopes in enumerate(self.weights.groups)}
        return {VARIABLES: self.weights.variables, **groups}


@register
@dataclass(frozen=True)
class ConvexFreeEnergy(Algorithm):
    """Minimise a convex free energy.

    Parameters
    ----------
    weights : EntropyWeights, mapping, "A", "B", "C" or "bethe", optional
        Of the entropies of variables and factors; by default entropy A: one for factors, .01 for variables. A mapping
        such as ``{"variables": [0.1, 0.2], "factors": 1.0}`` has the same ones for all variables, and for all factors:
        a number, or one for each state and configuration.
    tol : float
        A component is done when no Newton step changes a belief, and no constraint is violated, by more than this;
    rtol : float
        and no belief, however small, by more than this share of itself (beliefs below 1e-15 in further steps of their
        own). Infinity does not wait for small beliefs, which saves half of the iterations where there are some, nor
        does it factorise a system of their own for derivatives or refine these, which are then less accurate.
    max_iter : int
        Newton steps at most (for each factor of the homotopy, where one is needed); iterations of other solvers.
    solver : {"auto", "newton", "primal", "blocks", "dual", "lbfgs", "messages"}
        "auto" is "newton"; the others, which are slower, stand in `isinglass.inference.free_energy.solvers.others` and
        `convex_blocks`. Whatever the solver, `info.converged` only where the KKT residual is below `tol`. Those from
        "dual" on do not look at `init`.
    reuse : bool
        In training, begin the inference of an example with its beliefs in the evaluation before: about a third of the
        iterations. What is learned then agrees with another run within the tolerance, not in every bit.
    system : {"auto", "factorised", "iterative", "multigrid"}
        How linear systems over variables are solved: by a banded or sparse factor, or by conjugate gradients with an
        incomplete factor or, if PyAMG is installed, with algebraic multigrid, which suits strong couplings as long
        as beliefs are not very small. "auto" factorises components unless the factor would take more than 256 MiB;
        then it is "iterative". A system that is not solved well enough leaves `info.converged` false; where a
        derivative needs it, there is a warning. Components that hard zeros tie are factorised always.

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

    weights: Any = None
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
        """Say what the beliefs, and one step without its linear system, take."""
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
            minimum.settle(last_step=True)
        elif self.solver in SOLVERS:
            SOLVERS[self.solver](minimum.newton, tol, limit)
            minimum.newton.confirm(np.flatnonzero(minimum.newton.converged), tol)
            minimum.measure()
            minimum.newton.converged &= minimum.residual <= tol
            minimum.settle()
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


@dataclass(eq=False)
class Minimum:
    """The beliefs at the minimum, with the system factorised there."""

    problem: Problem
    newton: Newton
    loose: bool = False  # derivatives may be those of the system that is there
    derivative: Derivative | None = None

    def measure(self) -> None:
        """Evaluate the conditions at the beliefs."""
        self.residual = self.newton.violation(np.arange(self.problem.n_components))

    def certify(self, tol: float, max_iter: int, rtol: float) -> None:
        """Evaluate them; where they leave a doubt, look from the interior; where that leads elsewhere, begin anew."""
        newton = self.newton
        self.measure()
        doubtful = newton.doubtful(tol)
        if not len(doubtful):
            return
        newton.confirm(doubtful, tol)
        for c in doubtful[~newton.converged[doubtful]].tolist():
            newton.follow(c, tol, max_iter, rtol)
            newton.confirm(np.flatnonzero(newton.converged & (np.arange(len(newton.converged)) == c)), tol)
        self.measure()

    def settle(self, last_step: bool = False) -> None:
        """Read very small beliefs off the multipliers.

        With a last step, beliefs of components that converged take the step that the conditions imply, and which is
        there anyway; derivatives remain those of the beliefs before it, from which they differ by their residual.
        """
        step, shape = self.newton.step, self.problem.shape
        self.newton.converged &= self.newton.left <= STEP
        self._refuse_what_is_not_convex()
        self.gap = self._gap()
        both = ((step.p, step.dp, shape.state_component), (step.q, step.dq, shape.entry_component))
        self.at = [np.where(_low(b), b * np.exp(np.where(d.real < 0, d / b, 0)), b) for b, d, _ in both]
        goes = self.newton.converged & last_step
        self.p, self.q = (
            np.where(goes[component] & ~_low(b) & ((b + d).real > FLOOR), b + d, at)
            for at, (b, d, component) in zip(self.at, both, strict=True)
        )

    def _refuse_what_is_not_convex(self) -> None:
        bad = np.flatnonzero(~(self.newton.ridge <= SOUND))
        if len(bad) and (self.problem.wp <= 0).any():
            least = float(self.problem.wp.min())
            raise InputError(
                "weights",
                "ones for which the free energy is convex",
                f"a system that is not positive definite in component {bad[0]} (least weight of a variable: {least:g})",
                "raise the weights of variables: the Bethe weights are convex on forests, positive ones everywhere",
            )

    def _gap(self) -> FloatArray:
        """Return sum w b (e^rho - 1 - rho), the energy minus the dual, for each component."""
        problem, step = self.problem, self.newton.step
        if not ((problem.wp > 0).all() and (problem.wq > 0).all()):
            return np.full(problem.n_components, np.nan)
        total = np.zeros(problem.n_components)
        for w, b, d, component in (
            (problem.wp, step.p, step.dp, problem.shape.state_component),
            (problem.wq, step.q, step.dq, problem.shape.entry_component),
        ):
            size = np.maximum(b.real, INSIDE)
            rho = d.real / size
            with np.errstate(over="ignore", invalid="ignore"):
                total += sum_at(component, w * size * (np.expm1(rho) - rho), len(total))
        return total

    def info(self, name: str, bound: Bound) -> ConvexInfo:
        """Report."""
        newton = self.newton
        return ConvexInfo(
            name,
            bool(newton.converged.all()),
            int(newton.iterations.max(initial=0)),
            float(self.residual.max(initial=0.0)),
            bound,
            0.0,
            float(newton.converged.mean()),
            duality_gap=float(self.gap.sum()),
            rescued=int((newton.rescued & newton.converged).sum()),
            component_converged=newton.converged.copy(),
            component_iterations=newton.iterations.copy(),
            component_residual=self.residual,
        )

    def backward(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> ConvexGradients:
        """Carry derivatives back by one solve with the system at the minimum."""
        problem, shape = self.problem, self.problem.shape
        if self.derivative is None:
            self.derivative = Derivative(self.newton, self.at[0], self.at[1], self.loose)
        dp, dq = self.derivative.along(*problem.gathered(variables_bar, factors_bar))
        self._warn_of_what_is_left(float(self.derivative.left.max(initial=0.0)))
        logs = [np.log(np.where(b.real > 0, b, 1)) for b in (self.p, self.q)]
        zp, zq = z_bar[shape.state_component] * self.p, z_bar[shape.entry_component] * self.q
        tables = problem.spread(zp - dp, zq - dq)
        for g, (group, _) in enumerate(iter_groups(problem.potentials.graph)):
            if group.arity == 0:
                tables[g] = z_bar[problem.potentials.graph.factor_component[group.factors]]
        groups = sum_tables(problem.potentials, tables)
        by_weights = self._by_weights(dp * (logs[0] + 1) - zp * logs[0], dq * (logs[1] + 1) - zq * logs[1])
        graph = problem.potentials.graph
        return ConvexGradients(
            groups, LogTables(graph, groups, problem.potentials.table_ids), np.zeros(0), 0.0,
            lambda: np.full(graph.n_factors, np.nan), by_weights,
        )  # fmt: skip

    def _warn_of_what_is_left(self, left: float) -> None:
        if not left <= ENOUGH:
            warn_of_convergence(
                f"the system at the minimum was solved to a relative residual of {left:.1e} only: derivatives are as "
                "wrong; use system='factorised' or 'multigrid', or larger weights",
                stacklevel=4,
            )

    def _by_weights(self, of_states: Array, of_entries: Array) -> WeightGradients:
        graph, shape = self.problem.potentials.graph, self.problem.shape
        states = np.zeros(int(first_states(graph)[-1]), of_states.dtype)
        entries = np.zeros(belief_entries(graph), of_states.dtype)
        states[shape.state_at], entries[shape.entry_at] = of_states, of_entries
        groups = tuple(entries[part].reshape(len(group), *group.shape) for group, part in iter_groups(graph))
        return WeightGradients(states, groups)


def _low(b: Array) -> Mask:
    """Tell which beliefs are at the floor of the minimisation."""
    return np.asarray(b.real <= 2 * FLOOR)


def _given(init: Result | None, potentials: Potentials) -> tuple[Any, Any]:
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
