"""Every registered algorithm inherits the conformance suite; a test walks the registry for ones that do not."""

import isinglass as ig
from isinglass.testing import InferenceSuite, walk


class TestBrute(InferenceSuite):
    def algorithm(self):
        return ig.Brute()

    def accepts(self, potentials):
        return True


class TestExact(InferenceSuite):
    def algorithm(self):
        return ig.Exact()

    def accepts(self, potentials):
        return True


class TestBeliefPropagation(InferenceSuite):
    def algorithm(self):
        return ig.BeliefPropagation(tol=1e-12, max_iter=200, damping=0.1)

    def accepts(self, potentials):
        return True


class TestBeliefPropagationAuto(TestBeliefPropagation):
    def algorithm(self):
        return ig.BeliefPropagation(tol=1e-12, max_iter=200)


class TestBeliefPropagationSequential(TestBeliefPropagation):
    def algorithm(self):
        return ig.BeliefPropagation(tol=1e-12, max_iter=200, schedule="sequential")


class TestBeliefPropagationResidual(TestBeliefPropagation):
    def algorithm(self):
        return ig.BeliefPropagation(tol=1e-12, max_iter=200, schedule="residual")


class TestTreeReweighted(TestBeliefPropagation):
    def algorithm(self):
        return ig.TreeReweighted(tol=1e-12, max_iter=400)


class TestTreeReweightedOptimised(TestBeliefPropagation):
    def algorithm(self):
        return ig.TreeReweighted(tol=1e-12, max_iter=200, weights="optimised", weight_steps=3)


class TestFractional(TestBeliefPropagation):
    def algorithm(self):
        return ig.FractionalBeliefPropagation(tol=1e-12, max_iter=200, damping=0.2, counting_numbers=0.8)


class TestMeanField(TestBeliefPropagation):
    def algorithm(self):
        return ig.MeanField(tol=1e-13, max_iter=500)


class TestStructuredMeanField(TestBeliefPropagation):
    def algorithm(self):
        return ig.StructuredMeanField(tol=1e-13, max_iter=500)


class TestConvexFreeEnergy(TestBeliefPropagation):
    def algorithm(self):
        return ig.ConvexFreeEnergy(tol=1e-11)


class TestConvexBethe(InferenceSuite):
    """With Bethe's weights, on forests: exact."""

    def algorithm(self):
        return ig.ConvexFreeEnergy(tol=1e-11, weights="bethe")

    def accepts(self, potentials):
        return potentials.graph.is_forest

    def is_exact_on(self, p):
        return p.graph.is_forest


class TestGibbs(TestBeliefPropagation):
    def algorithm(self):
        return ig.Gibbs(sweeps=400)


class TestMaxProduct(TestBeliefPropagation):
    def algorithm(self):
        return ig.MaxProduct(tol=1e-12, max_iter=200, damping=0.1)


class TestMaxProductAuto(TestBeliefPropagation):
    def algorithm(self):
        return ig.MaxProduct(tol=1e-12, max_iter=200)


def subclasses(cls):
    return [s for direct in cls.__subclasses__() for s in (direct, *subclasses(direct))]


def test_no_algorithm_escapes_the_suite():
    assert walk(subclasses(InferenceSuite)) == set()
