"""scikit-learn's base class, or, where it is not installed, one that says how to get it."""

from __future__ import annotations

from typing import Any

from isinglass.errors import MissingDependencyError

__all__ = ["BaseEstimator", "NotFittedError"]

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
except ModuleNotFoundError:

    class BaseEstimator:  # type: ignore[no-redef]
        """A stand-in: its documentation can be read, but it cannot be used."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Say what is missing."""
            raise MissingDependencyError(f"{cls.__name__} needs scikit-learn: pip install scikit-learn")

    NotFittedError = ValueError
