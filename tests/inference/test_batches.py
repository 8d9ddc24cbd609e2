"""Gradients of message passing in batches of different structures: every example has those that it has alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, each_equal
from isinglass.errors import no_convergence_warnings

RNG = np.random.default_rng(0)


def grid(height, width, card=2, tables="own", scale=0.7, zeros=0):
    """Random tables: one for each edge, one for all, one for each axis, or some that several edges share."""
    graph = ig.grid_graph(height, width, card)
    unary, edges = graph.groups
    shared = {"own": np.arange(len(edges)), "one": np.zeros(len(edges), int), "some": RNG.integers(0, 3, len(edges))}
    shared["axes"] = (np.arange(len(edges)) >= height * (width - 1)).astype(int)
    ids = [np.arange(len(unary)), shared[tables]]
    values = [RNG.normal(size=(len(unary), card)), scale * RNG.normal(size=(max(ids[1]) + 1, card, card))]
    values[zeros][0].flat[0] = -np.inf if zeros else values[0][0].flat[0]
    return ig.Potentials.from_groups(graph, values, table_ids=ids)


def pairs(cards, scopes, tables):
    """Pairwise factors of which several share a table, in any sequence."""
    scopes = RNG.permutation(np.array(scopes))
    graph = ig.FactorGraph.from_groups(np.array(cards), [np.arange(len(cards))[:, None], scopes])
    values = [RNG.normal(size=(len(cards), cards[0])), 0.5 * RNG.normal(size=(tables, cards[0], cards[0]))]
    ids = [np.arange(len(cards)), RNG.permutation(np.arange(len(scopes)) % tables)]
    return ig.Potentials.from_groups(graph, values, table_ids=ids)


def suspect():
    """A grid whose second iteration comes near to an underflow, though no product underflows."""
    graph = ig.grid_graph(3, 4, 2)
    unary, edges = RNG.normal(size=(12, 2)), 0.3 * RNG.normal(size=(17, 2, 2))
    edges[0, 1, 1] = -400
    edges[(graph.groups[1].scopes == 10).any(axis=1)] += 70 * np.eye(2)
    unary[[6, 9, 11], 1] -= 75
    unary[10, 1] -= 200
    return ig.Potentials.from_groups(graph, [unary, edges])


def any_tables(graph):
    return ig.Potentials(graph, [0.5 * RNG.normal(size=graph.cards[list(scope)]) for scope in graph.scopes])


EXAMPLES = {
    "grid": grid(4, 5),
    "another grid": grid(4, 5),
    "one table": grid(4, 5, tables="one"),
    "another table": grid(4, 5, tables="one"),
    "two tables": grid(4, 5, tables="axes"),
    "three tables": grid(4, 5, tables="some"),
    "hard zero": grid(4, 5, zeros=1),
    "hard zero in the only table": grid(4, 5, tables="one", zeros=1),
    "large": grid(12, 30, tables="one", scale=0.3),
    "small": grid(2, 2),
    "three states": grid(3, 3, 3, tables="axes"),
    "nearly an underflow": grid(3, 4, scale=90.0),
    "underflow": grid(3, 4, tables="one", scale=400.0),
    "suspect": suspect(),
    "chain with one table": pairs([2] * 6, [(0, 1), (2, 1), (2, 3), (3, 4), (5, 4)], 1),
    "chain": any_tables(ig.chain_graph(6, 2)),
    "loops": pairs([2] * 6, [(0, 1), (2, 1), (2, 3), (3, 4), (0, 4), (1, 5), (5, 3)], 3),
    "states": any_tables(ig.FactorGraph([2, 3, 2, 4], [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3), (2,)])),
    "triples": any_tables(ig.FactorGraph([2] * 5, [(0, 1, 2), (2, 3, 4), (4, 0), (1, 3), (2,)])),
    "observed": ig.Potentials(ig.grid_graph(3, 3, 2), any_tables(ig.grid_graph(3, 3, 2)).log_tables, {4: 0}),
    "unlinked": any_tables(ig.FactorGraph([3], [(0,)])),
}
ALGORITHMS = {
    "bp": lambda **options: ig.BeliefPropagation(**options),
    "trw": lambda **options: ig.TreeReweighted(**options),
    "fbp": lambda **options: ig.FractionalBeliefPropagation(counting_numbers=0.8, **options),
}
ROUNDING = {"rtol": 1e-12, "atol": 1e-12}
CONVERGED = {"max_iter": 400, "tol": 1e-10}


def cotangents(p):
    rng = np.random.default_rng(p.graph.n_factors)
    size = [tuple(p.graph.cards[list(scope)]) for scope in p.graph.scopes]
    return rng.normal(), rng.normal(size=p.graph.cards.sum()), [rng.normal(size=s) for s in size]


def differentiated(p, bars, algorithm, tape, init=None):
    """Return the derivatives by every table, first message and counting number."""
    with no_convergence_warnings():
        gradients = ig.infer(p, algorithm, tape=tape, init=init).backward(*bars)
    return list(gradients.log_tables), gradients.initial_messages, gradients.counting_numbers


def check(names, algorithm, tape=True, start=None):
    """Compare the gradients of examples in a batch with those of each alone; `start` infers the first messages."""
    examples = [EXAMPLES[name] for name in names]
    whole = ig.potentials_union(examples)
    bars = [cotangents(p) for p in examples]
    together = ([z for z, _, _ in bars], np.concatenate([v for _, v, _ in bars]), [f for *_, fs in bars for f in fs])
    init = None if start is None else ig.infer(whole, start)
    tables, messages, counting = differentiated(whole, together, algorithm, tape, init)
    first = entry = 0
    for name, p, bar in zip(names, examples, bars, strict=True):
        found = differentiated(p, bar, algorithm, tape, None if start is None else ig.infer(p, start))
        each_close(tables[first : first + p.graph.n_factors], found[0], **ROUNDING, err_msg=name)
        assert_allclose(messages[entry : entry + len(found[1])], found[1], **ROUNDING, err_msg=name)
        assert_allclose(counting[first : first + p.graph.n_factors], found[2], **ROUNDING, err_msg=name)
        assert np.isfinite(messages).all()
        first, entry = first + p.graph.n_factors, entry + len(found[1])


PAIRS = [
    ("grid", "chain"),
    ("grid", "small"),
    ("grid", "three states"),
    ("grid", "hard zero"),
    ("one table", "grid"),
    ("one table", "another table"),
    ("one table", "hard zero in the only table"),
    ("one table", "nearly an underflow", "underflow"),
    ("three tables", "loops"),
    ("chain", "triples"),
    ("chain with one table", "grid"),
    ("one table", "suspect", "another table"),
    ("loops", "triples"),
    ("large", "states"),
]


@pytest.mark.long
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("names", PAIRS, ids=" + ".join)
def test_a_gradient_by_flooding_is_the_same_alone_and_in_a_batch(names, kind, damping):
    make = ALGORITHMS[kind]
    check(names, make(iterations=4, schedule="flooding", damping=damping))
    check(names[::-1], make(iterations=4, schedule="flooding", damping=damping, n_jobs=2))
    check(names, make(iterations=7, schedule="flooding", damping=damping), tape="sqrt")


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("schedule", ["sequential", "residual"])
def test_a_result_link_by_link_is_the_same_alone_and_in_a_batch(schedule, threads):
    names = sorted(EXAMPLES)
    whole = ig.potentials_union([EXAMPLES[name] for name in names])
    for options in ({"iterations": 2}, {"iterations": 3, "damping": 0.2}, {"tol": 1e-6, "max_iter": 5}):
        algorithm = ig.BeliefPropagation(schedule=schedule, n_jobs=threads, **options)
        with no_convergence_warnings():
            together, first = ig.infer(whole, algorithm), 0
            for c, name in enumerate(names):
                alone = ig.infer(EXAMPLES[name], algorithm)
                last = first + len(alone.variables.flat)
                assert_allclose(together.variables.flat[first:last], alone.variables.flat, **ROUNDING, err_msg=name)
                assert_allclose(together.component_log_z[c], alone.log_z, **ROUNDING, err_msg=name)
                first = last


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_batches(data):
    names = data.draw(st.lists(st.sampled_from(sorted(EXAMPLES)), min_size=2, max_size=6, unique=True))
    options = {"damping": data.draw(st.sampled_from([0.0, 0.2])), "n_jobs": data.draw(st.sampled_from([1, 2]))}
    make = ALGORITHMS[data.draw(st.sampled_from(sorted(ALGORITHMS)))]
    tape = data.draw(st.sampled_from([True, "sqrt"]))
    check(names, make(iterations=data.draw(st.sampled_from([1, 5])), schedule="flooding", **options), tape)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("schedule", ["flooding", "auto"])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_gradient_at_a_fixed_point_is_the_same_alone_and_in_a_batch(kind, schedule, threads):
    names = ("one table", "triples", "grid", "chain", "three states", "loops", "another table", "hard zero", "large")
    check(names, ALGORITHMS[kind](schedule=schedule, n_jobs=threads, **CONVERGED))
    check(names[::-1], ALGORITHMS[kind](schedule=schedule, damping=0.2, **CONVERGED), tape="sqrt")


@pytest.mark.parametrize("threads", [1, 2])
def test_messages_to_start_with(threads):
    """Also where a hard zero is in the messages that another example starts with."""
    names = ("grid", "hard zero", "one table", "loops", "chain")
    start = ig.BeliefPropagation(iterations=2, schedule="flooding")
    check(names, ig.BeliefPropagation(iterations=3, schedule="flooding", n_jobs=threads), start=start)


def test_potentials_for_each_iteration():
    names = ("grid", "triples", "one table", "three states")
    algorithm = ig.BeliefPropagation(iterations=3, schedule="flooding")
    whole = by_stages(ig.potentials_union([EXAMPLES[name] for name in names]), algorithm)
    first = 0
    for name in names:
        n = EXAMPLES[name].graph.n_factors
        for mine, alone in zip(whole, by_stages(EXAMPLES[name], algorithm), strict=True):
            each_close(mine[first : first + n], alone, **ROUNDING)
        first += n


def by_stages(p, algorithm):
    """Return the derivatives of log Z by the tables of each iteration."""
    stages = [scaled(p, factor) for factor in (1.0, 0.8, 1.1)]
    result = ig.infer(stages, algorithm, tape=True)
    return [list(tables) for tables in result.backward(1.0).log_tables]


def scaled(p, factor):
    return ig.Potentials.from_groups(p.graph, [factor * group for group in p.groups], table_ids=p.table_ids)


@pytest.mark.parametrize("name", ["suspect", "nearly an underflow", "large", "triples"])
def test_the_short_tape_gives_the_same_bits_where_loops_change(name):
    p = EXAMPLES[name]
    algorithm = ig.BeliefPropagation(iterations=9, schedule="flooding")
    long, short = (differentiated(p, cotangents(p), algorithm, tape) for tape in (True, "sqrt"))
    each_equal([*long[0], long[1]], [*short[0], short[1]])


SHARED = {
    "grid": ig.grid_graph(5, 6, 2),
    "chain": ig.chain_graph(9, 2),
    "triples": ig.FactorGraph([2] * 5, [*((i,) for i in range(5)), (0, 1, 2), (2, 3, 4), (1, 3, 4)]),
}


@pytest.mark.parametrize("options", [{"iterations": 5}, {"tol": 1e-9}, {"iterations": 4, "damping": 0.2}], ids=repr)
@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
@pytest.mark.parametrize("name", SHARED)
def test_threads_change_no_gradient_by_a_table_that_all_examples_share(name, options, schedule):
    """Each example adds up its own part; these are added up in their order."""
    graph, rng = SHARED[name].repeat(7), np.random.default_rng(0)
    tables = 0.5 * rng.normal(size=(1, *graph.groups[1].shape))
    p = ig.Potentials.from_groups(graph, [rng.normal(size=(graph.n_variables, 2)), tables])
    bars = cotangents(p)
    found = []
    for threads in (1, 2, 3):
        r = ig.infer(p, ig.BeliefPropagation(schedule=schedule, n_jobs=threads, **options), tape=True)
        found.append(r.backward(*bars).groups)
    for other in found[1:]:
        each_equal(found[0], other)


GRAPHS = {
    "pair": ig.FactorGraph([2, 2], [(0, 1)]),
    "loop": ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (1,)]),
    "grid": ig.grid_graph(2, 3, 2),
    "triple": ig.FactorGraph([2, 2, 3], [(0, 1, 2), (1,)]),
}


def peaked(graph, depth, seed=0):
    """Random tables in which state 1 of variable 0 is about e^-depth times as likely as state 0."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=graph.cards[list(scope)]) for scope in graph.scopes]
    a = next(a for a, scope in enumerate(graph.scopes) if 0 in scope)
    np.moveaxis(tables[a], graph.scopes[a].index(0), 0)[1] -= depth
    return ig.Potentials(graph, tables)


