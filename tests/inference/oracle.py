"""Plain, slow references at 60 digits: message passing with counting numbers, and mean field.

Nothing is shared with the library but the potentials. Values are linear numbers of unbounded exponent, so that nothing
underflows and no logarithm is needed to keep them apart; derivatives are central differences with a step of 1e-20,
second ones with 1e-15, whose errors vanish at this precision.
"""

from itertools import product

import numpy as np
from mpmath import exp, log, mp, mpf

mp.dps = 60
STEP, STEP_2 = mpf(10) ** -20, mpf(10) ** -15


class Model:
    """The tables of a model as dictionaries from states to numbers; unary tables and evidence go to the variables."""

    def __init__(self, potentials, moves=()):
        """Take log tables, each plus the sum of `moves`: pairs (step, one array for each factor)."""
        self.cards, self.scopes = potentials.graph.cards.tolist(), list(potentials.graph.scopes)
        self.logs = [
            {x: _entry(t, [(s, v[a]) for s, v in moves], x) for x in product(*map(range, t.shape))}
            for a, t in enumerate(potentials.log_tables)
        ]
        self.links = [a for a, scope in enumerate(self.scopes) if len(scope) >= 2]
        self.constant = sum(self.logs[a][()] for a, scope in enumerate(self.scopes) if not scope)
        self.own = [
            [
                None if potentials.evidence.get(i, k) != k else _sum([self.logs[a][(k,)] for a in self._unaries(i)])
                for k in range(card)
            ]
            for i, card in enumerate(self.cards)
        ]
        self.at = [[a for a in self.links if i in self.scopes[a]] for i in range(len(self.cards))]

    def _unaries(self, i):
        return [a for a, scope in enumerate(self.scopes) if scope == (i,)]


def _entry(table, moves, x):
    if table[x] == -np.inf:
        return None
    return mpf(float(table[x])) + sum(step * mpf(float(v[x])) for step, v in moves)


def _sum(logs):
    return None if any(v is None for v in logs) else sum(logs, mpf(0))


def _exp(value):
    return mpf(0) if value is None else exp(value)


def _power(value, exponent):
    return value if value == 0 else value**exponent


def _normalised(values):
    total = sum(values)
    return [v / total for v in values] if total else values, total


def message_passing(model, counting, iterations, damping=0.0, sequential=False):
    """Run so many iterations. Returns log Z, the beliefs of variables and those of factors (dictionaries)."""
    c = {a: mpf(float(counting[a])) for a in model.links}
    phi = [[_exp(v) for v in own] for own in model.own]
    psi = {a: {x: _exp(None if v is None else v / c[a]) for x, v in model.logs[a].items()} for a in model.links}
    m = {(a, i): [mpf(1) / model.cards[i]] * model.cards[i] for a in model.links for i in model.scopes[a]}
    for _ in range(iterations):
        if sequential:
            for a in model.links:
                m |= _damped(m, _to_variables(model, psi, a, _all_to_link(model, c, phi, m, a)), damping)
        else:
            sent = {a: _all_to_link(model, c, phi, m, a) for a in model.links}
            for a in model.links:
                m |= _damped(m, _to_variables(model, psi, a, sent[a]), damping)
    return _read_out(model, c, phi, psi, m)


def _to_link(model, c, phi, m, i, a):
    """The unnormalised message of variable i to link a."""
    out = []
    for k in range(model.cards[i]):
        value = phi[i][k]
        for b in model.at[i]:
            exponent = c[b] - (1 if b == a else 0)
            if exponent != 0:
                value *= _power(m[b, i][k], exponent)
        out.append(value)
    return out


def _all_to_link(model, c, phi, m, a):
    return {i: _normalised(_to_link(model, c, phi, m, i, a))[0] for i in model.scopes[a]}


