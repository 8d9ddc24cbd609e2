"""The result formats of the UAI competitions.

    PR  file = "PR" log10_z
    MAR file = "MAR" n (k probability{k}){n}        one group for each variable
    MAP file = ("MAP" | "MPE") n state{n}

The file gives the decimal logarithm of Z; the functions here take and give the natural one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.io.files import PathLike
from isinglass.io.formats.tables import MAX_CARD
from isinglass.io.formats.tokens import TokenReader
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import integers

_LOG_10 = math.log(10.0)


def pr_text(log_z: float) -> str:
    r"""Write the result of PR.

    Parameters
    ----------
    log_z : float
        The natural logarithm of Z; it must be finite.

    Examples
    --------
    >>> pr_text(-2 * np.log(10.0))
    'PR\n-2.0\n'
    """
    value = float(log_z)
    require(math.isfinite(value), "log_z", "a finite number", repr(value))
    return f"PR\n{value / _LOG_10!r}\n"


def mar_text(variables: Sequence[ArrayLike]) -> str:
    r"""Write the result of MAR.

    Parameters
    ----------
    variables : sequence of arrays (states,)
        The marginal distribution of each variable.

    Examples
    --------
    >>> mar_text([[0.5, 0.5], [1.0]])
    'MAR\n2 2 0.5 0.5 1 1.0\n'
    """
    words = [str(len(variables))]
    for i, variable in enumerate(variables):
        values = np.asarray(variable)
        if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iuf":
            got = f"shape {values.shape} of {values.dtype}"
            raise InputError(f"variables[{i}]", "real numbers in an array with 1 axis", got)
        if not (np.isfinite(values) & (values >= 0)).all():
            raise InputError(f"variables[{i}]", "probabilities", f"{float(values.min())} to {float(values.max())}")
        words += [str(len(values)), *map(repr, values.astype(np.float64).tolist())]
    return f"MAR\n{' '.join(words)}\n"


def map_text(states: ArrayLike) -> str:
    r"""Write the result of MAP.

    Parameters
    ----------
    states : int array (variables,)

    Examples
    --------
    >>> map_text([0, 2, 1])
    'MAP\n3 0 2 1\n'
    """
    array = integers(states, "states", 1)
    if array.size and array.min() < 0:
        raise InputError("states", "states of at least 0", str(array.min()))
    return f"MAP\n{' '.join(map(str, [len(array), *array.tolist()]))}\n"


def read_pr(path: PathLike) -> float:
    """Read a result of PR.

    Returns
    -------
    float
        The natural logarithm of Z (the file has the decimal one).

    Examples
    --------
    >>> from isinglass.io.files import write_text_atomically
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.PR", "PR 2.0")
    ...     round(read_pr(f"{folder}/a.PR"), 3)
    4.605
    """
    reader = TokenReader.open(path)
    reader.word("PR")
    position = reader.skip(1, "the decimal logarithm of Z")
    value = reader.numbers_at(np.array([position]), lambda i: "the decimal logarithm of Z")
    reader.finish()
    return float(value[0]) * _LOG_10


def read_mar(path: PathLike) -> list[FloatArray]:
    """Read a result of MAR: the marginal distribution of each variable, as an array (states,).

    Examples
    --------
    >>> from isinglass.io.files import write_text_atomically
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.MAR", mar_text([[0.25, 0.75], [1.0]]))
    ...     [p.tolist() for p in read_mar(f"{folder}/a.MAR")]
    [[0.25, 0.75], [1.0]]
    """
    reader = TokenReader.open(path)
    reader.word("MAR")
    n = reader.count("the number of variables", 2)
    cards, first = reader.groups(n, lambda i: f"the number of states of variable {i}", 1, MAX_CARD)
    reader.finish()
    owner = starts(cards)
    values = reader.numbers_at(ranges(first, cards), lambda i: _probability_text(i, owner), 0.0)
    return np.split(values, owner[1:-1]) if n else []


def _probability_text(i: int, owner: IntArray) -> str:
    variable = int(np.searchsorted(owner, i, side="right")) - 1
    return f"the probability of state {i - owner[variable]} of variable {variable}"


def read_map(path: PathLike) -> IntArray:
    """Read a result of MAP or MPE: the state of each variable.

    Examples
    --------
    >>> from isinglass.io.files import write_text_atomically
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.MAP", map_text([0, 2, 1]))
    ...     read_map(f"{folder}/a.MAP").tolist()
    [0, 2, 1]
    """
    reader = TokenReader.open(path)
    reader.word("MAP", "MPE")
    n = reader.count("the number of variables")
    states = reader.integers(n, lambda i: f"the state of variable {i}", 0, MAX_CARD)
    reader.finish()
    return states
