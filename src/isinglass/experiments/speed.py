"""How fast the library is on this machine: small problems of each kind, by one thread and by several.

Random fields have unary log-potentials N(0, 1) and pairwise ones N(0, 0.5²). Sentences are made up: the words of each
label follow a Zipf law of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from isinglass.datasets import noisy_digits
from isinglass.errors import no_convergence_warnings
from isinglass.estimators import ChainCRF, GraphCRF, GridCRF
from isinglass.experiments.common.experiment import Progress, tell
from isinglass.graph import grid_graph
from isinglass.inference import BeliefPropagation, Gibbs, infer, sample
from isinglass.potentials import Potentials
from isinglass.runtime.profiling import Profile

Task = Callable[[int], object]
"""Does the work of a row with so many threads."""
Fit = Callable[[], object]

RUNS = 5  # of each row; the median counts
SHORTEST = 0.02  # seconds that one measurement takes at least
LABELS, WORDS, TOKENS = 12, 5000, 20  # of made-up sentences; tokens of each


class Speed(NamedTuple):
    """A problem, the seconds of one thread and of several, and those of one core of a Zen 4 machine."""

    problem: str
    one: float
    several: float
    recorded: float


def measure(threads: int, progress: Progress | None = None) -> list[Speed]:
    """Time every problem with one thread and with several, in turns; take medians.

    Parameters
    ----------
    threads : int
    progress : callable, optional
        Called with the problem and the fraction that is done.
    """
    found = []
    with no_convergence_warnings():
        for i, (name, (make, parts, recorded)) in enumerate(PROBLEMS.items()):
            tell(progress, name, i / len(PROBLEMS))
            one, several = _times(make(), threads)
            found.append(Speed(name, one / parts, several / parts, recorded))
    return found


def profile(name: str) -> Profile:
    """Return where the time of a fit goes, by its name in `FITS`; its loops are compiled before.

    Examples
    --------
    >>> profile("graphs").seconds["loss"] > 0
    True
    """
    fit = FITS[name]()
    with no_convergence_warnings():
        fit()
        with Profile() as spent:
            fit()
    return spent


def _times(task: Task, threads: int) -> tuple[float, float]:
    """Return the median seconds of a task with one thread and with several."""
    calls = {n: max(1, round(SHORTEST / _timed(task, n))) for n in (1, threads) for _ in range(2)}  # the first compiles
    turns = [[_timed(task, n, calls[n]) for n in (1, threads)] for _ in range(RUNS)]
    one, several = np.median(turns, axis=0).tolist()
    return one, several


def _timed(task: Task, threads: int, calls: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        task(threads)
    return (time.perf_counter() - start) / calls


def _grid(side: int) -> Potentials:
    rng = np.random.default_rng(side)
    graph = grid_graph(side, side, 2)
    pairs = len(graph.groups[1])
    return Potentials.from_groups(graph, [rng.normal(0, 1, (side**2, 2)), rng.normal(0, 0.5, (pairs, 2, 2))])


def _exact() -> Task:
    p = _grid(15)
    return lambda threads: infer(p, "exact", n_jobs=threads)


def _flooding(dtype: str) -> Task:
    p, bp = _grid(300), BeliefPropagation(iterations=20, schedule="flooding", dtype=dtype)
    return lambda threads: infer(p, bp, n_jobs=threads)


def _gradient() -> Task:
    p = _grid(28).repeat(90)
    slopes = np.random.default_rng(0).normal(size=2 * p.graph.n_variables)
    bp = BeliefPropagation(iterations=4, schedule="grid")
    return lambda threads: infer(p, bp, tape=True, n_jobs=threads).backward(variables=slopes)


def _gibbs() -> Task:
    p = _grid(100)
    gibbs = Gibbs(chains=4, burn_in=0, thin=10)
    return lambda threads: sample(p, 200, gibbs, random_state=0, n_jobs=threads)  # 500 sweeps of each chain


def _predict() -> Task:
    X, Y, _, _ = noisy_digits(0.5)
    crf, many = GridCRF(iterations=4, max_iter=2).fit(X[:9], Y[:9]), np.concatenate([X] * 5)
    return lambda threads: crf.set_params(n_jobs=threads).predict(many)


def _chain() -> Task:
    X, Y = sentences(2500)
    return lambda threads: ChainCRF(max_iter=10, tol=0, n_jobs=threads).fit(X, Y)


def sentences(n: int) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return made-up sentences as lists of attributes, and their labels.

    Examples
    --------
    >>> X, Y = sentences(2)
    >>> len(X), len(X[0]), len(X[0][0]), len(Y[0])
    (2, 20, 6, 20)
    """
    rng = np.random.default_rng(0)
    labels = (np.cumsum(rng.random((n, TOKENS)) < 0.5, axis=1) + rng.integers(LABELS, size=(n, 1))) % LABELS
    words = (np.minimum(rng.zipf(1.3, (n, TOKENS)), WORDS) * (labels + 1)) % WORDS
    near = np.pad(words, ((0, 0), (2, 2)), constant_values=-1).tolist()
    X = [[_attributes(row[t : t + 5]) for t in range(TOKENS)] for row in near]
    return X, labels.astype(str).tolist()


def _attributes(near: list[int]) -> list[str]:
    """Return attributes of the middle one of five words."""
    return ["bias", *(f"{place}={word}" for place, word in zip("abcde", near, strict=True))]


def _fit_digits(schedule: str, iterations: int) -> Fit:
    X, Y, _, _ = noisy_digits(0.5)
    bp = BeliefPropagation(iterations=iterations, schedule=schedule)
    return lambda: GridCRF(bp, loss="ucl", l2=1.0, bias=False, max_iter=20).fit(X, Y)


def _fit_chains() -> Fit:
    X, Y = sentences(2000)
    return lambda: ChainCRF(max_iter=20).fit(X, Y)


def _fit_graphs() -> Fit:
    rng = np.random.default_rng(0)
    edges = np.array([(i, j) for i in range(60) for j in range(i + 1, 60) if rng.random() < 0.1])
    X = [(rng.normal(size=(60, 8)), edges) for _ in range(60)]
    Y = [(x[:, 0] > 0).astype(int) for x, _ in X]
    return lambda: GraphCRF(loss="pseudo", l2=1.0, bias=False, max_iter=20).fit(X, Y)


PROBLEMS: dict[str, tuple[Callable[[], Task], int, float]] = {  # how many parts a task has; seconds of one, recorded
    "exact inference, 15 x 15 grid": (_exact, 1, 0.0112),
    "belief propagation, 300 x 300 grid, an iteration": (lambda: _flooding("float64"), 20, 0.0023),
    "the same in float32": (lambda: _flooding("float32"), 20, 0.0014),
    "gradient through 4 sweeps, 90 grids of 28 x 28": (_gradient, 1, 0.025),
    "Gibbs sampling, 100 x 100 grid, 4 chains, a sweep": (_gibbs, 500, 0.00031),
    "GridCRF.predict, 450 images of 28 x 28": (_predict, 1, 0.0195),
    "ChainCRF.fit, 50,000 tokens, 10 iterations": (_chain, 1, 0.163),
}
FITS: dict[str, Callable[[], Fit]] = {
    "digits": lambda: _fit_digits("grid", 4),
    "digits-flooding": lambda: _fit_digits("flooding", 5),
    "tagging": _fit_chains,
    "graphs": _fit_graphs,
}
"""Fits of small data: through four sweeps or five floodings of belief propagation, of chains, by pseudolikelihood."""
