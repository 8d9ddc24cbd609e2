"""Inference on new examples: on all at once, or, where an inference needs much memory for each, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isinglass.inference import Algorithm, Info, Result, infer
from isinglass.inference.result import FactorBeliefs, VariableBeliefs
from isinglass.learning.objective import adapted
from isinglass.learning.total import blocks
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray


def predicted(
    model: Model,
    theta: FloatArray,
    algorithm: Algorithm,
    part: Callable[[IntArray], Model],
    jobs: int,
) -> Result:
    """Return the inference on all examples of a model.

    Parameters
    ----------
    model : Model
    theta : array (vectors, size)
        More than one vector: one for each iteration.
    algorithm : Algorithm
        One that factorises a linear system for each example works on a few examples at a time.
    part : callable
        From the indices of some examples to their model.
    jobs : int
        How many threads work on the blocks.
    """
    found = blocks(np.bincount(model.graph.variable_component, minlength=model.graph.n_components))
    if len(found) == 1 or not algorithm.facts.blockwise:
        return _inferred(model, theta, algorithm)
    examples = np.arange(model.graph.n_components)
    parts = [(part(examples[block]), theta, algorithm) for block in found]
    results = ThreadMap(min(jobs, len(parts))).with_blas(_inferred, parts)
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
