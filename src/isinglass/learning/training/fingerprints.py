"""Fingerprints: a short text that tells one problem, its data and its choices, from another, in whatever process.

Contents are hashed, never what `repr` prints, which leaves out most of a large array and names places in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from isinglass.learning.optimizers import Optimizer

_LIMITS = ("max_iter", "epochs", "tol", "ftol")  # options of an optimizer that may change between two runs
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def fingerprint(*values: Any) -> str:
    """Return a text that other values do not have.

    Numbers, text, arrays, collections, functions, and objects by their options. Limits of an optimizer, and the state
    of a generator, are left out: a run changes them on its way.

    Examples
    --------
    >>> one, two = np.zeros(2000), np.zeros(2000)
    >>> two[1000] = 1.0
    >>> fingerprint([one]) == fingerprint([one.copy()]), fingerprint([one]) == fingerprint([two])
    (True, False)
    """
    return _hash("values", [_digest(value) for value in values]).hex()


def _digest(value: Any) -> bytes:
    """Return the hash of one value."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in _PLAIN:
        text = value.encode(errors="surrogatepass") if isinstance(value, str) else repr(value).encode()
        return _hash(type(value).__name__, [text])
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _hash("array", [f"{value.dtype.str}{value.shape}".encode(), np.ascontiguousarray(value).tobytes()])
    if isinstance(value, list | tuple | np.ndarray):
        return _hash("sequence", [_digest(item) for item in value])
    if isinstance(value, Mapping):
        return _hash("mapping", sorted(_digest(key) + _digest(item) for key, item in value.items()))
    if isinstance(value, set | frozenset):
        return _hash("set", sorted(map(_digest, value)))
    return _hash("object", list(_parts(value)))


def _parts(value: Any) -> Iterator[bytes]:
    """Return what an object is made of: its class, and its options, or for a function its code and what it holds."""
    if isinstance(value, np.random.Generator):
        yield b"a generator"
    elif isinstance(value, type | BuiltinFunctionType | np.ufunc):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}".encode()
    elif isinstance(value, partial):
        yield _digest((value.func, value.args, value.keywords))
    elif isinstance(value, MethodType):
        yield _digest((value.__func__, value.__self__))
    elif isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        yield _digest((value.__module__, value.__qualname__, value.__code__, value.__defaults__, held))
    elif isinstance(value, CodeType):
        yield _digest((value.co_code, value.co_consts, value.co_names))
    else:
        yield _digest((type(value).__module__, type(value).__qualname__, _options(value)))


def _options(value: Any) -> Any:
    """Return the options of an object by name; text where it has none."""
    if is_dataclass(value):
        told = (field.name for field in fields(value) if field.metadata.get("fingerprint", True))
        found = {name: getattr(value, name) for name in told}
        found.pop("n_jobs", None)  # however many: they change no bit
    elif hasattr(value, "__dict__"):
        found = vars(value)
    else:
        return repr(value)
    limits = _LIMITS if isinstance(value, Optimizer) else ()
    return {name: option for name, option in found.items() if name not in limits}


def _hash(kind: str, parts: list[bytes]) -> bytes:
    """Hash a kind and parts, which may be of any length."""
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
