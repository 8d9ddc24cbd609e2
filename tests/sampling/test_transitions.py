"""Every sampler leaves the distribution of its model as it is: transition matrices by enumeration, and the loops."""

import functools

import numpy as np
import pytest
from scipy.stats import chi2

import isinglass as ig
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.clusters import SwendsenWangSampler, WolffSampler
from isinglass.inference.sampling.forests import TreeGibbsSampler
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.inference.sampling.tempering import TemperingSampler, tempered
from transition_oracle import Joint, composed, of_sampler

SAMPLERS = {
    "gibbs chromatic": GibbsSampler,
    "gibbs systematic": lambda p: GibbsSampler(p, "systematic"),
    "gibbs random": lambda p: GibbsSampler(p, "random"),
    "tree-gibbs": TreeGibbsSampler,
    "swendsen-wang": SwendsenWangSampler,
    "wolff": WolffSampler,
}
CLUSTERS = ("swendsen-wang", "wolff")


def models():
    """Return models of up to 64 joint states."""
    rng = np.random.default_rng(3)
    mixed = ig.FactorGraph([3, 2, 2, 2], [(0, 1, 2), (1, 2, 3), (0, 3), (3,), (3,)])
    soft = ig.testing.random_potentials(mixed, rng)
    equal = np.where(np.eye(3) > 0, 0.0, -np.inf)
    hard = ig.testing.random_potentials(mixed, rng, 1.0, 0.3)
    ring = ig.FactorGraph([2] * 5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2,), (0, 1)])
    pairs = ig.testing.random_potentials(ring, rng)
    walls = ig.Potentials(ig.FactorGraph([3, 3, 2], [(0, 1), (1, 2), (2,)]), [equal, rng.normal(size=(3, 2)), [0.0, 1]])
    grid = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.7, field=rng.normal(0, 0.3, 4))
    potts = ig.Potentials(
        ig.FactorGraph([3] * 3, [(0, 1), (1, 2), (2, 0), (0,), (1,)]),
        [0.8 * np.eye(3) + rng.normal(size=(3, 1)) + rng.normal(size=(1, 3)) for _ in range(3)]
        + [rng.normal(size=3), np.array([0.0, -np.inf, 0.4])],
    )
    return {
        "mixed": soft,
        "mixed, observed": soft.with_evidence({0: 2, 3: 0}),
        "hard zeros": hard,
        "a wall": walls,
        "binary pairs": pairs,
        "binary pairs, observed": pairs.with_evidence({1: 1}),
        "grid": grid,
        "potts": potts,
        "potts, observed": potts.with_evidence({2: 1}),
    }


MODELS = models()
CASES = [
    (model, name)
    for model in MODELS
    for name in SAMPLERS
    if name not in CLUSTERS or model.split(",")[0] in ("binary pairs", "grid", "potts")
]


@functools.cache
def enumerated(model, name):
    """Return all assignments of a model, a sampler, and its transition matrix."""
    joint = Joint(MODELS[model])
    sampler = SAMPLERS[name](joint.p)
    return joint, sampler, of_sampler(joint, sampler, name)


@pytest.mark.long
@pytest.mark.parametrize(("model", "name"), CASES)
def test_the_distribution_is_invariant(model, name):
    joint, _, P = enumerated(model, name)
    assert len(joint) <= 64
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(joint.pi @ P, joint.pi, atol=1e-12, rtol=0)


@pytest.mark.long
@pytest.mark.parametrize(("model", "name"), CASES)
def test_the_compiled_loop_has_this_transition_matrix(model, name):
    (joint, sampler, P), each = enumerated(model, name), 4000
    chains = Chains.at(joint.p, np.repeat(joint.states, each, axis=0), random_state=1)
    sampler.advance(chains, 1)
    number = np.full(joint.p.graph.cards, -1)
    number[tuple(joint.states.T)] = np.arange(len(joint))
    after = number[tuple(chains.assignments.T)]
    assert (after >= 0).all()
    before = np.repeat(np.arange(len(joint)), each)
    counts = np.bincount(before * len(joint) + after, minlength=len(joint) ** 2).reshape(P.shape)
    assert not counts[P == 0].any()
    expected = each * P
    likely = expected >= 5
    statistic = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    complete = (likely == (expected > 0)).all(axis=1)  # such rows have one degree of freedom less
    freedom = int(likely.sum() - complete.sum())
    assert statistic < chi2.isf(1e-6, max(freedom, 1))


@pytest.mark.parametrize("model", MODELS)
def test_conditional_probabilities(model):
    """Those that beliefs average, and that the loops draw from, are the exact ones."""
    joint = Joint(MODELS[model])
    sampler = GibbsSampler(joint.p)
    found = sampler.conditionals(Chains.at(joint.p, joint.states, 0).states)
    first = 0
    for i, card in enumerate(joint.p.graph.cards):
        exact = np.zeros((card, len(joint)))
        for a in range(card):
            exact[a] = joint.block([i] if i in joint.free else [])[:, joint.states[:, i] == a].sum(axis=1)
        np.testing.assert_allclose(found[first : first + card], exact, atol=1e-14)
        first += card


