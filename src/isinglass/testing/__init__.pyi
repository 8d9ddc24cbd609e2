from .loss_checks import check_loss as check_loss
from .solver_suite import SolverSuite as SolverSuite
from .solver_suite import walk_solvers as walk_solvers
from .strategies import factor_graphs as factor_graphs
from .strategies import potentials as potentials
from .strategies import random_potentials as random_potentials
from .suite import InferenceSuite as InferenceSuite
from .suite import walk as walk