def logarithm(p, i, state, result):
    """The derivative of log b_i(state) by the beliefs."""
    bars = [np.zeros(card) for card in p.graph.cards]
    bars[i][state] = 1 / result.variable(i)[state]
    return bars


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
@pytest.mark.parametrize("depth", [0.0, 40.0, 300.0, 640.0, 699.0, 705.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_gradient_of_the_log_of_a_tiny_belief(name, depth, algorithm):
    """It is P(. | x_i) - P(.), whatever the size of the belief."""
    p = peaked(GRAPHS[name], depth)
    r = ig.infer(p, algorithm, tape=True)
    given = ig.infer(p, algorithm, evidence={0: 1})
    found = [r.backward(variables=logarithm(p, 0, 1, r)).log_tables]
    found.append(ig.perturbation(p, algorithm, variables=logarithm(p, 0, 1, r)).log_tables)
    for gradient in found:
        for a in range(p.graph.n_factors):
            assert_allclose(gradient[a], given.factor(a) - r.factor(a), atol=1e-13)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_large_and_small_derivatives_together(algorithm):
    """Derivatives of tiny and of ordinary beliefs add up; neither is lost beside the other."""
    p = peaked(GRAPHS["grid"], 690.0)
    r = ig.infer(p, algorithm, tape=True)
    tiny, plain = logarithm(p, 0, 1, r), logarithm(p, 5, 1, r)
    both = r.backward(0.5, variables=[a + b for a, b in zip(tiny, plain, strict=True)]).log_tables
    parts = r.backward(0.5, variables=tiny).log_tables, r.backward(variables=plain).log_tables
    for a in range(p.graph.n_factors):
        assert_allclose(both[a], parts[0][a] + parts[1][a], atol=1e-13)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_evidence_and_hard_zeros_beside_tiny_beliefs(algorithm):
    p = peaked(GRAPHS["triple"], 700.0)
    tables = [np.array(t) for t in p.log_tables]
    tables[0][0, 1, 2] = tables[0][1, 0, 1] = -np.inf
    q = ig.Potentials(p.graph, tables, {1: 1})
    r = ig.infer(q, algorithm, tape=True)
    given = ig.infer(q, algorithm, evidence={0: 1})
    gradient = r.backward(variables=logarithm(q, 0, 1, r)).log_tables
    for a in range(p.graph.n_factors):
        assert_allclose(gradient[a], given.factor(a) - r.factor(a), atol=1e-13)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_a_gradient_is_the_same_alone_and_in_a_batch(algorithm):
    """Also beside an example with a belief of 1e-304, whose derivative is 1e304."""
    examples = [peaked(graph, depth) for graph, depth in zip(GRAPHS.values(), (699.0, 3.0, 0.0, 50.0), strict=True)]
    union = ig.disjoint_union([p.graph for p in examples])
    whole = ig.Potentials(union, [t for p in examples for t in p.log_tables])
    bars, alone = [], []
    for p in examples:
        r = ig.infer(p, algorithm, tape=True)
        bars += [0.3 * bar for bar in logarithm(p, 0, 1, r)]
        alone += list(r.backward(0.7, variables=bars[-p.graph.n_variables :]).log_tables)
    batch = ig.infer(whole, algorithm, tape=True).backward(0.7, variables=bars).log_tables
    for one, other in zip(alone, batch, strict=True):
        assert np.isfinite(one).all()
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_converged_perturbation_is_the_same_alone_and_in_a_batch():
    """A step is a power of two, of each example its own."""
    examples = [peaked(ig.chain_graph(3, 2), depth, seed) for seed, depth in enumerate((0.0, 699.0, 2.0))]
    union = ig.disjoint_union([p.graph for p in examples])
    whole = ig.Potentials(union, [t for p in examples for t in p.log_tables])
    options = {"tol": 0.0, "max_iter": 20, "schedule": "tree"}
    bars, alone = [], []
    for p in examples:
        bars += [0.3 * bar for bar in logarithm(p, 0, 1, ig.infer(p, "exact"))]
        alone += list(ig.perturbation(p, "bp", variables=bars[-3:], **options).log_tables)
    batch = ig.perturbation(whole, "bp", variables=bars, **options).log_tables
    for one, other in zip(alone, batch, strict=True):
        assert np.isfinite(one).all()
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)
