"""The F-measure of a positive state: of each example, or of all together.

F_beta  =  (1 + beta²) right / (beta² true + predicted)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import require
from isinglass.validation import positive as positive_number


def f_measure(
    true: Sequence[ArrayLike],
    predicted: Sequence[ArrayLike],
    positive: int = 1,
    beta: float = 1.0,
    average: str = "examples",
) -> float:
    """Return F_beta of a positive state; precision and recall of an example without any positives are one.

    Parameters
    ----------
    true, predicted : sequence of int arrays
        The states of each example. Where the truth is -1, not observed, nothing is counted.
    positive : int
    beta : float
        Recall counts beta times as much as precision.
    average : {"examples", "corpus"}
        The mean of F over examples; or one F, of counts that are added up over all examples.

    Examples
    --------
    >>> true, predicted = [[1, 0], [1, 1]], [[1, 1], [1, 0]]
    >>> round(f_measure(true, predicted), 4), round(f_measure(true, predicted, beta=2.0), 4)
    (0.6667, 0.6944)
    >>> f_measure([[0, 0], [1, 1]], [[0, 0], [1, 0]], average="corpus")
    0.6666666666666666
    """
    require(average in ("examples", "corpus"), "average", "'examples' or 'corpus'", repr(average))
    beta = positive_number(beta, "beta")
    for name, given in (("true", true), ("predicted", predicted)):
        require(hasattr(given, "__len__"), name, "a sequence of int arrays", type(given).__name__)
    require(len(true) == len(predicted), "predicted", f"{len(true)} examples", f"{len(predicted)}")
    require(len(true) > 0, "true", "at least one example", "none")
    counts = [_counts(y, x, positive, i) for i, (y, x) in enumerate(zip(true, predicted, strict=True))]
    if average == "corpus":
        counts = [(sum(c[0] for c in counts), sum(c[1] for c in counts), sum(c[2] for c in counts))]
    each = [
        (1 + beta**2) * right / total if (total := beta**2 * real + found) else 1.0 for right, found, real in counts
    ]
    return sum(each) / len(each)


def _counts(true: ArrayLike, predicted: ArrayLike, positive: int, i: int) -> tuple[int, int, int]:
    """Return how many positives are right, predicted and true."""
    y, x = np.asarray(true), np.asarray(predicted)
    require(y.ndim > 0, f"true[{i}]", "the states of an example", "a single number", "put one example into a list")
    require(y.shape == x.shape, f"predicted[{i}]", f"shape {y.shape}", f"shape {x.shape}")
    real, found = y == positive, (x == positive) & (y != -1)
    return int((real & found).sum()), int(found.sum()), int(real.sum())
