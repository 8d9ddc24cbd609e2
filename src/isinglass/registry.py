"""Names for choices: a registry maps a public name ("exact") to the class that implements it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Generic, TypeVar

from isinglass.errors import InputError, UnknownNameError
from isinglass.removed import refuse_removed, refuse_removed_options

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """An ordered mapping from names to entries, with a helpful error for an unknown name.

    Examples
    --------
    >>> colours = Registry("colour")
    >>> _ = colours.register("red")(object())
    >>> colours["rad"]
    Traceback (most recent call last):
    ...
    isinglass.errors.UnknownNameError: colour: expected one of 'red', got 'rad'; did you mean 'red'?
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under `name`.

        What is defined again, as by a second run of a notebook's cell, takes the place of the old entry: it has the
        same module and the same qualified name. Any other entry under a name that is taken is refused.
        """

        def file(entry: T) -> T:
            if name in self._entries and _origin(entry) != _origin(self._entries[name]):
                raise InputError("name", f"a new {self.what}", f"{name!r}, which is taken")
            self._entries[name] = entry
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if isinstance(name, str) and name in self._entries:
            return self._entries[name]
        refuse_removed(f"{self.what} {name!r}")
        known = ", ".join(map(repr, self._entries))
        raise UnknownNameError(self.what, f"one of {known}", repr(name), did_you_mean(str(name), self._entries))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for the known name that is closest to an unknown one; an empty text if none is close.

    Examples
    --------
    >>> did_you_mean("max_iters", ["tol", "max_iter"]), did_you_mean("speed", ["tol"])
    ("did you mean 'max_iter'?", '')
    """
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else ""


def _origin(entry: object) -> tuple[str, str]:
    """Return where a class or function, or the class of an object, was defined."""
    source = entry if hasattr(entry, "__qualname__") else type(entry)
    return source.__module__, source.__qualname__


def require_declared(cls: type, decorator: str = "@dataclass(frozen=True)", **kinds: type) -> None:
    """Refuse a class that lacks one of these class attributes, or that is no dataclass itself.

    Without a decorator of its own a class has the options of its base class, and what it declares is none.

    Examples
    --------
    >>> require_declared(type("Mine", (), {}), name=str)
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: name: expected a class attribute of type str, got none in Mine
    """
    for attribute, kind in kinds.items():
        value = getattr(cls, attribute, None)
        if not isinstance(value, kind):
            got = "none" if value is None else type(value).__name__
            raise InputError(attribute, f"a class attribute of type {kind.__name__}", f"{got} in {cls.__name__}")
    if "__dataclass_fields__" not in vars(cls):
        raise InputError(cls.__name__, "a dataclass", "another class", f"write {decorator} below @register")


def choose(
    registry: Registry[type[T]],
    base: type[T],
    given: str | T,
    options: Mapping[str, object],
    example: str,
) -> T:
    """Return the object of this name, or the given object, with further options.

    Parameters
    ----------
    registry : Registry
        Of frozen dataclasses, whose fields are their options.
    base : type
        What every object of the registry is.
    given : str or object
    options : mapping
        Options that the object is to have.
    example : str
        The name of an entry, for the message about what is neither a name nor an object.
    """
    if not isinstance(given, (str, base)):
        got = type(given).__name__ if not isinstance(given, type) else f"the class {given.__name__}"
        expected = f"a name such as {example!r} or an object such as {registry[example].__name__}()"
        raise InputError(registry.what, expected, got)
    if not (options or isinstance(given, str)):
        return given
    cls = registry[given] if isinstance(given, str) else type(given)
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    unknown = [o for o in options if o not in known]
    if unknown:
        expected = "one of " + ", ".join(known) if known else "no options"
        refuse_removed_options(cls.__name__, unknown)
        name, remedy = getattr(cls, "name", cls.__name__), did_you_mean(unknown[0], known)
        raise InputError(unknown[0], f"an option of {name!r} ({expected})", f"{options[unknown[0]]!r:.40}", remedy)
    if isinstance(given, str):
        return cls(**options)
    return replace(given, **options)  # type: ignore[type-var]
