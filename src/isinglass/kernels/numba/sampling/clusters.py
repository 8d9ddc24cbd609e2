"""Cluster moves of Ising and Potts models (Swendsen and Wang 1987; Wolff 1989).

    log p(x) = sum_i phi_i(x_i) + sum_ij J_ij [x_i = x_j] + const,      J_ij >= 0, or two states

A link is *satisfied* if its states are equal (J > 0) or differ (J < 0). Each satisfied link becomes a bond with
probability 1 - exp(-|J|), and bonds join variables into clusters. Given the bonds, all members of a cluster change
together: to a common state y, or, of two states, by the same flip. So a cluster has the weights

    w(y) = sum_{i in cluster} phi_i(x_i as it becomes when the first member becomes y)

Swendsen-Wang draws every cluster from exp(w), Wolff that of one variable, which is chosen at random. (The current state
may be drawn again. Without that, a chain without couplings would swing between two halves of the assignments for ever.)
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.gibbs import chosen, exponentials
from isinglass.kernels.numba.sampling.random import uniform
from isinglass.kernels.numba.structure.forests import root_of
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def satisfied(strength, one, two):
    """Tell whether a link can be a bond."""
    return (one == two) == (strength > 0)


@inner
def moved(state, first, label, cards):
    """Return what a member of a cluster becomes when its first member goes from `first` to `label`."""
    return state ^ first ^ label if cards == 2 else label


@inner
def label_of(w, at, cards, share):
    """Turn log-weights into weights; return the state at which their running sum passes `share` of it all."""
    top = w[at]
    for y in range(cards):
        top = max(top, w[at + y])
    mine = w[at : at + cards]
    total = exponentials(np.uint64(cards), mine, top)
    return np.int64(chosen(np.uint64(cards), mine, total * share))


@compiled
def swendsen_wang(model, streams, states, sweeps, first_chain, last_chain, parent, weights, label):
    """Draw bonds and new states of all clusters, some times over, in some chains."""
    links, n = len(model.strength), len(model.cards)
    for s in range(sweeps):
        for c in range(first_chain, last_chain):
            for i in range(n):
                parent[i] = i
            for e in range(links):
                i, j = model.one[e], model.two[e]
                if satisfied(model.strength[e], states[i, c], states[j, c]):
                    of = model.component[i]
                    number = streams.drawn[of] + s * streams.numbers[of] + streams.place[e]
                    if uniform(streams.keys[of, c], number) < model.bond[e]:
                        a, b = root_of(parent, i), root_of(parent, j)
                        if a < b:
                            parent[b] = a
                        else:
                            parent[a] = b
            for k in range(len(weights)):
                weights[k] = 0.0
            for i in range(n):
                root = root_of(parent, i)
                parent[i] = root
                for y in range(model.cards[i]):
                    x = moved(np.int64(states[i, c]), np.int64(states[root, c]), y, model.cards[i])
                    weights[model.first_state[root] + y] += model.phi[model.first_state[i] + x]
            for i in range(n):
                if parent[i] == i:
                    of = model.component[i]
                    number = streams.drawn[of] + s * streams.numbers[of] + streams.place[links + i]
                    share = uniform(streams.keys[of, c], number)
                    label[i] = label_of(weights, model.first_state[i], model.cards[i], share)
            for back in range(n):  # the first member of a cluster, which has the smallest number, comes last
                i = n - 1 - back
                root = parent[i]
                x = moved(np.int64(states[i, c]), np.int64(states[root, c]), label[root], model.cards[i])
                states[i, c] = x


@inner
def grow(seed, c, step, model, key, base, per_step, states, inside, members):
    """Collect the cluster of a variable; return how many members it has."""
    inside[seed] = True
    members[0] = seed
    count, taken = 1, 0
    while taken < count:
        i = members[taken]
        taken += 1
        for e in range(model.first[i], model.first[i + 1]):
            j, link = model.other[e], model.link[e]
            if not inside[j] and satisfied(model.strength[link], states[i, c], states[j, c]):
                number = base + np.uint64(step * per_step + 2) + model.link_place[link]
                if uniform(key, number) < model.bond[link]:
                    inside[j] = True
                    members[count] = j
                    count += 1
    return count


@compiled
def wolff(model, streams, steps, states, sweeps, first_chain, last_chain, inside, members, w):
    """Move single clusters of each component, ``steps[k]`` of component k in a sweep.

    A step uses two random numbers and one for each link of the component.
    """
    for s in range(sweeps):
        for of in range(len(steps)):
            begin, size = model.begin[of], model.begin[of + 1] - model.begin[of]
            if size == 0:
                continue
            base = streams.drawn[of] + np.uint64(s) * streams.numbers[of]
            per_step = model.per_step[of]
            for c in range(first_chain, last_chain):
                key = streams.keys[of, c]
                for step in range(steps[of]):
                    number = base + np.uint64(step * per_step)
                    seed = model.member[begin + min(np.int64(uniform(key, number) * size), size - 1)]
                    count = grow(seed, c, step, model, key, base, per_step, states, inside, members)
                    cards, first = model.cards[seed], np.int64(states[seed, c])
                    for y in range(cards):
                        w[y] = 0.0
                    for k in range(count):
                        i = members[k]
                        for y in range(cards):
                            w[y] += model.phi[model.first_state[i] + moved(np.int64(states[i, c]), first, y, cards)]
                    label = label_of(w, 0, cards, uniform(key, number + np.uint64(1)))
                    for k in range(count):
                        i = members[k]
                        states[i, c] = moved(np.int64(states[i, c]), first, label, cards)
                        inside[i] = False
