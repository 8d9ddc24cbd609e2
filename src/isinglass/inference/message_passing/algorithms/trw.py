"""Message passing with counting numbers: tree-reweighted and fractional belief propagation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.forests.appearance import appearance_probabilities
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
from isinglass.inference.message_passing.algorithms.reweighting import WeightSearch, is_bound, search_weights
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.result import Bound, Result
from isinglass.potentials import Potentials
from isinglass.runtime.deferring import twin
from isinglass.typing import Array, FloatArray
from isinglass.validation import number, real_numbers, whole_number


@register
@dataclass(frozen=True)
class TreeReweighted(MessagePassing):
    """Tree-reweighted belief propagation: log Z is an upper bound at convergence; exact on forests.

    `info.bound` is "upper" only if the beliefs also prove it. (With potentials of hundreds of nats, messages may seem
    to have converged before the beliefs are consistent.)

    Parameters
    ----------
    weights : array (factors,) or "optimised", optional
        The edge appearance probability of each factor, in (0, 1]; factors of arity below two are ignored. By default
        the probability of being in a random spanning forest (see `graph.forests.appearance`). "optimised" starts from
        the default and lowers the bound by Frank-Wolfe steps, each with a few iterations of message passing (see
        `algorithms.reweighting`). Inference with the weights found then continues from the messages of the
        search; with `iterations`, `init` or a tape it runs as if the weights had been given. Gradients treat the
        weights as constants: they do not go through the search.
    weight_steps : int
        The maximal number of Frank-Wolfe steps for each component.
    weight_tol : float
        The search of a component ends when the duality gap proves that its bound is within this many nats of the
        lowest one.
    iterations, tol, max_iter, damping, schedule, random_state, start_noise, check_stability, reuse, n_jobs
        As for all message-passing algorithms; see `BeliefPropagation`.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    >>> r = ig.infer(p, "trw")
    >>> r.info.bound, bool(r.log_z >= ig.infer(p, "exact").log_z)
    ('upper', True)
    >>> bool(ig.infer(p, "trw", weights="optimised").log_z < r.log_z)
    True
    """

    damping: float = 0.3
    weights: ArrayLike | None = None
    weight_steps: int = 20
    weight_tol: float = 1e-3

    name: ClassVar[str] = "trw"
    facts: ClassVar[Facts] = replace(
        BeliefPropagation.facts,
        summary="tree-reweighted message passing: an upper bound when converged, exact on forests",
        bound="upper",
    )

    @property
    def takes_stages(self) -> bool:
        """Whether each iteration can have potentials of its own: not with weights that depend on them."""
        return not self._optimises()

    def counting(self, potentials: Potentials) -> FloatArray:
        """Return the given weights, the appearance probabilities, or the optimised weights."""
        if self.weights is None:
            return appearance_probabilities(potentials.graph, whole_number(self.random_state, "random_state"))
        if self._optimises():
            return self.optimise(potentials).weights[edges_of(potentials.graph).link_factor]
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

    def run_stages(
        self,
        stages: Sequence[Potentials],
        progress: Progress | None = None,
        tape: Taping = False,
        init: Result | None = None,
    ) -> Result:
        """Pass messages and read out the beliefs, after the search for weights if there is one."""
        if not self._optimises():
            return super().run_stages(stages, progress, tape, init)
        if len(stages) > 1:
            raise InputError("weights", "given ones, with potentials for each iteration", "'optimised'")
        initial = self._start(stages[0], init)
        found = self.optimise(stages[0], progress)
        if initial is None and self.iterations is None and not tape:
            initial = found.messages
        return replace(self, weights=found.weights)._result(stages, progress, tape, initial)

    def fixed(self, potentials: Potentials) -> TreeReweighted:
        """Return it with the weights that it would search for."""
        return replace(self, weights=self.optimise(potentials).weights) if self._optimises() else self

    def optimise(self, potentials: Potentials, progress: Progress | None = None) -> WeightSearch:
        """Search for weights with a tighter (lower) upper bound, starting from the given or the default weights.

        Returns
        -------
        WeightSearch
            It has `weights`, which can be used for this or similar potentials, `bounds` and `gap`.

        Examples
        --------
        >>> import isinglass as ig
        >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
        >>> found = ig.TreeReweighted().optimise(p)
        >>> bool((np.diff(found.bounds[:, 0]) <= 0).all()), found.weights.shape
        (True, (21,))
        """
        steps, tol = whole_number(self.weight_steps, "weight_steps"), number(self.weight_tol, "weight_tol", 0, np.inf)
        start = replace(self, weights=None) if self._optimises() else self
        return search_weights(potentials, start._plan(potentials), steps, tol, progress)

    def _optimises(self) -> bool:
        if isinstance(self.weights, str) and self.weights != "optimised":
            raise InputError("weights", "None, 'optimised' or probabilities", repr(self.weights))
        return isinstance(self.weights, str)


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
    learn: Sequence[str] = field(default=(), metadata={"fingerprint": False})  # the parameters tell

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
