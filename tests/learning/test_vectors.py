"""Long vectors: exact sums, NumPy's bits, and the same bits for any number of threads."""

import math

import numpy as np
import pytest
from optim_helpers import same_bits, same_states

from isinglass.learning.optimizers import Lbfgs, LbfgsState, OwlQn
from isinglass.learning.optimizers import vectors as optimizer_vectors
from isinglass.learning.optimizers.base import Counted
from isinglass.learning.optimizers.curvature import Curvature
from isinglass.learning.optimizers.line_search import evaluate
from isinglass.learning.optimizers.vectors import (
    copied,
    difference,
    dot,
    entrywise,
    finite,
    moved,
    norm,
    scaled,
    threads_of,
)
from isinglass.runtime.threads import ThreadMap

PIECE = 2**15
SIZES = [0, 1, 1000, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 777]


@pytest.fixture(autouse=True)
def _few_are_worth_a_thread(monkeypatch):
    monkeypatch.setattr(optimizer_vectors, "_WORTH_THREAD", PIECE)
    monkeypatch.setattr(optimizer_vectors, "_WORTH_CREW", PIECE)


class Lender:
    """Something that has threads."""

    def __init__(self, threads):
        self.spread = ThreadMap(threads)


def vectors(n, count=3):
    return np.random.default_rng(n).normal(size=(count, n)) * 10.0 ** np.arange(count)[:, None]


def numpy_dot(a, b):
    return float(np.sum([np.sum(a[i : i + PIECE] * b[i : i + PIECE]) for i in range(0, max(len(a), 1), PIECE)]))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums_have_the_bits_of_numpy(n, threads):
    a, b, _ = vectors(n)
    with threads_of(Lender(threads)):
        assert dot(a, b) == numpy_dot(a, b)
        assert math.isclose(dot(a, b), math.fsum(a * b), rel_tol=1e-13, abs_tol=1e-15 * np.abs(a * b).sum())
        assert norm(a) == math.sqrt(numpy_dot(a, a))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_entry_by_entry(n, threads):
    a, b, _ = vectors(n)
    with threads_of(Lender(threads)):
        assert same_bits(moved(a, 0.7, b), a + 0.7 * b)
        assert same_bits(scaled(a, -3.0), -3.0 * a)
        assert same_bits(difference(a, b), a - b)
        kept = copied(a)
        assert same_bits(kept, a)
        assert not np.shares_memory(kept, a)
        assert entrywise(np.add, kept, b, out=kept) is kept
        assert same_bits(kept, a + b)


@pytest.mark.parametrize("n", [5, 2 * PIECE + 5])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen(n, place, bad):
    x, zeros = np.ones(n), np.zeros(n)
    assert finite(x)
    x[place] = bad
    with threads_of(Lender(2)):
        assert not finite(x)
        assert not math.isfinite(dot(x, zeros))
    trial = evaluate(Counted(lambda _: (1.0, x)), zeros, 1.0, zeros)  # the slope is a sum of products with zero
    assert trial.value == math.inf


@pytest.mark.parametrize("n", [5, 2 * PIECE])
def test_overflow_is_silent(n):
    huge = np.full(n, 1e308)
    with np.errstate(all="raise"), threads_of(Lender(2)):
        assert dot(huge, huge) == np.inf
        assert (moved(huge, 10.0, huge) == np.inf).all()
        assert not np.isfinite(Curvature((huge,), (huge,)).inverse_times(huge)).any()


def test_weights_that_are_one_number():
    a = vectors(2 * PIECE + 3)[0]
    assert dot(np.broadcast_to(2.0, a.shape), a) == numpy_dot(np.full_like(a, 2.0), a)


def test_nobody_lends_threads_after_the_end():
    class Refusing(ThreadMap):
        def __call__(self, function, arguments):
            raise AssertionError("asked")

    lender = Lender(1)
    lender.spread = Refusing(1)
    long = np.ones(2 * PIECE)
    with threads_of(lender):
        with pytest.raises(AssertionError, match="asked"):
            dot(long, long)
        with threads_of(None):  # what has no threads lends none
            assert dot(long, long) == len(long)
    assert dot(long, long) == len(long)


