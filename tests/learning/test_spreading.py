"""Work on threads: answers and errors in the order of the arguments, whoever was faster."""

import threading

import pytest

from isinglass.runtime.threads import ThreadMap


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_answers_come_in_order(threads, count):
    spread = ThreadMap(threads)
    for _ in range(20):
        assert spread(lambda i: i * i, [(i,) for i in range(count)]) == [i * i for i in range(count)]


def test_the_caller_and_a_helper_work_side_by_side():
    both = threading.Barrier(2, timeout=60)  # passed only by two threads that are there at the same time

    def meet():
        both.wait()
        return threading.get_ident()

    assert len({threading.get_ident(), *ThreadMap(2)(meet, [(), ()])}) == 2


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_error_is_raised(threads):
    met = threading.Barrier(min(threads, 2), timeout=60)

    def work(i):
        if i in (3, 4):  # with threads, both fail, the later one first
            if threads > 1:
                met.wait()
            if i == 3:
                late.wait(60 if threads > 1 else 0)
            else:
                late.set()
            raise ValueError(i)
        return i

    late = threading.Event()
    with pytest.raises(ValueError, match="3"):
        ThreadMap(threads)(work, [(i,) for i in range(9)])


def test_nothing_is_begun_after_an_error():
    done = []

    def work(i):
        done.append(i)
        raise ValueError(i)

    with pytest.raises(ValueError, match="0"):
        ThreadMap(3)(work, [(i,) for i in range(1000)])
    assert len(done) <= 3


def test_an_interrupt_of_the_caller_comes_through():
    main, both = threading.get_ident(), threading.Barrier(2, timeout=60)

    def work():
        both.wait()
        if threading.get_ident() == main:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ThreadMap(2)(work, [(), ()])


def test_a_busy_pool_is_not_waited_for():
    spread = ThreadMap(2)

    def outer(i):
        return sum(spread(lambda j: 10 * i + j, [(j,) for j in range(3)]))  # one helper, and it is here

    assert spread(outer, [(0,), (1,), (2,)]) == [3, 33, 63]
