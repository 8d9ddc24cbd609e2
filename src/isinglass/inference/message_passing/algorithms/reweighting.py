"""Weights that make the tree-reweighted bound small, by conditional gradients (Frank and Wolfe 1956).

For weights rho in the convex hull of (indicators of) acyclic sets of links, the tree-reweighted bound is

    B(rho)  =  max over locally consistent b of  <phi, b> + sum_i H_i(b) - sum_a rho_a I_a(b)   >=   log Z,
    dB/drho_a  =  -I_a(b*),      I_a = sum_{i in a} H_i - H_a      (multi-information; mutual information of a pair)

with b* the beliefs at convergence: B is a maximum of functions that are linear in rho, hence convex (Wainwright,
Jaakkola and Willsky 2005). A step goes from rho towards the acyclic set S of greatest information:

    rho  <-  rho + gamma (1_S - rho),     gap  =  sum_a I_a (1_S - rho)_a  >=  B(rho) - min B.

- Of pairs, the maximal acyclic sets are spanning forests, and the greedy algorithm finds the best one (Kruskal 1956),
  so that the gap is a true one. Of higher arity it finds a good one: greedily by I_a and by I_a / (arity - 1), the
  better of the two; the gap is then measured against that set only.
- Whatever the sets are, rho remains a mean of acyclic sets (and of its start), and B(rho) a bound. No step is longer
  than LONGEST, so that weights stay positive.
- gamma is found on the slope -sum_a I_a(gamma) (1_S - rho)_a, which rises with gamma: by the secant rule inside a
  bracket. Of the points tried, the one of least B is taken, and only if it is lower than where the step began: the
  bound never rises. Where message passing does not converge there is no bound, and such a point is not taken.

Small changes of messages alone do not prove a bound: potentials of very different size can cause them, too. Whatever
the messages are, the beliefs reparametrise the model, p(x) ~ prod_i b_i prod_a (b_a / prod_{i in a} b_i)^rho_a; by
Jensen's inequality and elimination of each acyclic set from its leaves,

    log Z  <=  log_z + sum_a rho_a log r_a,      r_a  =  max over i in a and x_i of  b_a(x_i) / b_i(x_i)   >=  1,

with log_z as read out of any messages. Where that sum is not negligible, log_z is not a bound.

Each component searches independently: its direction, step, bracket and end do not depend on the others. Message passing
is warm-started from the last messages that converged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of, entry_components
from isinglass.inference.algorithm import Progress
from isinglass.inference.message_passing.engine import Engine
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Plan
from isinglass.kernels.layout import Edges
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask

LONGEST = 0.5  # step
FIRST = 0.2  # step tried
TRIALS = 6  # of message passing in one step, at most
FLAT = 0.5  # a slope is flat enough if it is this part of the first one
PATIENCE = 10  # times the iterations that one inference may take, for one point of the search
CERTAIN = 1e-6  # how far above log_z, relative to it (or to one), log Z may be by its certificate


@dataclass(frozen=True, eq=False)
class WeightSearch:
    """What a search for weights found.

    Attributes
    ----------
    weights : array (factors,)
        To be given to `TreeReweighted`; one for factors of arity below two.
    bounds : array (steps + 1, components)
        The bound before the first step and after each; it never rises. Infinite where message passing did not converge
        at the start, so that there was no search.
    gap : array (components,)
        How far the last bound can be above the least one, in nats (on graphs of pairs); infinite if there is no bound.
    messages : array
        Logarithms of the last messages, flat.
    """

    weights: FloatArray
    bounds: FloatArray
    gap: FloatArray
    messages: FloatArray


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights, and what message passing with them led to."""

    weights: FloatArray  # (links,)
    bound: FloatArray  # (components,), infinite where messages did not converge
    information: FloatArray  # (links,)
    messages: FloatArray

    @property
    def converged(self) -> Mask:
        """Whether each component has a bound."""
        return self.bound < np.inf


