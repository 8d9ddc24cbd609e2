"""Draws whole forests of variables, given all others: filtering towards the roots, sampling from the roots on.

With v above its children u, and psi_uv the factor that joins them at the current states of its other variables:

    l_v(x_v) = phi_v(x_v) + sum of the factors of v that have no other member + sum_u log sum_{x_u} exp(l_u + psi_uv)
    a root is drawn from exp(l_v), and then each child from exp(l_u(x_u) + psi_uv(x_u, x_v))

(Hamze and de Freitas 2004.)
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.sampling.gibbs import chosen, exponentials
from isinglass.kernels.numba.sampling.random import uniform
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def entry_of(e, parent, c, sites, model, states):
    """Return the entry of an incidence's table at the current states, the parent's counted as zero, and its step."""
    entry, step = np.int64(model.at[ix(e)]), 0
    for r in range(sites.rest[ix(e)], sites.rest[ix(e + 1)]):
        j = sites.variable[ix(r)]
        if j == parent:
            step = sites.stride[ix(r)]
        else:
            entry += sites.stride[ix(r)] * np.int64(states[ix(j), ix(c)])
    return entry, step


@inner
def collect(k, c, forests, sites, model, states, log_w):
    """Begin l_v with the unary table and the factors without other members."""
    v = ix(forests.variable[ix(k)])
    at, card = sites.first_state[v], sites.cards[v]
    for a in range(at, at + card):
        log_w[ix(a)] = model.phi[ix(a)]
    for f in range(forests.first[ix(k)], forests.first[ix(k + 1)]):
        e = forests.fixed[ix(f)]
        entry, _ = entry_of(e, -1, c, sites, model, states)
        for a in range(card):
            log_w[ix(at + a)] += model.psi[ix(entry + a * sites.own[ix(e)])]


@inner
def send_up(k, c, forests, sites, model, states, log_w, p):
    """Add the message of a child to its parent's l."""
    v, parent, e = ix(forests.variable[ix(k)]), forests.parent[ix(k)], forests.tree[ix(k)]
    at, to, own, card = sites.first_state[v], sites.first_state[ix(parent)], sites.own[ix(e)], sites.cards[v]
    entry, step = entry_of(e, parent, c, sites, model, states)
    for b in range(sites.cards[ix(parent)]):
        top = -np.inf
        for a in range(card):
            p[ix(a)] = log_w[ix(at + a)] + model.psi[ix(entry + a * own + b * step)]
            top = max(top, p[ix(a)])
        if top == -np.inf:
            log_w[ix(to + b)] = -np.inf
        else:
            log_w[ix(to + b)] += top + np.log(exponentials(ix(card), p, top))


@inner
def draw(k, c, share, forests, sites, model, states, log_w, p):
    """Draw a variable, given its parent; return whether a state is possible."""
    v, parent, e = ix(forests.variable[ix(k)]), forests.parent[ix(k)], forests.tree[ix(k)]
    at, card, top = sites.first_state[v], sites.cards[v], -np.inf
    entry, step, own = 0, 0, 0
    if parent >= 0:
        entry, step = entry_of(e, parent, c, sites, model, states)
        entry, own = entry + step * np.int64(states[ix(parent), ix(c)]), sites.own[ix(e)]
    for a in range(card):
        p[ix(a)] = log_w[ix(at + a)]
        if parent >= 0:
            p[ix(a)] += model.psi[ix(entry + a * own)]
        top = max(top, p[ix(a)])
    if top == -np.inf:
        return False
    total = exponentials(ix(card), p, top)
    states[v, ix(c)] = chosen(ix(card), p, total * share)
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
                        send_up(k, c, forests, sites, model, states, log_w, p)
                for k in range(begin, end):
                    of = streams.component[k]
                    number = streams.drawn[of] + s * streams.numbers[of] + streams.place[k]
                    if not draw(k, c, uniform(streams.keys[of, c], number), forests, sites, model, states, log_w, p):
                        return False
    return True
