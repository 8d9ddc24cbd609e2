"""An objective whose gradients are estimated by Markov chains.

The gradient of minus the mean log-likelihood is, with the counts phi(x) of table entries,

    g(theta) = E_model[ phi(x) ] - E_data[ phi(x) ]

and the first part is estimated by chains of Gibbs sampling. Missing values are drawn by further chains, which are
clamped to what a sample shows and go on from where they were (Murphy 2012, section 19.5.2). What is reported as the
value is E_model[log f] - E_data[log f], whose derivative is g for given states; it is no likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.markov.objective import Groups, MarkovObjective, Task
from isinglass.learning.markov.samples import Copies, Samples
from isinglass.losses import Evaluation, Likelihood
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray

LEAST_CHAINS, MOST_CHAINS = 256, 10_000  # where they start at samples; several or fewer start at each


class _Memory(NamedTuple):
    """The chains after some evaluations: free ones, and those that are clamped to samples with missing values."""

    evaluations: int
    free: Chains | None
    clamped: Chains | None

    def copy(self) -> _Memory:
        """Return chains that go on from here on their own."""
        free, clamped = (None if chains is None else chains.copy() for chains in (self.free, self.clamped))
        return _Memory(self.evaluations, free, clamped)


class SampledObjective(MarkovObjective):
    """A function of the parameters whose gradients are estimates: those of the mean sample, not of their sum.

    Every evaluation advances the chains. `memory` and `restore` take them to a checkpoint and back.

    Parameters
    ----------
    task : Task
    sweeps : int
        Of the chains in each evaluation.
    chains : int or None
        How many go on from one evaluation to the next. None: they start at the samples each time.
    random_state : int
    """

    def __init__(self, task: Task, sweeps: int, chains: int | None, random_state: int) -> None:
        super().__init__(task)
        self.sweeps, self.chains, self.random_state = sweeps, chains, random_state
        self.weight = float(self.samples.weights.sum())
        self.l2 = task.l2 / self.weight
        self._now: _Memory | None = None
        self._before: _Memory | None = None

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Advance the chains; return E_model - E_data of the log-score, and of the counts of table entries."""
        memory = self._copy(potentials)
        found = self._compared(potentials, memory)
        self._before, self._now = self._now, memory._replace(evaluations=memory.evaluations + 1)
        return found

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties; the chains stay where they are."""
        potentials = self.potentials(theta)
        return float(self._compared(potentials, self._copy(potentials)).value)

    @property
    def iterations(self) -> int:
        """Sweeps of an evaluation."""
        return self.sweeps

    @property
    def converged_share(self) -> float:
        """Of no chain is it known that it has converged."""
        return 0.0

    def memory(self, evaluations: int) -> dict[str, Array]:
        """Return the chains as they were after so many evaluations: the last one, or the one before it."""
        one = remembered(evaluations, self._now, self._before)
        listed = {} if one is None else {"free": one.free, "clamped": one.clamped}
        named = [(f"{name}.{key}", array) for name, c in listed.items() if c for key, array in vars(c).items()]
        return dict(named)

    def restore(self, evaluations: int, arrays: Mapping[str, Array]) -> None:
        """Go on with the chains of a checkpoint."""
        if not evaluations:
            return
        like = self._start(self.potentials(np.zeros(self.size)))
        free = restored_chains(arrays, "free", like.free, self.model.graph.cards)
        clamped = None if self._partial is None else self._partial.graph.cards
        self._now = _Memory(evaluations, free, restored_chains(arrays, "clamped", like.clamped, clamped))
        self._before = None

    def _copy(self, potentials: Potentials) -> _Memory:
        return (self._now or self._start(potentials)).copy()

    def _start(self, potentials: Potentials) -> _Memory:
        seed = self.random_state
        free = None if self.chains is None else Chains.start(potentials, self.chains, seed)
        clamped = None if self._partial is None else Chains.start(self._clamped(potentials), 1, seed)
        return _Memory(0, free, clamped)

    def _compared(self, potentials: Potentials, memory: _Memory) -> Evaluation:
        """Advance chains in place; compare the states of the model with the data."""
        rows, data = self._whole.states, self._seen
        if memory.clamped is not None:
            GibbsSampler(self._clamped(potentials)).advance(memory.clamped, self.sweeps, self.task.threads)
            drawn = memory.clamped.states[:, 0].astype(np.int64).reshape(-1, self.model.graph.n_variables)
            rows = np.concatenate([rows, drawn])
            hidden = counted(potentials, Samples(drawn, self._missing.weights))
            data = tuple(a + b for a, b in zip(data, hidden, strict=True))
        if memory.free is None:
            starts, weights = np.repeat(rows, self._repeats, axis=0), self._start_weights
            chains = Chains.at(potentials, starts, _fresh(self.random_state, memory.evaluations))
        else:
            chains, weights = memory.free, np.full(memory.free.n, self.weight / memory.free.n)
        GibbsSampler(potentials).advance(chains, self.sweeps, self.task.threads)
        of_model = counted(potentials, Samples(chains.assignments, weights))
        groups = tuple((a - b) / self.weight for a, b in zip(of_model, data, strict=True))
        scores = (np.where(g != 0, t, 0.0) * g for t, g in zip(potentials.groups, groups, strict=True))
        return Evaluation(np.asarray(sum(score.sum() for score in scores)), groups)

    def _clamped(self, potentials: Potentials) -> Potentials:
        """Return copies for the samples with missing values, with what they show as evidence."""
        assert self._partial is not None
        return Likelihood().clamp(self._partial.potentials(potentials), self._partial.labels)

    @cached_property
    def _repeats(self) -> IntArray:
        """How many chains start at each different sample, whole ones first: in proportion to its share."""
        whole, n = self.samples.whole, len(self.samples.weights)
        each = self.samples.weights if self.samples.counts is None else self.samples.counts
        each = np.concatenate([each[whole], each[~whole]]) / each.sum()
        total = n if self.samples.counts is None else int(self.samples.counts.sum())
        total = min(max(total, LEAST_CHAINS), MOST_CHAINS)
        return np.asarray(np.maximum(1, np.rint(each * total)), np.int64)

    @cached_property
    def _start_weights(self) -> FloatArray:
        """The weight of each chain that starts at a sample."""
        given = np.concatenate([self._whole.weights, self._missing.weights])
        return np.repeat(given / self._repeats, self._repeats)

    @cached_property
    def _whole(self) -> Samples:
        return self.samples.only(self.samples.whole)

    @cached_property
    def _missing(self) -> Samples:
        return self.samples.only(~self.samples.whole)

    @cached_property
    def _partial(self) -> Copies | None:
        """The samples that miss something, side by side."""
        return Copies(self.model, self._missing) if len(self._missing.weights) else None

    @cached_property
    def _seen(self) -> Groups:
        """How often each entry of each table was seen in the whole samples, by weight."""
        return counted(self.potentials(np.zeros(self.size)), self._whole)


class Remembered(Protocol):
    """What chains were after some evaluations."""

    @property
    def evaluations(self) -> int:
        """How many."""


M = TypeVar("M", bound=Remembered)


def remembered(evaluations: int, *kept: M | None) -> M | None:
    """Return what was kept after so many evaluations; nothing before the first."""
    for one in kept:
        if one is not None and one.evaluations == evaluations:
            return one
    if evaluations:
        raise RuntimeError(f"the chains after {evaluations} evaluations are no longer there")
    return None


def _fresh(random_state: int, evaluations: int) -> int:
    """Return the seed of chains that start anew in each evaluation: other draws each time, or their error would stay.

    Examples
    --------
    >>> _fresh(0, 0) == _fresh(0, 0), _fresh(0, 0) == _fresh(0, 1)
    (True, False)
    """
    return int(np.random.SeedSequence([random_state, evaluations]).generate_state(1)[0])


def restored_chains(
    arrays: Mapping[str, Array], name: str, like: Chains | None, cards: IntArray | None
) -> Chains | None:
    """Return chains of a checkpoint, which must be such as this problem has."""
    if like is None or cards is None:
        return None
    found = {}
    for key, expected in vars(like).items():
        array = arrays.get(f"{name}.{key}")
        fits = array is not None and array.dtype == expected.dtype and array.shape == expected.shape
        if array is None or not fits or (key == "states" and (array >= cards[:, None]).any()):
            got = "none" if array is None else f"{array.dtype} {array.shape}"
            raise InputError("checkpoint", f"chains of this problem ({name}.{key})", got, "remove the file")
        found[key] = array.copy()
    return Chains(**found)
