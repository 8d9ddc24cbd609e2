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
from isinglass.errors import InputError
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.training.checks import renamed
from isinglass.learning.training.choices import Choices, choices_of, entropy_of
from isinglass.learning.training.loop import train
from isinglass.learning.training.problem import Problem
from isinglass.typing import FloatArray
from isinglass.validation import items

ENDS_ALL = ("interrupted", "stopped by the callback")  # not one stage alone
_FIXED = ("stages", "warm_start", "checkpoint", "n_states")  # of the whole training


class Known(NamedTuple):
    """Parameters by their names, and entropy weights, that training can begin with."""

    named: Mapping[str, FloatArray]
    entropy: Mapping[str, FloatArray] | None = None


class Trained(NamedTuple):
    """Where training ended: the stage, its problem, and what was found."""

    stage: int
    problem: Problem
    found: OptimResult


def start_loss(crf: Any) -> str | None:
    """Return the name of the loss that training from zero minimises first; None where there is none, or stages."""
    return None if getattr(crf, "stages", None) is not None else losses.make(crf.loss).facts.starts_from


def start_line(loss: losses.Loss) -> str:
    """Say which loss another one starts from."""
    return f"loss {loss.name!r} starts from {loss.facts.starts_from!r}, which is stage 0"


def stages_of(crf: Any, *, from_zero: bool = True) -> list[Any]:
    """Return the estimator of each stage; the estimator itself, where it has no stages.

    Training `from_zero` with a loss that starts from another has a stage for that one.
    """
    if crf.stages is None:
        return opened(crf) if from_zero else [crf]
    given = items(crf.stages, "stages", "a list, of names of losses or of mappings of parameters")
    if not given:
        raise InputError("stages", "at least one stage", "none", "leave it out")
    found: list[Any] = []
    for i, one in enumerate(given):
        changed, before = _changed(crf, one, i), found[-1] if found else None
        found.append(copy.copy(crf))
        vars(found[-1]).update(changed, stages=None, checkpoint=stage_file(crf.checkpoint, i), _before=before)
    return found


def opened(crf: Any) -> list[Any]:
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
    if not isinstance(given, Mapping):
        expected = "the name of a loss, or a mapping of parameters such as {'loss': 'ucl'}"
        raise InputError(f"stages[{i}]", expected, type(given).__name__)
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


def checked_stages(crf: Any, stages: Sequence[Any]) -> list[Choices]:
    """Check every parameter of every stage, and that they go together."""
    found = []
    for i, stage in enumerate(stages):
        with in_stage(crf, i):
            found.append(choices_of(stage))
    return found


@contextmanager
def in_stage(crf: Any, i: int) -> Iterator[None]:
    """Say in errors which stage a parameter is of."""
    try:
        yield
    except InputError as error:
        if crf.stages is None or error.argument.partition(".")[0] not in set(crf.get_params(deep=False)) - {*_FIXED}:
            raise
        raise InputError(f"stages[{i}].{error.argument}", error.expected, error.got, error.remedy) from None


def check_starts(stages: Sequence[Any], problems: Sequence[Problem], known: Known) -> None:
    """Check, without any work, that each stage can begin with the parameters of the one before."""
    for i, (stage, problem) in enumerate(zip(stages, problems, strict=True)):
        start = start_of(problem, known, i)
        problem.optimizer.check(len(start))
        known = after(stage, problem, start)


def train_stages(stages: Sequence[Any], problems: Sequence[Problem], known: Known) -> Trained:
    """Train one stage after the other; an interrupt, or the callback, ends all of it."""
    for i, (stage, problem) in enumerate(zip(stages, problems, strict=True)):
        if stage.verbose and len(stages) > 1:
            print(f"stage {i}", flush=True)
        found = train(problem, start_of(problem, known, i), stage, i)
        if found.message in ENDS_ALL:
            break
        known = after(stage, problem, found.x)
    return Trained(i, problem, found)


def after(stage: Any, problem: Problem, theta: FloatArray) -> Known:
    """Return what the next stage can begin with."""
    model = problem.data.model
    named = stage._named(model, theta)
    return Known(named, entropy_of(stage, named, int(model.graph.cards[0])))


def start_of(problem: Problem, known: Known, i: int) -> FloatArray:
    """Return where a stage begins: with the parameters of the same name, or at zero; entropy weights by their value."""
    model, own = problem.data.model, problem.chosen.own
    stacks = {name: _stack(known.named.get(name), shape, own, name, i) for name, shape in model.parameters.items()}
    if known.entropy is not None:
        with renamed("variables", "warm_start: entropy_['variables']"):
            stacks |= {name: array[None] for name, array in model.inference_start(known.entropy).items()}
    vectors = [model.reduced(model.join({name: stack[t] for name, stack in stacks.items()})) for t in range(own)]
    return np.concatenate(vectors)


def _stack(array: FloatArray | None, shape: tuple[int, ...], own: int, name: str, i: int) -> FloatArray:
    """Return parameters (own, *shape): one for each iteration that has its own."""
    if array is None:
        return np.zeros((own, *shape))
    stack = array[None] if array.shape == shape else array
    if stack.shape[1:] != shape or len(stack) not in (1, own):
        argument, remedy = ("stages", "leave the stage out") if i else ("warm_start", "use warm_start=False")
        wanted = shape if own == 1 else (own, *shape)
        got = f"{name!r} of shape {wanted} after {array.shape}"
        raise InputError(argument, "the same shapes of parameters as before", got, remedy)
    return np.broadcast_to(stack, (own, *shape))
