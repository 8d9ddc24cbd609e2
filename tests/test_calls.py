"""Loops that are called directly: the same code, found by all that it depends on."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.kernels.layout import Span
from isinglass.runtime.compilation import calls as module
from isinglass.runtime.compilation.calls import FEW, Calls, kind
from isinglass.runtime.compilation.jit import compiled


@compiled
def add(x, pair, times):
    """Add both entries of a pair to a vector."""
    for i in range(len(x)):
        x[i] += times * (pair[0][i] + pair[1])


@pytest.fixture
def looks(monkeypatch):
    """Return how often each loop was looked for."""
    seen = []
    keep = Calls._keep
    monkeypatch.setattr(Calls, "_keep", lambda self, loop, arguments: seen.append(loop) or keep(self, loop, arguments))
    return seen


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
@pytest.mark.parametrize("step", [1, 2])
def test_the_code_is_that_of_a_plain_call(dtype, step, looks):
    vector, other, calls = np.zeros(6, dtype)[::step], np.arange(6).astype(dtype)[::step], Calls(same=True)
    plain = vector.copy()
    for _ in range(FEW + 3):
        calls(add, vector, (other, dtype(2)), 3)
        add(plain, (other, dtype(2)), 3)
    np.testing.assert_array_equal(vector, plain)
    assert vector.any()
    assert looks == [add]
    assert len(calls._kept) == 1


def test_types_that_may_change_are_looked_at_each_time(looks):
    calls, vector = Calls(same=False), np.zeros(2)
    for n in range(2 * FEW):
        calls(add, vector, (np.ones(2, np.int64 if n % 2 else np.float64), 0.0), 1)
    np.testing.assert_array_equal(vector, [2.0 * FEW] * 2)
    assert not looks


def test_what_is_not_compiled_is_not_kept(monkeypatch):
    calls, vector = Calls(same=True), np.zeros(3)
    monkeypatch.setattr(module, "_code", {})
    for _ in range(FEW - 1):
        calls(add, vector, (np.ones(3), 0.0), 1)
    monkeypatch.setattr(add, "overloads", {})
    for _ in range(3):
        calls(add, vector, (np.ones(3), 0.0), 1)
    assert not calls._kept
    np.testing.assert_array_equal(vector, [FEW + 2.0] * 3)


def test_kinds_tell_apart_what_numba_tells_apart():
    fixed = np.ones(4)
    fixed.flags.writeable = False
    values = [
        np.ones(4), np.ones(4)[::2], np.ones(4)[::-1], np.ones((2, 2)), np.ones((2, 3)).T, fixed,
        np.ones(4, np.float32), np.ones(4, bool), np.ones(4, int), np.ones(4, ">f8"), 1, 1.0, True, 1j,
        np.float32(1), np.float64(1), None, (), (0,), (0, 0), (np.ones(4),), (np.ones(4), 1), ((0,), 1.0),
        Span(0, 1, 0, 1, 0, 1),
    ]  # fmt: skip
    for one in values:
        for two in values:
            if kind(one) == kind(two):
                assert add.typeof_pyval(one) == add.typeof_pyval(two), (one, two)


def test_iterations_of_small_graphs_call_directly(looks, monkeypatch):
    graph = ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (0, 1, 2)])
    p, algorithm = ig.testing.random_potentials(graph, np.random.default_rng(0)), ig.BeliefPropagation(iterations=40)
    directly = ig.infer(p, algorithm)
    assert [loop.__name__ for loop in looks] == ["flood"]
    monkeypatch.setattr(module, "FEW", 1000)
    plainly = ig.infer(p, algorithm)
    assert len(looks) == 1
    for one, two in zip(directly.variables, plainly.variables, strict=True):
        np.testing.assert_array_equal(one, two)


OWNED = 4  # the flag of arrays that own their memory, which is nothing to Numba


def shape_of(value):
    """Return the kind of a value, whoever owns its memory."""
    if isinstance(value, np.ndarray):
        return *kind(value)[:3], kind(value)[3] & ~OWNED
    return (type(value), tuple(map(shape_of, value))) if isinstance(value, tuple) else kind(value)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
@pytest.mark.parametrize("schedule", ["flooding", "sequential", "residual"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize("pairs", [True, False])
def test_types_stay_the_same_in_a_run(schedule, damping, scale, pairs, monkeypatch):
    seen = {}
    call = Calls.__call__

    def watched(self, loop, *arguments):
        if self.same:
            first = seen.setdefault((self, loop), shape_of(arguments))
            assert shape_of(arguments) == first
        return call(self, loop, *arguments)

    monkeypatch.setattr(Calls, "__call__", watched)
    scopes = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (6, 7), (0,), (4,)]
    graph = ig.FactorGraph([2, 3, 2] * 3, scopes if pairs else [*scopes, (0, 1, 2)])
    p = ig.testing.random_potentials(graph, np.random.default_rng(1), scale)
    moved = ig.Potentials._build(graph, [t + 1e-20j for t in p.groups], p.table_ids, p.evidence)
    options = {"schedule": schedule, "damping": damping, "n_jobs": 2, "max_iter": 30}
    for algorithm in (
        ig.BeliefPropagation(**options),
        ig.BeliefPropagation(**options, iterations=5),
        ig.TreeReweighted(**options),
        ig.MaxProduct(**options),
    ):
        result = ig.infer(p, algorithm, tape=True)
        if algorithm.iterations is not None:
            result.backward(log_z=1.0)
        ig.infer(moved, algorithm)
        ig.infer(p, algorithm, init=result)
    assert len(seen) >= 4
