"""Exact inference with large messages and on threads: the limits are lowered, so that small models have them."""

import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import beliefs_close, each_equal, refuses
from isinglass.inference.junction_tree import arrangement, layout, orders, passes, recycling, schedule, upward
from isinglass.kernels.numba.arithmetic.together import DONE, FIRST, PLACES, SHIFT, STEP, STOP, new_crew
from isinglass.kernels.numba.junction_tree import crews
from isinglass.testing import random_potentials

GRAPHS = {
    "grid": lambda: ig.grid_graph(4, 4, 2),
    "eight neighbours": lambda: ig.lattice_graph((3, 4), 2, neighbours=8),
    "mixed cards": lambda: ig.FactorGraph(
        [2, 3, 4, 2, 3, 2, 2, 5], [(a, b) for a in range(8) for b in range(a) if (a * b) % 3 != 1]
    ),
    "triples": lambda: ig.FactorGraph([2] * 12, [(i, (i + 3) % 12, (i + 5) % 12) for i in range(12)]),
    "two parts": lambda: ig.disjoint_union([ig.grid_graph(3, 3, 2), ig.random_graph(6, 10, 3, random_state=1)]),
    "merging": lambda: ig.random_graph(14, 20, 2, random_state=5),
    "small messages": lambda: ig.random_graph(10, 23, 3, random_state=9),  # between buckets that are done in pieces
}


@pytest.fixture
def lowered(monkeypatch):
    """Let small messages count as large, in small runs, tiles, pieces and jobs."""
    for name, value in {"SMALL": 4, "LOCAL": 4, "SMALL_SHARE": 1000, "LEAST_RUN": 2, "RUN": 4}.items():
        monkeypatch.setattr(arrangement, name, value)
    monkeypatch.setattr(passes, "WORTH_THREADS", 2)
    for name, value in {"WORTH_JOBS": 1, "JOBS": 5, "PIECE": 2, "PIECES": 7, "CHUNK": 30}.items():
        monkeypatch.setattr(schedule, name, value)


def layout_of(p):
    return upward.upward(p, False, orders.Wishes()).passes.layout


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("name", GRAPHS)
def test_against_brute_force(lowered, name, zeros, scale):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        graph = GRAPHS[name]()
        evidence = {} if seed % 2 else {3: 1}
        p = random_potentials(graph, rng, scale, zeros, rng.integers(0, 2, graph.n_variables) | 1, evidence)
        mine, truth = ig.infer(p, "exact"), ig.infer(p, "brute")
        beliefs_close(mine, truth, atol=1e-9)
        assert_allclose(ig.map_assignment(p).score, ig.map_assignment(p, "brute").score, rtol=1e-12)


def test_the_models_above_have_what_they_are_there_for(lowered):
    """Large messages in most, several in one bucket, runs that are not side by side, missing axes, pieces and jobs."""
    several = apart = missing = pieces = jobs = 0
    for make in GRAPHS.values():
        made = layout_of(random_potentials(make(), np.random.default_rng(0)))
        program, found = made.program, made.arrangement
        large = np.flatnonzero(found.large)
        assert len(large)
        jobs += len(made.schedule.jobs) > 2
        for b in large:
            several += program.first_input[b + 1] - program.first_large[b] > 1
            missing += found.run_axis[b] > found.missing_axis[b]
            pieces += made.schedule.pieces[b] > 1
            last = program.first_axis[b + 1] - program.first_axis[b] - 2
            apart += program.strides[program.first_stride[program.first_large[b]] + last] > 1
    assert min(several, apart, missing, pieces, jobs) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_threads_change_no_bit(lowered, name, scale):
    p = random_potentials(GRAPHS[name](), np.random.default_rng(0), scale, 0.1)
    one = ig.infer(p, "exact", tape=True)
    gradient = one.backward(log_z=0.3, variables=[np.arange(float(c)) for c in p.graph.cards])
    for threads in (2, 3, 16):
        other = ig.infer(p, "exact", n_jobs=threads, tape=True)
        assert other.log_z == one.log_z
        assert_array_equal(other.variables.flat, one.variables.flat)
        each_equal(other.factors.groups, one.factors.groups)
        again = other.backward(log_z=0.3, variables=[np.arange(float(c)) for c in p.graph.cards])
        each_equal(again.groups, gradient.groups)
        assert_array_equal(ig.map_assignment(p, n_jobs=threads).states, ig.map_assignment(p).states)
        assert_array_equal(ig.sample(p, 5, n_jobs=threads, random_state=0), ig.sample(p, 5, random_state=0))


