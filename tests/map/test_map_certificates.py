"""Certificates of every solver on many random models, against enumeration."""

import os
from collections import Counter

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass.inference.map.search import ROUNDING, scale_of
from isinglass.inference.map.solver import SOLVERS, make
from isinglass.testing.solver_suite import submodular
from isinglass.testing.strategies import random_potentials

QUICK = {  # options that end searches soon; certificates must be true however a search ends
    "annealing": {"sweeps": 10, "restarts": 0},
    "ils": {"max_iter": 2},
    "trws": {"max_iter": 50},
}
MODELS = int(os.environ.get("ISINGLASS_MAP_MODELS", "5000"))


def random_model(rng, accepts):
    """Return a model with mixed cardinalities and arities, hard zeros, evidence and disconnected parts."""
    n = int(rng.integers(1, 8))
    cards = rng.integers(1, 5, n) if accepts in ("any", "pairwise") else np.full(n, 2)
    arity = 4 if accepts == "any" else 2
    scopes = [tuple(rng.permutation(n)[: rng.integers(0, min(arity, n) + 1)]) for _ in range(rng.integers(0, 12))]
    graph = ig.FactorGraph(cards, [tuple(map(int, scope)) for scope in scopes])
    witness = rng.integers(0, cards)
    observed = {int(i): int(witness[i]) for i in rng.permutation(n)[: rng.integers(0, 3)]} if rng.random() < 0.5 else {}
    scale = float(rng.choice([0.01, 1.0, 1.0, 30.0]))
    p = random_potentials(graph, rng, scale, float(rng.choice([0.0, 0.0, 0.3, 0.6])), witness, observed)
    return submodular(p) if accepts == "submodular" else p


def check(p, found, best, facts):
    slack = 4 * ROUNDING * scale_of(p)
    np.testing.assert_allclose(p.log_score(found.states), found.score, atol=slack, rtol=0)
    assert best - slack <= found.bound
    assert found.score <= best + slack
    assert all(bound >= best - slack for bound in found.info.bounds)
    if found.optimal or facts.proves == "always":
        assert found.optimal
        assert found.score >= best - slack


def run(names, models, seed):
    proved = Counter()
    for accepts in ("any", "pairwise", "binary pairwise", "submodular"):
        rng = np.random.default_rng(seed)
        wanted = [name for name in names if SOLVERS[name].facts.accepts == accepts]
        for _ in range(models if wanted else 0):
            p = random_model(rng, accepts)
            best = ig.map_assignment(p, "brute").score
            for name in wanted:
                found = ig.map_assignment(p, make(name, QUICK.get(name, {})))
                check(p, found, best, SOLVERS[name].facts)
                proved[name] += found.optimal
    return proved


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_certificates_of_some_models():
    proved = run(SOLVERS, 40, 1)
    for name, cls in SOLVERS.items():
        assert (proved[name] == 40) == (cls.facts.proves == "always") or cls.facts.proves == "sometimes"


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_certificates_of_5000_models(name):
    with no_convergence_warnings():
        run([name], MODELS, 7)
