"""Attributes and weights that later data add to a fitted chain (`partial_fit`).

A new attribute gets the next number, before the constant one. Weights are listed by attribute and label, so that the
old ones move to other places; the new ones begin at zero, in the parameters as in all that an optimizer keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from isinglass.estimators.sequence.features import FeatureIndex
from isinglass.learning.optimizers.state import State
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel
from isinglass.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Growth:
    """A model with more weights, and where the old ones are.

    Attributes
    ----------
    model : SequenceModel
    places : int array (old size,)
        The place of each old parameter among the new ones.
    """

    model: SequenceModel
    places: IntArray

    def vector(self, old: FloatArray) -> FloatArray:
        """Return a vector of the old parameters among the new ones, which are zero."""
        new = np.zeros(self.model.size)
        new[self.places] = old
        return new

    def state(self, old: State) -> State:
        """Return the state of an optimizer with more parameters."""
        changed: dict[str, Any] = {}
        for field in fields(old):
            value = getattr(old, field.name)
            if isinstance(value, np.ndarray):
                changed[field.name] = self.vector(value)
            elif isinstance(value, tuple):
                changed[field.name] = tuple(map(self.vector, value))
        return replace(old, **changed)


def grown(model: SequenceModel, old: FeatureIndex, new: FeatureIndex, more: StateFeatures) -> Growth | None:
    """Return the model with the weights of further features, which are numbered by `new`; None: it has them all."""
    features, card = model.features, model.features.card
    attributes = features.attributes
    if old.bias:
        attributes = np.where(attributes == old.n_given, new.n_given, attributes)
    before = attributes * card + features.labels
    pairs = np.union1d(before, more.pairs)
    if len(pairs) == len(before) and new.n_given == old.n_given:
        return None
    wider = StateFeatures.of_pairs(pairs, new.n_attributes, card)
    others = np.arange(model.size - features.size) + len(pairs)
    places = np.concatenate([np.searchsorted(pairs, before), others])
    return Growth(SequenceModel(wider, model.boundary, model.forbidden), places)
