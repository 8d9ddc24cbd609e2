"""Pieces that threads make in any order, and add up in order: every order in which threads can take turns.

The functions of the protocol are taken from their sources, and made into generators that stop before each look at what
threads share. So a thread is stepped from one such look to the next. All states that some order of steps leads to are
found, and what must never be, is looked for in each of them.
"""

import ast
import inspect
import textwrap
from collections import deque

import numpy as np
import pytest

from isinglass.kernels.numba.arithmetic import in_order
from isinglass.kernels.numba.arithmetic.in_order import GROUP, PIECES, new_queue
from isinglass.kernels.numba.chains.likelihood import add_made

SHARED = ("look", "exchange", "fetch_and_add")
STEPS = (in_order.take_piece, in_order.tell_made, in_order.is_made, in_order.claim, in_order.go_on, in_order.oldest)
STOPPING = {*(step.__name__ for step in STEPS), "add_made", "add_part"}


class Stopping(ast.NodeTransformer):
    """Stops before what is shared, and enters functions that stop."""

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in SHARED:
            return ast.Yield(ast.Tuple([ast.Constant(name), *node.args[1:]], ast.Load()))
        return ast.YieldFrom(node) if name in STOPPING else node


def compiled_steps():
    """Return the protocol as generators."""
    sources = [textwrap.dedent(inspect.getsource(function.py_func)) for function in (*STEPS, add_made)]
    found = []
    for source in sources:
        tree = Stopping().visit(ast.parse(source))
        tree.body[0].decorator_list = []
        found.append(compile(ast.fix_missing_locations(tree), "steps", "exec"))
    return found


class Slopes:
    """Stands for the ring of slopes: only its length is asked for."""

    def __init__(self, rows):
        self.shape = (rows,)


class Run:
    """Threads that have been stepped in some order."""

    def __init__(self, steps, threads, pieces, parts, group, slots, order=()):
        self.queue, self.slots, self.wrong = new_queue(pieces, parts, group), slots, []
        self.added, self.busy = [[] for _ in range(parts)], [False] * parts
        self.names = dict(vars(in_order), add_part=self.add_part)
        for step in steps:
            exec(step, self.names)
        self.threads = [self.work() for _ in range(threads)]
        self.asked = [next(thread, None) for thread in self.threads]
        for thread in order:
            self.step(thread)

    def work(self):
        """Do what `known_gradient` does."""
        call, queue = self.names, self.queue
        while True:
            piece = yield from call["take_piece"](queue)
            if piece >= queue[PIECES]:
                return
            group = piece // queue[GROUP]
            while group - (yield from call["oldest"](queue)) >= self.slots:
                yield from call["add_made"](queue, piece, 1, (), (Slopes(self.slots),), ())
            self.check(all(len(part) > group - self.slots for part in self.added), "slopes are not in all parts")
            yield from call["tell_made"](queue, group)
            yield from call["add_made"](queue, piece, 1, (), (Slopes(self.slots),), ())

    def add_part(self, group, part, *_):
        """Stop while a group is added, in place of adding it."""
        self.check(not self.busy[part], "two threads have a part")
        self.check(group == len(self.added[part]), "a group is not the next one")
        self.busy[part] = True
        yield ("look", 0)
        self.busy[part] = False
        self.added[part].append(group)

    def check(self, right, text):
        if not right:
            self.wrong.append(text)

    def step(self, thread):
        """Let a thread do what it has stopped before, and go on to the next stop."""
        name, place, *value = self.asked[thread]
        seen = int(self.queue[place])
        if name != "look":
            self.queue[place] = value[0] + (seen if name == "fetch_and_add" else 0)
        try:
            self.asked[thread] = self.threads[thread].send(seen)
        except StopIteration:
            self.asked[thread] = None

    def state(self):
        """Return all that the rest of the run depends on; threads that are in the same place are alike."""
        places = sorted(map(frames, self.threads))
        return self.queue.tobytes(), tuple(map(tuple, self.added)), tuple(self.busy), tuple(places)


def frames(thread):
    """Return where a thread has stopped, and its variables there."""
    found = []
    while thread is not None and thread.gi_frame is not None:
        frame = thread.gi_frame
        numbers = {name: int(value) for name, value in frame.f_locals.items() if isinstance(value, int | np.integer)}
        found.append((frame.f_code.co_name, frame.f_lasti, tuple(sorted(numbers.items()))))
        thread = thread.gi_yieldfrom
    return tuple(found)


def faults(steps, *sizes):
    """Go through all states; return what is wrong in some, and how many there are."""
    found, ends, before = set(), set(), {}
    waiting = deque([((), None)])
    while waiting:
        order, came_from = waiting.popleft()
        run = Run(steps, *sizes, order=order)
        found.update(run.wrong)
        state = run.state()
        new = state not in before
        before.setdefault(state, []).append(came_from)
        if not new or run.wrong:
            continue
        alive = [thread for thread, asked in enumerate(run.asked) if asked is not None]
        waiting.extend(((*order, thread), state) for thread in alive)
        if not alive:
            ends.add(state)
            whole = list(range(-(-sizes[1] // sizes[3])))
            found.update(["a group is missing"] if any(part != whole for part in run.added) else [])
    if not found and len(reaching(ends, before)) < len(before):
        found.add("threads wait for ever")
    return found, len(before)


def reaching(ends, before):
    """Return the states from which an end can be reached."""
    seen, left = set(ends), list(ends)
    while left:
        for state in before[left.pop()]:
            if state is not None and state not in seen:
                seen.add(state)
                left.append(state)
    return seen


SIZES = {  # threads, pieces, parts, pieces of a group, groups that have room
    "two threads": (2, 3, 1, 1, 3),
    "two parts": (2, 2, 2, 1, 2),
    "groups of two": (2, 3, 1, 2, 2),
    "little room": (2, 3, 1, 1, 1),
    "three threads": (3, 2, 1, 1, 2),
    "all together": (2, 3, 2, 2, 1),
}


@pytest.mark.long
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_in_any_order_of_steps_every_group_is_added_once_and_in_order(sizes):
    found, states = faults(compiled_steps(), *sizes)
    assert not found
    assert states > 100
