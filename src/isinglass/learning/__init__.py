"""Learning: what is minimised, how, and how a long run is kept."""

from isinglass.learning import checkpoint, optimisers, optimizers
from isinglass.learning.combinations import Combination, combinations
from isinglass.learning.objective import Objective
from isinglass.learning.total import Total

__all__ = ["Combination", "Objective", "Total", "checkpoint", "combinations", "optimisers", "optimizers"]
