"""Checkpoints: a run that is killed goes on from its file, bit for bit as if nothing had happened.

A `Journal` is a callback that writes optimizer and state to one file after an iteration, all or nothing: whenever the
process dies, the file holds one complete state. `resume` reads both back. The file is that of `State.save` with one
more entry, `option.<name>`, for each option; no pickle is involved. The bits are the same if the function gives the
same bits as before; the optimizers do not depend on the number of threads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from isinglass.errors import FileFormatError, InputError, IsinglassError
from isinglass.io.files import PathLike, checked_path, shown_path
from isinglass.learning.optimizers.base import OPTIMIZERS, AnyOptimizer, Callback, Optimizer, Progress
from isinglass.learning.optimizers.state import State, checked_entry, packed, read_entries, unpacked, write_entries
from isinglass.typing import Array, JsonObject
from isinglass.validation import number, whole_number

_OPTION = "option."
_EXTRA = "extra."


class Checkpoint(NamedTuple):
    """What a file holds: the optimizer with its options, and its state."""

    optimizer: AnyOptimizer
    state: State


@dataclass(eq=False)
class Journal:
    """A callback that keeps the state of a run in a file.

    Parameters
    ----------
    path : str or os.PathLike
        Written anew each time, in one step.
    optimizer : Optimizer
        The one that runs.
    every : int
        Write after each iteration whose number divides by this.
    callback : callable, optional
        Called after the file is written; its answer is passed on.
    extra : callable, optional
        Returns further named arrays for the file, which `read_extra` gives back.
    seconds : float
        Wait at least so long between two writes. For many short iterations: a file is as large as the whole state,
        however little an iteration changed. Call `finish` at the end of the run, to write its last iteration.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from isinglass.learning.optimizers import Lbfgs
    >>> f = lambda x: (float(np.cosh(x).sum()), np.sinh(x))
    >>> optimizer = Lbfgs(tol=1e-12)
    >>> with TemporaryDirectory() as folder:
    ...     path = f"{folder}/run.npz"
    ...     whole = optimizer.minimise(f, [1.0, 2.0, -3.0], callback=Journal(path, optimizer, every=2))
    ...     optimizer, state = resume(path)
    ...     again = optimizer.minimise(f, state=state)
    >>> whole.x.tobytes() == again.x.tobytes()
    True
    """

    path: PathLike
    optimizer: AnyOptimizer
    every: int = 1
    callback: Callback | None = None
    extra: Callable[[], Mapping[str, Array]] | None = None
    seconds: float = 0.0
    latest: Progress | None = field(default=None, init=False)
    written: Progress | None = field(default=None, init=False)
    _when: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.optimizer, Optimizer):
            raise InputError("optimizer", "an optimizer such as Lbfgs()", type(self.optimizer).__name__)
        checked_path(self.path)
        whole_number(self.every, "every", 1)
        number(self.seconds, "seconds", 0, math.inf)

    def __call__(self, progress: Progress) -> bool:
        """Write the state, unless it is too early, and ask the further callback whether to stop."""
        self.latest = progress
        if progress.iteration % self.every == 0 and monotonic() - self._when >= self.seconds:
            self._write(progress)
        return self.callback is not None and bool(self.callback(progress))

    def finish(self) -> None:
        """Write the last iteration, if it was not written yet."""
        if self.latest is not None and self.latest is not self.written:
            self._write(self.latest)

    def _write(self, progress: Progress) -> None:
        extra = None if self.extra is None else self.extra()
        save_checkpoint(self.path, self.optimizer, progress.state, extra)
        self.written, self._when = progress, monotonic()


def save_checkpoint(
    path: PathLike, optimizer: AnyOptimizer, state: State, extra: Mapping[str, Array] | None = None
) -> None:
    """Write optimizer and state, and further named arrays, to a file, all or nothing."""
    further = {_EXTRA + name: array for name, array in (extra or {}).items()}
    write_entries(path, packed(state) | _packed_options(optimizer) | further)


def read_extra(path: PathLike) -> dict[str, Array]:
    """Read the further arrays of a checkpoint; a file without such has none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from isinglass.learning.optimizers import Lbfgs
    >>> found = Lbfgs().minimise(lambda x: (float(x @ x), 2 * x), [1.0])
    >>> with TemporaryDirectory() as folder:
    ...     save_checkpoint(f"{folder}/run.npz", Lbfgs(), found.state, {"seconds": np.array([0.5])})
    ...     read_extra(f"{folder}/run.npz")
    {'seconds': array([0.5])}
    """
    arrays = read_entries(path)
    return {name.removeprefix(_EXTRA): array for name, array in arrays.items() if name.startswith(_EXTRA)}


def resume(path: PathLike) -> Checkpoint:
    """Read optimizer and state from the file of a `Journal`.

    Returns
    -------
    Checkpoint
        A pair: `optimizer, state = resume(path)`; go on with `optimizer.minimise(f, state=state)`, or
        `dataclasses.replace` an option (a larger `max_iter`) before.

    Raises
    ------
    FileFormatError
        If the file is not a whole checkpoint.
    OSError
        If it cannot be read.
    """
    arrays, file = read_entries(path), shown_path(path)
    name = str(checked_entry(arrays, "state.optimizer", "str", file))
    if name not in OPTIMIZERS:
        raise FileFormatError(file, None, f"an optimizer among {', '.join(OPTIMIZERS)}", f"{name!r:.60}")
    cls = OPTIMIZERS[name]
    state = unpacked(cls.state_type, arrays, path)
    try:
        optimizer = cls(**_options(cls, arrays, file))
        optimizer.check(len(state.x))
    except IsinglassError as error:
        raise FileFormatError(file, None, f"options of {name!r}", " ".join(f"{error!s:.200}".split())) from None
    return Checkpoint(optimizer, state)


def _packed_options(optimizer: AnyOptimizer) -> dict[str, Array]:
    """Write options as JSON, arrays as they are; a generator was turned into the seed of the state."""
    arrays: dict[str, Array] = {}
    for option in fields(optimizer):  # type: ignore[arg-type]
        value = getattr(optimizer, option.name)
        if isinstance(value, np.random.Generator):
            value = None
        if np.ndim(value) > 0:
            arrays[_OPTION + option.name] = np.asarray(value, np.float64)
        else:
            arrays[_OPTION + option.name] = np.asarray(json.dumps(np.asarray(value).item()))
    return arrays


def _options(cls: type[AnyOptimizer], arrays: Mapping[str, Array], file: str) -> JsonObject:
    """Read the options; those that the file does not have keep their defaults."""
    known = {_OPTION + option.name for option in fields(cls)}  # type: ignore[arg-type]
    entries = {name: array for name, array in arrays.items() if name.startswith(_OPTION)}
    if not entries:
        raise FileFormatError(file, None, "a checkpoint with options", "a state alone (read it with State.load)")
    if unknown := sorted(set(entries) - known):
        raise FileFormatError(file, None, f"options of {cls.name!r}", f"{unknown[0]!r:.60}")
    return {name.removeprefix(_OPTION): _option(name, array, file) for name, array in entries.items()}


def _option(name: str, array: Array, file: str) -> Any:
    if array.dtype.kind != "U":
        return array
    try:
        return json.loads(str(array))
    except ValueError:
        raise FileFormatError(file, None, f"{name} in JSON", f"{str(array)!r:.60}") from None
