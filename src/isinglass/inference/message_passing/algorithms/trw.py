"""Message passing with counting numbers: tree-reweighted and fractional belief propagation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.forests.appearance import appearance_probabilities
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.inference.algorithm import Facts, Progress, Taping, register
from isinglass.inference.message_passing.algorithms.base import MessagePassing, is_exact
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.inference.message_passing.algorithms.learned import (
    COUNTING,
    bounded,
    checked_names,
    unbounded,
    with_learned,
)
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.result import Bound, Result
from isinglass.potentials import Potentials
from isinglass.removed import refuse_removed
from isinglass.runtime.deferring import twin
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import real_numbers, whole_number

CERTAIN = 1e-6  # how far above log_z, relative to it (or to one), log Z may be by its certificate


@register
@dataclass(frozen=True)
class TreeReweighted(MessagePassing):
    """Tree-reweighted belief propagation: log Z is an upper bound at convergence; exact on forests.

    `info.bound` is "upper" only if the beliefs also prove it. (With potentials of hundreds of nats, messages may seem
    to have converged before the beliefs are consistent.)

    Parameters
    ----------
    weights : array (factors,), optional
        The edge appearance probability of each factor, in (0, 1]; factors of arity below two are ignored. By default
        the probability of being in a random spanning forest (see `graph.forests.appearance`).
    iterations, tol, max_iter, damping, schedule, random_state, start_noise, check_stability, reuse, n_jobs
        As for all message-passing algorithms; see `BeliefPropagation`.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    >>> r = ig.infer(p, "trw")
    >>> r.info.bound, bool(r.log_z >= ig.infer(p, "exact").log_z)
    ('upper', True)
    """

    damping: float = 0.3
    weights: ArrayLike | None = None

    name: ClassVar[str] = "trw"
    facts: ClassVar[Facts] = replace(
        BeliefPropagation.facts,
        summary="tree-reweighted message passing: an upper bound when converged, exact on forests",
        bound="upper",
    )

    def counting(self, potentials: Potentials) -> FloatArray:
        """Return the given weights, or the appearance probabilities."""
        if self.weights is None:
            return appearance_probabilities(potentials.graph, whole_number(self.random_state, "random_state"))
        if isinstance(self.weights, str):
            refuse_removed(f"weights={self.weights!r}")
        weights = _of_links(potentials, self.weights, "weights")
        if (weights > 1).any():
            raise InputError("weights", "probabilities of at most one", f"{weights.max():g}")
        return weights

    def bound(self, potentials: Potentials, outcome: Outcome) -> Bound:
        """Report an upper bound at convergence, if the beliefs prove it; given weights are assumed to be valid."""
        counting = self.counting(potentials)
        if (counting == 1).all() and is_exact(potentials, outcome):
            return "exact"
        proved = outcome.converged.all() and is_bound(potentials.graph, counting, outcome).all()
        return "upper" if proved else None


@register
@dataclass(frozen=True)
class FractionalBeliefPropagation(MessagePassing):
    """Belief propagation with given counting numbers (Wiegerinck and Heskes 2003).

    Parameters
    ----------
    counting_numbers : float or array (factors,)
        Positive: one number, or one for each factor (those of arity below two are ignored). The value 1 gives belief
        propagation.
    learn : sequence of str
        Any of "damping" and "counting_numbers" (one number for all factors). An estimator with
        ``gradient="unrolled"`` then learns them together with the model, starting from the values given here.
    iterations, tol, max_iter, damping, schedule, random_state, start_noise, check_stability, reuse, n_jobs
        As for all message-passing algorithms; see `BeliefPropagation`.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(2, 2, 2), [np.zeros((4, 2)), np.eye(2)[None]])
    >>> ig.infer(p, ig.FractionalBeliefPropagation(counting_numbers=0.75)).info.converged
    True
    """

    counting_numbers: ArrayLike = 1.0
    learn: Sequence[str] = ()

    name: ClassVar[str] = "fbp"
    facts: ClassVar[Facts] = replace(
        BeliefPropagation.facts, summary="belief propagation with given counting numbers", exact="never"
    )

    def counting(self, potentials: Potentials) -> FloatArray:
        """Return the given counting numbers."""
        return _of_links(potentials, self.counting_numbers, "counting_numbers")

    def parameters(self, graph: FactorGraph) -> Mapping[str, ArrayLike]:
        """Return what is learned, as numbers without bounds."""
        return {name: [unbounded(name, value)] for name, value in self._learned().items()}

    def with_parameters(self, values: Mapping[str, Array]) -> FractionalBeliefPropagation:
        """Return it with what was learned."""
        changes: dict[str, Any] = {name: bounded(name, value) for name, value in values.items()}
        return replace(self, **changes)

    def _learned(self) -> dict[str, float]:
        """Return what is learned, and its value now."""
        names = checked_names(self.learn)
        if COUNTING in names and np.size(self.counting_numbers) != 1:
            got = f"shape {np.shape(self.counting_numbers)}"
            raise InputError(COUNTING, "one number for all factors where it is learned", got)
        return {name: float(np.reshape(getattr(self, name), ())) for name in names}

    def _result(
        self, stages: Sequence[Potentials], progress: Progress | None, tape: Taping, initial: Array | None
    ) -> Result:
        found, values = super()._result(stages, progress, tape, initial), self._learned()
        back = found.reverse
        if back is None or not values:
            return found
        return twin(found, reverse=lambda *bars: with_learned(back(*bars), values))

    def bound(self, potentials: Potentials, outcome: Outcome) -> Bound:
        """Promise nothing."""
        return None


def _of_links(potentials: Potentials, given: ArrayLike, argument: str) -> FloatArray:
    """Check positive numbers, one for all factors or one for each; keep those of links."""
    n = potentials.graph.n_factors
    expected = f"a number, or one for each of {n} factors"
    array = real_numbers(given, argument, expected)
    if array.shape not in {(), (1,), (n,)}:
        raise InputError(argument, expected, f"shape {array.shape}")
    numbers = np.broadcast_to(array, n)
    chosen = numbers[edges_of(potentials.graph).link_factor].copy()
    if not (np.isfinite(chosen).all() and (chosen > 0).all()):
        remedy = "to leave a factor out, give it a table of zeros"
        raise InputError(argument, "positive numbers", f"{chosen.min():g}", remedy)
    return chosen


def is_bound(graph: FactorGraph, weights: FloatArray, outcome: Outcome) -> Mask:
    """Tell of which components log_z is certainly an upper bound, but for a part CERTAIN of it."""
    above = log_z_above(graph, weights, outcome.variables, outcome.factors)
    certain: Mask = above <= CERTAIN * np.maximum(1.0, np.abs(outcome.component_log_z))
    return certain


def log_z_above(graph: FactorGraph, weights: FloatArray, variables: Array, factors: Array) -> FloatArray:
    """Return how far log Z of each component can be above what flat beliefs with these weights of links say.

    Small changes of messages alone do not prove a bound: potentials of very different size can cause them, too.
    Whatever the messages are, the beliefs reparametrise the model, p(x) ~ prod_i b_i prod_a (b_a / prod_{i in a}
    b_i)^rho_a; by Jensen's inequality and elimination of each acyclic set from its leaves,

        log Z  <=  log_z + sum_a rho_a log r_a,      r_a  =  max over i in a and x_i of  b_a(x_i) / b_i(x_i)   >=  1,

    with log_z as read out of any messages.
    """
    edges, first = edges_of(graph), first_states(graph)
    ratio = np.ones(graph.n_factors)
    for group, part in iter_groups(graph):
        if group.arity < 2 or not len(group):
            continue
        table = factors.real[part].reshape(len(group), *group.shape)
        for slot, card in enumerate(group.shape):
            mine, own = _marginal(table, slot), variables.real[first[group.scopes[:, slot]][:, None] + np.arange(card)]
            with np.errstate(divide="ignore", over="ignore"):
                ratios = np.divide(mine, own, out=np.zeros_like(mine), where=mine > 0)
            ratio[group.factors] = np.maximum(ratio[group.factors], ratios.max(axis=1))
    return sum_at(edges.component, weights * np.log(ratio[edges.link_factor]), graph.n_components)


def _marginal(tables: Array, slot: int) -> Array:
    """Sum tables (factors, k_1, ..., k_r) over all slots but one."""
    marginal: Array = tables.sum(axis=tuple(k for k in range(1, tables.ndim) if k != slot + 1))
    return marginal
