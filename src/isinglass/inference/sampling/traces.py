"""What chains went through: their draws, and the chains themselves, to go on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import MissingDependencyError
from isinglass.inference.sampling.chains import Chains, States
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
    """

    draws: States
    chains: Chains
    sweeps: int
    burn_in: int
    thin: int

    @property
    def states(self) -> IntArray:
        """The draws, (chains, draws, variables)."""
        return np.ascontiguousarray(self.draws.transpose(2, 0, 1).astype(np.int64))

    def to_arviz(self) -> arviz.InferenceData:
        """Return the draws as an ArviZ data set with the variable `states`, dimensions (chain, draw, variable)."""
        try:
            import arviz
        except ImportError as error:
            raise MissingDependencyError("to_arviz needs ArviZ: pip install arviz") from error
        return arviz.from_dict({"states": self.states}, dims={"states": ["variable"]})

    def __repr__(self) -> str:
        draws, variables, chains = self.draws.shape
        what = f"{chains} chains, {draws} draws of {variables} variables"
        return f"Traces: {what}, {self.thin} sweeps apart, after {self.burn_in} of {self.sweeps} sweeps"
