"""The columns of data frames: their names, as scikit-learn keeps them, and whether later frames have the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isinglass.errors import InputError


def columns_of(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame; None for an array."""
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def require_columns(X: Any, known: Sequence[str] | None) -> None:
    """Refuse a data frame with other columns than that of `fit`, or in another order.

    Examples
    --------
    >>> import pandas as pd
    >>> require_columns(pd.DataFrame({"b": [0], "a": [1]}), ["a", "b"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: X: expected columns in the order of fit, got 'b' in the place of 'a'; use ...
    """
    found = columns_of(X)
    if found is None or known is None or found == list(known):
        return
    pairs = zip(found, known, strict=False)
    odd = next((f"{a!r} in the place of {b!r}" for a, b in pairs if a != b), f"{len(found)} of them")
    raise InputError("X", "columns in the order of fit", odd, "use X[estimator.feature_names_in_]")
