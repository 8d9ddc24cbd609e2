"""Conformance suites and strategies, shipped so that algorithms outside the library can be held to them too.

They need hypothesis (``pip install 'isinglass[testing]'``) when they are used, not when this is imported.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "strategies": ["factor_graphs", "potentials", "random_potentials"],
        "suite": ["InferenceSuite", "walk"],
    },
)
