"""What a file holds of a fitted Markov random field beside its parameters, checked."""

from __future__ import annotations

import math

import numpy as np

from isinglass.estimators.field.data import Categories
from isinglass.estimators.persistence import Saved
from isinglass.graph.factor_graph import FactorGraph
from isinglass.models import Model
from isinglass.typing import Mask


def saved_categories(saved: Saved, graph: FactorGraph) -> Categories | None:
    """Return the labels of states in a file."""
    found = saved.optional("categories", list)
    if found is None:
        return None
    fits = len(found) == graph.n_variables and all(
        labels is None or (isinstance(labels, list) and len(labels) <= card)
        for labels, card in zip(found, graph.cards.tolist(), strict=True)
    )
    if not fits:
        raise saved.error("labels of states for each variable", f"{found!a:.60}")
    return found  # type: ignore[no-any-return]


def saved_zeros(saved: Saved, model: Model) -> tuple[Mask, ...] | None:
    """Return the hard zeros in a file."""
    if "zeros" not in saved.file.arrays:
        return None
    shapes = [tables.shape for tables in model.potentials(np.zeros(model.size)).groups]
    sizes = [math.prod(shape) for shape in shapes]
    flat = saved.array("zeros", "i", (sum(sizes),)) != 0
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
