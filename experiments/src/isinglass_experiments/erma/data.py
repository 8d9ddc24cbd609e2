"""The random models of table 1, and data drawn from them (Stoyanov, Ropson and Eisner 2011, section 5).

A model has n binary variables, and 2n, 4n or n ln n pairs of them, drawn at random, with a table of four standard
normal log-potentials each. Data are drawn by Gibbs sampling: 20 chains, of which every 100th sweep counts after the
first 1,000. A third of the variables are inputs, a third hidden, also in training, and the others outputs. With a
perturbation of p, a share p of the pairs of the model to be trained is replaced by other pairs. The publication tests
on as many examples as it trains on; further ones, by chains of their own, make intervals narrower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass import FactorGraph, Gibbs, Potentials, sample
from isinglass.typing import FloatArray, IntArray

PAIRS = {50: (100, 195, 200), 100: (200, 400, 461), 150: (300, 600, 752), 200: (400, 800, 1051)}  # as in table 1
CHAINS, BURN_IN, THIN = 20, 1000, 100


def model_names() -> tuple[str, ...]:
    """Return the names of the 12 models, the smallest first.

    Examples
    --------
    >>> model_names()[:3], model_names()[-1]
    (('50-100', '50-195', '50-200'), '200-1051')
    """
    return tuple(f"{n}-{m}" for n, counts in PAIRS.items() for m in counts)


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Attributes
    ----------
    truth : Potentials
        The model that data are drawn from.
    graph : FactorGraph
        Of the model that is trained.
    roles : int array (variables,)
        0 for inputs, 1 for hidden variables, 2 for outputs.
    train, test : int arrays (examples, variables)
    """

    truth: Potentials
    graph: FactorGraph
    roles: IntArray
    train: IntArray
    test: IntArray

    def inputs(self, states: IntArray) -> IntArray:
        """Return what is given, -1 elsewhere."""
        return np.where(self.roles == 0, states, -1)

    def labels(self, states: IntArray) -> IntArray:
        """Return the labels of all variables that are no inputs, flat; -1 for hidden ones."""
        return np.where(self.roles == 2, states, -1)[:, self.roles > 0].ravel()


def make_task(name: str, seed: int, perturbation: float, examples: int, further: int = 0) -> Task:
    """Draw a model of table 1 and its data: as many examples for training as for tests, and further ones for tests.

    Examples
    --------
    >>> task = make_task("50-100", seed=0, perturbation=0.1, examples=5)
    >>> task.train.shape, len(task.graph.scopes), len(set(task.graph.scopes) - set(task.truth.graph.scopes))
    ((5, 50), 100, 10)
    """
    n, m = map(int, name.split("-"))
    rng = np.random.default_rng([seed, n, m])
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    shuffled = rng.permutation(len(pairs))
    truth = _potentials(n, pairs[np.sort(shuffled[:m])], rng.standard_normal((m, 2, 2)))
    roles = rng.permutation(np.arange(n) % 3)
    sampler = Gibbs(chains=CHAINS, burn_in=BURN_IN, thin=THIN)
    drawn = sample(truth, 2 * examples, sampler, random_state=int(rng.integers(2**31)))
    others = sample(truth, further, sampler, random_state=int(rng.integers(2**31))) if further else drawn[:0]
    moved = round(perturbation * m)
    mine = np.sort(np.concatenate([shuffled[moved:m], shuffled[m : m + moved]]))
    graph = FactorGraph.from_groups([2] * n, [pairs[mine]])
    return Task(truth, graph, roles, drawn[:examples], np.concatenate([drawn[examples:], others]))


def _potentials(n: int, pairs: IntArray, tables: FloatArray) -> Potentials:
    return Potentials.from_groups(FactorGraph.from_groups([2] * n, [pairs]), [tables])
