"""Fitted estimators in safe files: arrays and JSON (`isinglass.io.arrays`), nothing in which is ever run.

Every estimator registers under the name that its files have (`schema`). A file holds the parameters of the constructor
(`isinglass.estimators.encoding`), the vector of learned parameters, the history, and what the estimator adds to it.
What belongs to one machine or one run, `checkpoint`, is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from isinglass.errors import FileFormatError, IsinglassError, UnknownNameError
from isinglass.estimators.documentation import inherit_docs
from isinglass.estimators.encoding import decoded, encoded
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.io.files import PathLike, shown_path
from isinglass.learning.training.history import history_of, history_rows
from isinglass.registry import Registry, require_declared
from isinglass.typing import Array

ESTIMATORS: Registry[type[Any]] = Registry("estimator")
_REGISTER = "import the module that registers it"
_DROPPED = ("checkpoint",)
_FACTS = {"n_iter": int, "converged": bool, "message": str}

E = TypeVar("E", bound=type[Any])


def register(cls: E) -> E:
    """File an estimator under its `schema`, and complete its documentation (a class decorator, the outermost)."""
    require_declared(cls, "@dataclass(eq=False, repr=False)", schema=str)
    ESTIMATORS.register(cls.schema)(cls)
    inherit_docs(cls)
    return cls


class Saved:
    """The contents of a file, each checked before it is believed."""

    def __init__(self, cls: type[Any], path: PathLike) -> None:
        self.name, schema = shown_path(path), _schema(cls)
        if "schema" not in vars(cls) and read_arrays(path).schema == getattr(cls, "schema", None):
            schema = cls.schema  # a subclass that did not register reads the files of its base class, too
        self.file = read_arrays(path, schema=schema, version=cls.version)
        self.version = self.file.version

    def error(self, expected: str, got: str, remedy: str = "") -> FileFormatError:
        """Return an error that says what the file should have."""
        return FileFormatError(self.name, None, expected, got, remedy)

    def require(self, fine: object, expected: str, got: str) -> None:
        """Refuse the file unless something is true of it."""
        if not fine:
            raise self.error(expected, got)

    def optional(self, key: str, kind: type) -> Any:
        """Return an entry of the metadata, or None where it is missing or null."""
        return None if self.file.metadata.get(key) is None else self.entry(key, kind)

    def entry(self, key: str, kind: type) -> Any:
        """Return an entry of the metadata."""
        value = self.file.metadata.get(key)
        if type(value) is not kind:
            raise self.error(f"{key!r} to be of type {kind.__name__}", type(value).__name__)
        return value

    def array(self, key: str, kind: str, shape: tuple[int, ...]) -> Array:
        """Return a copy of an array of a kind (of dtype) and shape (-1: any length), finite."""
        array = self.file.arrays.get(key)
        fits = array is not None and array.dtype.kind == kind and array.ndim == len(shape)
        if array is None or not fits or any(n not in (-1, m) for n, m in zip(shape, array.shape, strict=True)):
            got = "nothing" if array is None else f"dtype {array.dtype} of shape {array.shape}"
            raise self.error(f"an array {key!r} of shape {shape}", got)
        if kind == "f" and not np.isfinite(array).all():
            raise self.error(f"finite numbers in {key!r}", "others")
        return array.astype(np.float64) if kind == "f" else array.copy()


def save(estimator: Any, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file, all or nothing; notes are JSON values for whoever reads it."""
    given, left_out = estimator.get_params(deep=False), {*_DROPPED, *estimator._as_arrays}
    further, arrays = estimator._contents()
    metadata = {
        "parameters": {name: encoded(value, name) for name, value in given.items() if name not in left_out},
        **further,
        **{name: kind(getattr(estimator, f"{name}_")) for name, kind in _FACTS.items()},
        **({} if notes is None else {"notes": dict(notes)}),
    }
    estimator._check()  # as `load` does
    arrays = {
        "theta": estimator.theta_,
        "history": history_rows(estimator.history_),
        "objective": np.float64(estimator.objective_),
        **arrays,
    }
    write_arrays(path, arrays, schema=_schema(type(estimator)), version=estimator.version, metadata=metadata)


def load_as(cls: type[Any], path: PathLike) -> Any:
    """Read what `save` wrote for an estimator of this class; everything is checked before it is believed.

    A class without a name in files, such as `CRF`, reads the files of all registered classes that derive from it.
    """
    if not hasattr(cls, "schema") and read_arrays(path).schema != _schema(cls):
        cls = _registered(path, cls)
    saved = Saved(cls, path)
    given = saved.entry("parameters", dict)
    if unknown := sorted(set(given) - set(cls._get_param_names()).difference(_DROPPED, cls._as_arrays)):
        raise saved.error(f"parameters of {cls.__name__}", f"{unknown[0]!a:.60}")
    try:
        parameters = {key: decoded(value, key) for key, value in given.items()}
        estimator = cls(**cls._from_arrays(saved), **parameters)
        estimator._check()
    except FileFormatError:
        raise
    except UnknownNameError as error:
        raise saved.error(f"a registered {error.argument}", error.got, f"{_REGISTER} first") from None
    except (IsinglassError, RecursionError) as error:
        raise saved.error(f"parameters of {cls.__name__}", f"{error!s:.400}") from None
    for key, kind in _FACTS.items():
        setattr(estimator, f"{key}_", saved.entry(key, kind))
    estimator.history_ = history_of(saved.file.arrays.get("history"), saved.name)
    estimator.theta_ = saved.array("theta", "f", (-1,))
    objective = saved.file.arrays.get("objective")
    if objective is None or objective.dtype != np.float64 or objective.shape != ():
        raise saved.error("an objective, one number", "something else")
    estimator.objective_ = float(objective)
    estimator._restore(saved)
    return estimator


def load(path: PathLike) -> Any:
    """Read an estimator that `save` wrote, of the class that is registered under the name in the file.

    It is safe for files of unknown origin. The class is one of the library's, or of the user's own.
    """
    return load_as(_registered(path), path)


def notes_of(path: PathLike) -> dict[str, Any]:
    """Return the notes that `save` put into a file; none, if there are none."""
    notes = read_arrays(path).metadata.get("notes", {})
    if not isinstance(notes, dict):
        raise FileFormatError(shown_path(path), None, "notes, a JSON object", type(notes).__name__)
    return notes


def _registered(path: PathLike, base: type[Any] = object) -> type[Any]:
    """Return the class that is registered under the name in a file; it must derive from `base`."""
    schema = read_arrays(path).schema
    if schema not in ESTIMATORS:
        raise FileFormatError(shown_path(path), None, "a fitted estimator", f"{schema!a:.60}", _REGISTER)
    if not issubclass(ESTIMATORS[schema], base):
        raise FileFormatError(shown_path(path), None, f"a fitted {base.__name__}", f"{schema!a:.60}")
    return ESTIMATORS[schema]


def _schema(cls: type[Any]) -> str:
    """Return the name of a class in files: that under which it registered, or, for one that did not, its own."""
    return str(vars(cls).get("schema", cls.__name__))
