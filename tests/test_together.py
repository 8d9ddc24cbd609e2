"""Threads that go through one compiled loop step by step."""

import threading

import numpy as np
import pytest

from isinglass.kernels.numba.arithmetic.together import (
    COME,
    GONE,
    OVER,
    STEP,
    STOP,
    come,
    done,
    end_steps,
    finish_step,
    leave,
    new_crew,
    next_step,
    start_step,
    stopped,
    take,
)
from isinglass.runtime.compilation.jit import compiled

STEPS, PIECES, ENTRIES = 300, 8, 2000


@compiled
def do_pieces(crew, step, place, values):
    """Each piece adds up all pieces of the step before: wrong if one of those is not done yet."""
    pieces = values.shape[1]
    while True:
        first, after = take(crew, step, place, pieces)
        if first == after:
            return
        for i in range(first, after):
            if not stopped(crew):
                for k in range(values.shape[2]):
                    total = 0.0
                    for j in range(pieces):
                        total += values[step - 1, j, k]
                    values[step, i, k] += total / pieces + 1
        done(crew, place, after - first)


@compiled
def walk(crew, values, leads):
    """Lead, or follow."""
    place = come(crew, leads)
    if not leads:
        step = next_step(crew, 0)
        while step != OVER:
            do_pieces(crew, step, place, values)
            step = next_step(crew, step)
        leave(crew)
        return
    for step in range(1, values.shape[0]):
        start_step(crew, step, values.shape[1])
        do_pieces(crew, step, place, values)
        finish_step(crew, values.shape[1])
    end_steps(crew)


@compiled
def take_some(crew, step, place):
    """Take pieces, from Python."""
    return take(crew, step, place, PIECES)


@pytest.mark.long
@pytest.mark.parametrize(("threads", "places"), [(1, 1), (1, 3), (2, 2), (3, 2), (3, 8), (7, 7), (7, 20)])
def test_a_step_begins_when_all_pieces_of_the_one_before_are_done(threads, places):
    for _ in range(3):
        crew, values = new_crew(places), np.zeros((STEPS + 1, PIECES, ENTRIES))
        others = [threading.Thread(target=walk, args=(crew, values, False)) for _ in range(threads - 1)]
        for one in others:
            one.start()
        walk(crew, values, True)
        assert crew[COME] == crew[GONE] < threads
        for one in others:
            one.join()
        assert (values == np.arange(STEPS + 1.0)[:, None, None]).all()


def test_late_followers_and_stops():
    crew, values = new_crew(2), np.zeros((STEPS + 1, PIECES, 2))
    walk(crew, values, True)
    walk(crew, values, False)  # all is over: returns at once
    assert (values[-1] == STEPS).all()
    walk(new_crew(2), values, False)  # nobody leads: returns after a while
    crew, values = new_crew(2), np.zeros((STEPS + 1, PIECES, 2))
    crew[STOP] = 1
    walk(crew, values, True)
    assert crew[STEP] == OVER
    assert not values.any()


def test_who_was_held_up_in_a_step_that_is_over_takes_nothing():
    crew, none = new_crew(2), (PIECES, PIECES)
    assert [take_some(crew, 3, 0) for _ in range(7)] == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7), (7, 8), none]
    assert take_some(crew, 5, 1) == (4, 6)  # the first of its range, which belongs to step 5 from now on
    assert take_some(crew, 3, 1) == none
    assert [take_some(crew, 5, 0) for _ in range(6)] == [(0, 2), (2, 3), (3, 4), (6, 7), (7, 8), none]


@compiled
def end(crew):
    """End all steps, from Python."""
    end_steps(crew)


def test_the_leader_waits_for_those_that_have_come_and_for_nobody_else():
    end(new_crew(1))  # compiles
    crew = new_crew(3)
    crew[COME] = 1
    leader = threading.Thread(target=end, args=(crew,))
    leader.start()
    leader.join(0.2)
    assert leader.is_alive()
    assert crew[STEP] == OVER
    crew[GONE] = 1
    leader.join(60)
    assert not leader.is_alive()
