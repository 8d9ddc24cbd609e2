"""Draws for ArviZ, by both of its interfaces, and its diagnostics beside ours."""

import sys
import warnings
from types import ModuleType

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import ConvergenceWarning
from isinglass.inference.sampling.diagnostics import diagnose

SAMPLERS = ["gibbs", "tree-gibbs", "swendsen-wang", "wolff", "tempering"]
QUIET = pytest.mark.filterwarnings("ignore::FutureWarning")  # its first import of a day has one


def sampled(name="gibbs", graph=None, **options):
    p = ig.models.Ising(ig.grid_graph(4, 4, 2) if graph is None else graph).potentials(coupling=0.3, field=0.1)
    with ig.errors.no_convergence_warnings():
        return ig.infer(p, name, random_state=0, **{"sweeps": 40, "chains": 3, "thin": 3, "burn_in": 10} | options)


@QUIET
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_draws_of_every_sampler(name):
    pytest.importorskip("arviz", reason="ArviZ is not installed", exc_type=ImportError)
    r = sampled(name)
    states = r.traces.to_arviz().posterior["states"]
    assert states.dims == ("chain", "draw", "variable")
    assert states.shape == (3, 10, 16)
    np.testing.assert_array_equal(states.values, r.traces.states)


@QUIET
def test_names_are_coordinates():
    pytest.importorskip("arviz", reason="ArviZ is not installed", exc_type=ImportError)
    r = sampled(graph=ig.grid_graph(1, 3, 2).with_names(["left", "middle", "right"]))
    states = r.traces.to_arviz().posterior["states"]
    np.testing.assert_array_equal(states.sel(variable="middle").values, r.traces.states[:, :, 1])
    with pytest.warns(ig.ConvergenceWarning, match="4 chains are needed"):
        longer = ig.infer(r.potentials, "gibbs", sweeps=4000, init=r)
    assert longer.traces.names == ("left", "middle", "right")


@QUIET
def test_the_diagnostics_of_arviz_are_ours():
    """R-hat of the same draws; effective sizes and standard errors, which it does not take from batches, about so."""
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed", exc_type=ImportError)
    r = sampled(sweeps=2000, chains=4, thin=1)
    data, ours = r.traces.to_arviz(), diagnose(r.traces.states.transpose(2, 0, 1).astype(float))
    np.testing.assert_allclose(ours.r_hat, arviz.rhat(data, method="split")["states"].values, rtol=1e-9)
    for one, its in ((ours.ess, arviz.ess(data, method="mean")), (ours.stderr, arviz.mcse(data, method="mean"))):
        ratio = one / its["states"].values
        assert 0.9 < np.median(ratio) < 1.1
        assert ((ratio > 0.6) & (ratio < 1.6)).all()


@QUIET
@pytest.mark.parametrize("a", [0.5, 0.9, 0.98])
def test_effective_sizes_of_long_autocorrelations_are_those_of_arviz(a):
    """Of the mean, and of an indicator of the upper tail: both sizes, less than one for each batch, are about equal."""
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed", exc_type=ImportError)
    x = np.random.default_rng(0).normal(size=(20, 4, 8000))
    for t in range(1, x.shape[2]):
        x[..., t] = a * x[..., t - 1] + np.sqrt(1 - a * a) * x[..., t]
    for trace in (x, (x > 1.645).astype(float)):
        its = [arviz.ess(one, method="mean") for one in trace]
        assert 0.85 < np.median(diagnose(trace).ess / its) < 1.15


def test_the_interface_of_version_1(monkeypatch):
    """From version 1 on `from_dict` takes groups by name, and there is no `InferenceData`."""
    newer = ModuleType("arviz")
    newer.__version__, newer.InferenceData = "1.3.0", None  # the name is there, with a warning
    newer.from_dict = lambda data, *, coords, dims: (data, coords, dims)
    monkeypatch.setitem(sys.modules, "arviz", newer)
    traces = sampled().traces
    data, coords, dims = traces.to_arviz()
    assert list(data) == ["posterior"]
    np.testing.assert_array_equal(data["posterior"]["states"], traces.states)
    assert (coords, dims) == ({}, {"states": ["variable"]})


def test_without_arviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ig.MissingDependencyError, match="pip install arviz"):
        sampled().traces.to_arviz()


def test_draws_that_are_plainly_wrong():
    p = ig.models.Ising(ig.lattice_graph((6, 6), 2, periodic=True)).potentials(coupling=1.0, field=0.02)
    with pytest.warns(ConvergenceWarning, match="gibbs: the chains disagree.*R-hat is inf"):
        ig.sample(p, 400, "gibbs", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ig.sample(p, 400, "swendsen-wang", random_state=0)
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [equal])
    with pytest.warns(ConvergenceWarning, match="gibbs: hard zeros may separate the assignments"):
        ig.sample(p, 10, "gibbs", random_state=0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gibbs", "tree-gibbs", "tempering"])
@pytest.mark.parametrize("n", [1, 100, 160, 500])
def test_no_false_alarm_on_many_weak_variables(name: str, n: int) -> None:
    p = ig.models.Ising(ig.grid_graph(20, 20, 2)).potentials(coupling=0.1, field=np.linspace(-3.0, 3.0, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ig.sample(p, n, name, random_state=n)) == n
