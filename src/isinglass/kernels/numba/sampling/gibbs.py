"""Gibbs sampling on any factor graph: a variable is drawn from its distribution given all others.

    p(x_i | rest)  ~  exp( phi_i(x_i) + sum_{a at i} phi_a(x_i, rest of x_a) )

phi_i is the sum of the tables of i alone, and phi_a the table of a factor of two or more variables. -inf is a hard
zero: such a state has probability zero exactly. (Geman and Geman 1984.)

A binary variable whose factors are pairs with binary variables, without hard zeros, has log-odds that are linear in the
states of its neighbours, which is faster:

    h_i = bias_i + sum_{j at i} slope_ij x_j,       p(x_i = 1 | rest) = 1 / (1 + exp(-h_i))

Conditional probabilities are added up over sweeps, each chain by itself and in the order of the sweeps, so that neither
threads nor the number of sweeps in a call change a bit:

    sum_t p(x_i | rest of x^t)                  of variable i
    sum_t p(x_i | rest of x^t) [x_j = x_j^t]    of a factor of i and j that i owns, and alike of larger factors
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.sampling.random import uniform
from isinglass.runtime.compilation.jit import compiled, inner

LARGEST = 708.0  # log-odds beyond count as these: the less likely state is then never drawn


@inner
def odds_against(i, c, d, sites, model, states):
    """Return p(x_i = 0 | rest) / p(x_i = 1 | rest) of a variable with linear log-odds."""
    h = model.bias[i]
    first = sites.first[i]
    shift = sites.rest[first] - first  # its incidences have one other variable each
    for e in range(first, sites.first[i + np.uint64(1)]):
        h += model.slope[e] * states[d, sites.variable[e + shift], c]
    return np.exp(min(max(-h, -LARGEST), LARGEST))


@inner
def conditional(i, c, d, sites, model, states, p):
    """Write the unnormalised probabilities of the states of variable i; return their sum, zero if none is possible.

    `states` is an array (draws, variables, chains), of which chain c of draw d is meant.
    """
    if model.linear[i]:
        odds = odds_against(i, c, d, sites, model, states)
        p[0], p[1] = odds, 1.0
        return 1.0 + odds
    first, card = sites.first_state[i], sites.cards[i]
    for a in range(card):
        p[a] = model.phi[first + a]
    for e in range(sites.first[i], sites.first[i + np.uint64(1)]):
        entry, own = model.at[e], sites.own[e]
        for r in range(sites.rest[e], sites.rest[e + np.uint64(1)]):
            entry += sites.stride[r] * np.uint64(states[d, sites.variable[r], c])
        for a in range(card):
            p[a] += model.psi[entry + a * own]
    top = p[0]
    for a in range(card):
        top = max(top, p[a])
    return 0.0 if top == -np.inf else exponentials(card, p, top)


@inner
def exponentials(card, p, top):
    """Turn log-weights, of which `top` is the largest, into exp(p - top); return their sum."""
    if card == 2:  # one of them is one exactly
        first, other = p[0] == top, np.exp(min(p[0], p[1]) - top)
        p[0], p[1] = 1.0 if first else other, other if first else 1.0
        return 1.0 + other
    total = 0.0
    for a in range(card):
        p[a] = np.exp(p[a] - top)
        total += p[a]
    return total


@inner
def chosen(card, p, share):
    """Return the state at which the running sum of p passes `share`; one of positive probability."""
    last, total = np.uint64(0), 0.0
    for a in range(card):
        if p[a] > 0:
            last = np.uint64(a)
            total += p[a]
            if total > share:
                break
    return last


@inner
def write_states(states, first_chain, last_chain, record):
    """Write the states (variables, chains) of some chains."""
    for i in range(np.uint64(record.shape[0])):
        for c in range(first_chain, last_chain):
            record[i, c] = states[i, c]


@inner
def draw(i, card, c, share, sites, model, states, p):
    """Draw a variable in one chain; return whether it had a possible state."""
    if model.linear[i]:
        states[0, i, c] = share * (1.0 + odds_against(i, c, np.uint64(0), sites, model, states)) < 1.0
        return True
    total = conditional(i, c, np.uint64(0), sites, model, states, p)
    if total == 0:
        return False
    states[0, i, c] = chosen(card, p, total * share)
    return True


@compiled
def sweeps_in_order(variables, sites, model, streams, states, record, sweeps, first_chain, last_chain, p):
    """Draw the listed variables one after the other, some times over; return whether all had a possible state.

    The states after each sweep are written to `record` (sweeps, variables, chains), unless it has no variables.
    """
    for s in range(sweeps):
        for v in range(np.uint64(len(variables))):
            i, of = variables[v], streams.component[v]
            number = streams.drawn[of] + s * streams.numbers[of] + streams.place[v]
            for c in range(first_chain, last_chain):
                if not draw(i, sites.cards[i], c, uniform(streams.keys[of, c], number), sites, model, states, p):
                    return False
        if record.shape[1] > 0:
            write_states(states[0], first_chain, last_chain, record[s])
    return True


@compiled
def sweeps_at_random(variables, ends, sites, model, streams, states, record, sweeps, first_chain, last_chain, p):
    """Draw variables that are chosen at random, as many as each component lists; write and return as above.

    Component k lists ``variables[ends[k]:ends[k + 1]]``. A step takes two random numbers.
    """
    one, two = np.uint64(1), np.uint64(2)
    for s in range(sweeps):
        for of in range(np.uint64(len(ends)) - one):
            begin, count = ends[of], ends[of + one] - ends[of]
            for step in range(count):
                number = streams.drawn[of] + s * streams.numbers[of] + two * step
                for c in range(first_chain, last_chain):
                    key = streams.keys[of, c]
                    i = variables[begin + min(np.uint64(uniform(key, number) * count), count - one)]
                    if not draw(i, sites.cards[i], c, uniform(key, number + one), sites, model, states, p):
                        return False
        if record.shape[1] > 0:
            write_states(states[0], first_chain, last_chain, record[s])
    return True


@compiled
def conditional_traces(variables, first, sites, model, draws, p, out):
    """Write p(x_i | rest) of the listed variables in each draw, (entries, chains, draws); return as above.

    The states of the v-th of them are the rows from ``first[v]`` on.
    """
    for v in range(np.uint64(len(variables))):
        i = variables[v]
        for d in range(np.uint64(draws.shape[0])):
            for c in range(np.uint64(draws.shape[2])):
                total = conditional(i, c, d, sites, model, draws, p)
                if total == 0:
                    return False
                for a in range(sites.cards[i]):
                    out[first[v] + a, c, d] = p[a] / total
    return True


@compiled
def factor_traces(first, slot_first, variable, stride, owner, own, cards, of_owner, conditionals, draws, out):
    """Write the conditional probabilities of factors, (entries, chains, draws), by those of one of their variables.

    Factor f has the rows from ``first[f]`` on. Given the draw of its other variables, its owner has the probabilities
    in the rows of `conditionals` from ``of_owner[f]`` on; all other entries are zero.
    """
    out[:] = 0.0
    for f in range(np.uint64(len(own))):
        for d in range(np.uint64(draws.shape[0])):
            for c in range(np.uint64(draws.shape[2])):
                entry = first[f]
                for j in range(slot_first[f], slot_first[f + np.uint64(1)]):
                    if variable[j] != owner[f]:
                        entry += stride[j] * np.uint64(draws[d, variable[j], c])
                for a in range(cards[f]):
                    out[entry + a * own[f], c, d] = conditionals[of_owner[f] + a, c, d]


@compiled
def add_conditionals(begin, end, owners, sites, model, states, p, sums):
    """Add the probabilities of listed variables in states (sweeps, variables, chains) to sums (rows, chains).

    Return whether all of them had a possible state.
    """
    one = np.uint64(1)
    for v in range(begin, end):
        i, row = owners.variable[v], owners.row[v]
        for d in range(np.uint64(states.shape[0])):
            for c in range(np.uint64(states.shape[2])):
                norm = conditional(i, c, d, sites, model, states, p)
                if norm == 0:
                    return False
                for a in range(sites.cards[i]):
                    p[a] /= norm
                    sums[row + a, c] += p[a]
                for f in range(owners.first[v], owners.first[v + one]):
                    entry = owners.base[f]
                    for r in range(owners.rest[f], owners.rest[f + one]):
                        entry += owners.stride[r] * np.uint64(states[d, owners.other[r], c])
                    for a in range(sites.cards[i]):
                        sums[entry + a * owners.own[f], c] += p[a]
    return True
