"""Derivatives of convex free energies against 160 digits, where beliefs of links are far below rounding."""

import numpy as np
import pytest
from conic import Programme, beliefs_of
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.testing import random_potentials

ACCURACY = 1e-10


def together(low):
    """States that must be equal, nearly, round a cycle, with beliefs of other pairs from e^-1 / low on."""
    tables = [np.random.default_rng(0).normal(0, 0.02, (4, 2)), np.eye(2)[None]]
    return ig.Potentials.from_groups(ig.grid_graph(2, 2, 2), tables), ig.EntropyWeights(0.01, low)


def triples():
    graph = ig.FactorGraph([2, 2, 3, 2], [(0, 1, 2), (1, 2, 3), (3, 0), (2,)])
    return random_potentials(graph, np.random.default_rng(11), 4.0), ig.EntropyWeights(0.05, 0.1)


PROBLEMS = {
    "together": lambda: together(0.02),
    "less so": lambda: together(0.05),
    "triples": triples,
    "sharp": lambda: (random_potentials(ig.grid_graph(2, 2, 3), np.random.default_rng(2), 6.0), ig.EntropyWeights()),
}


def errors(p, weights, slopes=None, **options):
    """Return the largest error of derivatives by the tables of variables, relatively, and that of the beliefs.

    Derivatives are those of `slopes`, a function of the derivatives by the beliefs, or of the tape.
    """
    bars = np.random.default_rng(1).normal(size=int(p.graph.cards.sum()))
    r = ig.infer(p, ig.ConvexFreeEnergy(weights, tol=1e-12, **options), tape=True)
    programme = Programme.of(p, weights)
    b = programme.in_digits(beliefs_of(r), 160)
    true = programme.derivative(b, np.concatenate([bars, np.zeros(len(b) - len(bars))]), 160)
    found = _by_factor(p, r.backward(variables=bars).groups if slopes is None else slopes(bars))
    scopes, first = p.graph.scopes, np.concatenate([[0], np.cumsum(p.graph.cards)])
    own = {s[0]: found[a] for a, s in enumerate(scopes) if len(s) == 1}
    wrong = [np.abs(d + true[first[i] : first[i + 1]]).max() for i, d in own.items()]
    return max(wrong) / np.abs(true).max(), np.abs(beliefs_of(r) - b.astype(float)).max()


def _by_factor(p, groups):
    """Return derivatives by the table of each factor; those of variables are not shared."""
    found = {}
    for group, slopes, ids in zip(p.graph.groups, groups, p.table_ids, strict=True):
        for row, a in enumerate(group.factors.tolist()):
            found[a] = slopes[ids[row]].ravel()
    return found


@pytest.mark.long
@pytest.mark.parametrize("system", ["factorised", "iterative"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_many_digits(name, system):
    wrong, of_beliefs = errors(*PROBLEMS[name](), system=system)
    assert of_beliefs < 1e-12
    assert wrong < ACCURACY


@pytest.mark.long
@pytest.mark.parametrize("name", PROBLEMS)
def test_perturbation_in_many_digits(name):
    """Steps of Newton's method on complex potentials correct each other, as refinement does."""
    p, weights = PROBLEMS[name]()
    algorithm = ig.ConvexFreeEnergy(weights)
    assert errors(p, weights, lambda bars: ig.perturbation(p, algorithm, variables=bars).groups)[0] < ACCURACY


def perturbed_or_none(p, algorithm, bars):
    try:
        return ig.perturbation(p, algorithm, variables=bars)
    except ig.InputError:
        return None


@pytest.mark.long
@pytest.mark.parametrize("scale", [3.0, 10.0, 30.0])
def test_two_rules_on_stiff_energies(scale):
    """Costs of up to +-30 and weights from .01 on: implicit and perturbed derivatives agree to 1e-9.

    Where derivatives are below 1e-6 altogether, perturbation may be refused: their relative change does not settle.
    """
    rng, refused = np.random.default_rng(int(scale)), 0
    for _ in range(12):
        size = int(rng.integers(3, 7))
        cards, arities = rng.integers(2, 5, size), rng.choice([1, 2, 2, 3], rng.integers(size, 2 * size))
        scopes = [tuple(rng.choice(size, r, replace=False).tolist()) for r in arities.tolist()]
        graph = ig.FactorGraph(cards, scopes)
        p = ig.Potentials(graph, [rng.uniform(-scale, scale, cards[list(s)]) for s in scopes])
        algorithm = ig.ConvexFreeEnergy(ig.EntropyWeights(*(np.exp(rng.uniform(np.log(0.01), 0, 2)))))
        result = ig.infer(p, algorithm, tape=True)
        bars = rng.normal(size=result.variables.flat.size)
        one = result.backward(variables=bars)
        two = perturbed_or_none(p, algorithm, bars)
        if two is None:
            assert max(np.abs(g).max() for g in one.groups) < 1e-6
            refused += 1
            continue
        for a, b in zip(one.groups, two.groups, strict=True):
            assert_allclose(b, a, rtol=0, atol=1e-9)
    assert refused <= 2


def large_tables(kind, states, scale, seed):
    """Return the graph and tables of a grid or a tree, with costs far above the weights, and a generator."""
    rng = np.random.default_rng(seed)
    if kind == "grid":
        graph = ig.grid_graph(3, 3, states)
    else:
        links = [(int(rng.integers(i)), i) for i in range(1, 9)]
        graph = ig.FactorGraph([states] * 9, [(i,) for i in range(9)] + links)
    return graph, [rng.normal(0, scale, (len(group), *group.shape)) for group in graph.groups], rng


@pytest.mark.long
@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("kind", ["grid", "tree"])
@pytest.mark.parametrize("scale", [30.0, 100.0, 300.0, 1000.0])
def test_large_tables_against_differences(kind, states, scale):
    """Beliefs far below rounding, which variables and links disagree about, do not spoil derivatives."""
    for seed in range(12):
        graph, tables, rng = large_tables(kind, states, scale, seed)
        result = ig.infer(ig.Potentials.from_groups(graph, tables), "convex", tape=True)
        assert result.info.converged
        bars = rng.normal(size=9 * states), rng.normal(size=sum(g.size for g in result.factors.groups))
        found = result.backward(variables=bars[0], factors=bars[1]).groups  # a warning is an error
        assert max(np.abs(g).max() for g in found) <= sum(np.abs(b).sum() for b in bars)  # all weights are one
        along = [rng.normal(size=t.shape) for t in tables]
        steps = np.array([1e-2, 1e-3, 1e-4])
        pairs = zip(tables, along, strict=True)
        moved = [np.concatenate([t + s * d for s in (*steps, *-steps)]) for t, d in pairs]
        batch = ig.infer(ig.Potentials.from_groups(graph.repeat(6), moved), "convex")
        beliefs = np.concatenate([g.reshape(6, -1) for g in batch.factors.groups], axis=1)
        up, down = np.split(batch.variables.flat.reshape(6, -1) @ bars[0] + beliefs @ bars[1], 2)
        slope = sum((g * d).sum() for g, d in zip(found, along, strict=True))
        assert np.abs((up - down) / (2 * steps) - slope).min() < 1e-6


def test_300_nats():
    graph, tables, rng = large_tables("grid", 3, 300.0, 8)
    result = ig.infer(ig.Potentials.from_groups(graph, tables), "convex", tape=True)
    assert result.info.converged
    found = result.backward(variables=rng.normal(size=27), factors=rng.normal(size=135)).groups
    assert max(np.abs(g).max() for g in found) < 1
