"""Conformance suites and strategies, shipped so that what is outside the library can be held to them too.

Those of inference algorithms need hypothesis (``pip install 'isinglass[testing]'``) when they are used, not when this
is imported.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "loss_checks": ["check_loss"],
        "strategies": ["factor_graphs", "potentials", "random_potentials"],
        "suite": ["InferenceSuite", "walk"],
    },
)
