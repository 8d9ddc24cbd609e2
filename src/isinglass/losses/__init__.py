"""What a prediction costs: losses of beliefs, of log Z, and of the log tables alone, by their public names."""

from isinglass.losses.clique import CliqueLikelihood, CliqueLoss, CliqueQuadratic
from isinglass.losses.likelihood import Likelihood
from isinglass.losses.loss import LOSSES, BeliefLoss, Loss, LossFacts, LossValue, make, register
from isinglass.losses.pseudo import Pseudolikelihood
from isinglass.losses.smooth import SmoothedClique, SmoothedUnivariate
from isinglass.losses.univariate import UnivariateLikelihood, UnivariateLoss, UnivariateQuadratic

__all__ = [
    "LOSSES",
    "BeliefLoss",
    "CliqueLikelihood",
    "CliqueLoss",
    "CliqueQuadratic",
    "Likelihood",
    "Loss",
    "LossFacts",
    "LossValue",
    "Pseudolikelihood",
    "SmoothedClique",
    "SmoothedUnivariate",
    "UnivariateLikelihood",
    "UnivariateLoss",
    "UnivariateQuadratic",
    "make",
    "register",
]
