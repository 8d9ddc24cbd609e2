"""Properties that are computed once: no lock that belongs to the class."""

import multiprocessing
import threading

import pytest

from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.cached_property import cached_property


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


def test_the_value_is_kept():
    one = Slow()
    assert one.value is one.value
    assert one.value is not Slow().value
    assert "value" in vars(one)


def test_objects_do_not_wait_for_each_other():
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow(entered, leave).value)
    thread.start()
    try:
        assert entered.wait(60)
        other = threading.Thread(target=value_of_another, daemon=True)
        other.start()
        other.join(60)
        assert not other.is_alive()
    finally:
        leave.set()
        thread.join()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_child_that_was_forked_meanwhile_does_not_wait():
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow(entered, leave).value)
    thread.start()
    try:
        assert entered.wait(60)
        child = multiprocessing.get_context("fork").Process(target=value_of_another, daemon=True)
        child.start()
        child.join(60)
        assert child.exitcode == 0
    finally:
        leave.set()
        thread.join()
