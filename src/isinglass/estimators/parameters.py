"""The types of parameters that several estimators have; `fit` checks them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from isinglass.decoding import Decoder
from isinglass.gradients import GradientRule
from isinglass.inference import Algorithm
from isinglass.io.files import PathLike
from isinglass.learning.optimizers import Optimizer, Progress
from isinglass.losses import Loss

InferenceLike: TypeAlias = str | Algorithm
LossLike: TypeAlias = str | Loss
GradientLike: TypeAlias = str | GradientRule
OptimizerLike: TypeAlias = str | Optimizer[Any]
DecoderLike: TypeAlias = str | Decoder
StagesLike: TypeAlias = Sequence[str | Loss | Mapping[str, object]] | None
Edges: TypeAlias = Literal["directions", "shared", "none"]
Entropy: TypeAlias = str | Mapping[str, ArrayLike] | None
ClassWeight: TypeAlias = str | Mapping[Any, float] | ArrayLike | None
IgnoredLabel: TypeAlias = int | str | None
Forbidden: TypeAlias = Collection[tuple[object, ...]] | None
Checkpoint: TypeAlias = PathLike | None
Callback: TypeAlias = Callable[[Progress], object] | None
