"""Conformance suites and strategies, shipped so that algorithms outside the library can be held to them too."""

from isinglass.testing.strategies import factor_graphs, potentials, random_potentials
from isinglass.testing.suite import InferenceSuite, walk

__all__ = ["InferenceSuite", "factor_graphs", "potentials", "random_potentials", "walk"]
