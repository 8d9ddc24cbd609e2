"""Inference: from log potentials to beliefs and log Z. Each algorithm is registered under its public name."""

from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Cost, Facts, FixedPoint
from isinglass.inference.api import algorithms, infer, map_assignment, map_solvers, n_best, sample
from isinglass.inference.assignment import Assignment, MapInfo
from isinglass.inference.brute import Brute
from isinglass.inference.free_energy.algorithm import ConvexFreeEnergy, EntropyWeights
from isinglass.inference.gaussian import GaussianField
from isinglass.inference.importance.annealed import AnnealedImportance
from isinglass.inference.importance.sampling import ImportanceSampling
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.map.auto import Auto
from isinglass.inference.map.cuts.graph_cut import GraphCut
from isinglass.inference.map.cuts.moves import Expansion
from isinglass.inference.map.cuts.qpbo import QPBO
from isinglass.inference.map.icm import ICM
from isinglass.inference.map.local_search import Annealing, IteratedLocalSearch
from isinglass.inference.map.relaxations.linear import IntegerProgram, LinearProgram
from isinglass.inference.map.relaxations.trws import TRWS
from isinglass.inference.map.solver import SOLVERS, Solver, SolverFacts
from isinglass.inference.map.toulbar2 import Toulbar2
from isinglass.inference.mean_field.naive import MeanField
from isinglass.inference.mean_field.structured import StructuredMeanField
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.inference.message_passing.algorithms.max_product import MaxProduct
from isinglass.inference.message_passing.algorithms.trw import FractionalBeliefPropagation, TreeReweighted
from isinglass.inference.result import Gradients, Info, Result
from isinglass.inference.sampling.algorithms import (
    Gibbs,
    ParallelTempering,
    SwendsenWang,
    TreeGibbs,
    Wolff,
)
from isinglass.inference.tracing.trace import Trace, trace
from isinglass.removed import missing_attribute

__getattr__ = missing_attribute(__name__)

__all__ = [
    "ALGORITHMS",
    "ICM",
    "QPBO",
    "SOLVERS",
    "TRWS",
    "Algorithm",
    "AnnealedImportance",
    "Annealing",
    "Assignment",
    "Auto",
    "BeliefPropagation",
    "Brute",
    "ConvexFreeEnergy",
    "Cost",
    "EntropyWeights",
    "Exact",
    "Expansion",
    "Facts",
    "FixedPoint",
    "FractionalBeliefPropagation",
    "GaussianField",
    "Gibbs",
    "Gradients",
    "GraphCut",
    "ImportanceSampling",
    "Info",
    "IntegerProgram",
    "IteratedLocalSearch",
    "LinearProgram",
    "MapInfo",
    "MaxProduct",
    "MeanField",
    "ParallelTempering",
    "Result",
    "Solver",
    "SolverFacts",
    "StructuredMeanField",
    "SwendsenWang",
    "Toulbar2",
    "Trace",
    "TreeGibbs",
    "TreeReweighted",
    "Wolff",
    "algorithms",
    "infer",
    "map_assignment",
    "map_solvers",
    "n_best",
    "sample",
    "trace",
]
