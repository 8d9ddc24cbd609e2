"""From log-potentials to a Result: every algorithm registers here under its public name."""

from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Cost, Facts, FixedPoint
from isinglass.inference.api import algorithms, infer, map_assignment, n_best, sample
from isinglass.inference.bp import BeliefPropagation, FractionalBeliefPropagation, TreeReweighted
from isinglass.inference.brute import Brute
from isinglass.inference.convex import ConvexFreeEnergy, EntropyWeights
from isinglass.inference.exact import Exact
from isinglass.inference.hessian import hessian_vector_product
from isinglass.inference.max_product import MaxProduct
from isinglass.inference.mf import MeanField
from isinglass.inference.perturb import perturbation
from isinglass.inference.result import Assignment, Gradients, Info, Result
from isinglass.inference.smf import StructuredMeanField

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Assignment",
    "BeliefPropagation",
    "Brute",
    "ConvexFreeEnergy",
    "Cost",
    "EntropyWeights",
    "Exact",
    "Facts",
    "FixedPoint",
    "FractionalBeliefPropagation",
    "Gradients",
    "Info",
    "MaxProduct",
    "MeanField",
    "Result",
    "StructuredMeanField",
    "TreeReweighted",
    "algorithms",
    "hessian_vector_product",
    "infer",
    "map_assignment",
    "n_best",
    "perturbation",
    "sample",
]
