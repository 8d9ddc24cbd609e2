"""How an objective is minimised: every optimiser registers here under its public name."""

from isinglass.learning.optimisers.adagrad import AdaGrad
from isinglass.learning.optimisers.adam import Adam
from isinglass.learning.optimisers.base import OPTIMISERS, Optimizer, OptimResult, Progress, make_optimizer
from isinglass.learning.optimisers.lbfgs import Lbfgs, LbfgsState
from isinglass.learning.optimisers.minibatch import MiniBatch, MiniBatchState
from isinglass.learning.optimisers.owlqn import OwlQn
from isinglass.learning.optimisers.sgd import Sgd
from isinglass.learning.optimisers.state import State
from isinglass.learning.optimisers.steepest import SteepestDescent, SteepestState

__all__ = [
    "OPTIMISERS",
    "AdaGrad",
    "Adam",
    "Lbfgs",
    "LbfgsState",
    "MiniBatch",
    "MiniBatchState",
    "OptimResult",
    "Optimizer",
    "OwlQn",
    "Progress",
    "Sgd",
    "State",
    "SteepestDescent",
    "SteepestState",
    "make_optimizer",
]