def test_threads_change_no_bit_of_a_large_model():
    p = random_potentials(ig.grid_graph(14, 14, 2), np.random.default_rng(0))
    one = ig.infer(p, "exact")
    for threads in (2, 3, 16):
        other = ig.infer(p, "exact", n_jobs=threads)
        assert other.log_z == one.log_z
        assert_array_equal(other.variables.flat, one.variables.flat)
        assert_array_equal(other.factors.groups[1], one.factors.groups[1])


@pytest.mark.long
@pytest.mark.parametrize("rest", [0, 1])
@pytest.mark.parametrize("name", GRAPHS)
def test_room_for_local_tables_changes_no_bit(lowered, monkeypatch, name, rest):
    """The leader is ahead of the others in all buckets, in some, or in none."""
    monkeypatch.setattr(schedule, "WORTH_JOBS", 2**18)  # one job, for all threads
    p = random_potentials(GRAPHS[name](), np.random.default_rng(0), 1.0, 0.1)
    whole = ig.infer(p, "exact")
    for some in (lambda i: i % 3 == rest, lambda i: i % 2 == rest, lambda i: i < 0):
        monkeypatch.setattr(layout, "light_ones", lambda local, _, some=some: some(np.arange(len(local))))
        again = ig.Potentials.from_groups(GRAPHS[name](), p.groups, p.table_ids)
        for threads in (1, 3):
            other = ig.infer(again, "exact", n_jobs=threads)
            assert other.log_z == whole.log_z
            assert_array_equal(other.variables.flat, whole.variables.flat)
            each_equal(other.factors.groups, whole.factors.groups)


def test_peaks_far_from_one_are_divided_out(lowered):
    """A chain of tables, each with a tiny largest sum; without normalisation the products would underflow."""
    graph = ig.grid_graph(3, 60, 2)
    p = random_potentials(graph, np.random.default_rng(0), 3.0)
    shifted = ig.Potentials.from_groups(graph, [p.groups[0] - 40, p.groups[1] + 15])
    moved = -40 * len(graph.groups[0]) + 15 * len(graph.groups[1])
    assert_allclose(ig.infer(shifted).log_z, ig.infer(p).log_z + moved, rtol=1e-12)
    assert_allclose(ig.infer(shifted).variables.flat, ig.infer(p).variables.flat, atol=1e-10)


def test_derivatives_meet_differences(lowered):
    p = random_potentials(GRAPHS["mixed cards"](), np.random.default_rng(0))
    weights = np.random.default_rng(1).normal(size=int(p.graph.cards.sum()))
    gradient = ig.infer(p, "exact", tape=True).backward(variables=np.split(weights, np.cumsum(p.graph.cards)[:-1]))
    for a in (0, 5):
        table, step = p.log_tables[a], 1e-5
        for entry in (0, table.size - 1):
            values = []
            for sign in (1, -1):
                moved = [np.array(t) for t in p.log_tables]
                moved[a].ravel()[entry] += sign * step
                values.append(ig.infer(ig.Potentials(p.graph, moved), "exact").variables.flat @ weights)
            slope = (values[0] - values[1]) / (2 * step)
            assert_allclose(np.asarray(gradient.log_tables[a]).ravel()[entry], slope, atol=1e-8)


def test_errors_reach_the_caller(lowered, monkeypatch):
    def fail(*_):
        raise RuntimeError("in a loop")

    monkeypatch.setattr(crews, "pass_through", fail)
    with pytest.raises(RuntimeError, match="in a loop"):
        ig.infer(random_potentials(GRAPHS["grid"](), np.random.default_rng(0)), "exact", n_jobs=2)


