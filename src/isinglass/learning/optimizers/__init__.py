"""How an objective is minimised: every optimizer registers here under its public name."""

from isinglass.learning.optimizers.base import OPTIMIZERS, Optimizer, OptimResult, Progress, make_optimizer
from isinglass.learning.optimizers.fixed_point import FixedPoint
from isinglass.learning.optimizers.lbfgs import Lbfgs, LbfgsState, OwlQn, SteepestDescent
from isinglass.learning.optimizers.max_margin.cccp import Cccp, CccpState
from isinglass.learning.optimizers.max_margin.cutting_plane import CuttingPlane, CuttingPlaneState
from isinglass.learning.optimizers.max_margin.frank_wolfe import BlockFrankWolfe, FrankWolfeState
from isinglass.learning.optimizers.max_margin.pegasos import AveragedPerceptron, Pegasos
from isinglass.learning.optimizers.proximal import Proximal, ProximalState
from isinglass.learning.optimizers.restarts import minimise_with_restarts
from isinglass.learning.optimizers.state import State
from isinglass.learning.optimizers.stochastic.adagrad import AdaGrad
from isinglass.learning.optimizers.stochastic.adam import Adam
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch, MiniBatchState
from isinglass.learning.optimizers.stochastic.sgd import Sgd
from isinglass.learning.optimizers.stochastic.smd import Smd
from isinglass.removed import missing_attribute

__all__ = [
    "OPTIMIZERS",
    "AdaGrad",
    "Adam",
    "AveragedPerceptron",
    "BlockFrankWolfe",
    "Cccp",
    "CccpState",
    "CuttingPlane",
    "CuttingPlaneState",
    "FixedPoint",
    "FrankWolfeState",
    "Lbfgs",
    "LbfgsState",
    "MiniBatch",
    "MiniBatchState",
    "OptimResult",
    "Optimizer",
    "OwlQn",
    "Pegasos",
    "Progress",
    "Proximal",
    "ProximalState",
    "Sgd",
    "Smd",
    "State",
    "SteepestDescent",
    "make_optimizer",
    "minimise_with_restarts",
]

__getattr__ = missing_attribute(__name__)
