"""Conformance suites and hypothesis strategies, shipped so that algorithms and losses outside the library can use them.

The suites of inference algorithms and of MAP solvers, and the strategies, need hypothesis (``pip install
'isinglass[testing]'``) when they are used, not when this package is imported.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "loss_checks": ["check_loss"],
        "solver_suite": ["SolverSuite", "walk_solvers"],
        "strategies": ["factor_graphs", "potentials", "random_potentials"],
        "suite": ["InferenceSuite", "walk"],
    },
)
