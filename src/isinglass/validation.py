"""Checks of user input. Input is validated here, once; inner code trusts it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.typing import Array, FloatArray, IntArray

Evidence = Mapping[int, int]
RandomState = int | np.random.Generator | None

LARGEST_LOG = 1e300  # of a finite log-potential: sums of 1e8 of them are finite
MOST_THREADS = 1024
SHOWN = 10  # entries of a list that a message shows
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def read_only(array: Array) -> Array:
    """Return a view of `array` that cannot be written to; the array itself, if that is one already."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def instance(value: object, kind: type, argument: str) -> None:
    """Check that `value` is of a kind."""
    if not isinstance(value, kind):
        remedy = f"give its {argument}" if isinstance(getattr(value, argument, None), kind) else ""
        raise InputError(argument, f"a {kind.__name__}", type(value).__name__, remedy)


def items(value: object, argument: str, expected: str) -> list[Any]:
    """Return the items of a sequence; a mapping, a set, text or a single value is refused."""
    if isinstance(value, str | bytes | Mapping | set | frozenset) or not hasattr(value, "__iter__"):
        raise InputError(argument, expected, type(value).__name__)
    return list(value)


def whole_number(value: object, argument: str, minimum: int = 0, remedy: str = "") -> int:
    """Check that `value` is an integer of at least `minimum`; a Boolean or a float is refused."""
    number = value if type(value) is int else _index(value, argument, minimum, remedy)
    if number < minimum:
        raise InputError(argument, f"a whole number of at least {minimum}", str(number), remedy)
    return number


def _index(value: object, argument: str, minimum: int, remedy: str) -> int:
    """Return the integer that another object stands for."""
    if not isinstance(value, bool | np.bool_) and isinstance(value, SupportsIndex):
        with suppress(TypeError):
            return value.__index__()
    raise InputError(argument, f"a whole number of at least {minimum}", repr(value), remedy)


def jobs_of(n_jobs: object) -> int:
    """Return a number of threads: -1 is as many as there are processors, None the default.

    The default is what the environment variable ISINGLASS_THREADS says, a number or -1; without it one.

    Examples
    --------
    >>> jobs_of(3)
    3
    """
    argument, remedy = "n_jobs", "or -1 for all processors"
    if n_jobs is None:
        given = os.environ.get("ISINGLASS_THREADS", "").strip()
        if not given:
            return 1
        argument, n_jobs = "ISINGLASS_THREADS", int(given) if re.fullmatch("-?[0-9]+", given) else given
    if isinstance(n_jobs, int | np.integer) and n_jobs == -1:
        return os.cpu_count() or 1
    count = whole_number(n_jobs, argument, 1, remedy)
    if count > MOST_THREADS and count > (most := max(MOST_THREADS, os.cpu_count() or 1)):
        raise InputError(argument, f"at most {most} threads", f"{count}", remedy)
    return count


