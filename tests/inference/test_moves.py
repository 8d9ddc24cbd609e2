"""The loops behind one schedule agree to the last bit; tapes, stages and threads change nothing they should not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import each_close, each_equal, refuses
from isinglass.errors import no_convergence_warnings
from isinglass.graph.schedules import grid_schedule
from isinglass.inference.message_passing.engine import Engine
from isinglass.inference.message_passing.moves.flood import Flood, FloodPairs
from isinglass.inference.message_passing.moves.grid_flood import GridFlood
from isinglass.inference.message_passing.moves.grid_sweep import GridSweep
from isinglass.inference.message_passing.moves.sequence import LinkSequence
from isinglass.testing import random_potentials


@pytest.fixture
def only(monkeypatch):
    """Let the engine go by one kind of loop only; the runs that it did are counted."""

    def choose(kind):
        calls = []

        def move(self, run, schedule):
            from isinglass.graph.message_graph import partners_of

            calls.append(kind)
            if kind in (Flood, FloodPairs):  # also back
                monkeypatch.setattr(run.back, "grids", lambda run: [])
            if kind is Flood:
                monkeypatch.setattr(run.back, "pairwise", np.zeros(self.graph.n_components, bool))
            if schedule == "grid":
                links = LinkSequence(lambda: grid_schedule(self.graph))
                sweep = GridSweep.of(self.graph, run, links)
                assert sweep is not None
                return sweep if kind is GridSweep else links
            assert schedule == "flooding"
            if kind is Flood:
                return Flood()
            pairs = FloodPairs(partners_of(self.graph))
            if kind is FloodPairs:
                return pairs
            grid = GridFlood.of(self.graph, run, pairs)
            assert grid is not None
            return grid

        monkeypatch.setattr(Engine, "_move", move)
        return calls

    return choose


def random_grid(rng, height, width, card, tables, copies):
    graph = ig.grid_graph(height, width, card)
    unary, edges = graph.groups
    shared = {"one": 1, "own": len(edges)}.get(tables, 2)
    ids = None
    if tables == "axes":
        ids = [np.arange(len(unary)), (np.arange(len(edges)) >= height * (width - 1)).astype(int)]
    if tables == "some":
        ids = [np.arange(len(unary)), rng.integers(0, 2, len(edges))]
    values = [rng.normal(size=(len(unary), card)), rng.normal(size=(shared, card, card))]
    p = ig.Potentials.from_groups(graph, values, table_ids=ids).repeat(copies)
    apart = [p.groups[0] + rng.normal(size=p.groups[0].shape), *p.groups[1:]]
    return ig.Potentials.from_groups(p.graph, apart, table_ids=p.table_ids)


def cotangents(p, rng):
    size = [tuple(p.graph.cards[list(s)]) for s in p.graph.scopes]
    return rng.normal(), rng.normal(size=p.graph.cards.sum()), [rng.normal(size=s) for s in size]


@pytest.mark.parametrize("tables", ["one", "axes", "some", "own"])
@pytest.mark.parametrize(
    ("height", "width", "card", "copies"), [(2, 2, 2, 1), (4, 7, 2, 3), (9, 40, 3, 1), (3, 5, 5, 2)]
)
def test_grid_loops_are_the_pairwise_loops(height, width, card, copies, tables, only):
    rng = np.random.default_rng([height, width, card])
    p = random_grid(rng, height, width, card, tables, copies)
    bars = cotangents(p, rng)
    algorithm = ig.BeliefPropagation(iterations=4, schedule="flooding")
    agree(p, algorithm, bars, (GridFlood, FloodPairs, Flood), only)


@pytest.mark.long
@pytest.mark.parametrize("tables", ["one", "axes", "some", "own"])
@pytest.mark.parametrize(
    ("height", "width", "card", "copies"),
    [(2, 2, 2, 1), (4, 7, 2, 3), (9, 40, 3, 1), (3, 5, 5, 2), (8, 8, 2, 1), (19, 12, 2, 2)],
)
@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_lines_of_a_grid_are_its_links_one_by_one(height, width, card, copies, iterations, tables, only):
    rng = np.random.default_rng([height, width, card])
    p = random_grid(rng, height, width, card, tables, copies)
    algorithm = ig.BeliefPropagation(iterations=iterations, schedule="grid")
    agree(p, algorithm, cotangents(p, rng), (GridSweep, LinkSequence), only)


def agree(p, algorithm, bars, kinds, only):
    """Check that all kinds of loops give the same bits, and derivatives but for rounding."""
    results, gradients = [], []
    for kind in kinds:
        calls = only(kind)
        results.append(ig.infer(p, algorithm, tape=True))
        gradients.append(results[-1].backward(*bars))
        assert calls == [kind]
    for other in results[1:]:
        assert_array_equal(results[0].variables.flat, other.variables.flat)
        assert_array_equal(results[0].component_log_z, other.component_log_z)
        assert_array_equal(results[0].messages, other.messages)
        assert results[0].info.residual == other.info.residual
    for other in gradients[1:]:
        each_close(gradients[0].groups, other.groups, rtol=1e-12, atol=1e-12)
        assert_allclose(gradients[0].initial_messages, other.initial_messages, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kind", "schedule"), [(GridFlood, "flooding"), (GridSweep, "grid")])
def test_grids_stop_one_by_one(kind, schedule, only):
    rng = np.random.default_rng(0)
    weak, strong = (scale * np.ones((1, 2, 2)) * np.eye(2) for scale in (0.1, 0.9))
    graph = ig.grid_graph(5, 4, 2)
    parts = [ig.Potentials.from_groups(graph, [rng.normal(size=(20, 2)), table]) for table in (weak, strong, weak)]
    p = ig.potentials_union(parts)
    only(kind)
    together = ig.infer(p, ig.BeliefPropagation(schedule=schedule), tape=True)
    alone = [ig.infer(part, ig.BeliefPropagation(schedule=schedule), tape=True) for part in parts]
    assert len({r.info.iterations for r in alone}) > 1
    assert_array_equal(together.variables.flat, np.concatenate([r.variables.flat for r in alone]))
    gradients = together.backward(log_z=[1.0, 2.0, 3.0])
    for c, r in enumerate(alone):
        mine = gradients.groups[0][20 * c : 20 * (c + 1)]
        assert_allclose(mine, r.backward(log_z=c + 1.0).groups[0], rtol=1e-12)


def test_lines_with_counting_numbers_potentials_for_each_iteration_and_a_start(only):
    rng = np.random.default_rng(7)
    p = random_grid(rng, 4, 6, 2, "own", 2)
    moved = [[group + rng.normal(size=group.shape) for group in p.groups] for _ in range(3)]
    stages = [ig.Potentials.from_groups(p.graph, groups, table_ids=p.table_ids) for groups in moved]
    bars = cotangents(stages[0], rng)
    algorithm = ig.BeliefPropagation(iterations=3, schedule="grid")
    start = ig.infer(stages[0], ig.BeliefPropagation(iterations=2))
    found = []
    for kind in (GridSweep, LinkSequence):
        only(kind)
        r = ig.infer(stages, algorithm, tape=True, init=start)
        found.append((r, r.backward(*bars)))
    (r, g), (s, h) = found
    assert_array_equal(r.messages, s.messages)
    each_close(g.groups, h.groups, rtol=1e-12, atol=1e-12)
    assert_allclose(g.initial_messages, h.initial_messages, rtol=1e-12, atol=1e-13)
    assert np.abs(g.initial_messages).max() > 1e-6
    only(GridSweep)
    fast = ig.infer(stages[0], algorithm, tape=True).backward(*bars).counting_numbers
    only(LinkSequence)
    assert_allclose(fast, ig.infer(stages[0], algorithm, tape=True).backward(*bars).counting_numbers, rtol=1e-12)


def test_where_a_sweep_comes_near_to_an_underflow_the_links_go_on_one_by_one(only):
    rng = np.random.default_rng(3)
    parts = [random_potentials(ig.grid_graph(4, 5, 2), rng, scale) for scale in (1.0, 120.0)]
    p = ig.potentials_union(parts)
    bars = cotangents(p, rng)
    algorithm = ig.BeliefPropagation(iterations=4, schedule="grid")
    fast = ig.infer(p, algorithm, tape=True)
    seq = ig.BeliefPropagation(iterations=4, schedule="grid", damping=1e-300)  # by the general loops
    slow = ig.infer(p, seq, tape=True)
    assert_allclose(fast.variables.flat, slow.variables.flat, atol=1e-10)
    each_close(fast.backward(*bars).groups, slow.backward(*bars).groups, atol=1e-8)


def test_where_a_grid_comes_near_to_an_underflow_the_other_loops_go_on():
    rng = np.random.default_rng(3)
    p = random_potentials(ig.grid_graph(4, 5, 2), rng, 120.0)
    r = ig.infer(p, ig.BeliefPropagation(iterations=5, schedule="flooding"), tape=True)
    shuffled = ig.FactorGraph(p.graph.cards, p.graph.scopes[::-1])
    other = ig.Potentials(shuffled, list(p.log_tables)[::-1])
    s = ig.infer(other, ig.BeliefPropagation(iterations=5, schedule="flooding"), tape=True)
    assert_allclose(r.variables.flat, s.variables.flat, atol=1e-10)
    mine, theirs = (list(x.backward(log_z=1.0).log_tables) for x in (r, s))
    each_close(mine, theirs[::-1], atol=1e-8)


MIXED = ig.FactorGraph([2, 3, 2, 4, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (0,), (3,)])


@pytest.mark.parametrize("kind", [ig.BeliefPropagation, ig.TreeReweighted])
@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_pairwise_loops_are_the_general_loops(kind, damping, only):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = random_potentials(MIXED, rng, 1.0, 0.2 * (seed % 2), np.zeros(5, int))
        bars = cotangents(p, rng)
        found = []
        for loops in (FloodPairs, Flood):
            only(loops)
            r = ig.infer(p, kind(iterations=3, damping=damping, schedule="flooding"), tape=True)
            found.append((r, r.backward(*bars)))
        (r, g), (s, h) = found
        assert_array_equal(r.variables.flat, s.variables.flat)
        assert_array_equal(r.component_log_z, s.component_log_z)
        each_close(g.groups, h.groups, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("schedule", ["flooding", "sequential", "residual", "grid"])
@pytest.mark.parametrize("graph", [ig.grid_graph(3, 4, 2), MIXED])
def test_the_short_tape_gives_the_same_bits(schedule, graph):
    if schedule == "grid" and graph is MIXED:
        pytest.skip("not a grid")
    rng = np.random.default_rng(1)
    p = random_potentials(graph, rng, 1.0)
    bars = cotangents(p, rng)
    for iterations in (1, 2, 7, 23):
        algorithm = ig.BeliefPropagation(iterations=iterations, schedule=schedule)
        long, short = (ig.infer(p, algorithm, tape=tape) for tape in (True, "sqrt"))
        assert_array_equal(long.variables.flat, short.variables.flat)
        each_equal(long.backward(*bars).groups, short.backward(*bars).groups)


def test_the_short_tape_grows_with_the_root():
    from isinglass.inference.message_passing.run import Run
    from isinglass.inference.message_passing.tape import MarkedTape

    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0))
    seen = {}
    for iterations in (16, 256, 1024):
        algorithm = ig.BeliefPropagation(iterations=iterations)
        engine = Engine([p], algorithm._plan(p))
        ((run, tape),) = engine.run("sqrt").runs
        assert isinstance(run, Run)
        assert isinstance(tape, MarkedTape)
        seen[iterations] = max(len(tape.marks), tape.stride)
    assert seen[256] <= 2 * np.sqrt(256) + 1
    assert seen[1024] <= 2 * np.sqrt(1024) + 1


@pytest.mark.parametrize("schedule", ["flooding", "sequential", "residual"])
def test_potentials_of_their_own_for_each_iteration(schedule):
    graph = MIXED
    for seed in range(3):
        rng = np.random.default_rng(seed)
        stages = [random_potentials(graph, rng, 1.0) for _ in range(3)]
        z, variables, factors = cotangents(stages[0], rng)
        algorithm = ig.BeliefPropagation(iterations=3, schedule=schedule)

        def loss(potentials, z=z, variables=variables, factors=factors, algorithm=algorithm):
            r = ig.infer(potentials, algorithm)
            beliefs = sum((a * b).sum() for a, b in zip(factors, r.factors, strict=True))
            return z * r.log_z + (variables * r.variables.flat).sum() + beliefs

        gradients = ig.infer(stages, algorithm, tape=True).backward(z, variables, factors)
        directions = [[rng.normal(size=t.shape) for t in p.log_tables] for p in stages]
        moved = [
            ig.Potentials(graph, [t + 1e-20j * d for t, d in zip(p.log_tables, way, strict=True)])
            for p, way in zip(stages, directions, strict=True)
        ]
        parts = [(g * d).sum() for t in range(3) for g, d in zip(gradients.log_tables[t], directions[t], strict=True)]
        assert_allclose(sum(parts), loss(moved).imag / 1e-20, rtol=1e-9)
        assert gradients.groups[0].shape == (3, *stages[0].groups[0].shape)


def test_the_same_potentials_for_each_iteration_are_one():
    p = random_grid(np.random.default_rng(0), 4, 4, 2, "own", 1)
    algorithm = ig.BeliefPropagation(iterations=3)
    one, many = ig.infer(p, algorithm, tape=True), ig.infer([p, p, p], algorithm, tape=True)
    assert_array_equal(one.variables.flat, many.variables.flat)
    for a, b in zip(one.backward(1.0).groups, many.backward(1.0).groups, strict=True):
        assert_allclose(a, b.sum(axis=0), rtol=1e-12, atol=1e-14)


def test_wrong_stages_are_refused():
    p = random_grid(np.random.default_rng(0), 2, 2, 2, "own", 1)
    refuses("use iterations=2", ig.infer, [p, p], "bp")
    refuses("use iterations=2", ig.infer, [p, p], ig.BeliefPropagation(iterations=3))
    with pytest.raises(ig.InputError, match=r"potentials\[1\]: expected the graph"):
        ig.infer([p, random_grid(np.random.default_rng(0), 2, 3, 2, "own", 1)], ig.BeliefPropagation(iterations=2))
    refuses("one for all iterations of 'exact'", ig.infer, [p, p], "exact")
    refuses("at least one", ig.infer, [], "bp")
    refuses('True, False or "sqrt"', ig.infer, p, "bp", tape="cube")


@pytest.mark.parametrize("schedule", ["auto", "sequential", "residual", "grid"])
def test_threads_change_no_bit(schedule):
    rng = np.random.default_rng(2)
    scales = (0.5, 1.0, 300.0 if schedule != "grid" else 2.0, 0.2, 0.7)
    parts = [random_potentials(ig.grid_graph(3, 3, 2), rng, scale) for scale in scales]
    if schedule != "grid":
        parts.append(random_potentials(ig.chain_graph(6, 3), rng))
    p = ig.potentials_union(parts)
    bars = cotangents(p, rng)
    with no_convergence_warnings():
        found = [
            ig.infer(p, ig.BeliefPropagation(schedule=schedule, n_jobs=threads, max_iter=30), tape=True)
            for threads in (1, 2, 3)
        ]
    for other in found[1:]:
        assert_array_equal(found[0].variables.flat, other.variables.flat)
        assert_array_equal(found[0].component_log_z, other.component_log_z)
        each_equal(found[0].backward(*bars).groups, other.backward(*bars).groups)
