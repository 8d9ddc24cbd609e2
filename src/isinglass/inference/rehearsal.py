"""Compile the loops of a gradient while those of the inference before it are compiled.

Another process rehearses both (`isinglass.runtime.helper`): it makes all calls, but no loop runs. So it knows, after
some milliseconds, which loops will be called with which types, and compiles them, the last one first.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Timer

import numpy as np

from isinglass.inference.algorithm import Algorithm
from isinglass.potentials import Potentials
from isinglass.runtime.helper import helping

LIMIT = 10.0  # seconds for calls without loops, whose results are arbitrary: they might not end


def rehearsing(algorithm: Algorithm, stages: Sequence[Potentials]) -> AbstractContextManager[None]:
    """Offer help with an inference that is taped, if its algorithm is one of the library: others may not be found."""
    if not type(algorithm).__module__.startswith("isinglass."):
        return nullcontext()
    return helping(f"{__name__}:compile_from_the_end", algorithm, stages, stays=True)


def compile_from_the_end(algorithm: Algorithm, stages: Sequence[Potentials]) -> None:
    """Compile the loops of an inference and its gradient, the last one first."""
    from isinglass.runtime.jit import rehearsal

    limit = Timer(LIMIT, os._exit, (1,))
    limit.start()
    with warnings.catch_warnings(), np.errstate(all="ignore"), rehearsal() as noted:
        warnings.simplefilter("ignore")
        with suppress(Exception):  # what comes before is known
            algorithm.run_stages(stages, None, True, None).backward(log_z=1.0)
    limit.cancel()
    for kernel, types in reversed(noted):
        kernel.compile(types)
