"""What is said to have converged is right, and enough is said to have: against enumeration and junction trees."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import no_convergence_warnings

CLUSTERS = {"swendsen-wang", "wolff"}
PROPOSALS = {
    f"importance from {name}": ("importance", {"proposal": name}) for name in ("bp", "mf", "trw", "tree", "uniform")
}
STARTS = {f"ais from {name}": ("ais", {"start": name}) for name in ("uniform", "tree", "mf", "bp")}
RUNS = (
    {name: (name, {}) for name in ("gibbs", "tree-gibbs", "tempering", "swendsen-wang", "wolff")} | STARTS | PROPOSALS
)
FAR = {f"importance from {name}" for name in ("mf", "trw", "tree", "uniform")}  # many nats off at 30 variables


def tables(rng, scale, small):
    """Return random tables, on up to 8 variables or on 30 to 60 with a treewidth of at most 6."""
    n, width = (int(rng.integers(2, 9)), 8) if small else (int(rng.integers(30, 61)), int(rng.integers(1, 7)))
    cards = rng.integers(2, 5, n) if small else rng.choice([2, 2, 3], n) if width < 5 else np.full(n, 2)
    scopes = [(i,) for i in range(n) if rng.random() < 0.7]
    for i in range(1, n):
        for _ in range(1 + (rng.random() < 0.35)):
            near = np.arange(max(0, i - width), i)
            others = rng.choice(near, min(len(near), int(rng.choice([1, 1, 2]))), replace=False)
            scopes.append((*sorted(others.tolist()), i))
    return ig.testing.random_potentials(ig.FactorGraph(cards, scopes), rng, scale)


def spins(rng, scale, small):
    """Return a magnet or a spin glass; couplings and fields are those of tables of that scale."""
    w = int(rng.integers(2, 7))
    graph = (
        ig.complete_graph(int(rng.integers(2, 9)), 2)
        if small
        else ig.grid_graph(w, int(rng.integers(30, 55)) // w + 1, 2)
    )
    shape = sum(len(scope) == 2 for scope in graph.scopes), graph.n_variables
    if rng.random() < 0.5:
        coupling, field = (scale / 2 * rng.normal(size=n) for n in shape)
    else:
        coupling, field = scale / 2 * rng.random(), scale / 2 * rng.choice([0, 0.1, 1]) * rng.normal()
    return ig.models.Ising(graph).potentials(coupling=coupling, field=field)


def model(seed, scale, clusters=False):
    """Return a model of 2 to 8 variables, or (a third) of 30 to 60; spins alone where clusters are moved."""
    rng, kind = np.random.default_rng([seed, scale]), seed % 6
    return (spins if clusters or kind % 2 else tables)(rng, scale, kind > 1)


def flat(result):
    return np.concatenate([result.variables.flat, *(group.ravel() for group in result.factors.groups)])


def judged(name, seed, scale):
    """Return whether a run says converged, and the largest error of log Z and of beliefs, in standard errors."""
    p = model(seed, scale, name in CLUSTERS)
    algorithm, options = RUNS[name]
    with no_convergence_warnings():
        found, truth = ig.infer(p, algorithm, random_state=seed, **options), ig.infer(p, "exact")
    known = found.info.details
    stderr = np.concatenate([known["stderr_variables"], known["stderr_factors"]])
    draws = np.concatenate([known["ess"], known["ess_factors"]]) if "ess" in known else known["ess_weights"].min()
    errors = (np.abs(flat(found) - flat(truth)) - 1e-9 - 4 / np.maximum(draws, 1)) / np.maximum(stderr, 1e-300)
    if found.info.stderr is not None:
        errors = np.append(errors, (abs(found.log_z - truth.log_z) - 1e-9) / found.info.stderr)
    return found.info.converged, errors.max()


def shares(name, seeds, scale):
    """Return the share of runs that say converged, and the number and the share of these that are wrong."""
    said, errors = zip(*(judged(name, seed, scale) for seed in seeds), strict=True)
    wrong = int((np.array(errors)[np.array(said)] > 4).sum())
    return np.mean(said), wrong, wrong / max(1, sum(said))


def least_share(name):
    """Return how many at least must say converged at scale 1."""
    return 0.5 if name in FAR else 0.8


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_claims_of_a_few_runs(name):
    near, strong = (shares(name, range(12 if name in CLUSTERS | FAR else 6), scale) for scale in (1, 3))
    assert near[0] >= least_share(name) - 0.2
    assert near[1] + strong[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_claims_of_many_runs(name):
    near, strong = (shares(name, range(1000, 1120), scale) for scale in (1, 3))
    assert near[0] >= least_share(name)
    assert near[1] + strong[1] <= 0.02 * 120 * (near[0] + strong[0])
