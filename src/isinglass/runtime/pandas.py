"""pandas, which only tables for people need."""

from __future__ import annotations

from typing import Any

from isinglass.errors import MissingDependencyError


def pandas_for(what: str) -> Any:
    """Return the package pandas, or say how to get it.

    Examples
    --------
    >>> pandas_for("to_frame").DataFrame({"a": [1]}).shape
    (1, 1)
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(f"{what} needs pandas: pip install pandas") from error
    return pd
