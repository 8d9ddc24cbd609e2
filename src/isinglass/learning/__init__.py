"""Learning: what is minimised, how, and how a long run is kept."""

from isinglass.learning import checkpoint, markov, optimizers, structure
from isinglass.learning.combinations import Combination, combinations
from isinglass.learning.markov import SampledLikelihood
from isinglass.learning.objective import Objective
from isinglass.learning.structure import induce_features, learn_structure
from isinglass.removed import missing_attribute

__all__ = [
    "Combination",
    "Objective",
    "SampledLikelihood",
    "checkpoint",
    "combinations",
    "induce_features",
    "learn_structure",
    "markov",
    "optimizers",
    "structure",
]

__getattr__ = missing_attribute(__name__)
