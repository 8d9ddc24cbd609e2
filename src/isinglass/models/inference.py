"""Parameters of inference that are learned together with those of a model.

An algorithm says what can be learned (`Algorithm.parameters`). Here these join the parameters of the model in one
vector theta. A part theta_p stands for the value v_p + theta_p, with v_p the value that the algorithm came with: theta
of zero changes nothing, and penalties pull towards what was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.models.model import Model, slices
from isinglass.models.terms import Kind
from isinglass.typing import Array, FloatArray
from isinglass.validation import instance, real_numbers


class InferenceModel(Model):
    """A model with further parameters, which belong to inference.

    Parameters
    ----------
    plain : Model
        What the log-potentials come from.
    values : mapping of str to array
        The parameters of inference, with their values where theta is zero.

    Examples
    --------
    >>> import isinglass as ig
    >>> plain = ig.models.graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2)
    >>> model = InferenceModel(plain, {"damping": [0.5]})
    >>> model.parameters, model.inference_parameters(np.arange(7.0))
    ({'node': (1, 2), 'edge': (2, 2), 'damping': (1,)}, {'damping': array([6.5])})
    """

    def __init__(self, plain: Model, values: Mapping[str, ArrayLike]) -> None:
        self.values = {name: real_numbers(value, f"values[{name!r}]", "numbers") for name, value in values.items()}
        self._extend(plain, {name: (value.shape, "clique") for name, value in self.values.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return (InferenceModel, (self.plain, self.values))

    def without_inference(self) -> Model:
        """Return the model without the parameters of inference."""
        return self.plain

    def inference_parameters(self, theta: ArrayLike) -> dict[str, Array]:
        """Return the values of the parameters of inference."""
        parts = self.split(theta)
        return {name: value + parts[name] for name, value in self.values.items()}

    def inference_transpose(self, theta: ArrayLike, slopes: Mapping[str, Array]) -> FloatArray:
        """Put derivatives by those into a vector like theta."""
        total = np.zeros(self.size)
        for name in self.values:
            total[self._where[name]] = np.ravel(slopes[name])
        return total

    def reduced(self, theta: ArrayLike) -> Array:
        """Return the parameters to keep, of all that give the same tables."""
        flat, before = self._checked(theta), self.plain.size
        return np.concatenate([self.plain.reduced(flat[:before]), flat[before:]])

    def _extend(self, plain: Model, added: Mapping[str, tuple[tuple[int, ...], Kind]]) -> None:
        """Take over a model, and append parameters with their shapes and kinds."""
        instance(plain, Model, "plain")
        self.__dict__ |= {name: value for name, value in plain.__dict__.items() if name not in self.__dict__}
        if taken := set(added) & set(plain.parameters):
            raise InputError("values", "names that the model does not use", f"{min(taken)!r}")
        self.plain = plain
        self.parameters = plain.parameters | {name: shape for name, (shape, _) in added.items()}
        self.kinds = plain.kinds | {name: kind for name, (_, kind) in added.items()}
        self._where, self.size = slices(self.parameters), sum(map(prod, self.parameters.values()))
