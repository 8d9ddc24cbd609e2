"""Attributes of tokens: what stands in its columns, here and nearby, alone and in sequence.

A window is a list of offsets: (-1, 0) of the column w is the pair of the values before and here, "w-1|0=the|dog".
Beyond the ends of a sequence stand ``<s>`` and ``</s>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isinglass.errors import InputError

_BEFORE, _AFTER = "<s>", "</s>"
Window = Sequence[int]


def window_attributes(columns: Mapping[str, Sequence[str]], windows: Mapping[str, Sequence[Window]]) -> list[list[str]]:
    """Return the attributes of each token of a sequence.

    Parameters
    ----------
    columns : mapping of str to sequence of str
        The values of each named column, as many as there are tokens.
    windows : mapping of str to sequence of windows
        For each column the offsets that are looked at together.

    Returns
    -------
    list of lists of str

    Examples
    --------
    >>> window_attributes({"w": ["the", "dog"]}, {"w": [(0,), (-1, 0)]})
    [['w0=the', 'w-1|0=<s>|the'], ['w0=dog', 'w-1|0=the|dog']]
    """
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError("columns", "as many values in each", f"{sorted(lengths)}")
    for name, wanted in windows.items():
        if name not in columns:
            raise InputError("windows", f"names of columns ({', '.join(map(repr, columns))})", repr(name))
        if not all(type(d) is int for window in wanted for d in window):
            raise InputError(f"windows[{name!r}]", "lists of whole offsets, such as [(0,), (-1, 0)]", f"{wanted!r:.60}")
    found = [line for name, wanted in windows.items() for line in _column(name, columns[name], wanted)]
    return (
        [list(token) for token in zip(*found, strict=True)] if found else [[] for _ in range(max(lengths, default=0))]
    )


def _column(name: str, values: Sequence[str], windows: Sequence[Window]) -> list[list[str]]:
    """Return one attribute of all tokens after the other."""
    n, reach = len(values), max((abs(d) for window in windows for d in window), default=0)
    padded = [*[_BEFORE] * reach, *values, *[_AFTER] * reach]
    shifted = {d: padded[reach + d : reach + d + n] for d in range(-reach, reach + 1)}
    lines = []
    for window in windows:
        head, cells = f"{name}{'|'.join(map(str, window))}=", [shifted[d] for d in window]
        joined = cells[0] if len(window) == 1 else map("|".join, zip(*cells, strict=True))
        lines.append(list(map(head.__add__, joined)))
    return lines
