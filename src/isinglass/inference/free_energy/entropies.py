"""The entropy weights of a convex free energy as an option of an estimator: fixed, or learned from a given start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.free_energy.algorithm import ConvexFreeEnergy
from isinglass.inference.free_energy.weights import NAMED, EntropyTable

FIT = "fit"


def with_entropy(algorithm: Algorithm, entropy: Any, earlier: Iterable[Algorithm], symmetric: bool) -> Algorithm:
    """Return an inference with an entropy.

    Parameters
    ----------
    algorithm : Algorithm
    entropy : str, mapping or None
        A name, tables, or "fit"; None: that of the algorithm.
    earlier : iterable of Algorithm
        Those of earlier stages of training, the latest first. Fitting begins with the entropy of the first one that
        has one, or else that of the algorithm.
    symmetric : bool
        Whether tables of pairs must be symmetric.
    """
    if not isinstance(algorithm, ConvexFreeEnergy):
        if entropy is None:
            return algorithm
        _check_name(entropy)
        got = f"{entropy!r:.40} with inference {algorithm.name!r}"
        raise InputError("entropy", "None unless inference is 'convex'", got, "use inference='convex'")
    if entropy is None:
        given = algorithm.weights
        return _weighted(algorithm, given, symmetric) if isinstance(given, Mapping | EntropyTable) else algorithm
    _check_name(entropy)
    if entropy != FIT:
        named = isinstance(entropy, str)
        return replace(algorithm, weights=entropy) if named else _weighted(algorithm, entropy, symmetric)
    before = next((one.weights for one in earlier if isinstance(one, ConvexFreeEnergy)), algorithm.weights)
    table = replace(EntropyTable.of(before), fit=True)
    if np.min(np.asarray(table.variables)) <= 0:
        raise InputError("entropy", "one of positive weights before 'fit'", f"{table.variables}")
    return _weighted(algorithm, table, symmetric)


def _check_name(entropy: object) -> None:
    """Refuse what is neither the name of an entropy nor a mapping of tables."""
    named = isinstance(entropy, str) and entropy in (*NAMED, "bethe", FIT)
    if not isinstance(entropy, Mapping) and not named:
        expected = f"one of {', '.join(map(repr, NAMED))}, 'bethe', 'fit', a mapping of tables, or None"
        raise InputError("entropy", expected, f"{entropy!r:.40}")


def _weighted(algorithm: ConvexFreeEnergy, weights: object, symmetric: bool) -> ConvexFreeEnergy:
    return replace(algorithm, weights=replace(EntropyTable.of(weights), symmetric=symmetric))
