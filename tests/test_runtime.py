"""What threads share: caches, pools of arrays, values that are computed late; and whether numbers are finite."""

import contextlib
import gc
import multiprocessing
import sys
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from isinglass.runtime import array_pool as pool
from isinglass.runtime.array_pool import Pool
from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.caching import Cache
from isinglass.runtime.deferring import defer, deferred, twin
from isinglass.runtime.finite import PART, all_finite

FLOAT = np.dtype(float)


@pytest.fixture
def hasty():
    """Let threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(n, work):
    """Run some threads at once; raise what one of them raised."""
    errors, barrier = [], threading.Barrier(n)

    def guarded(i):
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_value_is_made_once_and_the_oldest_goes():
    cache, made = Cache(2), []
    for key in (1, 2, 1, 3, 1):
        assert cache.get(key, lambda key=key: made.append(key) or 10 * key) == 10 * key
    assert made == [1, 2, 3, 1]
    assert len(cache) == 2
    assert [cache.get("none", iter((value,)).__next__) for value in (None, 1)] == [None, None]
    fits = [cache.get("fits", iter((value,)).__next__, lambda kept: kept > 1) for value in (1, 2, 3)]
    assert fits == [1, 2, 2]  # what does not fit is replaced


def test_values_have_sizes():
    cache = Cache(10)
    for key, size in (("a", 4), ("b", 4), ("c", 4), ("d", 20), ("e", 1)):
        cache.get(key, lambda: 0, size=size)
    assert len(cache) == 1  # "d" was kept alone, and went with "e"
    assert [cache.get(key, lambda: 1) for key in "abde"] == [1, 1, 1, 0]


@pytest.mark.parametrize("failures", [0, 2])
def test_the_same_value_is_made_by_one_thread_and_by_the_next_where_it_fails(failures, hasty):
    cache, tries, found = Cache(4), [], []

    def make():
        tries.append(0)
        time.sleep(0.02)
        if len(tries) <= failures:
            raise ValueError("not yet")
        return object()

    def work(_):
        with contextlib.suppress(ValueError):
            found.append(cache.get("a", make))

    in_threads(8, work)
    assert len(set(map(id, found))) == 1
    assert len(tries) in ((1,) if not failures else (3, 4))  # four if a thread comes late


def test_a_pool_hands_no_array_to_two_threads(hasty, monkeypatch):
    monkeypatch.setattr(pool, "common_limit", lambda: 0)
    shared = Pool(3 * 80)

    class Owner:
        pass

    def work(i):
        for k in range(1000):
            owner, array = Owner(), shared.take((10,), FLOAT)
            shared.give_back_with(owner, array)
            array[:] = 1000 * i + k
            for _ in range(3):
                assert (array == 1000 * i + k).all()
            del owner

    in_threads(8, work)
    assert shared.bytes <= 3 * 80
    assert shared.bytes == sum(array.nbytes for some in shared.free.values() for array in some)


def test_pools_share_what_they_keep_beyond_their_limits(monkeypatch):
    monkeypatch.setattr(pool, "common_limit", lambda: 3 * 80)
    first, second, latest = Pool(80), Pool(80), Pool(80, latest=True)
    for one, count in ((first, 3), (second, 4)):
        for _ in range(count):
            one.give(np.zeros(10))
    assert (first.bytes, second.bytes) == (3 * 80, 2 * 80)
    del first, one
    gc.collect()
    second.give(np.zeros(10))
    latest.give(np.zeros(9))
    latest.give(np.zeros(10))
    assert (second.bytes, latest.bytes) == (3 * 80, 80)


def test_a_pool_of_many_graphs_lends_arrays_of_about_the_same_size_and_nothing_foreign():
    shared = Pool(latest=True)
    first = shared.take((100, 10), FLOAT)
    owner = first.base
    shared.give(first)
    second = shared.take((999,), FLOAT)
    assert second.base is owner
    shared.give(second)
    assert shared.take((500,), FLOAT).base is not owner
    assert shared.take((1000,), np.dtype(complex)).base is not owner
    assert shared.take((10, 101), FLOAT).base is owner
    shared, foreign = Pool(latest=True), np.arange(1024.0)
    shared.give(foreign[24:])
    shared.take((900,), FLOAT)[:] = -1
    assert (foreign[:24] == np.arange(24)).all()
    shared.give(foreign.reshape(32, 32)[:, :31])  # with gaps: it is let go
    assert not any(shared.free.values())
    for size in (0, 1, 7, 8, 9, 15, 16, 17, 1000, 1023, 1024, 1025, 123_456_789):
        assert size <= pool._room(size) <= size + size // 8
        assert pool._length(pool._room(size)) == pool._room(size)
        assert pool._length(size) <= size


@pytest.mark.parametrize("latest", [False, True])
def test_an_array_is_found_by_its_content_alone(latest):
    shared, filled = Pool(latest=latest), []

    def ones(array):
        filled.append(array)
        array.fill(1)

    first = shared.take_with("ones", (3, 5), FLOAT, ones)
    shared.give(first, "ones")
    assert shared.take((3, 5), FLOAT) is not first
    assert shared.take_with("others", (3, 5), FLOAT, ones) is not first
    assert shared.take_with("ones", (5, 3), FLOAT, ones) is not first
    count = len(filled)
    assert shared.take_with("ones", (3, 5), FLOAT, ones) is first
    assert len(filled) == count
    shared.give(first)  # somebody wrote to it
    assert shared.take_with("ones", (3, 5), FLOAT, ones) is not first or len(filled) > count


@dataclass
class Found:
    value: object
    name: str = ""


defer(Found, "value")


def test_a_late_value_is_made_once_for_all_threads_and_twins():
    calls, got = [], []

    def make():
        calls.append(None)
        time.sleep(0.05)  # the others ask meanwhile
        return object()

    found = Found(deferred(make))
    both = found, twin(found, name="b")
    in_threads(8, lambda i: got.append(both[i % 2].value))
    assert len(calls) == len(set(map(id, got))) == 1


def test_a_late_value_whose_making_was_interrupted_is_made_again():
    tries = iter((KeyboardInterrupt, None))

    def make():
        if (error := next(tries)) is not None:
            raise error
        return 5

    found = Found(deferred(make))
    with pytest.raises(KeyboardInterrupt):
        found.value  # noqa: B018
    assert found.value == 5


class Slow:
    """Waits, in one object, until somebody lets it go on."""

    def __init__(self, entered=None, leave=None):
        self.entered, self.leave = entered, leave

    @cached_property
    def value(self):
        if self.entered is not None:
            self.entered.set()
            assert self.leave.wait(60)
        return object()


def value_of_another():
    with one_blas_thread():
        assert Slow().value is not None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
@pytest.mark.parametrize("start", ["thread", "fork"])
def test_a_cached_property_has_no_lock_that_others_wait_for(start):
    if start not in ("thread", *multiprocessing.get_all_start_methods()):
        pytest.skip("needs fork")
    entered, leave = threading.Event(), threading.Event()
    one = Slow(entered, leave)
    thread = threading.Thread(target=lambda: one.value)
    thread.start()
    try:
        assert entered.wait(60)
        kind = threading.Thread if start == "thread" else multiprocessing.get_context("fork").Process
        other = kind(target=value_of_another, daemon=True)
        other.start()
        other.join(60)
        assert not other.is_alive()
        assert start == "thread" or other.exitcode == 0
    finally:
        leave.set()
        thread.join()
    assert one.value is vars(one)["value"] is one.value
    assert one.value is not Slow().value


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(3 * PART + 5,), (7, PART), (PART, 5), (2, 3)])
def test_one_number_that_is_not_finite_is_found_wherever_it_is(threads, shape):
    rng, values = np.random.default_rng(0), np.full(shape, 1e305)  # their sum is infinite
    assert all_finite(values, threads)
    assert all_finite(values.T, threads)
    for bad in (np.nan, np.inf, -np.inf):
        place = tuple(rng.integers(0, shape))
        values[place] = bad
        assert not all_finite(values, threads)
        assert not all_finite(values.T, threads)
        values[place] = 0
