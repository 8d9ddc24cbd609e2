"""What a prediction costs: losses of beliefs, of decisions, of log Z, and of the log tables alone, by their names."""

from isinglass.losses.clique import CliqueLikelihood, CliqueLoss, CliqueQuadratic
from isinglass.losses.costs import cost_matrix
from isinglass.losses.expected import ExpectedCost, LogExpectedCost
from isinglass.losses.hinge.hinge import HingeLoss
from isinglass.losses.hinge.margin import Margin, Perceptron, Viterbi
from isinglass.losses.hinge.slack import Slack
from isinglass.losses.likelihood import Likelihood
from isinglass.losses.local import MinimumProbabilityFlow
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
    Memory,
    ScoringLoss,
    make,
    register,
)
from isinglass.losses.piecewise import Piecewise
from isinglass.losses.pseudo import Pseudolikelihood
from isinglass.losses.sampled.divergence import (
    ContrastiveDivergence,
    PersistentDivergence,
    SampledLoss,
    StochasticLikelihood,
)
from isinglass.losses.smooth import SmoothedClique, SmoothedUnivariate
from isinglass.losses.tasks.decoded import DecodedLoss, TaskLoss
from isinglass.losses.tasks.errors_of_states import L1, MSE, Hamming
from isinglass.losses.tasks.f_measure import FMeasure
from isinglass.losses.tasks.hybrid import Hybrid, annealed, hybrids
from isinglass.losses.univariate import UnivariateLikelihood, UnivariateLoss, UnivariateQuadratic
from isinglass.removed import missing_attribute

__all__ = [
    "L1",
    "LOSSES",
    "MSE",
    "BeliefLoss",
    "CliqueLikelihood",
    "CliqueLoss",
    "CliqueQuadratic",
    "ContrastiveDivergence",
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
    "LogExpectedCost",
    "Loss",
    "LossFacts",
    "LossProblem",
    "LossValue",
    "Margin",
    "Memory",
    "MinimumProbabilityFlow",
    "Perceptron",
    "PersistentDivergence",
    "Piecewise",
    "Pseudolikelihood",
    "SampledLoss",
    "ScoringLoss",
    "Slack",
    "SmoothedClique",
    "SmoothedUnivariate",
    "StochasticLikelihood",
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

__getattr__ = missing_attribute(__name__)
