"""Caches that threads share, and the pool of arrays."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from isinglass.graph import FactorGraph
from isinglass.runtime import array_pool as pool
from isinglass.runtime.array_pool import Pool
from isinglass.runtime.caching import Cache


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(n: int, work: Callable[[int], None]) -> None:
    """Run some threads; raise what one of them raised."""
    errors: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
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


def test_a_value_is_made_once_and_the_oldest_goes() -> None:
    cache, made = Cache(2), []
    for key in (1, 2, 1, 3, 1):
        assert cache.get(key, lambda key=key: made.append(key) or 10 * key) == 10 * key  # type: ignore[func-returns-value,misc]
    assert made == [1, 2, 3, 1]
    assert len(cache) == 2


def test_none_is_a_value() -> None:
    cache = Cache(2)
    assert cache.get("a", lambda: None) is None
    assert cache.get("a", lambda: 1) is None  # type: ignore[arg-type, return-value]


def test_what_does_not_fit_is_replaced() -> None:
    cache = Cache(2)
    assert cache.get("a", lambda: 1) == 1
    assert cache.get("a", lambda: 2, lambda kept: kept > 1) == 2
    assert cache.get("a", lambda: 3, lambda kept: kept > 1) == 2
    assert len(cache) == 1


def test_values_have_sizes() -> None:
    cache = Cache(10)
    for key, size in (("a", 4), ("b", 4), ("c", 4), ("d", 20), ("e", 1)):
        cache.get(key, lambda: 0, size=size)
    assert len(cache) == 1  # "d" was kept alone, and went with "e"
    assert [cache.get(key, lambda: 1) for key in "abde"] == [1, 1, 1, 0]


def test_the_same_value_is_made_by_one_thread(hasty: None) -> None:
    cache, made, barrier = Cache(4), [], threading.Barrier(8)

    def make() -> int:
        made.append(threading.get_ident())
        time.sleep(0.02)
        return 7

    def work(i: int) -> None:
        barrier.wait()
        assert cache.get("a", make) == 7

    in_threads(8, work)
    assert len(made) == 1


def test_where_one_thread_fails_the_next_makes_the_value() -> None:
    cache, tries, barrier = Cache(4), [], threading.Barrier(4)

    def make() -> int:
        tries.append(0)
        time.sleep(0.01)
        if len(tries) < 3:
            raise ValueError("not yet")
        return 7

    def work(i: int) -> None:
        barrier.wait()
        with contextlib.suppress(ValueError):
            assert cache.get("a", make) == 7

    in_threads(4, work)
    assert cache.get("a", lambda: 8) == 7
    assert len(tries) in (3, 4)  # four if a thread comes late


def test_whoever_makes_the_same_value_gets_the_same_one(hasty: None) -> None:
    cache, found, barrier = Cache(4), [], threading.Barrier(8)

    def work(i: int) -> None:
        barrier.wait()
        found.append(cache.get("a", object))

    in_threads(8, work)
    assert len(set(map(id, found))) == 1


@pytest.mark.long
def test_evictions_do_not_disturb_each_other(hasty: None) -> None:
    graph = FactorGraph([2], [(0,)])

    def work(i: int) -> None:
        for k in range(3000):
            assert graph.cached((i, k), lambda k=k: k) == k  # type: ignore[misc]

    in_threads(8, work)


def test_a_pool_hands_no_array_to_two_threads(hasty: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(pool, "common_limit", lambda: 0)
    shared = Pool(3 * 80)

    class Owner:
        pass

    def work(i: int) -> None:
        for k in range(1000):
            owner, array = Owner(), shared.take((10,), np.dtype(float))
            shared.give_back_with(owner, array)
            array[:] = 1000 * i + k
            for _ in range(3):
                assert (array == 1000 * i + k).all()
            del owner

    in_threads(8, work)
    assert shared.bytes <= 3 * 80
    assert shared.bytes == sum(array.nbytes for some in shared.free.values() for array in some)


def test_pools_share_what_they_keep_beyond_their_limits(monkeypatch: Any) -> None:
    monkeypatch.setattr(pool, "common_limit", lambda: 3 * 80)
    first, second = Pool(80), Pool(80)
    for _ in range(3):
        first.give(np.zeros(10))
    for _ in range(4):
        second.give(np.zeros(10))
    assert (first.bytes, second.bytes) == (3 * 80, 2 * 80)
    del first
    gc.collect()
    second.give(np.zeros(10))
    assert second.bytes == 3 * 80
    latest = Pool(80, latest=True)
    latest.give(np.zeros(9))
    latest.give(np.zeros(10))
    assert latest.bytes == 80


def test_in_a_pool_of_many_graphs_arrays_of_about_the_same_size_take_each_others_places() -> None:
    shared, kind = Pool(latest=True), np.dtype(float)
    first = shared.take((100, 10), kind)
    assert first.shape == (100, 10)
    owner = first.base
    shared.give(first)
    second = shared.take((999,), kind)
    assert second.base is owner
    shared.give(second)
    assert shared.take((500,), kind).base is not owner
    assert shared.take((1000,), np.dtype(complex)).base is not owner
    assert shared.take((10, 101), kind).base is owner


def test_a_pool_does_not_take_what_it_has_not_lent_for_whole() -> None:
    shared, kind = Pool(latest=True), np.dtype(float)
    foreign = np.arange(1024.0)
    shared.give(foreign[24:])
    shared.take((900,), kind)[:] = -1
    assert (foreign[:24] == np.arange(24)).all()
    shared.give(foreign.reshape(32, 32)[:, :31])  # with gaps: it is let go
    assert not any(shared.free.values())


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 17, 1000, 1023, 1024, 1025, 123_456_789])
def test_lengths_are_rounded_by_little(size: int) -> None:
    assert size <= pool._room(size) <= size + size // 8
    assert pool._length(pool._room(size)) == pool._room(size)
    assert pool._length(size) <= size


@pytest.mark.parametrize("latest", [False, True])
def test_an_array_is_found_by_its_content_alone(latest):
    shared, kind, filled = Pool(latest=latest), np.dtype(float), []

    def ones(array):
        filled.append(array)
        array.fill(1)

    first = shared.take_with("ones", (3, 5), kind, ones)
    shared.give(first, "ones")
    assert shared.take((3, 5), kind) is not first
    assert shared.take_with("others", (3, 5), kind, ones) is not first
    assert shared.take_with("ones", (5, 3), kind, ones) is not first
    count = len(filled)
    assert shared.take_with("ones", (3, 5), kind, ones) is first
    assert len(filled) == count
    shared.give(first)  # somebody wrote to it
    assert shared.take_with("ones", (3, 5), kind, ones) is not first or len(filled) > count
