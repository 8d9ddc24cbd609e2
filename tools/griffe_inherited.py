"""Show in the reference what estimators inherit: docstrings that `isinglass.estimators` completes when it is loaded.

An extension of Griffe, which otherwise reads the sources alone; see mkdocs.yml.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import griffe


class Inherited(griffe.Extension):
    """Take the docstrings of estimators from the classes themselves."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring of a class."""
        if cls.path.startswith("isinglass.estimators.") and cls.docstring is not None:
            found = getattr(import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.cleandoc(found.__doc__)
