"""Training in stages: one choice after the other, each from the parameters of the one before, by their names.

The losses that a task is judged by have many local minima. A smoother one finds the region to start from: Domke (2009,
section 6.2) begins every loss of beliefs with a convex likelihood, Stoyanov et al. (2011, "staged training") every task
loss with a few iterations of the approximate likelihood. A loss may declare which one it starts from; that is then a
first stage, unless there are parameters or stages to begin with.

A stage is an estimator: a copy with the parameters that its stage changes. What has the same name in two stages is
carried over, what is new starts at zero, what is no longer there is dropped. A further `fit` with `warm_start` does the
same with the parameters of the last one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from isinglass import losses
from isinglass.errors import InputError, require
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.training.checks import renamed
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.loop import train
from isinglass.learning.training.problem import GraphProblem, TrainingProblem
from isinglass.typing import FloatArray
from isinglass.validation import items

ENDS_ALL = ("interrupted", "stopped by the callback")  # not one stage alone
_FIXED = ("stages", "warm_start", "checkpoint", "n_states", "ignore_label")  # of the whole training


class WarmStart(NamedTuple):
    """Parameters by their names, and entropy weights, that training can begin with."""

    named: Mapping[str, FloatArray]
    entropy: Mapping[str, FloatArray] | None = None


class Trained(NamedTuple):
    """Where training ended: the stage, its problem, and what was found."""

    stage: int
    problem: TrainingProblem
    found: OptimResult


def start_loss(estimator: Any) -> str | None:
    """Return the name of the loss that training from zero minimises first; None where there is none, or stages."""
    given = getattr(estimator, "loss", None)
    return None if given is None or estimator.stages is not None else losses.make(given).facts.starts_from


def start_line(loss: losses.Loss) -> str:
    """Say which loss another one starts from."""
    return f"loss {loss.name!r} starts from {loss.facts.starts_from!r}, which is stage 0"


def stages_of(crf: Any, *, from_zero: bool = True) -> list[Any]:
    """Return the estimator of each stage; the estimator itself, where it has no stages.

    Training `from_zero` with a loss that starts from another has a stage for that one.
    """
    if crf.stages is None:
        return _with_start_loss(crf) if from_zero else [crf]
    given = items(crf.stages, "stages", "a list, of names of losses or of mappings of parameters")
    require(given, "stages", "at least one stage", "none", "leave it out")
    found: list[Any] = []
    for i, one in enumerate(given):
        changed, before = _changed(crf, one, i), found[-1] if found else None
        found.append(copy.copy(crf))
        vars(found[-1]).update(changed, stages=None, checkpoint=stage_file(crf.checkpoint, i), _before=before)
    return found


def _with_start_loss(crf: Any) -> list[Any]:
    """Return the estimator, after a copy with the loss that its own starts from, if there is such a loss."""
    first = start_loss(crf)
    if first is None:
        return [crf]
    before, after = copy.copy(crf), copy.copy(crf)
    before.loss, after.checkpoint = first, stage_file(crf.checkpoint, 1)
    return [before, after]


def _changed(crf: Any, given: Any, i: int) -> dict[str, Any]:
    """Return the parameters that a stage changes."""
    if isinstance(given, str | losses.Loss):
        return {"loss": given}
    expected = "the name of a loss, or a mapping of parameters such as {'loss': 'ucl'}"
    require(isinstance(given, Mapping), f"stages[{i}]", expected, type(given).__name__)
    known = [name for name in crf.get_params(deep=False) if name not in _FIXED]
    for name in given:
        if name not in known:
            raise InputError(f"stages[{i}]", f"parameters among {', '.join(known)}", f"{name!r:.40}")
    return dict(given)


def stage_file(checkpoint: Any, i: int) -> Any:
    """Return the checkpoint of a stage: that of the first is the one that was given.

    Examples
    --------
    >>> stage_file("runs/a.npz", 0), stage_file("runs/a.npz", 2)
    ('runs/a.npz', 'runs/a.stage2.npz')
    """
    if i == 0 or not isinstance(checkpoint, str | bytes | os.PathLike):
        return checkpoint
    root, end = os.path.splitext(os.fsdecode(checkpoint))
    return f"{root}.stage{i}{end}"


def checked_stages(estimator: Any) -> list[tuple[Any, Choices]]:
    """Check every parameter of every stage, and that they go together; return each stage with its choices."""
    return list(_checked(estimator, stages_of(estimator)))


def problems_of(estimator: Any, stages: Sequence[Any], *data: Any) -> list[TrainingProblem]:
    """Check everything, and compile the problem of each stage; data that stay the same are used again."""
    found: list[TrainingProblem] = []
    for i, (stage, chosen) in enumerate(list(_checked(estimator, stages))):
        if found and stage._has_data_of(stages[i - 1]):
            found.append(found[-1].with_choices(chosen))
        else:
            with in_stage(estimator, i):
                found.append(stage._problem(chosen, *data))
    return found


def _checked(estimator: Any, stages: Sequence[Any]) -> Iterator[tuple[Any, Choices]]:
    for i, stage in enumerate(stages):
        with in_stage(estimator, i):
            yield stage, stage._choices()


@contextmanager
def in_stage(crf: Any, i: int) -> Iterator[None]:
    """Say in errors which stage a parameter is of."""
    try:
        yield
    except InputError as error:
        if crf.stages is None or error.argument.partition(".")[0] not in set(crf.get_params(deep=False)) - {*_FIXED}:
            raise
        raise InputError(f"stages[{i}].{error.argument}", error.expected, error.got, error.remedy) from None


def check_starts(stages: Sequence[Any], problems: Sequence[TrainingProblem], before: Any) -> None:
    """Check, without any work, that each stage can begin with the parameters of the one before."""
    for i, (stage, problem) in enumerate(zip(stages, problems, strict=True)):
        start = stage._start(problem, before, i)
        problem.optimizer.check(len(start))
        before = stage._learned(problem, start)


def train_stages(stages: Sequence[Any], problems: Sequence[TrainingProblem], before: Any) -> Trained:
    """Train one stage after the other; an interrupt, or the callback, ends all of it.

    `before` is what the first begins with: None for zero, or what `_learned` of an estimator returns.
    """
    for i, (stage, problem) in enumerate(zip(stages, problems, strict=True)):
        if stage.verbose and len(stages) > 1:
            print(f"stage {i}", flush=True)
        found = train(problem, stage._start(problem, before, i), stage, i)
        if found.message in ENDS_ALL:
            break
        before = stage._learned(problem, found.x)
    return Trained(i, problem, found)


def start_of(problem: GraphProblem, known: WarmStart, i: int) -> FloatArray:
    """Return where a stage begins: with the parameters of the same name, or at zero; entropy weights by their value."""
    model, count = problem.data.model, problem.chosen.per_iteration
    stacks = {name: _stack(known.named.get(name), shape, count, name, i) for name, shape in model.parameters.items()}
    if known.entropy is not None:
        with renamed("variables", "warm_start: entropy_['variables']"):
            stacks |= {name: array[None] for name, array in model.inference_start(known.entropy).items()}
    vectors = [model.reduced(model.join({name: stack[t] for name, stack in stacks.items()})) for t in range(count)]
    return np.concatenate(vectors)


def _stack(array: FloatArray | None, shape: tuple[int, ...], count: int, name: str, i: int) -> FloatArray:
    """Return parameters (count, *shape): one for each iteration that has its own."""
    if array is None:
        return np.zeros((count, *shape))
    stack = array[None] if array.shape == shape else array
    if stack.shape[1:] != shape or len(stack) not in (1, count):
        argument, remedy = ("stages", "leave the stage out") if i else ("warm_start", "use warm_start=False")
        wanted = shape if count == 1 else (count, *shape)
        got = f"{name!r} of shape {wanted} after {array.shape}"
        raise InputError(argument, "the same shapes of parameters as before", got, remedy)
    return np.broadcast_to(stack, (count, *shape))
