"""Parameters of an estimator as JSON: what is written comes back as what it was, and nothing is ever run.

Tuples, sets, arrays and infinite numbers have forms of their own. An object such as ``BeliefPropagation(damping=0.1)``
is kept as its registered name and its options, and made again from the registry; anything else is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import numpy as np

from isinglass import decoding, losses
from isinglass.errors import InputError, require
from isinglass.gradients import RULES, GradientRule
from isinglass.inference import ALGORITHMS, SOLVERS, Algorithm, Solver
from isinglass.learning.markov.method import METHODS, Method
from isinglass.learning.markov.priors import PRIORS, Prior
from isinglass.learning.optimizers import OPTIMIZERS, Optimizer
from isinglass.registry import Registry
from isinglass.typing import DType

_KINDS: dict[str, tuple[Any, Registry[Any]]] = {
    "algorithm": (Algorithm, ALGORITHMS),
    "solver": (Solver, SOLVERS),
    "loss": (losses.Loss, losses.LOSSES),
    "gradient": (GradientRule, RULES),
    "decoder": (decoding.Decoder, decoding.DECODERS),
    "optimizer": (Optimizer, OPTIMIZERS),
    "method": (Method, METHODS),
    "prior": (Prior, PRIORS),
}
_TEXT_LIMIT = 2**24  # bytes of an array of text, in which one long entry widens all
_COLLECTIONS: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}


def encoded(value: Any, argument: str) -> Any:
    """Return what JSON can hold for a parameter."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in _COLLECTIONS:
        found = [encoded(item, argument) for item in value]
        ordered = found if isinstance(value, list | tuple) else sorted(found, key=repr)  # equal sets, equal bytes
        return {_COLLECTIONS[type(value)]: ordered}
    if type(value) is np.ndarray and value.dtype.kind in "biufU" and _fits(value.dtype, value.size):
        entries = [encoded(item, argument) for item in value.ravel().tolist()]
        return {"array": entries, "dtype": value.dtype.newbyteorder("<").str, "shape": list(value.shape)}
    if type(value) is dict:
        return {"dict": [[encoded(key, argument), encoded(item, argument)] for key, item in value.items()]}
    for kind, (base, registry) in _KINDS.items():
        if isinstance(value, base) and _registered(value, registry):
            return {kind: value.name, "options": _options(value, argument)}
    expected = "a name, number or object of the library, which a safe file can hold"
    remedy = f"set_params({argument.split('.')[0]}=...) before saving, or pickle the estimator"
    raise InputError(argument, expected, f"{value!r:.60}", remedy)


def _options(value: Any, argument: str) -> dict[str, Any]:
    """Return the options of an object, each as JSON can hold it."""
    names = [field.name for field in fields(value)]
    return {name: encoded(getattr(value, name), f"{argument}.{name}") for name in names}


def _registered(value: Any, registry: Registry[Any]) -> bool:
    """Tell whether the name of an object leads back to its class."""
    if value.name not in registry:
        return False
    entry = registry[value.name]  # a class, or for gradient rules the one object
    return type(value) in (entry, type(entry))


def decoded(value: Any, argument: str) -> Any:
    """Return the parameter that `encoded` wrote."""
    if not isinstance(value, dict):
        require(not isinstance(value, list), argument, "a plain value", "a list")
        return value
    if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    for made, kind in _COLLECTIONS.items():
        if set(value) == {kind} and isinstance(value[kind], list):
            return made(_hashable(item, argument, made) for item in value[kind])
    if set(value) == {"array", "dtype", "shape"}:
        return _array_of(value, argument)
    if set(value) == {"dict"} and isinstance(value["dict"], list):
        return {_key(pair, argument): decoded(pair[1], argument) for pair in value["dict"]}
    return _object(value, argument)


def _key(pair: Any, argument: str) -> Any:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(argument, "pairs of a key and a value", f"{pair!r:.60}")
    return _hashable(pair[0], argument, dict)


def _hashable(item: Any, argument: str, made: type) -> Any:
    """Return an item, which in a set or as a key must be hashable."""
    found = decoded(item, argument)
    if made in (list, tuple):
        return found
    try:
        hash(found)
    except TypeError:
        raise InputError(argument, "keys that are hashable", f"{item!r:.60}") from None
    return found


def _array_of(value: dict[str, Any], argument: str) -> Any:
    """Return an array of numbers."""
    entries, shape, dtype = value["array"], value["shape"], value["dtype"]
    plain = isinstance(entries, list) and isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not plain or not isinstance(dtype, str) or not re.fullmatch("[<|](b1|[iu][1248]|f[248]|U[0-9]{1,6})", dtype):
        raise InputError(argument, "an array of numbers or text", f"{value!r:.60}")
    require(_fits(np.dtype(dtype), len(entries)), argument, "an array of less text", f"{len(entries)} times {dtype}")
    try:
        items = [decoded(item, argument) for item in entries]
        return np.array(items, dtype).astype(np.dtype(dtype).newbyteorder("=")).reshape(shape)
    except (ValueError, TypeError, OverflowError):
        raise InputError(argument, f"an array of numbers of shape {shape}", f"{len(entries)} entries") from None


def _fits(dtype: DType, entries: int) -> bool:
    """Tell whether an array is not too large to be read from a file of unknown origin."""
    return dtype.kind != "U" or dtype.itemsize * entries <= _TEXT_LIMIT


def _object(value: dict[str, Any], argument: str) -> Any:
    """Make a registered object from its name and options."""
    kind = next(iter(value), "")
    options = value.get("options")
    if kind not in _KINDS or set(value) != {kind, "options"} or not isinstance(options, dict):
        raise InputError(argument, "the name and options of an object", f"{sorted(value)!r:.60}")
    entry = _KINDS[kind][1][value[kind]]
    cls = entry if isinstance(entry, type) else type(entry)
    known = {field.name for field in fields(cls)}
    if unknown := sorted(set(options) - known):
        raise InputError(argument, f"options of {value[kind]!r}", repr(unknown[0]))
    return cls(**{key: decoded(option, f"{argument}.{key}") for key, option in options.items()})