def test_parallel_tempering():
    """On pairs of assignments: sweeps at two temperatures, then an exchange (of every second sweep)."""
    p = ig.testing.random_potentials(ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0)]), np.random.default_rng(0), 1.5)
    inverse = np.array([1.0, 0.4])
    cold, warm = Joint(p), Joint(tempered(p, 0.4))
    sweep = np.kron(*(of_sampler(j, None, "gibbs chromatic") for j in (cold, warm)))
    n = len(cold)
    pi = np.kron(cold.pi, warm.pi)
    swap = np.zeros((n * n, n * n))
    for a in range(n):
        for b in range(n):
            accept = min(1.0, pi[b * n + a] / pi[a * n + b])
            swap[a * n + b, b * n + a] += accept
            swap[a * n + b, a * n + b] += 1 - accept
    np.testing.assert_allclose(pi @ composed([sweep, swap, sweep]), pi, atol=1e-12, rtol=0)
    sampler, each = TemperingSampler(p, inverse), 3000
    starts = np.array([(a, b) for a in range(n) for b in range(n)]).repeat(each, axis=0)
    chains = Chains.at(p, cold.states[starts.T.ravel()], random_state=2)
    sampler.advance(chains, 2)
    ends = np.array([cold.number[tuple(x)] for x in chains.assignments.tolist()]).reshape(2, -1)
    counts = np.zeros((n * n, n * n))
    np.add.at(counts, (starts[:, 0] * n + starts[:, 1], ends[0] * n + ends[1]), 1)
    expected = each * composed([sweep, swap, sweep])
    likely = expected >= 5
    statistic = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    assert statistic < chi2.isf(1e-6, int(likely.sum() - (n * n)))
    assert sampler.exchange_rates.shape == (1, 1)
    assert 0 < sampler.exchange_rates[0, 0] < 1


def larger():
    """Return a model of 2^5 * 3 joint states."""
    rng = np.random.default_rng(5)
    scopes = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 3, 5), (5, 2), *((i,) for i in range(6))]
    return ig.testing.random_potentials(ig.FactorGraph([2] * 5 + [3], scopes), rng, 0.7)


LARGER = {
    **{name: larger() for name in SAMPLERS if name not in CLUSTERS},
    **dict.fromkeys(CLUSTERS, ig.models.Ising(ig.chain_graph(7, 2)).potentials(coupling=0.4, field=0.2)),
}
MANY, ERROR, SWEEPS = 600_000, 1e-5, 5


def wrong_by_one_percent(p):
    """Return the model with the conditional probability of state 1 of variable 0 one per cent too large at 1/2."""
    factor = next(a for a, scope in enumerate(p.graph.scopes) if scope == (0,))
    tables = list(p.log_tables)
    tables[factor] = tables[factor] + np.array([0.0, np.log(0.51 / 0.49)])
    return ig.Potentials(p.graph, tables)


def statistics(sampler, joint, sweeps, seed):
    """Return the chi-square statistics of chains that start from exact samples, after different numbers of sweeps."""
    rng, expected, found, done = np.random.default_rng(seed), MANY * joint.pi, [], 0
    chains = Chains.at(joint.p, joint.states[rng.choice(len(joint), MANY, p=joint.pi)], seed)
    for number in sweeps:
        sampler.advance(chains, number - done)
        place = np.ravel_multi_index(tuple(chains.states.astype(np.int64)), tuple(joint.p.graph.cards))
        counts, done = np.bincount(place, minlength=len(joint)), number
        found.append(((counts - expected) ** 2 / expected).sum())
    return np.array(found)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGER)
def test_chains_from_exact_samples_stay_exact(name):
    joint = Joint(LARGER[name])
    found = statistics(SAMPLERS[name](joint.p), joint, [1, 2, SWEEPS], SWEEPS)
    assert (found < chi2.isf(ERROR, len(joint) - 1)).all()


@pytest.mark.long
@pytest.mark.parametrize("name", LARGER)
def test_an_error_of_one_percent_is_found(name):
    """In one conditional of one variable, by a few sweeps; the power follows from the enumerated wrong chain."""
    from scipy.stats import ncx2

    p = LARGER[name]
    joint = Joint(p)
    sampler = SAMPLERS[name](wrong_by_one_percent(p))
    limit = chi2.isf(ERROR, len(joint) - 1)
    (found,) = statistics(sampler, joint, [SWEEPS], 0)
    if name not in CLUSTERS:  # whose matrices of this size take long
        wrong = of_sampler(Joint(sampler.potentials), sampler, name)
        after = joint.pi @ np.linalg.matrix_power(wrong, SWEEPS)
        assert ncx2.sf(limit, len(joint) - 1, MANY * ((after - joint.pi) ** 2 / joint.pi).sum()) >= 0.999
    assert found > limit
