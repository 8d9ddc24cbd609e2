"""Which variables depend on which: graphs learned from samples. Every method registers here under its public name."""

from isinglass.learning.structure.chow_liu import ChowLiu
from isinglass.learning.structure.decomposable import GreedyDecomposable
from isinglass.learning.structure.induction import Induction, InductionStep, induce_features
from isinglass.learning.structure.learner import STRUCTURES, StructureLearner, learn_structure, register
from isinglass.learning.structure.neighbourhood import GroupLasso, NeighbourhoodSelection

__all__ = [
    "STRUCTURES",
    "ChowLiu",
    "GreedyDecomposable",
    "GroupLasso",
    "Induction",
    "InductionStep",
    "NeighbourhoodSelection",
    "StructureLearner",
    "induce_features",
    "learn_structure",
    "register",
]
