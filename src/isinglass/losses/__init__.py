"""What a prediction costs: losses of beliefs, of decisions, of log Z, and of the log tables alone, by their names."""

from isinglass.losses.clique import CliqueLikelihood, CliqueLoss, CliqueQuadratic
from isinglass.losses.costs import cost_matrix
from isinglass.losses.expected import ExpectedCost
from isinglass.losses.likelihood import Likelihood
from isinglass.losses.local import LocalLoss, MinimumProbabilityFlow, RatioMatching
from isinglass.losses.loss import (
    LOSSES,
    BeliefLoss,
    CostTables,
    Differentiate,
    Evaluation,
    Loss,
    LossFacts,
    LossProblem,
    LossValue,
    ScoringLoss,
    make,
    register,
)
from isinglass.losses.margin import HingeLoss, Margin, Perceptron, Viterbi
from isinglass.losses.piecewise import Piecewise
from isinglass.losses.pseudo import Pseudolikelihood
from isinglass.losses.smooth import SmoothedClique, SmoothedUnivariate
from isinglass.losses.tasks.decoded import DecodedLoss, TaskLoss
from isinglass.losses.tasks.errors_of_states import L1, MSE, Hamming
from isinglass.losses.tasks.f_measure import FMeasure
from isinglass.losses.tasks.hybrid import Hybrid, annealed, hybrids
from isinglass.losses.univariate import UnivariateLikelihood, UnivariateLoss, UnivariateQuadratic

__all__ = [
    "L1",
    "LOSSES",
    "MSE",
    "BeliefLoss",
    "CliqueLikelihood",
    "CliqueLoss",
    "CliqueQuadratic",
    "CostTables",
    "DecodedLoss",
    "Differentiate",
    "Evaluation",
    "ExpectedCost",
    "FMeasure",
    "Hamming",
    "HingeLoss",
    "Hybrid",
    "Likelihood",
    "LocalLoss",
    "Loss",
    "LossFacts",
    "LossProblem",
    "LossValue",
    "Margin",
    "MinimumProbabilityFlow",
    "Perceptron",
    "Piecewise",
    "Pseudolikelihood",
    "RatioMatching",
    "ScoringLoss",
    "SmoothedClique",
    "SmoothedUnivariate",
    "TaskLoss",
    "UnivariateLikelihood",
    "UnivariateLoss",
    "UnivariateQuadratic",
    "Viterbi",
    "annealed",
    "cost_matrix",
    "hybrids",
    "make",
    "register",
]
