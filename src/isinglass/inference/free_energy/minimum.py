"""The minimum of a convex free energy: its certificate, its read-out, and derivatives at it.

`certify` and `measure` evaluate the KKT conditions, `finish` reads the beliefs out, `backward` differentiates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.factor_graph import iter_groups
from isinglass.graph.layout import belief_entries, first_states
from isinglass.inference.free_energy.derivative import Derivative
from isinglass.inference.free_energy.linear.system import ENOUGH, STEP
from isinglass.inference.free_energy.newton import SOUND, Newton
from isinglass.inference.free_energy.problem import FLOOR, INSIDE, Problem
from isinglass.inference.free_energy.weights import WeightGradients
from isinglass.inference.result import Bound, Gradients, Info
from isinglass.models.entropy import FACTORS, VARIABLES
from isinglass.potentials import LogTables, sum_tables
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask


@dataclass(frozen=True)
class ConvexInfo(Info):
    """How the minimisation of a convex free energy went.

    `residual` is the KKT residual of the beliefs: the largest difference between a belief and what the multipliers
    imply for it, or between the two sides of a constraint. For very small beliefs, rounding decides what the
    multipliers imply, and can hide that they should grow. Where that is possible, and for every solver other than
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
    component_converged: Mask | None = field(default=None, compare=False, repr=False)
    component_iterations: IntArray | None = field(default=None, compare=False, repr=False)
    component_residual: FloatArray | None = field(default=None, compare=False, repr=False)


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


@dataclass(eq=False)
class Minimum:
    """The beliefs at the minimum, with the system factorised there."""

    problem: Problem
    newton: Newton
    loose: bool = False  # whether derivatives use the last system without refinement
    derivative: Derivative | None = None

    def measure(self) -> None:
        """Evaluate the conditions at the beliefs."""
        self.residual = self.newton.violation(np.arange(self.problem.n_components))

    def certify(self, tol: float, max_iter: int, rtol: float) -> None:
        """Evaluate the conditions; in doubt, check from the interior; where that fails, restart by homotopy."""
        newton = self.newton
        self.measure()
        doubtful = newton.doubtful(tol)
        if not len(doubtful):
            return
        newton.confirm(doubtful, tol)
        for c in doubtful[~newton.converged[doubtful]].tolist():
            newton.homotopy(c, tol, max_iter, rtol)
            newton.confirm(np.flatnonzero(newton.converged & (np.arange(len(newton.converged)) == c)), tol)
        self.measure()

    def finish(self, last_step: bool = False) -> None:
        """Compute very small beliefs from the multipliers.

        With `last_step`, converged components take one more step, which the check of the conditions has computed
        anyway. Derivatives are taken at the beliefs before it, which differ by the residual.
        """
        step, shape = self.newton.step, self.problem.shape
        self.newton.converged &= self.newton.solve_residual <= STEP
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
        self._warn_of_residual(float(self.derivative.solve_residual.max(initial=0.0)))
        logs = [np.log(np.where(b.real > 0, b, 1)) for b in (self.p, self.q)]
        zp, zq = z_bar[shape.state_component] * self.p, z_bar[shape.entry_component] * self.q
        tables = problem.to_tables(zp - dp, zq - dq)
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

    def _warn_of_residual(self, left: float) -> None:
        if not left <= ENOUGH:
            warn_of_convergence(
                f"the system at the minimum was solved only to a relative residual of {left:.1e}; derivatives have "
                "errors of this size; use system='factorised' or 'multigrid', or larger weights",
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