@dataclass(frozen=True, eq=False)
class _Bracket:
    """For each component, a step at which the bound falls and one (or none: infinite) at which it does not."""

    low: FloatArray
    low_slope: FloatArray
    high: FloatArray
    high_slope: FloatArray  # NaN if unknown

    @classmethod
    def of(cls, slope: FloatArray) -> _Bracket:
        return cls(np.zeros_like(slope), slope, np.full_like(slope, np.inf), np.full_like(slope, np.nan))

    def narrowed(self, step: FloatArray, slope: FloatArray, known: Mask) -> _Bracket:
        """Move one of the ends to a step that was tried."""
        falls = known & (slope < 0)
        return _Bracket(
            np.where(falls, step, self.low),
            np.where(falls, slope, self.low_slope),
            np.where(falls, self.high, step),
            np.where(falls, self.high_slope, np.where(known, slope, np.nan)),
        )

    def guess(self) -> FloatArray:
        """Return where the secant is zero, not too near an end; the middle, if a slope is unknown; or twice as far."""
        far = np.minimum(LONGEST, 2 * self.low)
        width = np.where(np.isinf(self.high), 0.0, self.high - self.low)
        share = self.low_slope / (self.low_slope - self.high_slope)
        share = np.where(np.isnan(share), 0.5, np.clip(share, 0.1, 0.9))
        return np.where(np.isinf(self.high), far, self.low + share * width)


def search_weights(
    potentials: Potentials, plan: Plan, steps: int, tol: float, progress: Progress | None = None
) -> WeightSearch:
    """Search from the counting numbers of a plan.

    Parameters
    ----------
    potentials : Potentials
    plan : Plan
        How to pass messages; until convergence, whatever `iterations` says, with PATIENCE times `max_iter` for each
        point: there would be no search where the start takes long, and what begins from its messages takes few.
    steps : int
        The largest number of steps of each component.
    tol : float
        A component stops when its gap is at most this, in nats.
    progress : callable, optional

    Returns
    -------
    WeightSearch
    """
    search = _Search(_real(potentials), replace(plan, iterations=None, max_iter=PATIENCE * plan.max_iter))
    point = search.at(plan.counting, search.uniform, np.ones(potentials.graph.n_components, bool))
    running, bounds = point.converged, [point.bound]
    step, gap = np.full(len(running), FIRST), np.full(len(running), np.inf)
    for t in range(steps + 1):
        direction = search.direction(point)
        slope = -search.sums(point.information * direction)
        gap = np.where(running, -slope, gap)
        running = running & (-slope > tol)
        if t == steps or not running.any():
            break
        new, step = search.descend(point, direction, slope, step, running)
        running, point = running & (new.bound < point.bound), new
        bounds.append(point.bound)
        if progress is not None:
            progress(f"weights, step {t + 1}, bound {point.bound.sum():.6g}", (t + 1) / steps)
    weights = np.ones(potentials.graph.n_factors)
    weights[search.edges.link_factor] = point.weights
    return WeightSearch(weights, np.array(bounds), np.maximum(gap, 0.0), point.messages)


def is_bound(graph: FactorGraph, weights: FloatArray, outcome: Outcome) -> Mask:
    """Tell of which components log_z is certainly an upper bound, but for a part CERTAIN of it."""
    above = log_z_above(graph, weights, outcome.variables, outcome.factors)
    certain: Mask = above <= CERTAIN * np.maximum(1.0, np.abs(outcome.component_log_z))
    return certain


def log_z_above(graph: FactorGraph, weights: FloatArray, variables: Array, factors: Array) -> FloatArray:
    """Return how far log Z of each component can be above what flat beliefs with these weights of links say."""
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


