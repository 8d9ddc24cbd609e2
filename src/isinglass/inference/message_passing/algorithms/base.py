"""What all message-passing algorithms share: their options, their schedules, and the call of the engine.

The equations are in `kernels.numba.messages.updates` (messages) and `passes` (log Z).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.graph.schedules import grid_schedule, tree_schedule
from isinglass.inference.algorithm import (
    Algorithm,
    BeliefsOfCopies,
    Cost,
    FixedPoint,
    Groups,
    Progress,
    Taping,
)
from isinglass.inference.assignment import Assignment
from isinglass.inference.message_passing.algorithms.copies import copies_of
from isinglass.inference.message_passing.algorithms.decode import agrees, decode
from isinglass.inference.message_passing.checks.stability import (
    coupled_components,
    noise_of_messages,
    spectral_radii,
)
from isinglass.inference.message_passing.engine import Engine
from isinglass.inference.message_passing.model.group_places import ones_of
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Part, Plan, Schedule
from isinglass.inference.message_passing.reverse import Cotangents, gradients, messages_back
from isinglass.inference.result import Bound, FactorBeliefs, Info, Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.removed import refuse_removed
from isinglass.runtime.deferring import deferred
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import bytes_text, flag, jobs_of, number, whole_number

SCHEDULES = ("auto", "flooding", "tree", "grid", "sequential", "residual")

RUNAWAY = (
    "log_z is nan, because what the messages give is not that of any beliefs: their logarithms grow without end, which "
    'hard zeros in loops can cause; use "exact", "convex" or "trw", or soften the zeros'
)
SADDLE = (
    "it never left its uniform start, which is a fixed point but not a stable one (a symmetric model); "
    'start_noise=1e-3 leaves it, best with schedule="residual"; iterations=T runs exactly T iterations from it'
)


@dataclass(frozen=True)
class MessagePassing(Algorithm):
    """Base class of message-passing algorithms: their options, and the call of the engine.

    Parameters
    ----------
    iterations : int, optional
        Run exactly this number of iterations. By default: until `tol`, at most `max_iter`.
    tol : float
        The tolerance. Stop when no undamped update of a message can change any probability by more than this. The
        measure is tanh(osc / 4), where osc is the oscillation (maximum minus minimum) of the change of the log-message
        (see `isinglass.kernels.numba.messages.changes`).
    max_iter : int
        The maximal number of iterations.
    damping : float
        In [0, 1): the weight of the old message in a geometric mean with the new one.
    schedule : {"auto", "flooding", "tree", "grid", "sequential", "residual"}
        The order of updates. "auto" is flooding; on forests, unless `iterations` is given, it is one undamped pass from
        the leaves to the root and back, which is exact. "residual" updates every factor once, then always the one whose
        messages would change most; with `iterations`, factors whose changes are within `tol` take turns.
    random_state : int
        Seed of `start_noise`.
    start_noise : float
        Standard deviation of the initial log-messages. By default the initial messages are uniform, which can be an
        unstable fixed point of a symmetric model. A little noise, such as 1e-3, avoids it.
    check_stability : bool
        Report in `info.stable` whether the fixed point is stable: small changes of the messages decay. This is decided
        by the leading eigenvalue of the iteration at the final messages, and costs up to 80 backward iterations.
    reuse : bool
        In training, start the inference of an example from its messages in the last evaluation (warm start). This saves
        iterations, especially for "trw". The learned parameters of two runs then agree within the tolerance, but not
        bit for bit; and if there are several fixed points, training follows one of them. Not with `iterations`.
    n_jobs : int, optional
        The number of threads; -1: one for each processor. The default is the
        environment variable ISINGLASS_THREADS, or one. Beliefs, log Z and derivatives with respect to tables have the
        same bits for any number; the derivative with respect to the damping agrees up to rounding.
    """

    iterations: int | None = None
    tol: float = 1e-8
    max_iter: int = 1000
    damping: float = 0.0
    schedule: str = "auto"
    random_state: int = 0
    start_noise: float = 0.0
    check_stability: bool = False
    reuse: bool = False
    n_jobs: int | None = None

    powers: ClassVar[bool] = True  # whether counting numbers may differ from one

    @property
    def takes_stages(self) -> bool:
        """Whether each iteration can have its own potentials."""
        return True

    def resumed(self, iterations: int) -> Algorithm:
        """Return it with other iterations; the residual schedule, which ignores imaginary parts, is replaced."""
        changes = {"schedule": "sequential"} if self.schedule == "residual" else {}
        return replace(self, tol=0.0, max_iter=iterations, **changes)  # type: ignore[arg-type]

    def tape_bytes(self, graph: FactorGraph, item: int = 8) -> FloatArray:
        """Return the bytes of all messages, times the iterations that may be run.

        Examples
        --------
        >>> import isinglass as ig
        >>> ig.BeliefPropagation(iterations=3).tape_bytes(ig.grid_graph(2, 2, 2))  # 3 times 8 messages of 16 bytes
        array([384.])
        """
        entries = graph.cached("message entries", lambda: _message_entries(graph))
        most = self.max_iter if self.iterations is None else self.iterations
        once = graph.forest_components & (self.iterations is None and self.damping == 0)
        return np.asarray(item * entries * np.where(once, 1, most), np.float64)

    def counting(self, potentials: Potentials) -> FloatArray:
        """Return the counting number of each link."""
        return ones_of(potentials.graph)

    def bound(self, potentials: Potentials, outcome: Outcome) -> Bound:
        """Return what log Z is guaranteed to be."""
        return "exact" if is_exact(potentials, outcome) else None

    def cost(self, potentials: Potentials) -> Cost:
        """Return the memory for messages and beliefs, and the work of one iteration."""
        edges = edges_of(potentials.graph)
        steps = float(edges.start[-1] * 3 + edges.size.sum())
        memory = 8.0 * (steps + 2 * float(edges.first_state[-1]))
        return Cost(memory, steps, f"{bytes_text(memory)}, {steps:.3g} steps an iteration")

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Pass messages and read out the beliefs."""
        return self.run_stages([potentials], progress, tape, init)

    def run_stages(
        self,
        stages: Sequence[Potentials],
        progress: Progress | None = None,
        tape: Taping = False,
        init: Result | None = None,
    ) -> Result:
        """Pass messages with different potentials in each iteration; beliefs are read out with the last ones."""
        if len(stages) > 1 and self.iterations != len(stages):
            expected = f"{self.iterations} of them, one for each iteration" if self.iterations else "iterations=T"
            raise InputError("potentials", expected, f"a list of {len(stages)}", f"use iterations={len(stages)}")
        return self._result(stages, progress, tape, self._start(stages[-1], init))

    def _start(self, potentials: Potentials, init: Result | None) -> Array | None:
        """Return the logarithms of the first messages; None if they are uniform."""
        flag(self.check_stability, "check_stability")
        deviation = number(self.start_noise, "start_noise", 0, np.inf)
        if init is not None or deviation == 0:
            return _initial(potentials, init)
        seed = whole_number(self.random_state, "random_state")
        return deviation * noise_of_messages(edges_of(potentials.graph), seed)

    def _result(
        self,
        stages: Sequence[Potentials],
        progress: Progress | None,
        tape: Taping,
        initial: Array | None,
    ) -> Result:
        potentials = stages[-1]
        engine = Engine(stages, self._plan(potentials), initial)
        outcome = engine.run("sqrt" if tape == "sqrt" else "full" if tape else None, progress)
        return Result(
            potentials,
            deferred(lambda: outcome.component_log_z),
            VariableBeliefs(potentials.graph, outcome.variables),
            FactorBeliefs(potentials.graph, lambda: outcome.factors),
            self._with_stability(self._info(potentials, outcome), engine, outcome),
            messages_of=lambda: engine.messages(outcome),
            reverse=(lambda *bars: gradients(engine, outcome, Cotangents(*bars))) if tape else None,
        )

    def copies(self, potentials: Potentials) -> BeliefsOfCopies | None:
        """Return how to infer copies of a grid, by the grid schedule; not where a derived class has its own `run`."""
        mine, base = type(self), MessagePassing
        derived = mine.run is not base.run or mine.run_stages is not base.run_stages or mine._result is not base._result
        alone = derived or self.start_noise or not self.splits
        return None if alone else copies_of(potentials, self._plan(potentials))

    def remedy(self, info: Info) -> str:
        """Name the options that help messages to converge."""
        return "raise max_iter, add damping, or try another schedule"

    def linearised(self, result: Result) -> FixedPoint:
        """Return one iteration of undamped flooding at the messages of a result, in reverse."""
        return self._flooding(result.potentials, result.messages)

    def _flooding(self, potentials: Potentials, messages: Array | None) -> FixedPoint:
        return _Flooding(
            replace(self, iterations=1, schedule="flooding", damping=0.0, reuse=False), potentials, messages
        )

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Pass max-product messages and decode one assignment; `decode` says what is proved."""
        plan = replace(self._plan(potentials), maximise=True)
        outcome = Engine([potentials], plan).run(None, progress)
        states = decode(potentials, outcome.variables, outcome.factors)
        score = float(potentials.log_score(states))
        converged, plain = bool(outcome.converged.all()), bool((plan.counting == 1).all())
        margin = max(100 * self.tol, _margin(potentials, outcome))
        agreed = converged and agrees(potentials, outcome.variables, outcome.factors, states, margin)
        mixture = self._mixes_forests() or (plain and potentials.graph.is_forest)
        optimal = (plain and is_exact(potentials, outcome)) or (agreed and mixture)
        return [Assignment(states, score, score if optimal else np.inf, optimal, optimal or (agreed and plain))]

    def _mixes_forests(self) -> bool:
        """Tell whether counting numbers are known to be probabilities of being in a random forest."""
        return self.facts.bound == "upper" and getattr(self, "weights", None) is None

    def _plan(self, potentials: Potentials) -> Plan:
        iterations = None if self.iterations is None else whole_number(self.iterations, "iterations")
        if flag(self.reuse, "reuse") and iterations is not None:
            raise InputError("reuse", "False with a number of iterations", "True", "give `tol` and `max_iter` instead")
        counting = self.counting(potentials)
        return Plan(
            parts=self._parts(potentials.graph, counting),
            counting=counting,
            powers=self.powers,
            damping=number(self.damping, "damping", 0, 1),
            iterations=iterations,
            tol=number(self.tol, "tol", 0, np.inf),
            max_iter=whole_number(self.max_iter, "max_iter", 1),
            threads=jobs_of(self.n_jobs),
        )

    def _parts(self, graph: FactorGraph, counting: FloatArray) -> list[Part]:
        """Choose the schedule; "auto" chooses for each component separately."""
        everything, trees = np.ones(graph.n_components, bool), graph.forest_components.copy()
        if counting is not ones_of(graph):
            trees[edges_of(graph).component[counting != 1]] = False
        one_is_enough = self.iterations is None
        tree = Part(trees, lambda: tree_schedule(graph), settled=one_is_enough)
        if self.schedule == "auto":
            return [tree, Part(~trees, "flooding")] if one_is_enough else [Part(everything, "flooding")]
        if self.schedule == "tree":
            if not graph.is_forest:
                raise InputError("schedule", "a forest for 'tree'", "a graph with cycles", "use 'flooding' or 'auto'")
            return [Part(everything, tree.schedule, settled=one_is_enough and self.damping == 0 and bool(trees.all()))]
        if self.schedule == "grid":
            grid_schedule(graph)  # refuses what is no grid
        choices: dict[str, Schedule] = {
            "flooding": "flooding",
            "grid": "grid",
            "sequential": lambda: np.arange(len(counting)),
            "residual": "residual",
        }
        if self.schedule not in choices:
            refuse_removed(f"schedule={self.schedule!r}")
            raise InputError("schedule", " or ".join(map(repr, SCHEDULES)), repr(self.schedule))
        return [Part(everything, choices[self.schedule])]

    def _info(self, potentials: Potentials, outcome: Outcome) -> Info:
        return Info(
            self.name,
            converged=bool(outcome.converged.all()),
            iterations=int(outcome.iterations.max(initial=0)),
            residual=float(outcome.residual.max(initial=0.0)),
            bound=self.bound(potentials, outcome),
            seconds=0.0,
            converged_share=float(outcome.converged.mean()) if len(outcome.converged) else 1.0,
            note=RUNAWAY if outcome.off_domain.any() else "",
        )

    def _with_stability(self, info: Info, engine: Engine, outcome: Outcome) -> Info:
        """Check whether the fixed point is stable if that is asked for, or if the run never left its uniform start."""
        stuck = self._never_left(engine, outcome)
        if not self.check_stability and not stuck.any():
            return info
        equations = self._flooding(engine.potentials, engine.messages(outcome))
        radius = spectral_radii(equations, engine.edges, engine.graph.n_components, self.damping)
        unstable = stuck & (radius > 1)
        stable = bool((radius < 1).all()) if self.check_stability or unstable.any() else None
        return replace(info, stable=stable, note=info.note or (SADDLE if unstable.any() else ""))

    def _never_left(self, engine: Engine, outcome: Outcome) -> Mask:
        """Tell which components (not forests, nor without any coupling) converged to their uniform start."""
        never: Mask = outcome.converged & (outcome.iterations == 1) & ~engine.graph.forest_components
        if self.iterations is not None or engine.initial is not None or engine.potentials.dtype.kind == "c":
            never[:] = False
        return never & coupled_components(engine.potentials) if never.any() else never


class _Flooding(FixedPoint):
    """The fixed-point equations of messages: their logarithms after one iteration of flooding are what they were."""

    def __init__(self, algorithm: MessagePassing, potentials: Potentials, messages: Array | None) -> None:
        self.engine = Engine([potentials], algorithm._plan(potentials), messages)
        self.outcome = self.engine.run("full")
        self.still = Engine([potentials], replace(algorithm, iterations=0)._plan(potentials), messages)
        self.read = self.still.run("full")

    def read_out_back(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> tuple[Array, Groups]:
        """Reverse the read-out."""
        found = gradients(self.still, self.read, Cotangents(z_bar, variables_bar, factors_bar))
        return found.initial_messages, found.groups

    def back(self, state_bar: Array) -> tuple[Array, Groups]:
        """Reverse the iteration."""
        return messages_back(self.engine, self.outcome, state_bar)


def _message_entries(graph: FactorGraph) -> FloatArray:
    """Return the number of entries of all messages of each component."""
    edges = edges_of(graph)
    counts = np.bincount(edges.component[edges.edge_link], np.diff(edges.start), graph.n_components)
    return np.asarray(counts, np.float64)


def is_exact(potentials: Potentials, outcome: Outcome) -> bool:
    """Tell whether beliefs with counting numbers of one are certainly the true ones."""
    return potentials.graph.is_forest and bool(outcome.exact_on_forests(edges_of(potentials.graph)).all())


def _margin(potentials: Potentials, outcome: Outcome) -> float:
    """Return the relative lead of a maximum that outweighs the residuals of all messages together."""
    with np.errstate(divide="ignore"):
        osc = 4 * np.arctanh(np.minimum(outcome.residual, 1.0))
    return float(-np.expm1(-(outcome.messages(edges_of(potentials.graph)) * osc).max(initial=0.0)))


def _initial(potentials: Potentials, init: Result | None) -> Array | None:
    """Return the messages of an earlier result on the same structure."""
    if init is None:
        return None
    if not isinstance(init, Result) or init.messages is None:
        raise InputError("init", "the result of an earlier message passing", repr(init)[:60])
    size = edges_of(potentials.graph).start[-1]
    if len(init.messages) != size:
        raise InputError("init", f"a result on this graph ({size} message entries)", f"{len(init.messages)}")
    return init.messages
