"""From log-potentials to a Result: every algorithm registers here under its public name."""

from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Cost, Facts
from isinglass.inference.api import algorithms, infer, map_assignment, n_best, sample
from isinglass.inference.bp import BeliefPropagation, FractionalBeliefPropagation, TreeReweighted
from isinglass.inference.brute import Brute
from isinglass.inference.exact import Exact
from isinglass.inference.mf import MeanField
from isinglass.inference.result import Assignment, Info, Result
from isinglass.inference.smf import StructuredMeanField

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Assignment",
    "BeliefPropagation",
    "Brute",
    "Cost",
    "Exact",
    "Facts",
    "FractionalBeliefPropagation",
    "Info",
    "MeanField",
    "Result",
    "StructuredMeanField",
    "TreeReweighted",
    "algorithms",
    "infer",
    "map_assignment",
    "n_best",
    "sample",
]