def _to_variables(model, psi, a, n):
    out = {(a, i): [mpf(0)] * model.cards[i] for i in model.scopes[a]}
    for x, value in psi[a].items():
        for j, i in enumerate(model.scopes[a]):
            term = value
            for k, other in enumerate(model.scopes[a]):
                if k != j:
                    term *= n[other][x[k]]
            out[a, i][x[j]] += term
    return {key: _normalised(row)[0] for key, row in out.items()}


def _damped(m, new, damping):
    if damping == 0:
        return new
    d = mpf(float(damping))
    mixed = {k: [_power(o, d) * _power(v, 1 - d) for o, v in zip(m[k], row, strict=True)] for k, row in new.items()}
    return {key: _normalised(row)[0] for key, row in mixed.items()}


def _read_out(model, c, phi, psi, m):
    log_z, variables, factors = model.constant + mpf(0), [], {}
    for i in range(len(model.cards)):
        belief, total = _normalised(_to_link(model, c, phi, m, i, None))
        variables.append(belief)
        log_z += (1 - sum(c[a] for a in model.at[i])) * log(total)
    for a in model.links:
        n = {i: _to_link(model, c, phi, m, i, a) for i in model.scopes[a]}  # not normalised, so Z_a is Z_a prod Z_ia
        rows = dict(psi[a])
        for x in rows:
            for k, i in enumerate(model.scopes[a]):
                rows[x] *= n[i][x[k]]
        total = sum(rows.values())
        factors[a] = {x: value / total for x, value in rows.items()}
        log_z += c[a] * log(total)
    return log_z, variables, _with_small_factors(model, variables, factors)


def _with_small_factors(model, variables, factors):
    for a, scope in enumerate(model.scopes):
        if len(scope) == 1:
            factors[a] = {(k,): v for k, v in enumerate(variables[scope[0]])}
        elif not scope:
            factors[a] = {(): mpf(1)}
    return factors


def mean_field(model, iterations):
    """Run so many sweeps of coordinate ascent from uniform beliefs; no hard zeros. Returns the same three."""
    q = [[mpf(1) / card] * card for card in model.cards]
    for _ in range(iterations):
        for i in range(len(q)):
            t = list(model.own[i])
            for a in model.at[i]:
                for x, value in model.logs[a].items():
                    t[x[model.scopes[a].index(i)]] += value * _others(model, a, x, q, i)
            q[i] = _normalised([exp(v) for v in t])[0]
    log_z = model.constant + mpf(0)
    for i, own in enumerate(model.own):
        log_z += sum(p * (v - log(p)) for p, v in zip(q[i], own, strict=True))
    factors = {}
    for a in model.links:
        factors[a] = {x: _others(model, a, x, q, None) for x in model.logs[a]}
        log_z += sum(factors[a][x] * value for x, value in model.logs[a].items())
    return log_z, q, _with_small_factors(model, q, factors)


def _others(model, a, x, q, i):
    weight = mpf(1)
    for k, j in enumerate(model.scopes[a]):
        if j != i:
            weight *= q[j][x[k]]
    return weight


def loss(outcome, z, variables, factors):
    """A linear function of log Z and the beliefs."""
    log_z, own, of_factors = outcome
    total = mpf(float(z)) * log_z
    for weights, belief in zip(variables, own, strict=True):
        total += sum(mpf(float(w)) * b for w, b in zip(weights, belief, strict=True))
    for a, weights in enumerate(factors):
        total += sum(mpf(float(weights[x])) * b for x, b in of_factors[a].items())
    return total


def derivative(potentials, run, value, direction):
    """The derivative of value(run(model)) along a direction, one array for each factor."""
    up, down = (value(run(Model(potentials, [(s, direction)]))) for s in (STEP, -STEP))
    return float((up - down) / (2 * STEP))


def second_derivative(potentials, run, value, one, two):
    """The second derivative along two directions."""
    total = mpf(0)
    for s, t in product((1, -1), repeat=2):
        total += s * t * value(run(Model(potentials, [(s * STEP_2, one), (t * STEP_2, two)])))
    return float(total / (4 * STEP_2**2))