class _Search:
    """The bound as a function of the weights, with its slopes, for every component at once."""

    def __init__(self, potentials: Potentials, plan: Plan) -> None:
        self.potentials, self.plan = potentials, plan
        self.edges = edges_of(potentials.graph)
        cards = np.diff(self.edges.start)
        self.uniform: FloatArray = -np.log(np.repeat(cards, cards))
        self.component_of_entry = entry_components(self.edges)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum numbers of links over each component."""
        return sum_at(self.edges.component, values, self.potentials.graph.n_components)

    def at(self, weights: FloatArray, messages: FloatArray, active: Mask) -> _Point:
        """Pass messages with these weights in the active components."""
        parts = [replace(part, wanted=part.wanted & active) for part in self.plan.parts]
        plan = replace(self.plan, counting=weights, parts=parts)
        engine = Engine([self.potentials], plan, messages)
        outcome = engine.run(None)
        information = _information(self.potentials.graph, self.edges, outcome.factors)
        reached = outcome.converged & active & is_bound(self.potentials.graph, weights, outcome)
        bound = np.where(reached, outcome.component_log_z, np.inf)
        return _Point(weights, bound, information, engine.messages(outcome))

    def direction(self, point: _Point) -> FloatArray:
        """Return where the acyclic set of greatest information lies, for each link."""
        return _heaviest(self.edges, point.information, self.potentials.graph.n_components) - point.weights

    def descend(
        self, start: _Point, direction: FloatArray, slope: FloatArray, step: FloatArray, active: Mask
    ) -> tuple[_Point, FloatArray]:
        """Return the best point found along a direction, and the step to it (or that tried first)."""
        bracket, best, taken = _Bracket.of(slope), start, step
        for _ in range(TRIALS):
            if not active.any():
                break
            weights = start.weights + step[self.edges.component] * direction
            there = self.at(weights, best.messages, active)
            here = -self.sums(there.information * direction)
            better = there.bound < best.bound
            best, taken = self._joined(best, there, better), np.where(better, step, taken)
            bracket = bracket.narrowed(step, here, there.converged)
            flat = there.converged & (np.abs(here) <= FLAT * np.abs(slope))
            active = active & ~flat & (bracket.low < LONGEST)
            step = np.where(active, bracket.guess(), step)
        return best, taken

    def _joined(self, one: _Point, two: _Point, chosen: Mask) -> _Point:
        """Take the second point in the chosen components."""
        links, entries = chosen[self.edges.component], chosen[self.component_of_entry]
        return _Point(
            np.where(links, two.weights, one.weights),
            np.where(chosen, two.bound, one.bound),
            np.where(links, two.information, one.information),
            np.where(entries, two.messages, one.messages),
        )


def _heaviest(edges: Edges, information: FloatArray, n_components: int) -> FloatArray:
    """Return indicators of a maximal acyclic set of great information (of the greatest, if all links are pairs)."""
    arity = np.diff(edges.first_slot)
    best = _greedy(edges, information)
    if (arity == 2).all():
        return best
    other = _greedy(edges, information / (arity - 1))
    gain = sum_at(edges.component, information * (other - best), n_components)
    return np.where((gain > 0)[edges.component], other, best)


def _greedy(edges: Edges, score: FloatArray) -> FloatArray:
    from isinglass.graph.forests.acyclic import acyclic_subset

    order: IntArray = np.argsort(-score, kind="stable")
    chosen: Mask = acyclic_subset(edges.first_slot, edges.slot_variable, order, len(edges.cards))
    return chosen.astype(np.float64)


def _information(graph: FactorGraph, edges: Edges, beliefs: Array) -> FloatArray:
    """Return the multi-information of the belief of each link, in nats."""
    information = np.zeros(graph.n_factors)
    for group, part in iter_groups(graph):
        if group.arity < 2 or not len(group):
            continue
        table = beliefs[part].reshape(len(group), *group.shape)
        total = -_entropy(table)
        for slot in range(group.arity):
            total += _entropy(_marginal(table, slot))
        information[group.factors] = total
    return information[edges.link_factor]


def _marginal(tables: Array, slot: int) -> Array:
    """Sum tables (factors, k_1, ..., k_r) over all slots but one."""
    marginal: Array = tables.sum(axis=tuple(k for k in range(1, tables.ndim) if k != slot + 1))
    return marginal


def _entropy(tables: Array) -> FloatArray:
    """Return the entropy of each table, in nats."""
    flat = tables.reshape(len(tables), -1)
    logs = np.log(flat, out=np.zeros_like(flat), where=flat > 0)
    entropy: FloatArray = -(flat * logs).sum(axis=1)
    return entropy


def _real(potentials: Potentials) -> Potentials:
    """Leave out imaginary parts, which stand for infinitely small changes: weights are constants to derivatives."""
    groups = [tables.real for tables in potentials.groups]
    return Potentials.from_groups(potentials.graph, groups, potentials.table_ids, potentials.evidence)
