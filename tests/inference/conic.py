"""The minimum of a free energy by means that share nothing with the library: a conic solver, and many digits.

    minimise  w'(b log b) + v'b    subject to    A b = d

with b all beliefs of variables, then all of links. Rows of A: the sums of variables and of links, and, for each slot of
a link and each state but the first, the link's marginal minus the variable's belief (those of the first states follow),
so that A has full rank.

Clarabel with exponential cones stops when its residuals and the gap to the dual are below a tolerance. The energy is
flat at its minimum: a gap of 1e-9 leaves beliefs wrong by up to 1e-5. With 1e-12, which it reaches with more refinement
of its linear systems and steps that are not too long, they were seen to be right to 1e-8 or better. `in_digits` goes
on from there.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

import isinglass as ig

FRACTIONS = (0.9, 0.8, 0.7, 0.6, 0.99)  # of the longest step: tried until the tolerance is reached
TOLERANCE = 1e-12
SETTINGS = {
    "tol_gap_abs": TOLERANCE, "tol_gap_rel": TOLERANCE, "tol_feas": TOLERANCE, "iterative_refinement_reltol": 1e-15,
    "iterative_refinement_abstol": 1e-15, "iterative_refinement_max_iter": 50, "iterative_refinement_stop_ratio": 1.01,
}  # fmt: skip


def solved(problem):
    """Solve a problem of CVXPY to the tolerance, or fail."""
    import cvxpy as cp

    for fraction in FRACTIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it may be inaccurate: its status says so too
            problem.solve(solver=cp.CLARABEL, max_step_fraction=fraction, **SETTINGS)
        if problem.status == cp.OPTIMAL:
            return
    raise AssertionError(problem.status)


@dataclass
class Programme:
    """The convex programme in dense arrays."""

    w: np.ndarray
    v: np.ndarray
    matrix: np.ndarray
    right: np.ndarray
    constant: float

    @classmethod
    def of(cls, p, weights):
        graph, tables = p.graph, p.log_tables
        own, first = np.zeros(int(graph.cards.sum())), np.concatenate([[0], np.cumsum(graph.cards)])
        for a, scope in enumerate(graph.scopes):
            if len(scope) == 1:
                own[first[scope[0]] : first[scope[0] + 1]] -= tables[a]
        links = [a for a, scope in enumerate(graph.scopes) if len(scope) > 1]
        at = np.cumsum([len(own), *(tables[a].size for a in links)])
        of_states, of_factors = _weights(graph, weights)
        rows, right = [], []
        for i in range(graph.n_variables):
            rows.append(_row(at[-1], np.arange(first[i], first[i + 1])))
            right.append(1.0)
        for a, start in zip(links, at[:-1], strict=True):
            rows.append(_row(at[-1], start + np.arange(tables[a].size)))
            right.append(1.0)
            for slot, i in enumerate(graph.scopes[a]):
                state = np.indices(tables[a].shape)[slot].ravel()
                for x in range(1, graph.cards[i]):
                    rows.append(_row(at[-1], start + np.flatnonzero(state == x), first[i] + x))
                    right.append(0.0)
        return cls(
            np.concatenate([of_states, *(of_factors[a].ravel() for a in links)]),
            np.concatenate([own, *(-tables[a].ravel() for a in links)]),
            np.array(rows), np.array(right),
            sum(float(tables[a]) for a, scope in enumerate(graph.scopes) if not scope),
        )  # fmt: skip

    def minimum(self):
        """Return the beliefs as the conic solver finds them."""
        cp = pytest.importorskip("cvxpy", reason="the convex reference needs CVXPY with Clarabel")
        b = cp.Variable(len(self.v))
        solved(cp.Problem(cp.Maximize(self.w @ cp.entr(b) - self.v @ b), [self.matrix @ b == self.right]))
        return b.value

    def in_digits(self, b, digits=40):
        """Go on from beliefs by Newton's method in many digits, until no logarithm changes by 1e-25.

        A belief that is to shrink does so by its logarithm; digits are to be twice those of the smallest, and more.
        """
        from mpmath import exp, log, mp

        with mp.workdps(digits):
            number, falling = np.frompyfunc(lambda x: mp.mpf(float(x)), 1, 1), np.frompyfunc(exp, 1, 1)
            b, w, v = map(number, (np.maximum(b, 1e-300), self.w, self.v))
            for _ in range(200):
                gradient = w * (np.frompyfunc(log, 1, 1)(b) + 1) + v
                rho = self._step(b, gradient, self.right - self._times(b), digits) / b
                b = np.where(rho >= 0, b * (1 + rho), b * falling(np.maximum(rho, -20)))
                if max(abs(rho)) < mp.mpf(10) ** -25:
                    return b
        raise AssertionError("Newton's method in many digits does not converge")

    def derivative(self, b, bars, digits=40):
        """Return m, the derivative by costs of a loss with derivatives `bars` by the beliefs b at the minimum."""
        return self._step(b, bars, np.zeros(len(self.right)), digits).astype(float)

    def _step(self, b, gradient, right, digits):
        """Minimise gradient'd + d'Hd / 2, H = w / b, subject to A d = right."""
        from mpmath import matrix, mp

        with mp.workdps(digits):
            share, whole = b / self.w, np.full((len(self.matrix),) * 2, mp.mpf(0))
            row, column, sign = self._entries
            one, two, both = self._pairs
            np.add.at(whole, (row[one], row[two]), both * share[column[one]])
            least = -right - self._times(share * gradient)
            y = np.array(mp.lu_solve(matrix(whole.tolist()), matrix(least.tolist())).T.tolist()[0])
            turned = np.full(len(b), mp.mpf(0))
            np.add.at(turned, column, sign * y[row])
            return -share * (gradient + turned)

    def _times(self, values):
        """Multiply by the matrix, of which few entries are not zero."""
        row, column, sign = self._entries
        found = np.full(len(self.matrix), 0 * values[0])
        np.add.at(found, row, sign * values[column])
        return found

    @cached_property
    def _entries(self):
        """The rows, columns and values of the entries of the matrix that are not zero."""
        row, column = np.nonzero(self.matrix)
        return row, column, self.matrix[row, column].astype(int).astype(object)

    @cached_property
    def _pairs(self):
        """All pairs of such entries of one column, and their products."""
        _, column, sign = self._entries
        one, two = np.nonzero(column[:, None] == column[None])
        return one, two, sign[one] * sign[two]

    def log_z(self, b):
        """Return minus the energy."""
        b = np.maximum(b, 1e-300)  # a conic solution may be below zero by the tolerance
        return self.constant - self.w @ (b * np.log(b)) - self.v @ b

    def kkt_residual(self, b):
        """Return the largest change of a belief that the nearest multipliers ask for, or violation of a constraint.

        Multipliers minimise |(g + A'y) sqrt(b / w)|, g = w (log b + 1) + v, and imply beliefs b exp(-(g + A'y) / w).
        """
        root, gradient = np.sqrt(b / self.w), self.w * (np.log(b) + 1) + self.v
        y = np.linalg.lstsq((self.matrix * root).T, -gradient * root, rcond=None)[0]
        change = b * np.expm1(-(gradient + self.matrix.T @ y) / self.w)
        return max(np.abs(change).max(), np.abs(self.matrix @ b - self.right).max())


def beliefs_of(r):
    """Return the beliefs of a result in the order of a programme."""
    scopes = r.potentials.graph.scopes
    return np.concatenate([r.variables.flat, *(r.factor(a).ravel() for a, s in enumerate(scopes) if len(s) > 1)])


def random_problem(seed, low=0.1, scale=1.5):
    """Draw 3 to 6 variables of 2 to 4 states, factors of one to four of them, and weights, log-uniform in [low, 1].

    Weights are those of variables and factors for even seeds, of states and configurations for odd ones.
    """
    rng = np.random.default_rng([5, seed])
    size = int(rng.integers(3, 7))
    cards, arities = rng.integers(2, 5, size), rng.choice([1, 2, 2, 2, 3, 4], rng.integers(size, 2 * size))
    scopes = [tuple(rng.choice(size, min(r, size), replace=False).tolist()) for r in arities.tolist()]
    graph = ig.FactorGraph(cards, scopes)
    p = ig.Potentials(graph, [rng.normal(0, scale, cards[list(s)]) for s in scopes])

    def draw(*shape):
        return np.exp(rng.uniform(np.log(low), 0, shape))

    if seed % 2:
        return p, ig.EntropyWeights(draw(int(cards.sum())), [draw(len(g), *g.shape) for g in graph.groups])
    return p, ig.EntropyWeights(draw(size), draw(graph.n_factors))


def _row(length, ones, minus=None):
    row = np.zeros(length)
    row[ones] = 1
    if minus is not None:
        row[minus] = -1
    return row


def _weights(graph, weights):
    """Return the weights of states, and those of each factor's configurations."""
    by_state, by_entry = weights.on(graph)
    of_factors, at = {}, 0
    for group in graph.groups:
        for a in group.factors.tolist():
            of_factors[a] = by_entry[at : at + group.table_size]
            at += group.table_size
    return by_state, of_factors
