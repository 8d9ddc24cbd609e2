"""Copies of a grid are inferred as each by itself, to the last bit, or not at all."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import isinglass as ig
from isinglass.graph.message_graph import share_pool
from isinglass.inference.algorithm import make
from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.model import log_model
from isinglass.inference.message_passing.model.group_places import ones_of
from isinglass.inference.message_passing.model.log_model import LinkModel
from isinglass.inference.message_passing.moves import grid_flood, sheets
from isinglass.runtime.array_pool import Pool

SIDES = [(2, 2), (2, 9), (7, 8), (8, 8), (9, 17), (20, 11)]


def grid(height, width, card=2, scale=1.0, axes=2):
    """A grid whose unary tables are zero, with one table for each axis, or one for both."""
    graph, rng = ig.grid_graph(height, width, card), np.random.default_rng(card)
    ids = np.repeat([0, axes - 1], [height * (width - 1), (height - 1) * width])
    tables = [np.zeros((height * width, card)), scale * rng.normal(size=(axes, card, card))]
    return ig.Potentials.from_groups(graph, tables, [np.arange(height * width), ids])


def with_unary(potentials, unary):
    return ig.Potentials.from_groups(potentials.graph, [unary, potentials.groups[1]], potentials.table_ids)


def sweeps(**options):
    return ig.BeliefPropagation(**{"iterations": 4, "schedule": "grid", **options})


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("card", [2, 3, 4])
@pytest.mark.parametrize(("height", "width"), SIDES)
def test_the_same_bits_as_one_by_one(height, width, card, iterations):
    one, algorithm, n = grid(height, width, card), sweeps(iterations=iterations), height * width
    logs = 3 * np.random.default_rng(1).normal(size=(3 * n, card)) + 100
    found = algorithm.copies(one)(logs.copy()).reshape(3, n, card)
    for c, beliefs in enumerate(found):
        assert_array_equal(beliefs, ig.infer(with_unary(one, logs[c * n : (c + 1) * n]), algorithm).variables)


def test_unary_tables_and_axes():
    one, rng = grid(8, 9), np.random.default_rng(2)
    logs = rng.normal(size=(2 * 72, 2))
    other = with_unary(one, 500 * rng.normal(size=(72, 2)))
    assert_array_equal(sweeps().copies(other)(logs.copy()), sweeps().copies(one)(logs.copy()))
    one, logs = grid(9, 10, axes=1), np.random.default_rng(3).normal(size=(2 * 90, 2))
    found = sweeps().copies(one)(logs.copy())
    assert_array_equal(found[90:], ig.infer(with_unary(one, logs[90:]), sweeps()).variables)


@pytest.mark.parametrize("card", [2, 3])
@pytest.mark.parametrize("size", [700, 2000, 1e300])
def test_small_products_are_left_to_infer(size, card):
    one, logs = grid(9, 10, card), np.zeros((3 * 90, card))
    copies = sweeps().copies(one)
    assert copies(logs.copy()) is not None
    logs[123, 0] = -size
    assert copies(logs.copy()) is None
    assert copies(np.zeros_like(logs)) is not None  # the next ones are not harmed


@pytest.mark.parametrize("wrong", [np.inf, -np.inf])
@pytest.mark.parametrize("state", [0, 1, slice(None)])
def test_infinite_tables_are_left_to_infer(wrong, state):
    logs = np.zeros((3 * 90, 2))
    logs[123, state] = wrong
    assert sweeps().copies(grid(9, 10))(logs) is None


@pytest.mark.parametrize(("size", "fine"), [(5.0, True), (64.0, False), (150.0, False)])
def test_products_that_are_small_only_together(size, fine):
    """No entry is small, but messages from four sides agree: beliefs of links might underflow, or messages do."""
    one = ig.Potentials.from_groups(ig.grid_graph(9, 10, 2), [np.zeros((90, 2)), size * np.eye(2)[None]])
    found = sweeps().copies(one)(np.tile([0.0, -size], (90, 1)))
    assert (found is not None) == fine


@dataclass(frozen=True)
class Own(ig.BeliefPropagation):
    def run(self, *arguments, **options):
        return super().run(*arguments, **options)


def test_what_is_not_for_them():
    one = grid(4, 5)
    assert sweeps().copies(one) is not None
    for options in (
        {"iterations": None}, {"schedule": "flooding"}, {"schedule": "sequential"}, {"damping": 0.1},
        {"start_noise": 0.1}, {"iterations": 0},
    ):  # fmt: skip
        assert sweeps(**options).copies(one) is None
    assert Own(iterations=4, schedule="grid").copies(one) is None
    for name in ("trw", "max-product", "mf", "exact"):
        known = {"iterations": 3, "schedule": "grid"} if name in ("trw", "max-product") else {}
        assert make(name, known).copies(one) is None
    two = ig.Potentials.from_groups(one.graph.repeat(2), [np.zeros((40, 2)), np.eye(2)[None]])
    zero = ig.Potentials.from_groups(one.graph, [np.zeros((20, 2)), np.array([[[0.0, -np.inf], [0.0, 0.0]]])])
    each = ig.Potentials.from_groups(one.graph, [np.zeros((20, 2)), np.random.default_rng(0).normal(size=(31, 2, 2))])
    shared = ig.Potentials.from_groups(one.graph, [np.zeros((1, 2)), np.eye(2)[None]])
    seen = one.with_evidence({3: 1})
    for other in (two, zero, each, shared, seen):
        assert sweeps().copies(other) is None


def test_large_grids_are_shared_out_instead(monkeypatch):
    one = grid(16, 16)
    monkeypatch.setattr(sheets, "_chunk", lambda work, length: 8)
    assert sweeps().copies(one) is None


SHAPE, COPIES = (6, 7), 5


def grids(card, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    g = ig.grid_graph(*SHAPE, card).repeat(COPIES)
    tables = [rng.normal(0, scale, (len(group), *group.shape)) for group in g.groups]
    tables[1] = tables[1][: len(tables[1]) // 7 + 1]
    ids = [np.arange(len(g.groups[0])), rng.integers(0, len(tables[1]), len(g.groups[1]))]
    return ig.Potentials.from_groups(g, tables, table_ids=ids)


def shared(card, seed=0):
    rng = np.random.default_rng(seed)
    g = ig.grid_graph(*SHAPE, card).repeat(COPIES)
    tables = [rng.normal(size=(len(g.groups[0]), card)), rng.normal(0, 0.5, (1, card, card))]
    return ig.Potentials.from_groups(g, tables)


def runs(p):
    """Name runs that use planes in different ways, in the order in which they are tried."""
    bars = np.random.default_rng(1).normal(size=int(p.graph.cards.sum()))
    warm = ig.infer(p, "bp", iterations=1, schedule="flooding")

    def taped(**options):
        r = ig.infer(p, "bp", tape=True, **options)
        return r.variables.flat, *r.backward(variables=bars).groups

    def plain(**options):
        return (ig.infer(p, "bp", **options).variables.flat,)

    for schedule in ("flooding", "grid"):
        given = {"iterations": 3, "schedule": schedule}
        yield lambda given=given: taped(**given)
        yield lambda given=given: plain(**given)
        yield lambda schedule=schedule: plain(tol=1e-6, max_iter=40, schedule=schedule)
        yield lambda schedule=schedule: taped(tol=1e-6, max_iter=40, schedule=schedule)
        yield lambda given=given: plain(init=warm, **given)
        yield lambda given=given: plain(**{**given, "iterations": 0})
        yield lambda given=given: plain(evidence={0: 1, 60: 0}, **given)


@pytest.mark.long
@pytest.mark.parametrize("make", [grids, shared])
@pytest.mark.parametrize("card", [2, 3])
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_runs_on_one_graph_give_the_bits_of_runs_on_fresh_ones(make, card):
    p, rng = make(card), np.random.default_rng(3)
    tasks = list(runs(p))
    fresh = [[one.copy() for one in list(runs(make(card)))[i]()] for i in range(len(tasks))]
    for i in [*range(len(tasks)), *rng.integers(0, len(tasks), 40).tolist()]:
        assert all(map(np.array_equal, tasks[i](), fresh[i]))


@pytest.mark.parametrize("make", [grids, shared])
@pytest.mark.parametrize("card", [2, 3])
def test_iterations_done_again_on_the_way_back_have_the_bits_of_those_kept(make, card, monkeypatch):
    p, given = make(card), {"iterations": 4, "schedule": "flooding", "tape": True}
    bars = np.random.default_rng(1).normal(size=int(p.graph.cards.sum()))
    found, kept, usual = [], [], grid_flood.GridFlood.keeps
    monkeypatch.setattr(grid_flood.GridFlood, "keeps", lambda self, n: kept.append(usual(self, n)) or kept[-1])
    of_one = given["iterations"] * 4 * card * (SHAPE[0] + 2) * (SHAPE[1] + 2) * 8  # bytes
    cases = (of_one - 1, True, 1), (of_one, False, 1), (COPIES * of_one - 1, False, 3), (COPIES * of_one, True, 3)
    for room, expected, jobs in cases:
        monkeypatch.setattr(grid_flood, "AGAIN", room)
        monkeypatch.setattr(shares, "RANGE", 2**4)  # so that threads share few grids
        r = ig.infer(p, "bp", n_jobs=jobs, **given)
        assert kept[-1] is expected
        d = r.backward(variables=bars)
        both = r.backward(variables=bars, log_z=1.0, factors=np.ones(len(r.factors.flat)))
        found.append([
            r.variables.flat, r.factors.flat, r.component_log_z, r.messages, *d.groups, d.initial_messages,
            d.counting_numbers, *both.groups, both.initial_messages, np.array(r.info.residual),
        ])  # fmt: skip
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))


@pytest.mark.parametrize("card", [2, 3])
def test_derivatives_by_first_messages_wait_for_who_asks_and_do_not_see_what_the_caller_writes_meanwhile(card):
    p = shared(card)
    bars = np.random.default_rng(1).normal(size=int(p.graph.cards.sum()))
    r = ig.infer(p, "bp", iterations=3, schedule="flooding", tape=True)
    together, alone = r.backward(variables=bars, log_z=1.0), r.backward(log_z=1.0)  # by other loops, at once
    d = r.backward(variables=bars)
    bars[:] = np.nan
    assert np.abs(d.initial_messages).max() > 1e-3
    assert d.initial_messages == pytest.approx(together.initial_messages - alone.initial_messages, abs=1e-13)


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("schedule", ["flooding", "grid"])
@pytest.mark.parametrize("iterations", [1, 2, 3, 4])
def test_messages_of_a_single_grid_wait_for_who_asks_whatever_runs_meanwhile(latest, schedule, iterations):
    g, rng = ig.grid_graph(*SHAPE, 2), np.random.default_rng(4)
    share_pool(g, Pool(latest=latest))
    p, other = (
        ig.Potentials.from_groups(g, [rng.normal(size=(len(group), *group.shape)) for group in g.groups])
        for _ in range(2)
    )
    given = {"iterations": iterations, "schedule": schedule}
    one_by_one = ig.infer(p, "bp", progress=lambda *told: None, **given).messages
    at_once = ig.infer(p, "bp", **given)
    for _ in range(2):
        ig.infer(other, "bp", **given)
    assert np.array_equal(at_once.messages, one_by_one)


@pytest.mark.parametrize("schedule", ["flooding", "grid"])
@pytest.mark.parametrize("iterations", [10, 100])
def test_small_changes_are_measured_as_iteration_by_iteration(schedule, iterations):
    p, shown = shared(2), []
    at_once = ig.infer(p, "bp", iterations=iterations, schedule=schedule)
    one_by_one = ig.infer(p, "bp", iterations=iterations, schedule=schedule, progress=lambda *told: shown.append(told))
    assert len(shown) == iterations
    assert at_once.info.converged == one_by_one.info.converged == (iterations == 100)
    assert at_once.info.residual == one_by_one.info.residual


@pytest.mark.parametrize("card", [1, 2, 3, 5])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_compiled_shift_has_the_bits_of_numpy(card, zeros, monkeypatch):
    rng = np.random.default_rng(card)
    g = ig.chain_graph(50, card)
    tables = [rng.normal(0, 30, (len(group), *group.shape)) for group in g.groups]
    if zeros:
        for table in tables:
            table[rng.random(table.shape) < 0.3] = -np.inf
        tables[0][7] = -np.inf
    p, found = ig.Potentials.from_groups(g, tables), []
    for many in (0, 10**9):
        monkeypatch.setattr(log_model, "MANY", many)
        model = LinkModel.of(p, ones_of(g))
        found.append([model.phi, model.psi, model.constant, model.low, model.least, model.bounded])
    assert all(map(np.array_equal, *found))
    assert found[0][-1] is not zeros


def test_shifts_near_overflow_are_told_from_impossible_models():
    g = ig.FactorGraph([2, 2], [(0,), (0, 1), ()])
    huge = ig.Potentials(g, [np.array([1e300, 0.0]), np.zeros((2, 2)), np.array(-1e300)])
    assert ig.infer(huge, ig.BeliefPropagation(iterations=2)).log_z == pytest.approx(np.log(2), abs=1e-9)
    for impossible in ([np.full(2, -np.inf), np.zeros((2, 2)), np.array(0.0)],
                       [np.zeros(2), np.zeros((2, 2)), np.array(-np.inf)]):  # fmt: skip
        with pytest.raises(ig.ImpossibleEvidenceError):
            ig.infer(ig.Potentials(g, impossible), ig.BeliefPropagation(iterations=2))
