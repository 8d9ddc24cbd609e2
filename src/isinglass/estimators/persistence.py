"""Fitted estimators in safe files: arrays and JSON (`isinglass.io.arrays`), nothing in which is ever run.

Parameters of the constructor are kept where JSON can hold them; tuples, sets, arrays and infinite numbers are written
so that they come back as what they were. An object such as ``BeliefPropagation(damping=0.1)`` is kept as its registered
name and its options, and made again from the registry; anything else is refused by `save`. What
belongs to one machine or one run, `checkpoint`, is not kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from isinglass import decoding, losses
from isinglass.errors import FileFormatError, InputError, IsinglassError
from isinglass.gradients import RULES, GradientRule
from isinglass.inference import ALGORITHMS, Algorithm
from isinglass.io.arrays import ArrayFile, read_arrays, write_arrays
from isinglass.io.files import PathLike, shown_path
from isinglass.learning.optimizers import OPTIMISERS, Optimizer
from isinglass.learning.training.choices import entropy_of
from isinglass.learning.training.loop import history_of, history_rows
from isinglass.learning.training.problem import cut
from isinglass.learning.training.stages import checked_stages, stages_of
from isinglass.registry import Registry

VERSION = 3  # 1 had no stages, 2 no tuples, sets and infinities
_DROPPED = ("checkpoint",)
_KINDS: dict[str, tuple[Any, Registry[Any]]] = {
    "algorithm": (Algorithm, ALGORITHMS),
    "loss": (losses.Loss, losses.LOSSES),
    "gradient": (GradientRule, RULES),
    "decoder": (decoding.Decoder, decoding.DECODERS),
    "optimizer": (Optimizer, OPTIMISERS),
}
_COLLECTIONS: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_FACTS = {"n_states": int, "n_features_in": int, "n_iter": int, "converged": bool, "message": str}
_OPTIONAL = {"iterations": int, "tape": str, "started_from": str}  # or None, as in older files


def save(crf: Any, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file, all or nothing; notes are JSON values for whoever reads it."""
    given = {name: value for name, value in crf.get_params(deep=False).items() if name not in _DROPPED}
    metadata = {
        "parameters": {name: _encoded(value, name) for name, value in given.items()},
        "shapes": {name: list(array.shape) for name, array in crf.parameters_.items()},
        **{name: kind(getattr(crf, f"{name}_")) for name, kind in _FACTS.items()},
        "stage": int(crf.stage_),
        **{name: getattr(crf, f"{name}_") for name in _OPTIONAL},
        **({} if notes is None else {"notes": dict(notes)}),
    }
    checked_stages(crf, stages_of(crf))  # as `load` does
    arrays = {"theta": crf.theta_, "history": history_rows(crf.history_), "objective": np.float64(crf.objective_)}
    write_arrays(path, arrays, schema=_schema(type(crf)), version=VERSION, metadata=metadata)


def load(cls: type[Any], path: PathLike) -> Any:
    """Read what `save` wrote; everything is checked before it is believed."""
    file, name = read_arrays(path, schema=_schema(cls), version=VERSION), shown_path(path)
    crf = cls()
    known = set(crf.get_params(deep=False)) - set(_DROPPED)
    given = _entry(file, "parameters", dict, name)
    if unknown := sorted(set(given) - known):
        raise FileFormatError(name, None, f"parameters of {cls.__name__}", f"{unknown[0]!a:.60}")
    try:
        crf.set_params(**{key: _decoded(value, key) for key, value in given.items()})
        checked_stages(crf, stages_of(crf))
    except (IsinglassError, RecursionError) as error:
        raise FileFormatError(name, None, f"parameters of {cls.__name__}", f"{error!s:.200}") from None
    _restore(crf, file, name)
    return crf


def _restore(crf: Any, file: ArrayFile, name: str) -> None:
    """Set what was learned."""
    for key, kind in _FACTS.items():
        setattr(crf, f"{key}_", _entry(file, key, kind, name))
    crf.stage_ = _entry(file, "stage", int, name) if file.version > 1 else 0
    for key, kind in _OPTIONAL.items():
        setattr(crf, f"{key}_", None if file.metadata.get(key) is None else _entry(file, key, kind, name))
    if crf.iterations_ is not None and not 1 <= crf.iterations_ < 2**40:
        raise FileFormatError(name, None, "a number of iterations of inference", f"{crf.iterations_}")
    if not 0 <= crf.stage_ < len(stages_of(crf)):
        raise FileFormatError(name, None, "the number of a stage", f"{crf.stage_}")
    shapes = {key: _shape(shape, name) for key, shape in _entry(file, "shapes", dict, name).items()}
    theta, history, objective = (file.arrays.get(key) for key in ("theta", "history", "objective"))
    size = sum(map(math.prod, shapes.values()))
    if theta is None or theta.dtype != np.float64 or theta.shape != (size,) or not np.isfinite(theta).all():
        raise FileFormatError(name, None, f"{size} finite parameters in theta", "something else")
    if objective is None or objective.dtype != np.float64 or objective.shape != ():
        raise FileFormatError(name, None, "an objective, one number", "something else")
    bias = stages_of(crf)[crf.stage_].bias
    node, own = (crf.n_features_in_ + bool(bias), crf.n_states_), shapes.get("node", ())[:-2]
    if shapes.get("node") != (*own, *node) or len(own) > 1:
        raise FileFormatError(name, None, f"node parameters of shape {node}", f"{shapes.get('node')}")
    if any(shape[: len(own)] != own for shape in shapes.values()) or 0 in own:
        raise FileFormatError(name, None, "as many iterations in all parameters", f"{shapes}")
    crf.theta_, crf.objective_, crf.history_ = theta.copy(), float(objective), history_of(history, name)
    crf.parameters_ = cut(theta, shapes)
    try:
        crf.entropy_ = entropy_of(stages_of(crf)[crf.stage_], crf.parameters_, crf.n_states_)
    except (KeyError, ValueError):
        raise FileFormatError(name, None, "parameters of the entropy", f"{shapes}") from None


