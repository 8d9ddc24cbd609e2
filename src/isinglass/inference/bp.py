"""Loopy belief propagation: sum-product, tree-reweighted and fractional, by one engine.

The equations stand in `isinglass.kernels.numba.messages` (messages) and `passes` (log Z). Counting numbers of one
give belief propagation, exact on forests; elsewhere log Z is the Bethe approximation, which bounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import InputError
from isinglass.graph.edges import edges_of
from isinglass.graph.schedules import grid_schedule, tree_schedule
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, register
from isinglass.inference.engine import Engine, Outcome, Plan, Sequencer
from isinglass.inference.result import Bound, FactorBeliefs, Info, Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.validation import bytes_text, number, whole_number

SCHEDULES = ("auto", "flooding", "tree", "grid", "sequential", "random")


@dataclass(frozen=True)
class MessagePassing(Algorithm):
    """What all message-passing algorithms share: their options, and the call of the engine.

    Parameters
    ----------
    iterations : int, optional
        Run exactly so many. By default: until `tol`, at most `max_iter`.
    tol : float
        Stop when no normalised message changes by more than this.
    max_iter : int
    damping : float
        In [0, 1): the share of the old message, geometrically.
    schedule : {"auto", "flooding", "tree", "grid", "sequential", "random"}
        By default the tree schedule on forests (unless `iterations` or `damping` is given), else flooding.
    random_state : int
        Seed of the random schedule.
    """

    iterations: int | None = None
    tol: float = 1e-8
    max_iter: int = 1000
    damping: float = 0.0
    schedule: str = "auto"
    random_state: int = 0

    def counting(self, potentials: Potentials) -> NDArray[np.float64]:
        """Return the counting number of each link."""
        return np.ones(len(edges_of(potentials.graph).size))

    def bound(self, potentials: Potentials, converged: bool) -> Bound:
        """Say what log Z is guaranteed to be."""
        return "exact" if converged and potentials.graph.is_forest else None

    def cost(self, potentials: Potentials) -> Cost:
        """Say what the messages take, and one iteration."""
        edges = edges_of(potentials.graph)
        entries = float(edges.start[-1] * 3 + edges.size.sum())
        return Cost(8 * entries, entries, f"{bytes_text(8 * entries)}, {entries:.3g} steps an iteration")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: bool = False, init: Result | None = None
    ) -> Result:
        """Pass messages and read out the beliefs."""
        engine = Engine(potentials, self._plan(potentials), _initial(potentials, init))
        outcome = engine.run(tape, progress)
        return Result(
            potentials,
            outcome.component_log_z,
            VariableBeliefs(potentials.graph, outcome.variables),
            FactorBeliefs(potentials.graph, outcome.factors),
            self._info(potentials, outcome),
            messages=outcome.messages,
            reverse=(lambda *bars: engine.backward(outcome, *bars)) if tape else None,
        )

    def _plan(self, potentials: Potentials) -> Plan:
        iterations = None if self.iterations is None else whole_number(self.iterations, "iterations")
        damping = number(self.damping, "damping", 0, 1)
        sequence, settled = self._sequencer(potentials)
        return Plan(
            counting=self.counting(potentials),
            sequence=sequence,
            damping=damping,
            iterations=iterations,
            tol=number(self.tol, "tol", 0, np.inf),
            max_iter=whole_number(self.max_iter, "max_iter", 1),
            settled=settled and damping == 0,
        )

    def _sequencer(self, potentials: Potentials) -> tuple[Sequencer, bool]:
        """Return what to update in iteration t, and whether one iteration is known to be enough."""
        graph = potentials.graph
        name = self.schedule
        if name == "auto":
            plain = self.iterations is None and self.damping == 0 and (self.counting(potentials) == 1).all()
            name = "tree" if plain and graph.is_forest else "flooding"
        if name not in SCHEDULES:
            raise InputError("schedule", " or ".join(map(repr, SCHEDULES)), repr(name))
        if name == "flooding":
            return lambda t: None, False
        if name == "random":
            return self._random_sequence(len(edges_of(graph).size)), False
        if name == "sequential":
            links = np.arange(len(edges_of(graph).size))
            return lambda t: links, False
        fixed = tree_schedule(graph) if name == "tree" else grid_schedule(graph)
        return lambda t: fixed, name == "tree" and bool((self.counting(potentials) == 1).all())

    def _random_sequence(self, n_links: int) -> Sequencer:
        seed = whole_number(self.random_state, "random_state")
        return lambda t: np.random.default_rng([seed, t]).permutation(n_links)

    def _info(self, potentials: Potentials, outcome: Outcome) -> Info:
        converged = bool(outcome.converged.all())
        residual = 0.0 if self._plan(potentials).settled and converged else float(outcome.residual.max(initial=0.0))
        bound = self.bound(potentials, converged)
        return Info(self.name, converged, int(outcome.iterations.max(initial=0)), residual, bound, 0.0)


@register
@dataclass(frozen=True)
class BeliefPropagation(MessagePassing):
    """Sum-product belief propagation; exact on forests.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), 0.3 * np.eye(2)[None]])
    >>> r = ig.infer(p, ig.BeliefPropagation(damping=0.2))
    >>> r.info.converged, round(r.log_z, 4)
    (True, 8.1728)
    """

    name: ClassVar[str] = "bp"
    facts: ClassVar[Facts] = Facts(
        "belief propagation: Bethe approximation, exact on forests", exact="forests", bound=None, iterative=True
    )


def _initial(potentials: Potentials, init: Result | None) -> NDArray[Any] | None:
    """Return the messages of an earlier result on the same structure."""
    if init is None:
        return None
    if not isinstance(init, Result) or init.messages is None:
        raise InputError("init", "the result of an earlier message passing", repr(init)[:60])
    size = edges_of(potentials.graph).start[-1]
    if len(init.messages) != size:
        raise InputError("init", f"a result on this graph ({size} message entries)", f"{len(init.messages)}")
    return init.messages
