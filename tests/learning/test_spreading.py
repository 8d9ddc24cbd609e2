"""Work on threads: answers and errors in the order of the arguments, whoever was faster."""

import gc
import subprocess
import sys
import threading

import pytest

from checks import refuses
from isinglass.runtime import threads
from isinglass.runtime.threads import ThreadMap


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_answers_come_in_order(n, count):
    spread = ThreadMap(n)
    for _ in range(20):
        assert spread(lambda i: i * i, [(i,) for i in range(count)]) == [i * i for i in range(count)]


def test_the_caller_and_a_helper_work_side_by_side():
    both = threading.Barrier(2, timeout=60)  # passed only by two threads that are there at the same time

    def meet():
        both.wait()
        return threading.get_ident()

    assert len({threading.get_ident(), *ThreadMap(2)(meet, [(), ()])}) == 2


def test_a_block_begins_at_once_and_ends_without_the_others():
    both, go_on, ended = threading.Barrier(2, timeout=60), threading.Event(), threading.Event()

    def work():
        both.wait()
        go_on.wait(60)
        ended.set()

    with ThreadMap(2).beside(work, [(), ()]):  # the second call is never begun
        both.wait()
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(60)
    with ThreadMap(1).beside(work, [()]), ThreadMap(2).beside(work, []):
        pass


def test_an_error_beside_a_block_is_raised_at_its_end(monkeypatch):
    failed, plain = threading.Event(), threads._Work.help

    def help_and_tell(self):
        plain(self)
        if self.function is work:  # and not a thread of an earlier test that wakes up late
            failed.set()

    def work():
        raise ValueError("beside")

    monkeypatch.setattr(threads._Work, "help", help_and_tell)
    with pytest.raises(ValueError, match="beside"), ThreadMap(2).beside(work, [()]):
        failed.wait(60)
    with pytest.raises(KeyError, match="inside"), ThreadMap(2).beside(work, [()]):
        raise KeyError("inside")


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_first_error_is_raised(n):
    met = threading.Barrier(min(n, 2), timeout=60)

    def work(i):
        if i in (3, 4):  # with threads, both fail, the later one first
            if n > 1:
                met.wait()
            if i == 3:
                late.wait(60 if n > 1 else 0)
            else:
                late.set()
            raise ValueError(i)
        return i

    late = threading.Event()
    refuses("3", ThreadMap(n), work, [(i,) for i in range(9)], error=ValueError)


def test_nothing_is_begun_after_an_error():
    done = []

    def work(i):
        done.append(i)
        raise ValueError(i)

    refuses("0", ThreadMap(3), work, [(i,) for i in range(1000)], error=ValueError)
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


@pytest.mark.parametrize("waits", [True, False])
def test_after_an_interrupt_calls_under_way_are_waited_for_if_asked(waits, monkeypatch):
    main, begun, go_on, ended = threading.get_ident(), threading.Event(), threading.Event(), []

    def work():
        if threading.get_ident() == main:
            begun.wait(60)
            return
        begun.set()
        go_on.wait(60)
        ended.append(True)

    looks = []

    def interrupted(self):  # Ctrl-C comes while the caller waits; the other thread goes on a little later
        if not looks:
            looks.append(None)
            threading.Timer(0.2, go_on.set).start()
            raise KeyboardInterrupt
        plain(self)

    plain = threads._Work.wait
    monkeypatch.setattr(threads._Work, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ThreadMap(2, waits)(work, [(), ()])
    assert bool(ended) == waits
    go_on.set()


def test_threads_are_kept_and_end_with_their_owner():
    spread, names = ThreadMap(3), set()
    for _ in range(10):
        both = threading.Barrier(3, timeout=60)
        names.update(spread(lambda both=both: (both.wait(), threading.current_thread())[1], [()] * 3))
    assert len(names) == 3  # the caller, and two that were started once
    helpers = names - {threading.current_thread()}
    del spread
    gc.collect()
    for thread in helpers:
        thread.join(60)
        assert not thread.is_alive()


def test_a_program_ends_with_threads_under_way():
    script = (
        "import threading, time\nfrom isinglass.runtime.threads import ThreadMap\nmain = threading.get_ident()\n"
        "def work(i):\n    if threading.get_ident() == main: time.sleep(0.2); raise SystemExit\n    time.sleep(0.5)\n"
        "    print('ended', flush=True)\n"
        "ThreadMap(2)(work, [(0,), (1,)])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_calls_that_are_running_are_told_of_an_error():
    started, told = threading.Event(), threading.Event()

    def call(i):
        if i == 0:
            started.wait(9)
            raise ZeroDivisionError
        started.set()
        found.append(told.wait(9))

    found = []
    with pytest.raises(ZeroDivisionError):
        ThreadMap(2, waits=True)(call, [(0,), (1,)], told.set)
    assert found == [True]