def _schema(cls: type[Any]) -> str:
    return {"GridCRF": "grid-crf", "GraphCRF": "graph-crf"}.get(cls.__name__, cls.__name__)


def _encoded(value: Any, argument: str) -> Any:
    """Return what JSON can hold for a parameter."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in _COLLECTIONS:
        found = [_encoded(item, argument) for item in value]
        ordered = found if isinstance(value, list | tuple) else sorted(found, key=repr)  # equal sets, equal bytes
        return {_COLLECTIONS[type(value)]: ordered}
    if type(value) is np.ndarray and value.dtype.kind in "biufU":
        entries = [_encoded(item, argument) for item in value.ravel().tolist()]
        return {"array": entries, "dtype": value.dtype.newbyteorder("<").str, "shape": list(value.shape)}
    if type(value) is dict:
        return {"dict": [[_encoded(key, argument), _encoded(item, argument)] for key, item in value.items()]}
    for kind, (base, registry) in _KINDS.items():
        if isinstance(value, base) and _registered(value, registry):
            return {kind: value.name, "options": _options(value, argument)}
    expected = "a name, number or object of the library, which a safe file can hold"
    remedy = f"set_params({argument.split('.')[0]}=...) before saving, or pickle the estimator"
    raise InputError(argument, expected, f"{value!r:.60}", remedy)


def _options(value: Any, argument: str) -> dict[str, Any]:
    """Return the options of an object, each as JSON can hold it."""
    names = [field.name for field in fields(value)]
    return {name: _encoded(getattr(value, name), f"{argument}.{name}") for name in names}


def _registered(value: Any, registry: Registry[Any]) -> bool:
    """Tell whether the name of an object leads back to its class."""
    if value.name not in registry:
        return False
    entry = registry[value.name]  # a class, or for gradient rules the one object
    return type(value) in (entry, type(entry))


def _decoded(value: Any, argument: str) -> Any:
    """Return the parameter that `_encoded` wrote."""
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise InputError(argument, "a plain value", "a list")
        return value
    if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    for made, kind in _COLLECTIONS.items():
        if set(value) == {kind} and isinstance(value[kind], list):
            return made(_hashable(item, argument, made) for item in value[kind])
    if set(value) == {"array", "dtype", "shape"}:
        return _array_of(value, argument)
    if set(value) == {"dict"} and isinstance(value["dict"], list):
        return {_key(pair, argument): _decoded(pair[1], argument) for pair in value["dict"]}
    return _object(value, argument)


def _key(pair: Any, argument: str) -> Any:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(argument, "pairs of a key and a value", f"{pair!r:.60}")
    return _hashable(pair[0], argument, dict)


def _hashable(item: Any, argument: str, made: type) -> Any:
    """Return an item, which in a set or as a key must be hashable."""
    decoded = _decoded(item, argument)
    if made in (list, tuple):
        return decoded
    try:
        hash(decoded)
    except TypeError:
        raise InputError(argument, "keys that are hashable", f"{item!r:.60}") from None
    return decoded


def _array_of(value: dict[str, Any], argument: str) -> Any:
    """Return an array of numbers."""
    entries, shape, dtype = value["array"], value["shape"], value["dtype"]
    plain = isinstance(entries, list) and isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not plain or not isinstance(dtype, str) or not re.fullmatch("[<|](b1|[iu][1248]|f[248]|U[0-9]{1,6})", dtype):
        raise InputError(argument, "an array of numbers or text", f"{value!r:.60}")
    try:
        decoded = [_decoded(item, argument) for item in entries]
        return np.array(decoded, dtype).astype(np.dtype(dtype).newbyteorder("=")).reshape(shape)
    except (ValueError, TypeError, OverflowError):
        raise InputError(argument, f"an array of numbers of shape {shape}", f"{len(entries)} entries") from None


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
    return cls(**{key: _decoded(option, f"{argument}.{key}") for key, option in options.items()})


def _entry(file: ArrayFile, key: str, kind: type, name: str) -> Any:
    value = file.metadata.get(key)
    if type(value) is not kind:
        raise FileFormatError(name, None, f"{key!r} to be of type {kind.__name__}", type(value).__name__)
    return value


def _shape(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**40 for n in value) or len(value) > 8:
        raise FileFormatError(name, None, "shapes of parameters", f"{value!a:.60}")
    return tuple(value)
