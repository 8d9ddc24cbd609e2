"""Calls of one loop with arguments of the same types each time, as iterations make them.

To find the compiled code for its arguments, Numba looks at all arrays in all tuples of them, at each call. For a small
graph this takes longer than everything else. So after a few calls the code is kept, and called directly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

FEW = 2  # calls; a look in Python takes as long as two of Numba
_code: dict[Hashable, Callable[..., Any]] = {}  # by loop and kinds of arguments


class Calls:
    """Who makes many calls of loops keeps one of these.

    Parameters
    ----------
    same : bool
        Whether each loop gets arguments of the same types in all calls. That is not checked: the code would take an
        array of other numbers for one of those that it was compiled for.

    Examples
    --------
    >>> from isinglass.kernels.numba.messages.shifts import take_tops
    >>> calls, rows, tops = Calls(same=True), np.array([[1.0, 3.0]]), np.zeros(1)
    >>> for _ in range(10):
    ...     _ = calls(take_tops, rows, np.empty((1, 2)), tops, 0, 1)
    >>> tops
    array([3.])
    """

    def __init__(self, same: bool) -> None:
        self.same = same
        self._made: dict[Any, int] = {}
        self._kept: dict[Any, Callable[..., Any]] = {}

    def __call__(self, loop: Any, *arguments: object) -> Any:
        """Call a loop."""
        code = self._kept.get(loop)
        if code is not None:
            return code(*arguments)
        made = self._made[loop] = self._made.get(loop, 0) + 1
        if made == FEW and self.same:
            self._keep(loop, arguments)
        return loop(*arguments)

    def _keep(self, loop: Any, arguments: tuple[object, ...]) -> None:
        """Keep the code for such arguments, if there is some: none of their types where others were converted to."""
        key = loop, kind(arguments)
        if key not in _code:
            found = loop.overloads.get(tuple(map(loop.typeof_pyval, arguments)))
            if found is None:
                return
            _code[key] = found.entry_point
        self._kept[loop] = _code[key]


def kind(value: object) -> Hashable:
    """Return all of a value that its type for Numba depends on.

    Examples
    --------
    >>> kind((1, 2.0)) == kind((3, 0.5)) != kind((1, 2))
    True
    >>> kind(np.zeros(3)) == kind(np.ones(5)) != kind(np.ones(5)[::2])
    True
    """
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.ndim, value.flags.num
    if isinstance(value, tuple):
        return type(value), tuple(map(kind, value))
    return (type(value),)
