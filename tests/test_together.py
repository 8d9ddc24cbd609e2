"""Threads that go through one compiled loop step by step."""

import threading

import numpy as np
import pytest

from isinglass.kernels.numba.arithmetic.together import (
    OVER,
    STEP,
    STOP,
    done,
    finish_step,
    new_crew,
    next_step,
    start_step,
    stopped,
    take,
)
from isinglass.runtime.jit import compiled

STEPS, PIECES, ENTRIES = 300, 8, 2000


@compiled
def do_pieces(crew, step, values):
    """Each piece adds up all pieces of the step before: wrong if one of those is not done yet."""
    pieces = values.shape[1]
    while True:
        i = take(crew, step)
        if i >= pieces:
            return
        if not stopped(crew):
            for k in range(values.shape[2]):
                total = 0.0
                for j in range(pieces):
                    total += values[step - 1, j, k]
                values[step, i, k] += total / pieces + 1
        done(crew, step)


@compiled
def walk(crew, values, leads):
    """Lead, or follow."""
    if not leads:
        step = next_step(crew, 0)
        while step != OVER:
            do_pieces(crew, step, values)
            step = next_step(crew, step)
        return
    for step in range(1, values.shape[0]):
        start_step(crew, step)
        do_pieces(crew, step, values)
        finish_step(crew, step, values.shape[1])
    start_step(crew, OVER)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_a_step_begins_when_all_pieces_of_the_one_before_are_done(threads):
    for _ in range(3):
        crew, values = new_crew(STEPS), np.zeros((STEPS + 1, PIECES, ENTRIES))
        others = [threading.Thread(target=walk, args=(crew, values, False)) for _ in range(threads - 1)]
        for one in others:
            one.start()
        walk(crew, values, True)
        for one in others:
            one.join()
        assert (values == np.arange(STEPS + 1.0)[:, None, None]).all()


def test_who_follows_comes_late_or_goes_without_a_leader():
    crew, values = new_crew(STEPS), np.zeros((STEPS + 1, PIECES, 2))
    walk(crew, values, True)
    walk(crew, values, False)  # all is over: returns at once
    assert (values[-1] == STEPS).all()
    walk(new_crew(STEPS), values, False)  # nobody leads: returns after a while


def test_after_a_stop_steps_are_done_without_work():
    crew, values = new_crew(STEPS), np.zeros((STEPS + 1, PIECES, 2))
    crew[STOP] = 1
    walk(crew, values, True)
    assert crew[STEP] == OVER
    assert not values.any()
