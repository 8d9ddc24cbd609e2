"""Every registered algorithm inherits the conformance suite; a test walks the registry for ones that do not."""

from inspect import isabstract

import numpy as np
import pytest

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


class TestFractional(TestBeliefPropagation):
    def algorithm(self):
        return ig.FractionalBeliefPropagation(tol=1e-12, max_iter=200, damping=0.2, counting_numbers=0.8)


class TestMeanField(TestBeliefPropagation):
    def algorithm(self):
        return ig.MeanField(tol=1e-13, max_iter=500)


@pytest.mark.long
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


class SamplerSuite(InferenceSuite):
    """Short runs, but for the checks that compare with the truth."""

    sweeps = 40
    long = 600

    def accepts(self, potentials):
        return True

    def test_estimates(self):
        self.sweeps = self.long
        super().test_estimates()

    def test_sample_frequencies(self):
        self.sweeps = self.long
        super().test_sample_frequencies()


@pytest.mark.long
class TestGibbs(SamplerSuite):
    def algorithm(self):
        return ig.Gibbs(sweeps=self.sweeps)


@pytest.mark.long
class TestGibbsRandomScan(SamplerSuite):
    def algorithm(self):
        return ig.Gibbs(sweeps=self.sweeps, scan="random")


@pytest.mark.long
class TestTreeGibbs(SamplerSuite):
    def algorithm(self):
        return ig.TreeGibbs(sweeps=self.sweeps)


@pytest.mark.long
class TestParallelTempering(SamplerSuite):
    def algorithm(self):
        return ig.ParallelTempering(sweeps=self.sweeps, replicas=3)


@pytest.mark.long
class TestSwendsenWang(SamplerSuite):
    """Binary pairs without hard zeros."""

    def algorithm(self):
        return ig.SwendsenWang(sweeps=self.sweeps)

    def accepts(self, potentials):
        groups = zip(potentials.graph.groups, potentials.groups, strict=True)
        return all(g.arity < 2 or (g.arity == 2 and set(g.shape) <= {1, 2} and np.isfinite(t).all()) for g, t in groups)


@pytest.mark.long
class TestWolff(TestSwendsenWang):
    long = 1200

    def algorithm(self):
        return ig.Wolff(sweeps=self.sweeps)


@pytest.mark.long
class TestAnnealedImportance(TestBeliefPropagation):
    def algorithm(self):
        return ig.AnnealedImportance(temperatures=20)


@pytest.mark.long
class TestImportanceSampling(TestBeliefPropagation):
    def algorithm(self):
        return ig.ImportanceSampling(samples=1000)


class TestMaxProduct(TestBeliefPropagation):
    def algorithm(self):
        return ig.MaxProduct(tol=1e-12, max_iter=200, damping=0.1)


class TestMaxProductAuto(TestBeliefPropagation):
    def algorithm(self):
        return ig.MaxProduct(tol=1e-12, max_iter=200)


def subclasses(cls):
    return [s for direct in cls.__subclasses__() for s in (direct, *subclasses(direct))]


def test_no_algorithm_escapes_the_suite():
    assert walk([s for s in subclasses(InferenceSuite) if not isabstract(s)]) == set()
