"""Compile loops of an inference and its gradient in a second process, while this process compiles the first ones.

The second process (`isinglass.runtime.compilation.helper`) makes the same calls without running any loop. So it finds
out within milliseconds which loops will be called with which types, and compiles them, starting with the last one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Timer
from typing import Any

import numpy as np

from isinglass.inference.algorithm import Algorithm
from isinglass.potentials import Potentials
from isinglass.runtime.compilation.helper import helping

LIMIT = 10.0  # seconds for calls without loops, whose results are arbitrary: they might not end
MOST = 2**24  # bytes of potentials that are sent to another process
UNTAPED = "isinglass.inference.message_passing.", "isinglass.inference.mean_field."  # others do not end without loops


def rehearsing(algorithm: Algorithm, stages: Sequence[Potentials], taped: bool) -> AbstractContextManager[None]:
    """Offer help with an inference, if its algorithm is one of the library: others may not be found.

    Where it is taped, the helper may stay for the gradient.
    """
    known = f"{type(algorithm).__module__}.".startswith(("isinglass.",) if taped else UNTAPED)
    if not known or sum(group.nbytes for p in stages for group in p.groups) > MOST:
        return nullcontext()
    task = compile_from_the_end if taped else compile_ahead
    return helping(f"{__name__}:{task.__name__}", algorithm, stages, stays=taped)


def compile_from_the_end(algorithm: Algorithm, stages: Sequence[Potentials]) -> None:
    """Compile the loops of an inference and its gradient, the last one first."""
    for kernel, types in reversed(
        _rehearse(lambda: algorithm.run_stages(stages, None, True, None).backward(log_z=1.0))
    ):
        kernel.compile(types)


def compile_ahead(algorithm: Algorithm, stages: Sequence[Potentials]) -> None:
    """Compile the loops of an inference, each unless another process is at it: that one comes to the next ones later.

    These are few, and the last of them may be needed in a rehearsal only, whose results are arbitrary.
    """
    from isinglass.runtime.compilation.jit import is_compiling

    for kernel, types in _rehearse(lambda: algorithm.run_stages(stages, None, False, None)):
        if not is_compiling(kernel, types):
            kernel.compile(types)


def _rehearse(run: Callable[[], object]) -> list[tuple[Any, Any]]:
    """Return the loops that are called, with the types of their arguments."""
    from isinglass.runtime.compilation.jit import rehearsal

    limit = Timer(LIMIT, os._exit, (1,))
    limit.start()
    with warnings.catch_warnings(), np.errstate(all="ignore"), rehearsal() as noted:
        warnings.simplefilter("ignore")
        with suppress(Exception):  # what comes before is known
            run()
    limit.cancel()
    return noted
