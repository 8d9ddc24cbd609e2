"""What repetitions tell: means with their standard errors, paired tests, and several tests at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from isinglass.typing import FloatArray

SAME = 1e-12  # relative differences up to this are rounding


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and its standard error; None for the latter if there is one value only.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    standard_error = None if len(values) < 2 else float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return float(np.mean(values)), standard_error


def p_value(one: FloatArray, two: FloatArray) -> float:
    """Return the two-sided p-value of a paired t-test; one where nothing differs by more than rounding, or of one pair.

    Examples
    --------
    >>> p_value(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])), p_value(np.full(5, 0.1 + 0.2), np.full(5, 0.3))
    (1.0, 1.0)
    """
    from scipy.stats import ttest_1samp

    size = np.maximum(np.abs(one), np.abs(two))
    differences = np.where(np.abs(one - two) > SAME * size, one - two, 0.0)
    if len(differences) < 2 or not differences.any():
        return 1.0
    return float(ttest_1samp(differences, 0.0).pvalue)


def holm(p: Sequence[float]) -> FloatArray:
    """Adjust p-values of several tests, so that one below a level is a false alarm with that probability (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02]).tolist()
    [0.03, 0.5, 0.04]
    """
    order = np.argsort(p)
    raised = np.asarray(p)[order] * np.arange(len(order), 0, -1)
    found = np.empty(len(order))
    found[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return found


def sign_test(differences: FloatArray, permutations: int = 2000) -> float:
    """Return the two-sided p-value of a paired permutation test: how often random signs give as large a mean.

    Examples
    --------
    >>> sign_test(np.array([1.0, -1.0])), sign_test(np.full(20, 0.5)) < 0.01
    (1.0, True)
    >>> differences = np.array([0.1, 0.2, 0.4, 0.7, 0.3])  # 1 in 16 of all signs
    >>> sign_test(differences) == sign_test(1e7 * differences) > 0.04
    True
    """
    rng = np.random.default_rng(0)
    least = abs(float(differences.sum())) - SAME * float(np.abs(differences).sum())  # as large, but for rounding
    at_once = max(1, 2**22 // max(1, len(differences)))
    count = 0
    for start in range(0, permutations, at_once):
        signs = rng.integers(0, 2, (min(at_once, permutations - start), len(differences)), np.int8)
        count += int((np.abs((2 * signs - 1.0) @ differences) >= least).sum())
    return (count + 1) / (permutations + 1)
