"""Gibbs sampling by tables of conditional distributions: the same bits as without, and tables of bounded size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
from isinglass.inference.sampling import conditionals
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.conditionals import LEAST, LONGEST, NUMBERS, TableOf
from isinglass.inference.sampling.gibbs import SCANS, GibbsSampler
from isinglass.inference.sampling.sites import site_model


def table_of(p, updates=np.inf):
    return TableOf(p.graph, site_model(p), np.flatnonzero(p.graph.cards > 1)).after(updates)


def drawn(p, start, least, scan, threads=1, **options):
    """Return the states of chains after some sweeps and in each of some others, with tables after `least` updates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditionals, "LEAST", least)
        patch.setattr(conditionals, "TIMES", 0)
        chains, sampler = start.copy(), GibbsSampler(p, scan, **options)
        sampler.advance(chains, 7, threads)
        record = np.empty((3, *chains.states.shape), chains.states.dtype)
        sampler.record(chains, record, threads)
    known = sampler.others is not None and bool(sampler.others.tables.table.known.any())
    return np.concatenate([record, chains.states[None]]), known


@settings(max_examples=40, deadline=None)
@given(
    p=ig.testing.potentials(),
    scan=st.sampled_from(SCANS),
    backwards=st.booleans(),
    n=st.sampled_from([1, 5, 300]),
    threads=st.integers(1, 3),
)
def test_tables_change_no_bit(p, scan, backwards, n, threads):
    chains = Chains.start(p, n, 0)
    without, known = drawn(p, chains, np.inf, scan, backwards=backwards)
    assert not known
    for least in (0, 2 * n * len(p.graph.cards)):  # from the start on, and after some sweeps
        np.testing.assert_array_equal(drawn(p, chains, least, scan, threads, backwards=backwards)[0], without)


@pytest.mark.parametrize("held", [(), (0, 4)])
@pytest.mark.parametrize("scan", SCANS)
def test_a_grid_of_three_states(scan, held):
    p = ig.models.Potts(ig.grid_graph(5, 6, 3)).potentials(coupling=0.7, field=0.2)
    chains = Chains.start(p, 9, 0)
    without, with_tables = (drawn(p, chains, least, scan, 2, held=held) for least in (np.inf, 0))
    assert (without[1], with_tables[1]) == (False, True)
    np.testing.assert_array_equal(with_tables[0], without[0])


@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_no_possible_state(scan):
    """Neighbours that differ leave none to a variable that must equal both."""
    equal = np.where(np.eye(3) > 0, 0.0, -np.inf)
    p = ig.Potentials(ig.FactorGraph([3, 3, 3], [(0, 1), (1, 2)]), [equal, equal])
    chains = Chains.at(p, np.array([[0, 0, 0], [0, 0, 1]]), 0)
    for least in (np.inf, 0):
        with pytest.raises(ig.ImpossibleEvidenceError):
            drawn(p, chains, least, scan, held=[0, 2])


def test_rows_are_conditional_distributions():
    graph = ig.FactorGraph([3, 2, 2, 4], [(0, 1, 2), (1, 2, 3), (0, 3), (3,), (1,)])
    p = ig.testing.random_potentials(graph, np.random.default_rng(0), 1.0, 0.1)
    table, states = table_of(p), np.indices(graph.cards).reshape(4, -1)
    assert table.known.all()
    for i, card in enumerate(graph.cards):
        begin, end = int(table.first[i]), int(table.first[i + 1])
        rows = table.row[i] + table.stride[begin:end].astype(np.int64) @ states[table.other[begin:end]]
        assert len(np.unique(rows)) == np.prod(graph.cards) // card  # every other variable is a neighbour
        total, running = table.sums[rows], table.sums[rows[:, None] + np.arange(1, card)]
        for k in np.flatnonzero(total > 0):
            exact = GibbsSampler(p).conditionals(states[:, k : k + 1].astype(np.uint8), np.array([i]))[:, 0]
            ends = np.append(np.minimum(running[k], total[k]), total[k]) / total[k]
            np.testing.assert_allclose(np.diff(ends, prepend=0.0), exact, atol=1e-15)
            last = np.flatnonzero(exact)[-1]
            assert np.isinf(running[k, last:]).all()  # what is impossible is never drawn


def test_tables_are_short():
    hub = ig.FactorGraph([3] * 21, [(0, i) for i in range(1, 21)])
    table = table_of(ig.testing.random_potentials(hub, np.random.default_rng(0)))
    assert table.known.tolist() == [False] + [True] * 20
    assert len(table.sums) == 20 * 9 <= LONGEST
    large = ig.models.Potts(ig.grid_graph(70, 70, 3)).potentials(coupling=0.5)
    assert not table_of(large).known.any()  # most variables would have none
    medium = table_of(ig.models.Potts(ig.grid_graph(50, 50, 3)).potentials(coupling=0.5))
    assert medium.known.mean() > 0.8
    assert len(medium.sums) <= NUMBERS


def test_tables_are_made_when_they_pay():
    p = ig.models.Potts(ig.grid_graph(20, 20, 3)).potentials(coupling=0.5)
    tables = TableOf(p.graph, site_model(p), np.arange(400))
    rows = 324 * 81 + 72 * 27 + 4 * 9
    assert rows > LEAST
    assert not tables.after(LEAST).known.any()
    assert not tables.after(2 * rows - LEAST - 1).known.any()
    made = tables.after(1)
    assert made.known.all()
    assert tables.after(1) is made


@pytest.mark.parametrize("scan", SCANS)
def test_sums_that_overflow_are_no_hard_zeros(scan):
    """What is not a number is drawn as without a table."""
    tables = [np.array([0.0, 0, 1.2e308]), np.diag([0.0, 0, 1.2e308]), np.zeros(3)]
    p = ig.Potentials(ig.FactorGraph([3, 3], [(0,), (0, 1), (1,)]), tables)
    start = Chains.start(p, 8, random_state=0)
    (with_table, known), (without, _) = (drawn(p, start, least, scan) for least in (0, np.inf))
    assert known
    np.testing.assert_array_equal(with_table, without)


def test_a_variable_with_very_many_neighbours_has_no_table():
    """The size of its table would overflow; that is no warning to anybody."""
    p = ig.testing.random_potentials(
        ig.FactorGraph([3] * 901, [(0, i) for i in range(1, 901)]), np.random.default_rng(0)
    )
    known = table_of(p).known
    assert not known[0]
    assert known[1:].all()
