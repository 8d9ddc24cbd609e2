"""Inference on new examples: on all at once, or block by block.

Blocks need less memory, and small ones stay in the caches; threads share them out, and blocks of equal examples share
their structure. They are the same for any number of threads, so beliefs have the same bits. Smaller ones would be
slower: the interpreter, which runs on one thread at a time, has some work for each. It has hardly any where examples
are copies of one graph, and there is a way to infer such (`Algorithm.copies`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from isinglass.errors import warn_of_convergence
from isinglass.inference import Algorithm, Info, Result, infer
from isinglass.inference.algorithm import beliefs_alone, threaded_in_parts
from isinglass.inference.result import FactorBeliefs, VariableBeliefs
from isinglass.learning.objective import adapted
from isinglass.learning.total import BLOCK, block_size, blocks
from isinglass.learning.training.problem import sizes_of
from isinglass.losses import Loss
from isinglass.losses import make as make_loss
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.runtime.threads import team
from isinglass.segments import starts
from isinglass.typing import Array, FloatArray, IntArray

FEWEST, MOST = 2 * BLOCK, 16 * BLOCK  # variables in a block of predictions
WANTED = 16  # blocks
FEW = 30  # labels, from which nothing is concluded


def warn_of_scores(loss: str | Loss | None) -> None:
    """Warn of beliefs, which the caller of a method asked for, after a loss that fits none."""
    if loss is not None and (made := make_loss(loss)).decides_by is not None:
        text = f"beliefs after loss {made.name!r} are no probabilities: it fits the most probable labelling alone"
        warnings.warn(f"{text}; use predict, or fit with a loss such as 'cl' or 'ucl'", UserWarning, stacklevel=3)


def warn_of_one_label(labels: IntArray, predict: Callable[[], Array], classes: Sequence[Any], stacklevel: int) -> None:
    """Warn of a model that gives one label to all of some training data, where several were observed (-1: not)."""
    seen = labels[labels >= 0]
    if len(seen) < FEW or len(np.unique(seen)) < 2 or len(found := np.unique(predict())) != 1:
        return
    text = f"the model predicts label {classes[int(found[0])]!r} alone on its training data"
    remedy = "are the features scaled alike, l2 small enough, the steps enough? or try class_weight='balanced'"
    warn_of_convergence(f"{text}, where {np.mean(seen == found[0]):.0%} of labels are; {remedy}", stacklevel + 1)


class Reading(NamedTuple):
    """What is read from the inference on examples, such as a label of each variable; it depends on its example alone.

    Attributes
    ----------
    of_result : callable
        From a result to an array with an entry for each variable.
    of_beliefs : callable or None
        The same from beliefs (variables, states), where these are enough.
    """

    of_result: Callable[[Result], Array]
    of_beliefs: Callable[[FloatArray], Array] | None = None


class Prediction(NamedTuple):
    """How new examples are predicted.

    Attributes
    ----------
    theta : array (vectors, size)
        More than one vector: one for each iteration.
    algorithm : Algorithm
    part : callable
        From the indices of some examples, and None or a model whose structure may be used again, to their model.
    jobs : int
        How many threads share the work.
    tables : callable or None
        From a range of examples to the tables (variables, states) of their factors of arity one, where examples are
        copies of one graph that differ in nothing else.
    """

    theta: FloatArray
    algorithm: Algorithm
    part: Callable[[IntArray, Model | None], Model]
    jobs: int
    tables: Callable[[slice], FloatArray] | None = None


def read_in_blocks(sizes: IntArray, how: Prediction, reading: Reading) -> Array:
    """Return what is read from the inference on examples, of so many variables each."""
    copies, algorithm = _copies(how, reading, len(sizes)), how.algorithm
    most = BLOCK if algorithm.facts.blockwise else _block_size(int(sizes.sum()))
    found, examples = blocks(sizes, most), np.arange(len(sizes))
    if copies is None and (len(found) == 1 or not algorithm.splits or algorithm.facts.stochastic):
        with beliefs_alone():
            return reading.of_result(predicted(how.part(examples, None), how))
    chosen = threaded_in_parts(algorithm, how.jobs, len(found))
    first = how.part(examples[found[0]], None) if copies is None else None
    together, ends = _Together(int(sizes.sum())), starts(sizes)

    def one(block: slice) -> None:
        read = None if copies is None else copies(block)
        if read is None:
            mine = first if first is not None and block is found[0] else how.part(examples[block], first)
            read = reading.of_result(_inferred(mine, how.theta, chosen))
        together.put(int(ends[block.start]), read)

    with beliefs_alone():
        team(how.jobs, waits=False).with_blas(one, [(block,) for block in found])
    return together.values


def _copies(how: Prediction, reading: Reading, examples: int) -> Callable[[slice], Array | None] | None:
    """Return a function that reads a range of examples; None where these are no copies that `Algorithm.copies` is for.

    It returns None for a range in which beliefs must be found in another way.
    """
    tables, read = how.tables, reading.of_beliefs
    if tables is None or read is None or examples == 1 or len(how.theta) > 1:
        return None
    model = how.part(np.arange(1), None)
    potentials, algorithm = model.potentials(how.theta[0]), adapted(how.algorithm, model, how.theta[0])
    beliefs_of = algorithm.copies(potentials)
    if beliefs_of is None:
        return None

    def read_some(block: slice) -> Array | None:
        beliefs = beliefs_of(tables(block))
        return None if beliefs is None else read(beliefs)

    return read_some


class _Together:
    """What several threads have read, one array for all; each writes its own part."""

    def __init__(self, length: int) -> None:
        self.length, self.lock = length, Lock()
        self.values: Array = np.empty(0)

    def put(self, first: int, part: Array) -> None:
        """Write a part, from its first place on."""
        with self.lock:
            if self.values.shape != (self.length, *part.shape[1:]):
                self.values = np.empty((self.length, *part.shape[1:]), part.dtype)
        self.values[first : first + len(part)] = part


def _block_size(variables: int) -> int:
    """Return how many variables a block may have: few enough for many threads."""
    return block_size(variables, FEWEST, MOST, WANTED)


def predicted(model: Model, how: Prediction) -> Result:
    """Return the inference on all examples of a model.

    An algorithm that factorises a linear system for each example works on a few examples at a time.
    """
    found, (theta, algorithm, part, jobs, _) = blocks(sizes_of(model)), how
    if len(found) == 1 or not algorithm.facts.blockwise:
        return _inferred(model, theta, threaded_in_parts(algorithm, jobs, 1))
    examples = np.arange(model.graph.n_components)
    parts = [(part(examples[block], None), theta, algorithm) for block in found]
    results = team(jobs, waits=False).with_blas(_inferred, parts)
    return _joined(model.potentials(theta[-1]), results)


def _inferred(model: Model, theta: FloatArray, algorithm: Algorithm) -> Result:
    stages = [model.potentials(vector) for vector in theta]
    return infer(stages if len(stages) > 1 else stages[0], adapted(algorithm, model, theta[-1]))


def _joined(potentials: Potentials, results: Sequence[Result]) -> Result:
    """Put the results of successive examples together; factors are in the order of their groups."""
    graph = potentials.graph
    groups = zip(*(result.factors.groups for result in results), strict=True)
    return Result(
        potentials,
        np.concatenate([result.component_log_z for result in results]),
        VariableBeliefs(graph, np.concatenate([result.variables.flat for result in results])),
        FactorBeliefs(graph, np.concatenate([np.zeros(0), *(found.ravel() for group in groups for found in group)])),
        _summary([result.info for result in results], [len(result.component_log_z) for result in results]),
    )


def _summary(infos: Sequence[Info], counts: Sequence[int]) -> Info:
    """Say how several inferences went: like the worst of them."""
    bounds = {info.bound for info in infos}
    share = sum(info.converged_share * count for info, count in zip(infos, counts, strict=True)) / sum(counts)
    return Info(
        infos[0].algorithm, all(info.converged for info in infos), max(info.iterations for info in infos),
        max(info.residual for info in infos), bounds.pop() if len(bounds) == 1 else None,
        sum(info.seconds for info in infos), share,
    )  # fmt: skip
