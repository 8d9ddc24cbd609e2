"""What chains went through: their draws, and the chains themselves, to go on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import MissingDependencyError
from isinglass.inference.sampling.chains import Chains, States
from isinglass.inference.sampling.means import RunningMeans
from isinglass.typing import IntArray

if TYPE_CHECKING:
    import arviz


@dataclass(frozen=True, eq=False, repr=False)
class Traces:
    """The draws of a sampler.

    Attributes
    ----------
    draws : array (draws, variables, chains)
        The states that were kept: after the burn-in, one of every `thin` sweeps.
    chains : Chains
        The chains after the last sweep. ``infer(..., init=result)`` goes on from them.
    sweeps, burn_in, thin : int
        Sweeps of each chain, how many of them were left out at the beginning, and how far the kept ones are apart.
    means : RunningMeans, optional
        Sums of conditional probabilities over all sweeps that were not left out.
    names : tuple of str, optional
        The names of the variables, where the graph has some.
    """

    draws: States
    chains: Chains
    sweeps: int
    burn_in: int
    thin: int
    means: RunningMeans | None = None
    names: tuple[str, ...] | None = None

    @property
    def states(self) -> IntArray:
        """The draws, (chains, draws, variables)."""
        return np.ascontiguousarray(self.draws.transpose(2, 0, 1).astype(np.int64))

    def to_arviz(self) -> arviz.InferenceData:
        """Return the draws for ArviZ, in the group `posterior`.

        The variable `states` has the dimensions (chain, draw, variable); the last has the names of the model's
        variables as coordinates, if there are any. ArviZ from version 1 on gives a `DataTree`, older versions an
        `InferenceData`.
        """
        try:
            import arviz
        except ImportError as error:
            raise MissingDependencyError("to_arviz needs ArviZ: pip install arviz") from error
        groups: dict[str, dict[str, IntArray]] = {"posterior": {"states": self.states}}
        coords = {"variable": np.array(self.names)} if self.names is not None else {}
        about = {"coords": coords, "dims": {"states": ["variable"]}}
        if arviz.__version__.startswith("0."):
            return arviz.from_dict(**groups, **about)
        return arviz.from_dict(groups, **about)

    def __repr__(self) -> str:
        draws, variables, chains = self.draws.shape
        what = f"{chains} chains, {draws} draws of {variables} variables"
        return f"Traces: {what}, {self.thin} sweeps apart, after {self.burn_in} of {self.sweeps} sweeps"
