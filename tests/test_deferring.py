"""Fields that are computed when they are asked for: once, whoever asks, and again after Ctrl-C."""

import time
from dataclasses import dataclass
from threading import Barrier, Thread

import pytest

from isinglass.runtime.deferring import defer, deferred, twin


@dataclass
class Found:
    value: object
    name: str = ""


defer(Found, "value")


def test_threads_that_ask_at_once_get_the_same_value():
    calls, barrier = [], Barrier(8)

    def make():
        calls.append(None)
        time.sleep(0.05)  # the others ask meanwhile
        return object()

    found, got = Found(deferred(make)), []

    def ask(one):
        barrier.wait()
        got.append(one.value)

    threads = [Thread(target=ask, args=(one,)) for one in (found, twin(found, name="b")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(calls) == len(set(map(id, got))) == 1


def test_a_value_whose_making_was_interrupted_is_made_again():
    tries = iter((KeyboardInterrupt, None))

    def make():
        if (error := next(tries)) is not None:
            raise error
        return 5

    found = Found(deferred(make))
    with pytest.raises(KeyboardInterrupt):
        found.value  # noqa: B018
    assert found.value == 5
