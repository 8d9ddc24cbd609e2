"""Mean field: expectations, coordinate ascent on the lower bound, and their reverse.

With q(x) = prod_i q_i(x_i), phi_i the log potential of variable i and phi_a the log table of link a:

    t_i(x_i)  =  phi_i(x_i) + sum_{a at i} sum_{x_a with x_i} phi_a(x_a) prod_{j in a, j != i} q_j(x_j)
    q_i       =  exp(t_i) / sum exp(t_i)                                       one variable after the other
    log Z    >=  sum_i <q_i, phi_i - log q_i> + sum_a <prod q, phi_a>          monotone in every update

(Wainwright and Jordan 2008, section 5.3). If q is a product of trees instead, whose links C have beliefs of their own,

    log Z    >=  sum_i <q_i, phi_i - (1 - d_i) log q_i> + sum_{a in C} <q_a, phi_a - log q_a>
                 + sum_{a not in C} <prod q, phi_a>                            d_i: links of C at i

and t_i sums over the links not in C (structured mean field). All values are logarithms but q. A product that is
zero counts nothing, whatever it multiplies: 0 (-inf) = 0; so a state that meets a hard zero with positive probability
gets none.

Reverse, last update first: t_bar = q (q_bar - <q, q_bar>), which goes to phi_i, to the tables with the weights above,
and to the other variables' q. Hard zeros do not move.

`field` is the model, a tuple of flat arrays (`inference.mean_field.bound.Field`), with room for the t of one variable.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.messages.updates import advance
from isinglass.runtime.compilation.jit import compiled, inner

LEAST = 1e-290  # probabilities below are as good as none


@inner
def relative(value, top):
    """Return exp(value - top); zero for -inf."""
    return np.exp(value - top) if value.real > -np.inf else np.exp(top - top) * 0


@inner
def two_targets(i, field, q):
    """Return t_i of a variable of two states around which all links are pairs."""
    near, at, table = field.near, field.at, field.psi
    first = near.first_state[i]
    low, high = field.phi[first], field.phi[first + np.uint64(1)]
    for e in range(near.first[i], near.first[i + 1]):
        for b in range(near.states[e]):
            weight = q[near.place[e] + b]
            if weight.real != 0:
                entry = at[e] + b * near.step[e]
                low += weight * table[entry]
                high += weight * table[entry + near.own[e]]
    return low, high


@inner
def pair_targets(e, card, field, q):
    """Add the expectation of a link of two variables to t."""
    near, at, table, t = field.near, field.at, field.psi, field.t
    for b in range(near.states[e]):
        weight = q[near.place[e] + b]
        if weight.real != 0:
            entry = at[e] + b * near.step[e]
            for a in range(card):
                t[a] += weight * table[entry + a * near.own[e]]


@inner
def link_targets(f, slot, at, field, q):
    """Add the expectation of link f to t, for each state of one of its slots."""
    edges, table, t, digits = field.edges, field.psi, field.t, field.digits
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    digits[: last - first] = 0
    for entry in range(edges.size[f]):
        weight = q[edges.first_state[edges.slot_variable[first]]] * 0 + 1
        for j in range(first, last):
            if j != slot:
                weight *= q[edges.first_state[edges.slot_variable[j]] + digits[j - first]]
        if weight.real != 0:
            t[digits[slot - first]] += weight * table[at + entry]
        advance(first, last, edges.slot_edge, edges.start, digits, ())


@inner
def targets(i, field, q):
    """Write t_i."""
    near = field.near
    for a in range(near.cards[i]):
        field.t[a] = field.phi[near.first_state[i] + a]
    for e in range(near.first[i], near.first[i + 1]):
        if near.states[e] > 0:
            pair_targets(e, near.cards[i], field, q)
        else:
            link_targets(near.link[e], near.slot[e], np.int64(field.at[e]), field, q)


@inner
def wider(widest, one, two):
    """Return |one - two| / (one + two), if that is more than the widest so far; two zeros are not apart."""
    difference, total = abs(one - two), one + two + LEAST
    return difference / total if difference > widest * total else widest


@inner
def effect(widest):
    """Return tanh(d / 4), where `widest` is tanh(d / 2): d is how far apart two logarithms have moved."""
    return widest / (1 + np.sqrt((1 - widest) * (1 + widest)))


@inner
def update_two(i, field, q, widest):
    """Update a variable of two states; return the `widest` move apart so far, -1 if no state is possible."""
    low, high = two_targets(i, field, q)
    if max(low.real, high.real) == -np.inf:
        return -1.0
    if low.real >= high.real:
        ratio = relative(high, low)
        low = 1 / (1 + ratio)
        high = ratio * low
    else:
        ratio = relative(low, high)
        high = 1 / (1 + ratio)
        low = ratio * high
    k = field.near.first_state[i]
    widest = wider(widest, low.real * q[k + np.uint64(1)].real, high.real * q[k].real)
    q[k], q[k + np.uint64(1)] = low, high
    return widest


@inner
def update_many(i, field, q, widest):
    """Update any variable; return the `widest` move apart so far, -1 if no state is possible."""
    targets(i, field, q)
    first, card, t = field.near.first_state[i], field.near.cards[i], field.t
    top = t[0].real
    for a in range(card):
        top = max(top, t[a].real)
    if top == -np.inf:
        return -1.0
    total = q[first] * 0
    for a in range(card):
        t[a] = relative(t[a], top)
        total += t[a]
    most, least = 0.0, np.inf
    for a in range(card):
        value = t[a] / total
        ratio = (value.real + LEAST) / (q[first + a].real + LEAST)
        most, least = max(most, ratio), min(least, ratio)
        q[first + a] = value
    return wider(widest, most, least)


@compiled
def ascend(field, q, active, residual, possible):
    """Update every active variable once; a t_i of all -inf clears `possible`.

    The residual of a component is the largest tanh(d / 4), d how far apart the logarithms of two states have moved.
    """
    residual[:] = 0
    near = field.near
    for i in range(len(near.pairs)):
        c = field.edges.variable_component[i]
        if not active[c]:
            continue
        if near.pairs[i] and near.cards[i] == 2:
            widest = update_two(i, field, q, residual[c])
        else:
            widest = update_many(i, field, q, residual[c])
        if widest < 0:
            possible[c] = False
        else:
            residual[c] = widest
    for c in range(len(residual)):
        residual[c] = effect(residual[c])


@compiled
def moves_apart(before, after, first, component, residual):
    """Raise the residuals of components to those of variables whose flat beliefs change; `first` has an end, too."""
    for i in range(len(first) - 1):
        most, least = 0.0, np.inf
        for k in range(first[i], first[i + 1]):
            ratio = max(after[k].real, LEAST) / max(before[k].real, LEAST)
            most, least = max(most, ratio), min(least, ratio)
        c = component[i]
        widest = wider(0.0, most, least)
        residual[c] = max(residual[c], effect(widest))


@compiled
def expect(variables, active, field, q, target):
    """Write t_i of the given variables, in the active components, into the flat `target`."""
    near, t = field.near, field.t
    for i in variables:
        if active[field.edges.variable_component[i]]:
            targets(i, field, q)
            for a in range(near.cards[i]):
                target[near.first_state[i] + a] = t[a]
                if t[a].real == -np.inf:
                    target[near.first_state[i] + a] = -np.inf  # whatever an imaginary part has become


@compiled
def lower_bound(field, q, log_z, factors):
    """Add the bound of each component to `log_z`; write the beliefs of links not chosen, which are products.

    `factors` already holds the beliefs of the chosen links.
    """
    edges = field.edges
    for i in range(len(edges.cards)):
        for k in range(edges.first_state[i], edges.first_state[i + 1]):
            if q[k].real != 0:
                log_z[edges.variable_component[i]] += q[k] * (field.phi[k] - field.counting[i] * np.log(q[k]))
    for f in range(len(edges.size)):
        if not field.chosen[f]:
            products(f, field, q, factors)
        for entry in range(edges.size[f]):
            weight, value = factors[field.first_belief[f] + entry], field.psi[field.table[f] + entry]
            if weight.real != 0:
                log_z[edges.component[f]] += weight * (value - np.log(weight) if field.chosen[f] else value)


@compiled
def all_products(field, q, factors):
    """Give every link the product of its variables' beliefs."""
    for f in range(len(field.edges.size)):
        products(f, field, q, factors)


