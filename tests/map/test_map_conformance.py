"""Every registered MAP solver inherits the conformance suite; a test walks the registry for ones that do not."""

import pytest

import isinglass as ig
from isinglass.inference.map import auto
from isinglass.testing import SolverSuite, walk_solvers


class TestICM(SolverSuite):
    def solver(self):
        return ig.ICM()


class TestICMTrees(SolverSuite):
    def solver(self):
        return ig.ICM(blocks="trees", restarts=2, max_iter=20)


class TestTRWS(SolverSuite):
    def solver(self):
        return ig.TRWS(max_iter=100)


class TestGraphCut(SolverSuite):
    def solver(self):
        return ig.GraphCut()


class TestQPBO(SolverSuite):
    def solver(self):
        return ig.QPBO()


class TestQPBOExact(SolverSuite):
    def solver(self):
        return ig.QPBO(complete="exact")


class TestExpansion(SolverSuite):
    def solver(self):
        return ig.Expansion()


class TestAnnealing(SolverSuite):
    def solver(self):
        return ig.Annealing(sweeps=20)


class TestIteratedLocalSearch(SolverSuite):
    def solver(self):
        return ig.IteratedLocalSearch(max_iter=5)


class TestLinearProgram(SolverSuite):
    def solver(self):
        return ig.LinearProgram()


class TestIntegerProgram(SolverSuite):
    def solver(self):
        return ig.IntegerProgram()


class TestToulbar2(SolverSuite):
    def solver(self):
        return ig.Toulbar2()


class TestAuto(SolverSuite):
    def solver(self):
        return ig.Auto()


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
