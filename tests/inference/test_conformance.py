"""Every registered algorithm inherits the conformance suite; a test walks the registry for ones that do not."""

from inspect import isabstract

import numpy as np
import pytest

import isinglass as ig
from isinglass.testing import InferenceSuite, walk


def everything(self, potentials):
    return True


def suite(make, base=InferenceSuite, **more):
    """Return the suite of an algorithm that takes all potentials."""
    return type("Suite", (base,), {"algorithm": make, "accepts": everything, **more})


TestBrute = suite(lambda self: ig.Brute())
TestExact = suite(lambda self: ig.Exact())
TestBeliefPropagation = suite(lambda self: ig.BeliefPropagation(tol=1e-12, max_iter=200, damping=0.1))
TestBeliefPropagationAuto = suite(lambda self: ig.BeliefPropagation(tol=1e-12, max_iter=200))
TestSequential = suite(lambda self: ig.BeliefPropagation(tol=1e-12, max_iter=200, schedule="sequential"))
TestResidual = suite(lambda self: ig.BeliefPropagation(tol=1e-12, max_iter=200, schedule="residual"))
TestTreeReweighted = suite(lambda self: ig.TreeReweighted(tol=1e-12, max_iter=400))
FRACTIONAL = {"tol": 1e-12, "max_iter": 200, "damping": 0.2, "counting_numbers": 0.8}
TestFractional = suite(lambda self: ig.FractionalBeliefPropagation(**FRACTIONAL))
TestMeanField = suite(lambda self: ig.MeanField(tol=1e-13, max_iter=500))
TestStructuredMeanField = pytest.mark.long(suite(lambda self: ig.StructuredMeanField(tol=1e-13, max_iter=500)))
TestConvexFreeEnergy = suite(lambda self: ig.ConvexFreeEnergy(tol=1e-11))
TestConvexBethe = suite(  # on forests: exact
    lambda self: ig.ConvexFreeEnergy(tol=1e-11, weights="bethe"),
    accepts=lambda self, potentials: potentials.graph.is_forest,
    is_exact_on=lambda self, potentials: potentials.graph.is_forest,
)
TestMaxProduct = suite(lambda self: ig.MaxProduct(tol=1e-12, max_iter=200, damping=0.1))
TestMaxProductAuto = suite(lambda self: ig.MaxProduct(tol=1e-12, max_iter=200))
TestAnnealedImportance = pytest.mark.long(suite(lambda self: ig.AnnealedImportance(temperatures=20)))
TestImportanceSampling = pytest.mark.long(suite(lambda self: ig.ImportanceSampling(samples=1000)))


class SamplerSuite(InferenceSuite):
    """Short runs, but for the checks that compare with the truth."""

    sweeps = 40
    long = 600

    def test_estimates(self):
        self.sweeps = self.long
        super().test_estimates()

    def test_sample_frequencies(self):
        self.sweeps = self.long
        super().test_sample_frequencies()


def binary_pairs(self, potentials):
    """Accept binary pairs without hard zeros."""
    groups = zip(potentials.graph.groups, potentials.groups, strict=True)
    return all(g.arity < 2 or (g.arity == 2 and set(g.shape) <= {1, 2} and np.isfinite(t).all()) for g, t in groups)


def sampler(make, **more):
    return pytest.mark.long(suite(make, SamplerSuite, **more))


TestGibbs = sampler(lambda self: ig.Gibbs(sweeps=self.sweeps))
TestGibbsRandomScan = sampler(lambda self: ig.Gibbs(sweeps=self.sweeps, scan="random"))
TestTreeGibbs = sampler(lambda self: ig.TreeGibbs(sweeps=self.sweeps))
TestParallelTempering = sampler(lambda self: ig.ParallelTempering(sweeps=self.sweeps, replicas=3))
TestSwendsenWang = sampler(lambda self: ig.SwendsenWang(sweeps=self.sweeps), accepts=binary_pairs)
TestWolff = sampler(lambda self: ig.Wolff(sweeps=self.sweeps), accepts=binary_pairs, long=1200)


def subclasses(cls):
    return [s for direct in cls.__subclasses__() for s in (direct, *subclasses(direct))]


def test_no_algorithm_escapes_the_suite():
    assert walk([s for s in subclasses(InferenceSuite) if not isabstract(s)]) == set()