def test_nobody_waits_for_a_leader_that_has_failed(lowered, monkeypatch):
    pass_through, came, gone = crews.pass_through, threading.Barrier(3, timeout=60), threading.Barrier(3, timeout=60)

    def fail(*arguments):
        crew, leads = arguments[-2:]
        if crew[PLACES] == 1:  # a job on one thread
            pass_through(*arguments)
            return
        came.wait()
        if leads:
            raise RuntimeError("at the head")
        pass_through(*arguments)
        gone.wait()

    monkeypatch.setattr(crews, "pass_through", fail)
    with pytest.raises(RuntimeError, match="at the head"):
        ig.infer(random_potentials(GRAPHS["grid"](), np.random.default_rng(0)), "exact", n_jobs=3)
    start = time.perf_counter()
    gone.wait()
    assert time.perf_counter() - start < 0.5  # not after they have lost patience


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_leader_waits_for_a_piece_that_another_thread_has(lowered, monkeypatch, way):
    """The first piece of the first step is taken in advance, by nobody."""
    monkeypatch.setattr(schedule, "WORTH_JOBS", 2**18)  # one job, so one call
    monkeypatch.setattr(schedule, "CHUNK", 2**18)
    pass_through, waited = crews.pass_through, []

    def held(*arguments):
        (*program, sequence, part, _), rest, crew = arguments[:5], arguments[5:-2], new_crew(2)
        ways, pieces = {"up": part, "down": part}, arguments[1].pieces[sequence[slice(*part)]]
        if way == "up":
            ways["down"], step = (0, 0), 1 + 2 * int(np.argmax(pieces > 1))
        else:
            pass_through(*program, sequence, part, (0, 0), *rest, new_crew(2), True)
            ways["up"], step = (0, 0), 1 + int(np.argmax(pieces[::-1] > 1))
        crew[FIRST] = step * SHIFT + 1
        call = (*program, sequence, ways["up"], ways["down"], *rest, crew, True)
        leader = threading.Thread(target=pass_through, args=call)
        leader.start()
        leader.join(0.3)
        waited.append((leader.is_alive(), int(crew[STEP]) == step))
        crew[FIRST + DONE] += 1
        leader.join(60)
        waited.append(not leader.is_alive())
        raise RuntimeError("enough")

    monkeypatch.setattr(crews, "pass_through", held)
    with pytest.raises(RuntimeError, match="enough"):
        ig.infer(random_potentials(GRAPHS["grid"](), np.random.default_rng(0)), "exact")
    assert waited == [(True, True), True]


def test_after_a_stop_no_piece_is_worked_on(lowered, monkeypatch):
    pass_through, p = crews.pass_through, random_potentials(GRAPHS["grid"](), np.random.default_rng(0))
    made = layout_of(p)
    program, large = made.program, np.flatnonzero(made.arrangement.large)

    def stopped(*arguments):
        values, messages, crew = arguments[5], arguments[6], arguments[-2]
        values[messages:], crew[STOP] = np.nan, 1
        pass_through(*arguments)
        for at, entries in zip(messages + program.first_message[large], program.message_size[large], strict=True):
            assert np.isnan(values[at : at + entries]).all()
        raise RuntimeError("stopped")

    monkeypatch.setattr(crews, "pass_through", stopped)
    refuses("stopped", ig.infer, p, "exact", error=RuntimeError)


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_log_z_alone(lowered, monkeypatch, name, scale):
    """The places of messages are used again; log Z is the same to the last bit, on threads too; beliefs can follow."""
    monkeypatch.setattr(recycling, "SMALL", 2)
    p = random_potentials(GRAPHS[name](), np.random.default_rng(0), scale, 0.1)
    whole = ig.infer(p, "exact")
    for threads in (1, 3):
        alone = ig.infer(p, "exact", beliefs=False, n_jobs=threads)
        assert_array_equal(alone.component_log_z, whole.component_log_z)
        assert_array_equal(alone.variables.flat, whole.variables.flat)
        assert_array_equal(alone.factor(1), whole.factor(1))
        assert_allclose(alone.joint([0, 1]), whole.joint([0, 1]), atol=1e-12)
    assert ig.Exact(beliefs=False).cost(p).bytes <= ig.Exact().cost(p).bytes


def test_places_of_messages_do_not_overlap(lowered, monkeypatch):
    """While a bucket is made, no two messages that are needed then or later share a place."""
    monkeypatch.setattr(recycling, "SMALL", 2)
    for make in GRAPHS.values():
        made = layout_of(random_potentials(make(), np.random.default_rng(0)))
        start, end = recycling.recycled(made)
        sizes, parent = made.program.message_size, made.tree.arrays.parent
        assert end <= made.message_entries
        owner = np.full(end, -1)
        for b in made.schedule.sequence.tolist():
            for c in np.flatnonzero(parent == b).tolist():
                assert (owner[start[c] : start[c] + sizes[c]] == c).all()
            owner[start[b] : start[b] + sizes[b]] = b


@pytest.mark.long
def test_log_z_alone_fits_where_beliefs_do_not():
    p = random_potentials(ig.grid_graph(16, 16, 2), np.random.default_rng(0))
    limit = ig.Exact(beliefs=False).cost(p).bytes
    assert limit < ig.Exact().cost(p).bytes / 5
    alone = ig.infer(p, "exact", beliefs=False, memory_limit=limit)
    assert_allclose(alone.log_z, ig.infer(p, "exact").log_z, rtol=1e-14)
    with pytest.raises(ig.MemoryLimitError), pytest.warns(ig.SearchWarning):
        ig.infer(p, "exact", memory_limit=limit)
    refuses("beliefs: expected True or False", ig.infer, p, "exact", beliefs="no")
