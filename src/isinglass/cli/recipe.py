"""What `isinglass fit` is told in a TOML file: which estimator, its options, and how tokens become attributes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from isinglass.errors import FileFormatError, InputError, require
from isinglass.features.words import word_form
from isinglass.learning.training.checks import renamed
from isinglass.registry import did_you_mean

if TYPE_CHECKING:
    from isinglass.io.files import PathLike
    from isinglass.typing import JsonObject

ESTIMATORS = ("chain", "grid", "graph")
_NOT_HERE = ("callback", "checkpoint", "verbose", "warm_start")  # options of the command, or of no file
_TABLES = ("inference", "loss", "optimizer")  # options that may be a table {name = ..., ...}
_KEYS = ("estimator", "label", "separator", "scheme", "columns", "forms", "windows", "options")


@dataclass(frozen=True)
class Recipe:
    """A checked recipe.

    Attributes
    ----------
    estimator : "chain", "grid" or "graph"
    options : dict
        Parameters of the estimator, as TOML has them.
    label : int
        For text: the column of the labels, from 0; negative ones from the end.
    separator : str or None
        For text: between columns; None: spaces and tabs.
    columns : dict of str to int
        For text: the columns that attributes are made of; none given: all but that of the labels.
    scheme : "bio", "bioes" or None
        For text: the labels are spans, and the model learns this scheme; predictions are in BIO.
    forms : dict of str to list of str
        For text: further columns, what the words of a column look like; see `isinglass.features.word_form`.
    windows : dict of str to list of lists of int
        For text: the offsets that are looked at together; see `isinglass.features.window_attributes`.
    """

    estimator: str
    options: JsonObject = field(default_factory=dict)
    label: int = -1
    separator: str | None = None
    columns: dict[str, int] = field(default_factory=dict)
    windows: dict[str, list[list[int]]] = field(default_factory=dict)
    scheme: str | None = None
    forms: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: PathLike) -> Recipe:
        """Read a TOML file."""
        from isinglass.io.files import read_text, shown_path

        try:
            given = tomllib.loads(read_text(path, limit=2**20))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise FileFormatError(shown_path(path), None, "TOML", f"{error!s:.200}") from None
        try:
            return cls.of(given)
        except InputError as error:
            remedy = f"{error.remedy}; " * bool(error.remedy) + "see: isinglass fit --help"
            expected = f"{error.expected} as {error.argument}"
            raise FileFormatError(shown_path(path), None, expected, error.got, remedy) from None

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Recipe:
        """Check the entries of a recipe.

        Examples
        --------
        >>> Recipe.of({"estimator": "grid", "options": {"iterations": 4}}).options
        {'iterations': 4}
        """
        for key in given:
            if key not in _KEYS:
                raise InputError("an entry", f"one of {', '.join(_KEYS)}", f"{key!a:.40}", did_you_mean(key, _KEYS))
        if given.get("estimator") not in ESTIMATORS:
            expected = " or ".join(map(repr, ESTIMATORS))
            raise InputError("estimator", expected, f"{given.get('estimator', 'nothing')!a:.40}")
        recipe = cls(**{key: _plain(value, key) for key, value in given.items()})
        recipe._check()
        return recipe

    def _check(self) -> None:
        _require(isinstance(self.options, dict), "options", "a table")
        _require(type(self.label) is int, "label", "the number of a column, from 0, or from the end: -1")
        _require(self.separator is None or (isinstance(self.separator, str) and self.separator), "separator", "text")
        numbers = isinstance(self.columns, dict) and all(type(c) is int for c in self.columns.values())
        _require(numbers, "columns", "a table of column numbers, such as {w = 0, t = 1}")
        _require(isinstance(self.windows, dict) and all(map(_are_windows, self.windows.values())), "windows",
                 "lists of offsets from -20 to 20, such as [[0], [-1, 0]]")  # fmt: skip
        self._check_forms()
        for name in self.windows:
            plain, _, form = name.partition(".")
            known = not form or form in self.forms.get(plain, ())
            _require(
                known and self._is_column(plain), f"windows.{name}", "the name of a column, c0, c1, ..., or a form"
            )
        extra = (self.columns, self.windows, self.forms, self.separator, self.scheme)
        if self.estimator != "chain" and any(extra):
            raise InputError("columns, forms, windows, separator, scheme", "none, unless estimator is 'chain'", "some")

    def _check_forms(self) -> None:
        from isinglass.features.schemes import SCHEMES

        _require(self.scheme is None or self.scheme in SCHEMES, "scheme", " or ".join(map(repr, SCHEMES)))
        lists = isinstance(self.forms, dict) and all(isinstance(forms, list) for forms in self.forms.values())
        _require(lists, "forms", "a table of lists, such as {w = ['lower', 'suffix3']}")
        for name, forms in self.forms.items():
            _require(self._is_column(name), f"forms.{name}", "the name of a column, or c0, c1, ...")
            for form in forms:
                with renamed("form", f"forms.{name}"):
                    word_form("", form)

    def _is_column(self, name: str) -> bool:
        return name in self.columns if self.columns else re.fullmatch(r"c\d{1,3}", name) is not None

    def to_json(self) -> JsonObject:
        """Return what `of` makes the recipe from again."""
        return asdict(self)

    def make(self, **more: Any) -> Any:
        """Return the estimator, not fitted."""
        cls = estimator_class(self.estimator)
        known = [name for name in cls._get_param_names() if name not in _NOT_HERE]
        for name in self.options:
            expected, got = f"one of {', '.join(known)}", f"{name!a:.40}"
            require(name in known, f"options.{name}", expected, got, did_you_mean(name, known))
        chosen = {name: _chosen(name, value) for name, value in self.options.items()}
        return cls(**chosen, **more)


def estimator_class(name: str) -> Any:
    """Return the class of an estimator's short name."""
    from isinglass.estimators import ChainCRF, GraphCRF, GridCRF

    return {"chain": ChainCRF, "grid": GridCRF, "graph": GraphCRF}[name]


