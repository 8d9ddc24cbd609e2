"""Convex free energies from any start, by any solver: what is called converged is the minimum."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from conic import Programme, beliefs_of
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass import losses
from isinglass.errors import no_convergence_warnings
from isinglass.gradients import rule
from isinglass.inference.result import VariableBeliefs
from isinglass.learning import Objective
from isinglass.potentials import potentials_union
from isinglass.testing import random_potentials

STARTED = ("newton", "primal", "blocks")  # the solvers that begin with given beliefs
TRUTH = 2.3154326028  # of the pair, with entropy A


def pair():
    return ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])


@pytest.mark.parametrize("solver", STARTED)
def test_a_start_with_zeros_is_left(solver):
    p = pair()
    r = ig.infer(p, "convex", solver=solver, init=ig.infer(p, "convex", evidence={0: 0}))
    assert r.info.converged
    assert r.info.bound == "upper"
    assert r.info.duality_gap < 1e-9
    assert_allclose(r.log_z, TRUTH, rtol=1e-9)


@pytest.mark.parametrize("solver", STARTED)
@pytest.mark.parametrize("depth", [40.0, 800.0, 1e5])
def test_a_peaked_start_is_left(solver, depth):
    p = pair()
    peaked = ig.infer(ig.Potentials(p.graph, [[[0.0, -depth], [-depth, -depth]]]), "convex")
    assert_allclose(ig.infer(p, "convex", solver=solver, init=peaked).log_z, TRUTH, rtol=1e-9)


def test_starts_of_other_models():
    # What was seen then has no mass on what is left now.
    p = random_potentials(ig.grid_graph(3, 3, 3), np.random.default_rng(0), 2.0)
    for now in ({4: 1}, {4: 1, 0: 2}):
        r = ig.infer(p, "convex", evidence=now, init=ig.infer(p, "convex", evidence={4: 0}))
        assert r.info.converged
        assert_allclose(r.log_z, ig.infer(p, "convex", evidence=now).log_z, rtol=1e-9)
    p = pair()
    start = replace(ig.infer(p, "convex"), variables=VariableBeliefs(p.graph, np.full(4, np.nan)))
    assert_allclose(ig.infer(p, "convex", init=start).log_z, TRUTH, rtol=1e-9)


def test_a_component_keeps_a_good_start_beside_a_useless_one():
    parts = [random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(k), 2.0) for k in range(2)]
    both = potentials_union(parts)
    start = ig.infer(both, "convex", evidence={9: 0})
    r = ig.infer(both, "convex", evidence={9: 1}, init=start)
    alone = ig.infer(parts[0], "convex", init=ig.infer(parts[0], "convex"))
    assert r.info.component_iterations[0] == alone.info.iterations <= 2
    assert_allclose(r.component_log_z, ig.infer(both, "convex", evidence={9: 1}).component_log_z, rtol=1e-9)


def test_a_corner_is_no_minimum_for_any_solver():
    """Where two links disagree on a state, a belief of 1e-161 is to be 8e-4, and no step shows it."""
    tables = [
        [[53.8, -2.3], [-40.4, -47.9], [-13.7, -43.1]],
        [[-18.3, 4.3], [-53.7, 22.5], [-58.8, 11.3]],
        [-53.7, 1.0],
    ]
    p = ig.Potentials(ig.FactorGraph([3, 2], [(0, 1), (0, 1), (1,)]), tables)
    truth = ig.infer(p, "convex", weights="C")
    assert truth.info.converged
    for solver in ("dual", "lbfgs", "cg", "messages"):
        with no_convergence_warnings():
            r = ig.infer(p, "convex", weights="C", solver=solver, max_iter=2000)
        assert not r.info.converged or abs(r.log_z - truth.log_z) < 1e-6


@pytest.mark.parametrize("options", [{}, {"tol": 1e-5, "rtol": np.inf}])
def test_training_comes_back_from_a_step_too_far(options):
    """Beliefs that an overshooting line search has left at corners do not hold the next evaluation there."""
    rng = np.random.default_rng(2)
    model = ig.models.grid_model(rng.normal(size=(2, 4, 4, 2)), 3)
    labels = rng.integers(0, 3, 32)
    cold, warm = (
        Objective(model, labels, losses.make("uquad"), ig.ConvexFreeEnergy(reuse=reuse, **options), rule("implicit"))
        for reuse in (False, True)
    )
    theta, far = 0.3 * rng.normal(size=model.size), 300 * rng.normal(size=model.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm(far)
    value, gradient = cold(theta)
    same, slope = warm(theta)
    assert_allclose(same, value, rtol=1e-6)
    assert_allclose(slope, gradient, atol=1e-5)


def attacked(rng):
    """Return a random forest or graph with loops, potentials N(0, s²), some hard zeros, evidence, and weights."""
    n, scale, forest = int(rng.integers(2, 6)), float(rng.choice([0.5, 3, 10, 30, 100, 300])), rng.random() < 0.5
    cards = rng.integers(2, 4, n)
    scopes = [(int(rng.integers(i)), i) for i in range(1, n)] + [(i,) for i in range(n) if rng.random() < 0.5]
    if not forest:
        more = rng.choice([2, min(3, n)], int(rng.integers(1, 4)))
        scopes += [tuple(rng.choice(n, r, replace=False).tolist()) for r in more]
    tables, possible = [rng.normal(0, scale, cards[list(s)]) for s in scopes], rng.integers(cards)
    if rng.random() < 0.4:
        for scope, table in zip(scopes, tables, strict=True):
            forbidden = rng.random(table.shape) < 0.25
            forbidden[tuple(possible[list(scope)])] = False
            table[forbidden] = -np.inf
    seen = rng.choice(n, int(rng.integers(n)), replace=False) if rng.random() < 0.5 else []
    weights = "bethe" if forest and rng.random() < 0.5 else rng.choice(["A", "B", "C"])
    return ig.Potentials(ig.FactorGraph(cards, scopes), tables), {int(i): int(possible[i]) for i in seen}, str(weights)


def starts(p, rng):
    """Yield results of other potentials and other evidence on the same graph."""
    yield ig.infer(p)
    for scale in (1.0, 50.0, 1000.0):
        tables = [np.where(np.isinf(t), t, rng.normal(0, scale, t.shape)) for t in p.log_tables]
        yield ig.infer(ig.Potentials(p.graph, tables))
    i = int(rng.integers(p.graph.n_variables))
    states = np.flatnonzero(ig.infer(p).variable(i) > 0)
    yield ig.infer(p, evidence={i: int(rng.choice(states))})


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(40))
def test_what_is_called_converged_is_the_minimum(seed):
    rng = np.random.default_rng([12, seed])
    p, evidence, weights = attacked(rng)
    truth = ig.infer(p, evidence=evidence)
    cold = [
        ig.infer(p, ig.ConvexFreeEnergy(weights, tol=1e-11), evidence=evidence),
        ig.infer(p, ig.ConvexFreeEnergy(weights), evidence=evidence),
    ]
    found = list(cold)
    for solver in ("dual", "lbfgs", "cg", "messages"):
        try:
            found.append(ig.infer(p, ig.ConvexFreeEnergy(weights, solver=solver), evidence=evidence))
        except ig.InputError:  # weights that are not positive, or zeros that tie variables
            continue
    for start in starts(p, rng):
        for solver in STARTED if weights != "bethe" and not seed % 4 else STARTED[:1]:
            try:
                algorithm = ig.ConvexFreeEnergy(weights, solver=solver)
                found.append(ig.infer(p, algorithm, evidence=evidence, init=start))
            except ig.InputError:
                continue
    certain = [r for r in found if r.info.converged]
    assert len(certain) > 0 or max(float(np.abs(t[np.isfinite(t)]).max(initial=0)) for t in p.log_tables) > 10
    for r in certain:
        log_z = truth.log_z if weights == "bethe" else certain[0].log_z
        assert_allclose(r.log_z, log_z, rtol=1e-4, atol=1e-4)
        assert_allclose(r.variables.flat, certain[0].variables.flat, atol=1e-4)
    slack = 1e-6 * max(1.0, abs(truth.log_z))
    for r in found:
        assert r.info.bound != "upper" or r.log_z >= truth.log_z - slack
        assert r.info.bound != "exact" or abs(r.log_z - truth.log_z) <= slack


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