@inner
def products(f, field, q, out):
    """Write the product of the beliefs of link f's variables."""
    edges, digits, start = field.edges, field.digits, field.first_belief[f]
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    if last - first == 2:
        pair_products(edges.slot_variable[first], edges.slot_variable[first + 1], edges, q, out, start)
        return
    digits[: last - first] = 0
    for entry in range(edges.size[f]):
        weight = q[edges.first_state[edges.slot_variable[first]] + digits[0]]
        for j in range(first + 1, last):
            weight *= q[edges.first_state[edges.slot_variable[j]] + digits[j - first]]
        out[start + entry] = weight
        advance(first, last, edges.slot_edge, edges.start, digits, ())


@inner
def pair_products(i, j, edges, q, out, start):
    """Write the product of two variables' beliefs."""
    for a in range(edges.cards[i]):
        weight = q[edges.first_state[i] + a]
        for b in range(edges.cards[j]):
            out[start + a * edges.cards[j] + b] = weight * q[edges.first_state[j] + b]


@inner
def product_back(f, skip, at, field, q, q_bar, table_bar):
    """Reverse <t, products of q times the log table> over the slots but `skip` (none if it is -1).

    ``t`` weighs an entry by the state of the slot `skip`, or, without one, is a single number. An empty `table_bar`
    is left alone.
    """
    edges, digits = field.edges, field.digits
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    digits[: last - first] = 0
    for entry in range(edges.size[f]):
        bar = field.t[digits[skip - first]] if skip >= 0 else field.t[0]
        value = field.psi[at + entry]
        if value.real > -np.inf and bar != 0:
            weight = bar
            for j in range(first, last):
                if j != skip:
                    weight *= q[edges.first_state[edges.slot_variable[j]] + digits[j - first]]
            if len(table_bar) > 0:
                table_bar[at + entry] += weight
            one_out(first, last, skip, edges, q, bar * value, q_bar, digits)
        advance(first, last, edges.slot_edge, edges.start, digits, ())


