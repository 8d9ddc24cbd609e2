"""The functions that users call: choose an algorithm by name or object, add evidence, time it, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from isinglass.errors import InputError, MemoryLimitError, warn_of_convergence
from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Progress, Taping, make
from isinglass.inference.evidence import checked
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.result import Assignment, Result
from isinglass.potentials import Potentials
from isinglass.runtime.memory import memory_limit_bytes
from isinglass.typing import IntArray
from isinglass.validation import Evidence, RandomState, bytes_text, generator, whole_number


def infer(
    potentials: Potentials | Sequence[Potentials],
    algorithm: str | Algorithm | None = None,
    *,
    evidence: Evidence | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    init: Result | None = None,
    tape: Taping = False,
    progress: Progress | None = None,
    **options: Any,
) -> Result:
    """Infer the beliefs of all variables and factors, and log Z.

    Parameters
    ----------
    potentials : Potentials
        Its own evidence is used. A list of T of them, on one graph, for message passing with ``iterations=T``: each
        iteration uses its own, and the beliefs are read out with the last.
    algorithm : str, Algorithm or None
        A name ("exact", "bp"), an object with options (``ig.Exact(memory_limit="2GB")``), or None: exact
        where it fits in memory. ``result.info.algorithm`` says which one it was.
    evidence : mapping of int to int, optional
        More observed variables and their states.
    tol, max_iter : float, int, optional
        When an iterative algorithm stops; the others have no use for them.
    init : Result, optional
        An earlier result on the same graph whose messages an iterative algorithm starts from.
    tape : bool or "sqrt"
        Keep what is needed for `Result.backward`. With "sqrt", message passing keeps only every so-manieth iteration
        and computes the others again: memory grows with the square root of their number, the gradient is the same.
    progress : callable (stage, fraction), optional
        Called now and then on long runs.
    **options
        Further options of the algorithm.

    Returns
    -------
    Result
        With `log_z` (nats), `variable(i)`, `factor(a)`, `variables`, `factors`, `info`.

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
    known = {f.name for f in fields(chosen)}  # type: ignore[arg-type]
    chosen = make(chosen, {k: v for k, v in stopping.items() if k in known})
    start = time.perf_counter()
    result = chosen.run_stages(stages, progress, tape, init)
    info = replace(result.info, seconds=time.perf_counter() - start)
    if info.note:
        warn_of_convergence(f"{info.algorithm}: {info.note}", stacklevel=2)
    elif not info.converged and chosen.iterations is None:  # who asks for T iterations gets T
        warn_of_convergence(
            f"{info.algorithm} stopped after {info.iterations} iterations with residual {info.residual:.2g}; "
            "raise max_iter, add damping, or try another schedule",
            stacklevel=2,
        )
    return replace(result, info=info)


def map_assignment(
    potentials: Potentials,
    algorithm: str | Algorithm = "exact",
    *,
    evidence: Evidence | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Assignment:
    """Find a most probable assignment.

    Returns
    -------
    Assignment
        With `states`, `score`, `bound` and `optimal`.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.0]]])
    >>> m = ig.map_assignment(p)
    >>> m.states.tolist(), m.score, m.optimal
    ([0, 1], 2.0, True)
    """
    return make(algorithm, options).maximise(_real(checked(potentials, evidence)), 1, progress)[0]


def n_best(
    potentials: Potentials,
    n: int,
    algorithm: str | Algorithm = "exact",
    *,
    evidence: Evidence | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Assignment]:
    """Find the `n` most probable assignments, best first; fewer if fewer are possible.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.5]]])
    >>> [m.states.tolist() for m in ig.n_best(p, 3)]
    [[0, 1], [1, 0], [1, 1]]
    """
    count = whole_number(n, "n", 1)
    return make(algorithm, options).maximise(_real(checked(potentials, evidence)), count, progress)


def sample(
    potentials: Potentials,
    n: int,
    algorithm: str | Algorithm = "exact",
    *,
    evidence: Evidence | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> IntArray:
    """Draw `n` assignments, shape (n, variables); independent and exact with "exact" and "brute".

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 3.0]])
    >>> ig.sample(p, 5, random_state=0).ravel().tolist()
    [1, 1, 0, 0, 1]
    """
    count = whole_number(n, "n")
    clamped = _real(checked(potentials, evidence))
    return make(algorithm, options).sample(clamped, count, generator(random_state))


def algorithms() -> dict[str, str]:
    """Return the name of each inference algorithm with one line about it.

    Examples
    --------
    >>> algorithms()["brute"]
    'all assignments, one by one'
    """
    return {name: cls.facts.summary for name, cls in ALGORITHMS.items()}


def _stages(potentials: Any, evidence: Evidence | None) -> list[Potentials]:
    """Check the potentials, or those of each iteration, which share a graph."""
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
        raise InputError("potentials", "real log tables", "complex ones", "they serve derivatives of `infer` only")
    return potentials


def _choose(potentials: Potentials, options: dict[str, Any]) -> Algorithm:
    """Choose exact inference where it fits; where it does not, say what else there is, and leave the choice."""
    exact = make("exact", options)
    assert isinstance(exact, Exact)
    cost, limit = exact.cost(potentials), memory_limit_bytes(exact.memory_limit)
    if cost.bytes <= limit:
        return exact
    others = {name: cls.facts for name, cls in ALGORITHMS.items() if cls.facts.semiring == "sum"}
    approximate = ", ".join(name for name, facts in others.items() if facts.exact != "always")
    raise MemoryLimitError(
        f"exact inference does not fit ({cost.text}; the memory limit is {bytes_text(limit)}); raise memory_limit "
        "(--memory), search longer for an elimination order (restarts=100, --restarts 100), observe more variables, or "
        f"name an approximate algorithm ({approximate})"
    )
