"""Chains of examples that go on from one evaluation to the next.

What is kept of an example are named arrays: the states of its chains (variables, chains), their keys (chains,), and how
many random numbers each has used. A batch puts the chains of its examples side by side, as `Chains` has them. An
example that was not met before has nothing but its number, from which the streams of its chains are seeded: so neither
the batch nor the threads change a bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.sampling.chains import Chains, States, state_type
from isinglass.inference.sampling.starts import dispersed_states
from isinglass.losses.loss import Memory
from isinglass.potentials import Potentials
from isinglass.segments import starts
from isinglass.typing import Array, IntArray

EXAMPLE = "example"
PARTS = ("states", "keys", "drawn")
EXTREME = 2  # starts with the lowest and with the highest state of every variable, which a few sweeps may not leave


def chains_of(potentials: Potentials, n: int, seed: int, memory: Sequence[Memory] | None, kind: str) -> Chains:
    """Return `n` chains of each example: those of its memory, or new ones.

    Parameters
    ----------
    potentials : Potentials
        With the evidence that the chains are held to.
    n : int
    seed : int
    memory : sequence of Memory, optional
        One for each component; without it all chains are new, and seeded by the numbers of the components.
    kind : str
        Which of the chains in the memory.
    """
    if memory is None:
        return Chains.start(potentials, n, np.random.default_rng([seed, _number(kind)]))
    known = [f"{kind}.states" in one for one in memory]
    if all(known):
        return _joined(potentials.graph, n, memory, kind)
    seeds = [[seed, _number(kind), int(one[EXAMPLE])] for one in memory]
    random = [np.random.default_rng(words) for words in seeds]
    keys = np.array([rng.integers(0, 2**64, n, np.uint64) for rng in random], np.uint64).reshape(-1, n)
    states: States = dispersed_states(potentials, n + EXTREME, random)[:, EXTREME:].astype(state_type(potentials.graph))
    fresh = split(potentials.graph, Chains(states, keys, np.zeros(len(random), np.uint64)), kind)
    merged = [one if have else new for one, new, have in zip(memory, fresh, known, strict=True)]
    return _joined(potentials.graph, n, merged, kind)


def split(graph: FactorGraph, chains: Chains, kind: str) -> list[dict[str, Array]]:
    """Return the chains of each component by itself."""
    order = by_component(graph)
    sizes = np.bincount(graph.variable_component, minlength=graph.n_components)
    states = np.split(chains.states[order], starts(sizes)[1:-1])
    parts = zip(states, chains.keys, chains.drawn, strict=True)
    return [{f"{kind}.{name}": np.asarray(a) for name, a in zip(PARTS, part, strict=True)} for part in parts]


def by_component(graph: FactorGraph) -> IntArray:
    """Return the variables, those of the first component first."""
    return np.argsort(graph.variable_component, kind="stable")


def _joined(graph: FactorGraph, n: int, memory: Sequence[Memory], kind: str) -> Chains:
    """Put chains of examples side by side; they may come from a file, and are checked."""
    sizes = np.bincount(graph.variable_component, minlength=graph.n_components).tolist()
    shapes = {"states": (state_type(graph), 2), "keys": (np.uint64, 1), "drawn": (np.uint64, 0)}
    for one, size in zip(memory, sizes, strict=True):
        for name, (kept_as, ndim) in shapes.items():
            array, expected = one.get(f"{kind}.{name}"), ((size, n), (n,), ())[2 - ndim]
            if array is None or array.dtype != kept_as or array.shape != expected:
                raise _unfit(kind, "none" if array is None else f"{array.dtype} {array.shape}")
    states = np.empty((graph.n_variables, n), state_type(graph))
    states[by_component(graph)] = np.concatenate([states[:0], *(m[f"{kind}.states"] for m in memory)])
    if (states < 0).any() or (states >= graph.cards[:, None]).any():
        raise _unfit(kind, "states that variables do not have")
    keys = np.array([m[f"{kind}.keys"] for m in memory], np.uint64).reshape(-1, n)
    return Chains(states, keys, np.array([m[f"{kind}.drawn"] for m in memory], np.uint64))


def _unfit(kind: str, got: str) -> InputError:
    return InputError("checkpoint", f"chains of this problem ({kind})", got, "remove the file")


def _number(kind: str) -> int:
    """Return a number for a kind of chains."""
    return {"free": 0, "clamped": 1}[kind]
