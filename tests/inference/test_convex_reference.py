"""Message passing against a generic convex solver (CVXPY with Clarabel), which knows nothing of messages.

With counting numbers c_a of links a, log Z is the greatest value of <phi, b> + H(b) over locally consistent b, with

    H  =  sum_a c_a H_a + sum_i (1 - sum_{a at i} c_a) H_i.

H is concave if it can be written with non-negative numbers d as (Heskes 2006; Weiss, Yanover and Meltzer 2007)

    H  =  sum_a d_a H_a + sum_i d_i H_i + sum_{(i,a)} d_ia (H_a - H_i),

in which each term is concave, the last one as minus a relative entropy: H_a - H_i = -sum b_a log(b_a / b_i). A linear
programme finds d (and so proves that H is concave); for tree-reweighting one exists, as every tree, rooted somewhere,
is such a sum. The solver's tolerance stands in `conic`.
"""

import numpy as np
import pytest
from conic import solved
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import isinglass as ig
from isinglass.graph.forests.appearance import appearance_probabilities
from isinglass.testing import random_potentials

cp = pytest.importorskip("cvxpy", reason="the convex reference needs CVXPY with Clarabel")

ROUNDING = 1e-9  # of the linear programme
VALUE, BELIEF = 1e-9, 1e-7

GRAPHS = {
    "triangle": ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0), (0,)]),
    "mixed cycle": ig.FactorGraph([2, 3, 4, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (2,)]),
    "K4": ig.complete_graph(4, 2),
    "mixed K4": ig.FactorGraph([3, 2, 2, 3], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0,)]),
    "grid": ig.grid_graph(2, 3, 2),
    "parallel and bridge": ig.FactorGraph([2, 3, 2], [(0, 1), (1, 0), (1, 2), (2,)]),
    "triples": ig.FactorGraph([2, 2, 3, 2], [(0, 1, 2), (1, 2, 3), (3, 0), (2,)]),
    "triples on a cycle": ig.FactorGraph([2] * 6, [(0, 1, 2), (2, 3, 4), (4, 5, 0), (1, 3), (5,)]),
}


def links_of(graph):
    return [(a, scope) for a, scope in enumerate(graph.scopes) if len(scope) >= 2]


def concave_form(graph, counting):
    """Return d_a, d_i and d_ia (by link and slot), or None if there are none; of many, those in the middle."""
    links, n = links_of(graph), graph.n_variables
    ends = [(k, i) for k, (_, scope) in enumerate(links) for i in scope]
    matrix = np.zeros((len(links) + n, len(links) + n + len(ends)))
    matrix[:, : len(links) + n] = np.eye(len(links) + n)
    target = np.concatenate([counting, np.ones(n)])
    for column, (k, i) in enumerate(ends, len(links) + n):
        matrix[k, column], matrix[len(links) + i, column] = 1, -1
        target[len(links) + i] -= counting[k]
    costs = np.random.default_rng(0).uniform(-1, 1, (6, matrix.shape[1]))
    found = [linprog(cost, A_eq=matrix, b_eq=target, bounds=(0, None)) for cost in costs]
    if not all(one.success for one in found):
        return None
    d = np.mean([one.x for one in found], axis=0)
    d[d < ROUNDING] = 0
    per_end = iter(d[len(links) + n :])
    return d[: len(links)], d[len(links) : len(links) + n], [[next(per_end) for _ in scope] for _, scope in links]


def solve(p, counting):
    """Return log Z, the beliefs of variables and those of links, as the solver finds them."""
    graph, tables = p.graph, p.log_tables
    links = links_of(graph)
    d_link, d_variable, d_end = concave_form(graph, counting)
    own = [cp.Variable(k) for k in graph.cards]
    joint = [cp.Variable(tables[a].size) for a, _ in links]
    value = sum(tables[a] @ own[scope[0]] for a, scope in enumerate(graph.scopes) if len(scope) == 1)
    value += sum(weight * cp.sum(cp.entr(b)) for weight, b in zip(d_variable, own, strict=True) if weight)
    constraints = [cp.sum(b) == 1 for b in own]
    for (a, scope), b, weight, ends in zip(links, joint, d_link, d_end, strict=True):
        value += tables[a].ravel() @ b + weight * cp.sum(cp.entr(b))
        for slot, (i, end) in enumerate(zip(scope, ends, strict=True)):
            state = np.indices(tables[a].shape)[slot].ravel()
            spread = np.eye(graph.cards[i])[state]
            constraints.append(spread.T @ b == own[i])
            value -= end * cp.sum(cp.rel_entr(b, spread @ own[i])) if end else 0
    problem = cp.Problem(cp.Maximize(value), constraints)
    solved(problem)
    return (
        problem.value,
        [b.value for b in own],
        [b.value.reshape(tables[a].shape) for (a, _), b in zip(links, joint, strict=True)],
    )


def compare(p, algorithm, counting):
    r = ig.infer(p, algorithm, tol=1e-11, max_iter=5000)
    assert r.info.converged
    log_z, variables, links = solve(p, counting)
    assert_allclose(r.log_z, log_z, atol=VALUE, rtol=VALUE)
    for mine, true in zip(r.variables, variables, strict=True):
        assert_allclose(mine, true, atol=BELIEF)
    for (a, _), true in zip(links_of(p.graph), links, strict=True):
        assert_allclose(r.factor(a), true, atol=BELIEF)


@pytest.mark.long
@pytest.mark.parametrize("scale", [0.5, 1.5])
@pytest.mark.parametrize("name", GRAPHS)
def test_tree_reweighted(name, scale):
    p = random_potentials(GRAPHS[name], np.random.default_rng(len(name)), scale)
    compare(p, ig.TreeReweighted(), appearance_probabilities(p.graph))


@pytest.mark.long
@pytest.mark.parametrize("share", [0.5, 0.75, 0.95])
@pytest.mark.parametrize("name", GRAPHS)
def test_fractional(name, share):
    """Counting numbers below those of spanning trees, by another share for each link: concave, but of no tree."""
    p = random_potentials(GRAPHS[name], np.random.default_rng(len(name) + 1))
    rho = appearance_probabilities(p.graph)
    counting = rho * np.random.default_rng(len(name)).uniform(share / 2, share, len(rho))
    every = np.ones(p.graph.n_factors)
    every[[a for a, _ in links_of(p.graph)]] = counting
    compare(p, ig.FractionalBeliefPropagation(counting_numbers=every, damping=0.3), counting)


def test_the_form_tells_what_is_not_concave():
    """The Bethe entropy is concave on a single cycle, and has no such form on K4."""
    cycle = ig.FactorGraph([2] * 4, [(i, (i + 1) % 4) for i in range(4)])
    assert concave_form(cycle, np.ones(4)) is not None
    assert concave_form(GRAPHS["K4"], np.ones(6)) is None


def test_belief_propagation_on_a_cycle():
    """One cycle: the Bethe free energy is convex, and belief propagation finds its minimum."""
    p = random_potentials(GRAPHS["mixed cycle"], np.random.default_rng(3))
    compare(p, ig.BeliefPropagation(), np.ones(4))
