"""Every registered MAP solver inherits the conformance suite; a test walks the registry for ones that do not."""

import pytest

import isinglass as ig
from isinglass.inference.map import auto
from isinglass.testing import SolverSuite, walk_solvers


def suite(make):
    return type("Suite", (SolverSuite,), {"solver": make})


TestICM = suite(lambda self: ig.ICM())
TestICMTrees = suite(lambda self: ig.ICM(blocks="trees", restarts=2, max_iter=20))
TestTRWS = suite(lambda self: ig.TRWS(max_iter=100))
TestGraphCut = suite(lambda self: ig.GraphCut())
TestQPBO = suite(lambda self: ig.QPBO())
TestQPBOExact = suite(lambda self: ig.QPBO(complete="exact"))
TestExpansion = suite(lambda self: ig.Expansion())
TestAnnealing = suite(lambda self: ig.Annealing(sweeps=20))
TestIteratedLocalSearch = suite(lambda self: ig.IteratedLocalSearch(max_iter=5))
TestLinearProgram = suite(lambda self: ig.LinearProgram())
TestIntegerProgram = suite(lambda self: ig.IntegerProgram())
TestToulbar2 = suite(lambda self: ig.Toulbar2())
TestAuto = suite(lambda self: ig.Auto())


class TestAutoWithoutExact(SolverSuite):
    """With nothing but message passing, local search and branch and bound."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def no_junction_trees(cls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(auto, "ENTRIES", -1)
            yield

    def solver(self):
        return ig.Auto()


def subclasses(suite):
    return [found for cls in suite.__subclasses__() for found in (cls, *subclasses(cls))]


def test_every_solver_is_tested():
    assert walk_solvers(subclasses(SolverSuite)) == set()