def option_text(name: str) -> str:
    """Return the description of an estimator's options, from its documentation."""
    import inspect

    text = inspect.getdoc(estimator_class(name)) or ""
    section = text.split("Parameters\n----------\n", 1)[1].split("\n\nAttributes\n", 1)[0]
    entries = re.split(r"\n(?=\S)", section)
    kept = [entry for entry in entries if entry.split(" ", 1)[0].rstrip(",") not in _NOT_HERE]
    return "\n".join(kept)


def _chosen(name: str, value: object) -> object:
    """Turn a table {name = ..., option = ...} into an object, also in the tables of stages."""
    if name == "stages" and isinstance(value, list):
        return [
            {key: _chosen(key, item) for key, item in one.items()} if isinstance(one, dict) else one for one in value
        ]
    if name not in _TABLES or not isinstance(value, dict):
        return value
    from isinglass import losses
    from isinglass.inference.algorithm import make as make_inference
    from isinglass.learning.optimizers import make_optimizer

    options = dict(value)
    kind = options.pop("name", None)
    require(isinstance(kind, str), f"options.{name}", "a name, or a table with a name", "a table without")
    if name == "inference":
        return make_inference(kind, options)
    return losses.make(kind, **options) if name == "loss" else make_optimizer(kind, **options)


def _are_windows(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(window, list) and window for window in value):
        return False
    return all(type(d) is int and -20 <= d <= 20 for window in value for d in window)


def _require(fine: object, argument: str, expected: str) -> None:
    require(fine, argument, expected, "something else")


def _plain(value: Any, argument: str) -> Any:
    """Refuse what a model file cannot keep: dates and times."""
    if isinstance(value, dict):
        return {key: _plain(item, f"{argument}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, argument) for item in value]
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InputError(argument, "text, numbers, true, false, lists or tables", type(value).__name__)
    return value
