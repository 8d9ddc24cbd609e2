"""The public functions: check the input, create the algorithm from its name or object, run and time it, warn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from isinglass.errors import InputError, MemoryLimitError, UnknownNameError, warn_of_convergence
from isinglass.graph.names import EvidenceLike
from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Progress, Taping, make, threaded, with_fact
from isinglass.inference.assignment import Assignment
from isinglass.inference.evidence import checked
from isinglass.inference.map import solver as map_solver
from isinglass.inference.map.icm import climbed
from isinglass.inference.map.solver import SOLVERS, Solver
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.registry import did_you_mean
from isinglass.removed import refuse_removed
from isinglass.runtime.deferring import twin
from isinglass.typing import IntArray
from isinglass.validation import RandomState, generator, whole_number

DEFAULT = "exact"  # the algorithm of a call that names none


def infer(
    potentials: Potentials | Sequence[Potentials],
    algorithm: str | Algorithm | None = None,
    *,
    evidence: EvidenceLike | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    init: Result | None = None,
    tape: Taping = False,
    progress: Progress | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Result:
    """Compute the beliefs (marginals) of all variables and factors, and log Z.

    Parameters
    ----------
    potentials : Potentials
        The model. Its evidence is used. For message passing with ``iterations=T`` it can be a list of T potentials on
        one graph: iteration t uses the t-th, and the beliefs are computed with the last.
    algorithm : str, Algorithm or None
        A name (`algorithms` lists them), such as "exact" or "bp", or an object with options, such as
        ``ig.Exact(memory_limit="2GB")``. None: exact inference if it fits in memory, otherwise an error that names
        alternatives. ``result.info.algorithm`` is the algorithm that was used.
    evidence : mapping of int to int, optional
        Additional observed variables and their states, by numbers or names.
    tol, max_iter : float, int, optional
        The tolerance and the maximal number of iterations. Algorithms that do not iterate ignore them.
    init : Result, optional
        An earlier result on the same graph. An iterative algorithm starts from its messages (warm start).
    tape : bool or "sqrt"
        Whether to record what `Result.backward` needs. With "sqrt", message passing stores every k-th iteration and
        recomputes the others: memory grows with the square root of the number of iterations, and the gradient is the
        same.
    progress : callable (stage, fraction), optional
        Called from time to time during long runs.
    n_jobs : int, optional
        The number of threads; -1: one for each processor. The default is the environment variable ISINGLASS_THREADS,
        or one. The result has the same bits for any number of threads. Algorithms without threads ignore it.
    **options
        Other options of the algorithm, such as `damping` of "bp" or `random_state` of a sampler.

    Returns
    -------
    Result
        It has `log_z` (in nats), `variable(i)`, `factor(a)`, `variables`, `factors` and `info`.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])
    >>> r = ig.infer(p, evidence={1: 1})
    >>> r.variable(0).round(4).tolist(), round(float(np.exp(r.log_z)), 12)
    ([0.3333, 0.6667], 6.0)
    """
    stages = _stages(potentials, evidence)
    clamped = stages[-1]
    if tape not in (True, False, "sqrt"):
        raise InputError("tape", 'True, False or "sqrt"', repr(tape))
    if progress is not None and not callable(progress):
        raise InputError("progress", "a function (stage, fraction)", type(progress).__name__)
    chosen = _choose(clamped, options) if algorithm is None else make(algorithm, options)
    stopping = {k: v for k, v in {"tol": tol, "max_iter": max_iter}.items() if v is not None}
    if stopping:
        known = {f.name for f in fields(chosen)}  # type: ignore[arg-type]
        chosen = make(chosen, {k: v for k, v in stopping.items() if k in known})
    chosen = threaded(chosen, n_jobs)
    start = time.perf_counter()
    result = chosen.run_stages(stages, progress, tape, init)
    info = replace(result.info, seconds=time.perf_counter() - start)
    if complaint := chosen.complaint(info):
        warn_of_convergence(complaint, stacklevel=2)
    return twin(result, info=info, algorithm=chosen)


def map_assignment(
    potentials: Potentials,
    algorithm: str | Algorithm | Solver = DEFAULT,
    *,
    evidence: EvidenceLike | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Assignment:
    """Find a most probable assignment.

    Parameters
    ----------
    potentials : Potentials
    algorithm : str, Algorithm or Solver
        A MAP solver (`map_solvers` lists them), such as "trws" or ``ig.TRWS(seconds=5)``, or an inference algorithm
        that can maximise, such as "exact" (the default) or "max-product".
    evidence : mapping of int to int, optional
        Additional observed variables and their states, by numbers or names.
    progress : callable (stage, fraction), optional
        Called from time to time during long searches.
    n_jobs : int, optional
        The number of threads; -1: one for each processor. The default is the environment variable ISINGLASS_THREADS,
        or one. The result has the same bits for any number of threads. Algorithms without threads ignore it.
    **options
        Options of the algorithm; every MAP solver has `seconds`, a time limit.

    Returns
    -------
    Assignment
        It has `states`, `score`, `bound` and `optimal`. Ctrl-C during the search of a solver returns the best
        assignment so far, with a warning; its bound is valid.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.0]]])
    >>> m = ig.map_assignment(p)
    >>> m.states.tolist(), m.score, m.optimal
    ([0, 1], 2.0, True)
    """
    try:
        return n_best(potentials, 1, algorithm, evidence=evidence, progress=progress, n_jobs=n_jobs, **options)[0]
    except MemoryLimitError as error:
        raise MemoryLimitError(f'{error}, such as map_assignment(p, "auto") or "trws"') from None


def n_best(
    potentials: Potentials,
    n: int,
    algorithm: str | Algorithm | Solver = DEFAULT,
    *,
    evidence: EvidenceLike | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> list[Assignment]:
    """Find the `n` most probable assignments, best first; fewer if fewer have positive probability.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.5]]])
    >>> [m.states.tolist() for m in ig.n_best(p, 3)]
    [[0, 1], [1, 0], [1, 1]]
    """
    count = whole_number(n, "n", 1)
    chosen = _maximiser(algorithm, n_jobs, options)
    if count > 1 and (isinstance(chosen, Solver) or chosen.facts.maximises == "one"):
        remedy = with_fact("maximises", "many")
        raise InputError("n", f"1, the only number that {chosen.name!r} decodes", str(count), remedy)
    clamped = _real(checked(potentials, evidence))
    found = chosen.maximise(clamped, count, progress)
    if isinstance(chosen, Algorithm) and not (found[0].optimal or found[0].locally_optimal):
        found = [_climbed(clamped, one) if chosen.facts.maximises == "one" else one for one in found]
    return [replace(one, graph=clamped.graph) for one in found]


def _climbed(potentials: Potentials, found: Assignment) -> Assignment:
    """Return a local maximum that is not worse than an assignment without a proof, nor than that of "icm"."""
    states = climbed(potentials, found.states)
    return replace(found, states=states, score=float(potentials.log_score(states)))


def sample(
    potentials: Potentials,
    n: int,
    algorithm: str | Algorithm = DEFAULT,
    *,
    evidence: EvidenceLike | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    **options: Any,
) -> IntArray:
    """Draw `n` assignments, shape (n, variables).

    With "exact" (the default) and "brute" the samples are independent and exact. Markov chain samplers, such as
    "gibbs", approximate the distribution.

    Parameters
    ----------
    potentials : Potentials
    n : int
        The number of samples.
    algorithm : str or Algorithm
        An algorithm that can sample, such as "exact", "gibbs" or "swendsen-wang".
    evidence : mapping of int to int, optional
        Additional observed variables and their states, by numbers or names.
    random_state : int, Generator or None
        The seed. None: the `random_state` of the algorithm, if it has one; otherwise a random seed.
    n_jobs : int, optional
        The number of threads; -1: one for each processor. The default is the environment variable ISINGLASS_THREADS,
        or one. The result has the same bits for any number of threads. Algorithms without threads ignore it.
    **options
        Other options of the algorithm, such as `chains`, `burn_in` and `thin` of a Markov chain sampler.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 3.0]])
    >>> ig.sample(p, 5, random_state=0).ravel().tolist()
    [1, 1, 0, 0, 1]
    """
    count = whole_number(n, "n")
    clamped = _real(checked(potentials, evidence))
    chosen = threaded(make(algorithm, options), n_jobs)
    seed = getattr(chosen, "random_state", None) if random_state is None else random_state
    return chosen.sample(clamped, count, generator(seed))


def algorithms() -> dict[str, str]:
    """Return the name of each inference algorithm, with a description of one line.

    Examples
    --------
    >>> algorithms()["brute"]
    'all assignments, one by one'
    """
    return {name: cls.facts.summary for name, cls in ALGORITHMS.items()}


def map_solvers() -> dict[str, str]:
    """Return the name of each solver for most probable assignments, with a description of one line.

    Examples
    --------
    >>> map_solvers()["icm"]
    'iterated conditional modes: one variable, or one tree, at a time'
    """
    return {name: cls.facts.summary for name, cls in SOLVERS.items()}


def _maximiser(algorithm: str | Algorithm | Solver, n_jobs: int | None, options: dict[str, Any]) -> Algorithm | Solver:
    """Return the solver, or the inference algorithm, given by a name or an object, with further options set."""
    if isinstance(algorithm, Solver) or (isinstance(algorithm, str) and algorithm in SOLVERS):
        return map_solver.make(algorithm, options)
    if isinstance(algorithm, str) and algorithm not in ALGORITHMS:
        refuse_removed(f"{SOLVERS.what} {algorithm!r}")
        able = [name for name, cls in ALGORITHMS.items() if cls.facts.maximises]
        expected = f"one of {', '.join(map(repr, [*able, *SOLVERS]))}"
        raise UnknownNameError("algorithm", expected, repr(algorithm), did_you_mean(algorithm, [*able, *SOLVERS]))
    return threaded(make(algorithm, options), n_jobs)


def _stages(potentials: Potentials | Sequence[Potentials], evidence: EvidenceLike | None) -> list[Potentials]:
    """Check the potentials, or those of each iteration, which must be on one graph."""
    if not isinstance(potentials, list | tuple):
        return [checked(potentials, evidence)]
    if not potentials:
        raise InputError("potentials", "at least one", "an empty list")
    stages = [checked(p, evidence) for p in potentials]
    dtype = np.result_type(*(p.dtype for p in stages))
    for t, p in enumerate(stages):
        if p.graph is not stages[0].graph:
            raise InputError(f"potentials[{t}]", "the graph of potentials[0]", "another one")
        if p.evidence != stages[0].evidence or p.dtype != dtype:
            raise InputError(f"potentials[{t}]", "the evidence and number type of potentials[0]", "others")
    return stages


def _real(potentials: Potentials) -> Potentials:
    if potentials.dtype.kind == "c":
        raise InputError("potentials", "real log tables", "complex ones", "only `infer` takes these, for derivatives")
    return potentials


def _choose(potentials: Potentials, options: dict[str, Any]) -> Algorithm:
    """Choose exact inference if it fits in memory; otherwise raise an error that names the alternatives."""
    chosen = make(DEFAULT, options)
    shortage = chosen.shortage(potentials)
    if not shortage:
        return chosen
    others = {name: cls.facts for name, cls in ALGORITHMS.items() if cls.facts.semiring == "sum"}
    approximate = ", ".join(name for name, facts in others.items() if facts.exact != "always")
    raise MemoryLimitError(f"{shortage}, or name an approximate algorithm ({approximate})")
