"""Learning: what is minimised, how, and how a long run is kept."""

from isinglass.learning import checkpoint, markov, optimisers, optimizers, structure
from isinglass.learning.combinations import Combination, combinations
from isinglass.learning.markov import SampledLikelihood
from isinglass.learning.objective import Objective
from isinglass.learning.structure import induce_features, learn_structure
from isinglass.learning.total import Total

__all__ = [
    "Combination",
    "Objective",
    "SampledLikelihood",
    "Total",
    "checkpoint",
    "combinations",
    "induce_features",
    "learn_structure",
    "markov",
    "optimisers",
    "optimizers",
    "structure",
]