@inner
def one_out(first, last, skip, edges, q, bar, q_bar, digits):
    """Add to each slot's q_bar `bar` times the product of the other slots' q (without `skip`)."""
    for j in range(first, last):
        if j == skip:
            continue
        weight = bar
        for other in range(first, last):
            if other != j and other != skip:
                weight *= q[edges.first_state[edges.slot_variable[other]] + digits[other - first]]
        q_bar[edges.first_state[edges.slot_variable[j]] + digits[j - first]] += weight


@inner
def pair_back(e, card, field, q, q_bar, table_bar):
    """Reverse `pair_targets`."""
    near, at = field.near, field.at
    for a in range(card):
        bar = field.t[a]
        if bar == 0:
            continue
        for b in range(near.states[e]):
            entry = a * near.own[e] + b * near.step[e]
            value = field.psi[at[e] + entry]
            if value.real > -np.inf:
                table_bar[at[e] + entry] += bar * q[near.place[e] + b]
                q_bar[near.place[e] + b] += bar * value


@inner
def targets_back(i, field, q, q_bar, phi_bar, table_bar):
    """Reverse `targets`, given the derivatives by t_i in t."""
    near = field.near
    for a in range(near.cards[i]):
        phi_bar[near.first_state[i] + a] += field.t[a]
    for e in range(near.first[i], near.first[i + 1]):
        if near.states[e] > 0:
            pair_back(e, near.cards[i], field, q, q_bar, table_bar)
        else:
            product_back(near.link[e], near.slot[e], np.int64(field.at[e]), field, q, q_bar, table_bar)


@compiled
def expect_back(variables, active, field, q, target_bar, q_bar, phi_bar, table_bar):
    """Reverse `expect`."""
    near = field.near
    for i in variables:
        if active[field.edges.variable_component[i]]:
            for a in range(near.cards[i]):
                field.t[a] = target_bar[near.first_state[i] + a]
            targets_back(i, field, q, q_bar, phi_bar, table_bar)