def test_known_products_are_those_of_the_pairs():
    rng, curvature = np.random.default_rng(0), Curvature((), ())
    for _ in range(6):
        s = rng.normal(size=50)
        curvature = curvature.with_pair(s, s + 0.1 * rng.normal(size=50), 4)
        assert curvature.products == Curvature(curvature.steps, curvature.changes).products
    assert len(curvature.products) == 4
    v = rng.normal(size=50)
    assert same_bits(curvature.inverse_times(v, -1.0), -curvature.inverse_times(v))


@pytest.mark.parametrize("n", [300, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 8 * 33 + 5])
@pytest.mark.parametrize("pairs", [1, 2, 7])
def test_two_loops_by_any_number_of_threads(n, pairs):
    rng = np.random.default_rng(n + pairs)
    steps = tuple(rng.normal(size=(pairs, n)))
    changes = tuple(s * rng.uniform(0.5, 2.0, n) for s in steps)
    curvature, v = Curvature(steps, changes), rng.normal(size=n)
    found = {}
    for threads in (1, 2, 3, 16):
        with threads_of(Lender(threads)):
            found[threads] = [curvature.inverse_times(v, -2.0) for _ in range(3)]
    q, shares = -2.0 * v, {}
    for k in reversed(range(pairs)):
        shares[k] = steps[k] @ q / (steps[k] @ changes[k])
        q = q - shares[k] * changes[k]
    q = q * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for k in range(pairs):
        q = q + (shares[k] - changes[k] @ q / (steps[k] @ changes[k])) * steps[k]
    np.testing.assert_allclose(found[1][0], q, rtol=1e-10, atol=1e-12 * np.abs(q).max())
    assert all(same_bits(one, found[1][0]) for several in found.values() for one in several)


def test_two_loops_end_without_those_who_come_late():
    class Late(ThreadMap):
        def __call__(self, function, arguments):
            return [function(*one) for one in arguments]  # one after the other

    class Early(ThreadMap):
        def __call__(self, function, arguments):
            return [function(*one) for one in reversed(arguments)]

    s, v = np.random.default_rng(0).normal(size=(2, 2 * PIECE))
    curvature, lender, found = Curvature((s,), (2.0 * s,)), Lender(1), []
    for kind in (ThreadMap, Late, Early):
        lender.spread = kind(2)
        with threads_of(lender):
            found.append(curvature.inverse_times(v))
    assert same_bits(found[0], found[1])
    assert same_bits(found[0], found[2])


class Long(Lender):
    """Σ_i d_i x_i² / 2 + x_i⁴ / 4 - x_i, of many variables."""

    scales = np.linspace(0.1, 10, 2 * PIECE + 99)

    def __call__(self, x):
        return float(np.sum(self.scales * x**2 / 2 + x**4 / 4 - x)), self.scales * x + x**3 - 1


@pytest.mark.parametrize("optimizer", [Lbfgs, OwlQn])
def test_optimizers_on_threads_and_resumed(optimizer, tmp_path):
    options, start = {"memory": 4, "tol": 0.0, "ftol": 0.0}, np.full(len(Long.scales), 2.0)
    whole = optimizer(max_iter=9, **options).minimise(Long(1), start)
    for threads in (2, 3):
        half = optimizer(max_iter=6, **options).minimise(Long(threads), start)
        half.state.save(tmp_path / "state.npz")
        rest = optimizer(max_iter=9, **options).minimise(Long(threads), state=LbfgsState.load(tmp_path / "state.npz"))
        assert same_states(rest.state, whole.state)


def test_long_vectors_come_to_the_minimum():
    found = Lbfgs(tol=1e-9, ftol=0.0).minimise(Long(2), np.zeros(len(Long.scales)))
    assert found.converged
    x = found.x
    np.testing.assert_allclose(Long.scales * x + x**3, 1, atol=1e-6)
