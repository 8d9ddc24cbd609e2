"""Norm-product message passing: the minimum of a convex free energy whose weights do not depend on configurations.

With c_i = w_i + sum_{a at i} w_a, and all values as logarithms, for one variable i after the other

    mu_ai(x_i)  =  w_a log sum_{x_a with x_i} exp((phi_a + sum_{j != i} n_ja) / w_a)
    t_i         =  phi_i + sum_a mu_ai,        b_i  =  exp(t_i / c_i) / sum,        n_ia  =  w_a t_i / c_i - mu_ai

(Heskes 2006; Hazan and Shashua 2010): block-coordinate ascent on the dual, which converges for positive weights.
"""

from __future__ import annotations

import numpy as np

from isinglass.runtime.compilation.jit import compiled, inner


@inner
def incoming(slot, link, blocks, states, wq, vq, n, tops, sums, state):
    """Write mu_ai, for the slot of a variable, to ``sums``."""
    first, entry = blocks.first_slot[link], blocks.first_entry[link]
    arity, count = blocks.first_slot[link + 1] - first, blocks.first_entry[link + 1] - entry
    weight = wq[entry]
    card = blocks.cards[blocks.slot_variable[slot]]
    for a in range(card):
        tops[a], sums[a] = -np.inf, 0.0
    for again in range(2):
        for k in range(count):
            value = -vq[entry + k]
            for j in range(arity):
                s = first + j
                x = states[blocks.first_digit[link] + k * arity + j]
                if s == slot:
                    state[0] = x
                else:
                    value += n[blocks.slot_first[s] + x]
            x, value = state[0], value / weight
            if again:
                sums[x] += np.exp(value - tops[x])
            else:
                tops[x] = max(tops[x], value)
    for a in range(card):
        sums[a] = weight * (tops[a] + np.log(sums[a]))


@compiled
def sweep(blocks, states, at, links, slots, c, backwards, wp, wq, vp, vq, n, p, mu, tops, sums, total, state):
    """Update the variables of component c, forwards or backwards; return the largest change of a belief.

    The links of variable i are ``links[at[i]:at[i + 1]]``, in which it has the `slots`.
    """
    change = 0.0
    first, last = blocks.first_variable[c], blocks.first_variable[c + 1]
    for turn in range(last - first):
        i = last - 1 - turn if backwards else first + turn
        card, state_of = blocks.cards[i], blocks.first_state[i]
        whole = wp[state_of]
        for a in range(card):
            total[a] = -vp[state_of + a]
        for e in range(at[i], at[i + 1]):
            incoming(slots[e], links[e], blocks, states, wq, vq, n, tops, sums, state)
            whole += wq[blocks.first_entry[links[e]]]
            for a in range(card):
                mu[blocks.slot_first[slots[e]] + a] = sums[a]
                total[a] += sums[a]
        top, z = total[0], 0.0
        for a in range(1, card):
            top = max(top, total[a])
        for a in range(card):
            total[a] -= top
            tops[a] = np.exp(total[a] / whole)
            z += tops[a]
        for a in range(card):
            change = max(change, abs(tops[a] / z - p[state_of + a]))
            p[state_of + a] = tops[a] / z
        for e in range(at[i], at[i + 1]):
            weight, place = wq[blocks.first_entry[links[e]]], blocks.slot_first[slots[e]]
            for a in range(card):
                n[place + a] = weight * total[a] / whole - mu[place + a]
    return change


@compiled
def link_beliefs(blocks, states, c, wq, vq, n, q):
    """Write the beliefs of links, in proportion to exp((phi_a + sum_i n_ia) / w_a)."""
    for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
        first, entry = blocks.first_slot[link], blocks.first_entry[link]
        arity, count = blocks.first_slot[link + 1] - first, blocks.first_entry[link + 1] - entry
        top, z = -np.inf, 0.0
        for k in range(count):
            value = -vq[entry + k]
            for j in range(arity):
                value += n[blocks.slot_first[first + j] + states[blocks.first_digit[link] + k * arity + j]]
            q[entry + k] = value / wq[entry]
            top = max(top, q[entry + k])
        for k in range(count):
            q[entry + k] = np.exp(q[entry + k] - top)
            z += q[entry + k]
        for k in range(count):
            q[entry + k] /= z