@compiled
def read_out_back(field, q, factors, z_bar, factors_bar, q_bar, phi_bar, table_bar):
    """Reverse `lower_bound`; q_bar and factors_bar already hold the derivatives by the beliefs, and get the rest."""
    edges, digits = field.edges, field.digits
    for i in range(len(edges.cards)):
        z = z_bar[edges.variable_component[i]]
        for k in range(edges.first_state[i], edges.first_state[i + 1]):
            phi_bar[k] += z * q[k]
            if q[k].real != 0:
                q_bar[k] += z * (field.phi[k] - field.counting[i] * (np.log(q[k]) + 1))
    for f in range(len(edges.size)):
        z, table, belief = z_bar[edges.component[f]], field.table[f], field.first_belief[f]
        if field.chosen[f]:
            for entry in range(edges.size[f]):
                weight = factors[belief + entry]
                if weight.real != 0:
                    table_bar[table + entry] += z * weight
                    factors_bar[belief + entry] += z * (field.psi[table + entry] - np.log(weight) - 1)
            continue
        field.t[0] = z
        product_back(f, -1, table, field, q, q_bar, table_bar)
        first, last = edges.first_slot[f], edges.first_slot[f + 1]
        digits[: last - first] = 0
        for entry in range(edges.size[f]):
            one_out(first, last, -1, edges, q, factors_bar[belief + entry], q_bar, digits)
            advance(first, last, edges.slot_edge, edges.start, digits, ())


@inner
def normalisation_back(first, card, q, q_bar, t):
    """Turn the derivative by the belief of a variable into that by its unnormalised logarithms, t; q_bar is used up."""
    mean = q[first] * q_bar[first]
    for a in range(1, np.int64(card)):
        mean += q[first + np.uint64(a)] * q_bar[first + np.uint64(a)]
    for a in range(card):
        t[a] = q[first + a] * (q_bar[first + a] - mean)
        q_bar[first + a] = 0


@compiled
def ascend_back(field, q, before, active, q_bar, phi_bar, table_bar):
    """Reverse one sweep of `ascend`; q is brought back to what it was `before`."""
    near = field.near
    for j in range(len(near.pairs)):
        i = len(near.pairs) - 1 - j
        if not active[field.edges.variable_component[i]]:
            continue
        first, card = near.first_state[i], near.cards[i]
        normalisation_back(first, card, q, q_bar, field.t)
        for a in range(card):
            q[first + a] = before[first + a]
        targets_back(i, field, q, q_bar, phi_bar, table_bar)


@inner
def pair_pulls(e, card, field, q_bar):
    """Reverse `pair_targets` as far as the other variable's belief is concerned."""
    near = field.near
    for b in range(near.states[e]):
        total = q_bar[near.place[e] + b]
        entry = field.at[e] + b * near.step[e]
        for a in range(card):
            value = field.psi[entry + a * near.own[e]]
            if value.real > -np.inf:
                total += field.t[a] * value
        q_bar[near.place[e] + b] = total


@compiled
def ascend_back_at_rest(field, q, active, q_bar, target_bar, no_table):
    """Reverse one sweep of `ascend` that changes nothing; add the derivatives by t_i to `target_bar`.

    What they mean for the potentials and tables, which is the same in every such sweep, `expect_back` finds at the end.
    """
    near = field.near
    for j in range(len(near.pairs)):
        i = len(near.pairs) - 1 - j
        if not active[field.edges.variable_component[i]]:
            continue
        first, card = near.first_state[i], near.cards[i]
        normalisation_back(first, card, q, q_bar, field.t)
        for a in range(card):
            target_bar[first + a] += field.t[a]
        for e in range(near.first[i], near.first[i + 1]):
            if near.states[e] > 0:
                pair_pulls(e, card, field, q_bar)
            else:
                product_back(near.link[e], near.slot[e], np.int64(field.at[e]), field, q, q_bar, no_table)