def flag(value: object, argument: str) -> bool:
    """Check a choice of yes or no."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(argument, "True or False", repr(value))
    return bool(value)


def number(value: object, argument: str, minimum: float, below: float) -> float:
    """Check that `value` is a real number of at least `minimum` and less than `below`."""
    expected = f"a number of at least {minimum:g}" + (f" and below {below:g}" if below < math.inf else "")
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(argument, expected, repr(value))
    if not minimum <= value < below:
        raise InputError(argument, expected, repr(value))
    return float(value)


def positive(value: object, argument: str, remedy: str = "") -> float:
    """Check a positive number."""
    checked = number(value, argument, 0, math.inf)
    if checked == 0:
        raise InputError(argument, "a positive number", "0", remedy)
    return checked


def array_of(
    values: object, argument: str, expected: str, masked: str = "fill in or drop what is masked", ragged: str = ""
) -> Array:
    """Convert to an array; ragged lists are refused, and masked values, whose mask NumPy would ignore.

    `masked` and `ragged` are the remedies.

    Examples
    --------
    >>> array_of([1, 2], "values", "numbers")
    array([1, 2])
    >>> array_of(np.ma.masked_equal([1, -1], -1), "Y", "labels", "use .filled(-1)")
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: Y: expected labels, got a masked array with 1 masked value; use .filled(-1)
    """
    parts = values if isinstance(values, list | tuple) else (values,)
    hidden = sum(int(np.ma.getmaskarray(part).sum()) for part in parts if isinstance(part, np.ma.MaskedArray))
    if hidden:
        got = f"a masked array with {hidden} masked value{'s' if hidden > 1 else ''}"
        raise InputError(argument, expected, got, masked)
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise InputError(argument, expected, "values that do not form an array", ragged) from None


def real_numbers(values: object, argument: str, expected: str, remedy: str = "") -> FloatArray:
    """Convert to a float64 array; text, complex numbers and masked values are refused, inf and nan are not.

    Examples
    --------
    >>> real_numbers([1, 2.5], "weights", "numbers")
    array([1. , 2.5])
    """
    array = array_of(values, argument, expected, ragged=remedy)
    try:
        if array.dtype.kind in "biufO":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(argument, expected, f"{values!r:.60}", remedy)


def to_integers(array: Array, otherwise: str = "number the different values from 0 on") -> str:
    """Return the remedy that makes integers of an array of something else.

    Examples
    --------
    >>> to_integers(np.array(["0", "1"])), to_integers(np.array(["y", "n"]))
    ('convert it, e.g. with .astype(int)', 'number the different values from 0 on')
    """
    try:
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if array.dtype.kind not in "fc" or np.array_equal(whole, array):
            return "convert it, e.g. with .astype(int)"
    except (TypeError, ValueError, OverflowError, Warning):
        pass
    return otherwise


def integers(values: ArrayLike, argument: str, ndim: int) -> IntArray:
    """Convert to an int64 array with `ndim` axes; floats, Booleans and ragged lists are refused."""
    expected = f"integers in an array with {ndim} {'axis' if ndim == 1 else 'axes'}"
    array = array_of(values, argument, expected, "use .filled(...), or drop what is masked")
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)  # np.asarray([]) is float
    if array.dtype.kind not in "iu":
        raise InputError(argument, expected, f"dtype {array.dtype}", to_integers(array))
    if array.ndim != ndim:
        raise InputError(argument, expected, f"shape {array.shape}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(argument, expected, f"{array.max()}, which is too large")
    return array.astype(np.int64)


def log_values(values: ArrayLike, argument: str) -> Array:
    """Convert to a new float64 (or complex128) array without NaN or +inf; -inf is a hard zero.

    Finite values beyond `LARGEST_LOG` are refused: their sums may overflow.
    """
    expected = "real numbers (natural logarithms; -inf forbids)"
    array = array_of(values, argument, expected, "use .filled(-np.inf) to forbid what is masked")
    if array.dtype.kind not in "iufc":
        raise InputError(argument, expected, f"dtype {array.dtype}")
    array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    if _are_moderate(array):
        return array
    bad = ~((np.abs(array.real) <= LARGEST_LOG) | (array.real == -np.inf)) | np.isnan(array.imag)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        remedy = "only -inf and finite values fit"
        if np.isfinite(array[where]):
            remedy = f"sums of numbers beyond {LARGEST_LOG:g} may overflow; write -np.inf to forbid a configuration"
        raise InputError(argument, expected, f"{array[where]} at index {where}", remedy)
    return array


def _are_moderate(array: Array) -> bool:
    """Tell whether an array is real and all its values are finite and at most `LARGEST_LOG`."""
    if array.dtype.kind == "c" or not array.size:
        return not array.size
    return bool(array.min() >= -LARGEST_LOG and array.max() <= LARGEST_LOG)


def evidence_dict(evidence: Evidence | None, cards: IntArray, argument: str = "evidence") -> dict[int, int]:
    """Check a mapping from variables to observed states against the cardinalities."""
    if evidence is None:
        return {}
    if not isinstance(evidence, Mapping):
        raise InputError(argument, "a mapping from variable to state, such as {2: 0}", type(evidence).__name__)
    plain = _plain_evidence(evidence, cards)
    if plain is not None:
        return plain
    checked: dict[int, int] = {}
    for key, value in evidence.items():
        variable = whole_number(key, f"{argument} (variable)")
        if variable >= len(cards):
            raise InputError(argument, f"variables 0 to {len(cards) - 1}", f"variable {variable}")
        state = whole_number(value, f"{argument}[{variable}]")
        if state >= cards[variable]:
            raise InputError(f"{argument}[{variable}]", f"a state from 0 to {cards[variable] - 1}", str(state))
        checked[variable] = state
    return dict(sorted(checked.items()))


def _plain_evidence(evidence: Evidence, cards: IntArray) -> dict[int, int] | None:
    """Check a mapping of ints in bulk; None where something is wrong with it or unusual."""
    if not {*map(type, evidence), *map(type, evidence.values())} <= {int, np.int64}:
        return None
    try:
        variables, states = (np.fromiter(v, np.int64, len(evidence)) for v in (evidence, evidence.values()))
    except OverflowError:
        return None
    if not len(variables) or variables.min() < 0 or variables.max() >= len(cards):
        return None
    if states.min() < 0 or (states >= cards[variables]).any():
        return None
    order = np.argsort(variables)
    return dict(zip(variables[order].tolist(), states[order].tolist(), strict=True))


def assignments(states: ArrayLike, cards: IntArray, argument: str = "states") -> IntArray:
    """Check complete assignments, shape (..., variables)."""
    ndim = max(np.ndim(states), 1)
    array = integers(states, argument, ndim)
    if array.shape[-1] != len(cards):
        raise InputError(argument, f"a last axis of {len(cards)} variables", f"shape {array.shape}")
    bad = (array < 0) | (array >= cards)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        got = f"{array[where]} for variable {where[-1]}"
        raise InputError(argument, f"states from 0 to {cards[where[-1]] - 1}", got)
    return array


def variables_of(variables: Sequence[int] | ArrayLike, n_variables: int, argument: str = "variables") -> IntArray:
    """Check a list of distinct variables."""
    array = integers(variables, argument, 1)
    if array.size and (array.min() < 0 or array.max() >= n_variables):
        raise InputError(argument, f"variables 0 to {n_variables - 1}", _some(array))
    if len(np.unique(array)) != len(array):
        raise InputError(argument, "distinct variables", _some(array))
    return array


def _some(array: IntArray) -> str:
    """Write a list of integers; of a long one the first few.

    Examples
    --------
    >>> _some(np.array([3, 3])), _some(np.zeros(400, int))
    ('[3, 3]', '[0, 0, 0, 0, 0, ...], 400 in all')
    """
    if len(array) <= SHOWN:
        return str(array.tolist())
    return f"[{', '.join(map(str, array[: SHOWN // 2].tolist()))}, ...], {len(array)} in all"


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for a seed, a generator (used as it is) or None (fresh entropy)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(whole_number(random_state, "random_state"))


def memory_size(size: str | int | float, argument: str = "memory_limit") -> int:
    """Read a number of bytes, as a number or as text such as '12GB', '500 MiB'.

    Examples
    --------
    >>> memory_size("12GB"), memory_size("1.5 MiB")
    (12000000000, 1572864)
    """
    expected = "a size such as 12GB, 500MiB or a number of bytes"
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]I?)?B?\s*", size.upper())
        if match is None:
            raise InputError(argument, expected, repr(size))
        size = float(match[1]) * _UNITS[match[2] or ""]
    if isinstance(size, bool) or not isinstance(size, int | float | np.integer | np.floating):
        raise InputError(argument, expected, repr(size))
    if not (math.isfinite(size) and size >= 0):
        raise InputError(argument, expected, repr(size))
    return math.ceil(size)


def bytes_text(size: float) -> str:
    """Write a number of bytes for a person.

    Examples
    --------
    >>> bytes_text(999), bytes_text(1.5e6), bytes_text(2**30), bytes_text(1e30)
    ('999 B', '1.5 MB', '1.07 GB', '1e+15 PB')
    """
    if size < 1000:
        return f"{int(size)} B"
    for unit in ("KB", "MB", "GB", "TB", "PB"):
        size /= 1000
        if size < 999.5 or unit == "PB":
            break
    return f"{size:.3g} {unit}"
