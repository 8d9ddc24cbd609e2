"""Draws whole forests of variables, given all others: filtering towards the roots, sampling from the roots on.

With v above its children u, and psi_uv the factor that joins them at the current states of its other variables:

    l_v(x_v) = phi_v(x_v) + sum of the factors of v that have no other member + sum_u log sum_{x_u} exp(l_u + psi_uv)
    a root is drawn from exp(l_v), and then each child from exp(l_u(x_u) + psi_uv(x_u, x_v))

(Hamze and de Freitas 2004.)
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.gibbs import chosen
from isinglass.kernels.numba.sampling.random import uniform
from isinglass.runtime.jit import compiled, inner


@inner
def entry_of(e, parent, c, sites, model, states):
    """Return the entry of an incidence's table at the current states, the parent's counted as zero, and its step."""
    entry, step = np.int64(model.at[e]), 0
    for r in range(sites.rest[e], sites.rest[e + 1]):
        j = sites.variable[r]
        if j == parent:
            step = sites.stride[r]
        else:
            entry += sites.stride[r] * np.int64(states[j, c])
    return entry, step


@inner
def collect(k, c, forests, sites, model, states, log_w):
    """Begin l_v with the unary table and the factors without other members."""
    v = forests.variable[k]
    at, card = sites.first_state[v], sites.cards[v]
    for a in range(card):
        log_w[at + a] = model.phi[at + a]
    for f in range(forests.first[k], forests.first[k + 1]):
        e = forests.fixed[f]
        entry, _ = entry_of(e, -1, c, sites, model, states)
        for a in range(card):
            log_w[at + a] += model.psi[entry + a * sites.own[e]]


@inner
def send_up(k, c, forests, sites, model, states, log_w):
    """Add the message of a child to its parent's l."""
    v, parent, e = forests.variable[k], forests.parent[k], forests.tree[k]
    at, to = sites.first_state[v], sites.first_state[parent]
    entry, step = entry_of(e, parent, c, sites, model, states)
    for b in range(sites.cards[parent]):
        top = -np.inf
        for a in range(sites.cards[v]):
            top = max(top, log_w[at + a] + model.psi[entry + a * sites.own[e] + b * step])
        if top == -np.inf:
            log_w[to + b] = -np.inf
            continue
        total = 0.0
        for a in range(sites.cards[v]):
            total += np.exp(log_w[at + a] + model.psi[entry + a * sites.own[e] + b * step] - top)
        log_w[to + b] += top + np.log(total)


@inner
def draw(k, c, share, forests, sites, model, states, log_w, p):
    """Draw a variable, given its parent; return whether a state is possible."""
    v, parent, e = forests.variable[k], forests.parent[k], forests.tree[k]
    at, card, top = sites.first_state[v], sites.cards[v], -np.inf
    entry, step, own = 0, 0, 0
    if parent >= 0:
        entry, step = entry_of(e, parent, c, sites, model, states)
        entry, own = entry + step * np.int64(states[parent, c]), sites.own[e]
    for a in range(card):
        p[a] = log_w[at + a]
        if parent >= 0:
            p[a] += model.psi[entry + a * own]
        top = max(top, p[a])
    if top == -np.inf:
        return False
    total = 0.0
    for a in range(card):
        p[a] = np.exp(p[a] - top)
        total += p[a]
    states[v, c] = chosen(np.uint64(card), p, total * share)
    return True


@compiled
def forest_sweeps(forests, sites, model, streams, states, sweeps, first_chain, last_chain, log_w, p):
    """Draw every block once in each sweep; return whether all variables had a possible state."""
    for s in range(sweeps):
        for b in range(len(forests.begin) - 1):
            begin, end = forests.begin[b], forests.begin[b + 1]
            for c in range(first_chain, last_chain):
                for k in range(begin, end):
                    collect(k, c, forests, sites, model, states, log_w)
                for back in range(end - begin):
                    k = end - 1 - back
                    if forests.parent[k] >= 0:
                        send_up(k, c, forests, sites, model, states, log_w)
                for k in range(begin, end):
                    of = streams.component[k]
                    number = streams.drawn[of] + s * streams.numbers[of] + streams.place[k]
                    if not draw(k, c, uniform(streams.keys[of, c], number), forests, sites, model, states, log_w, p):
                        return False
    return True
