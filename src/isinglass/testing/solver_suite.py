"""The conformance suite of solvers for most probable assignments, checked against brute force.

A test class inherits it and supplies one method::

    class TestTRWS(SolverSuite):
        def solver(self):
            return ig.TRWS()

The suite draws models that the solver's facts accept and checks its certificate: the score is that of the states, the
bound is at least the score of the best assignment, and what is called optimal is. It checks evidence, hard zeros,
several components, isolated variables, a time limit of zero, Ctrl-C, impossible evidence, and that a seed decides
everything.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isinglass.errors import ConvergenceWarning, ImpossibleEvidenceError, InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.api import map_assignment, n_best
from isinglass.inference.assignment import Assignment
from isinglass.inference.brute import Brute
from isinglass.inference.map.search import ROUNDING, scale_of
from isinglass.inference.map.solver import SOLVERS, Solver, SolverFacts, make
from isinglass.potentials import Potentials, potentials_union
from isinglass.testing.strategies import factor_graphs, potentials, tried
from isinglass.testing.suite import with_error
from isinglass.typing import FloatArray

checked = tried(40)


def walk_solvers(suites: list[type[SolverSuite]]) -> set[str]:
    """Return the names of registered solvers that none of the suites tests."""
    return set(SOLVERS) - {type(suite().solver()).name for suite in suites}


@st.composite
def accepted(draw: st.DrawFn, facts: SolverFacts, max_variables: int = 6) -> Potentials:
    """Draw a model that a solver with these facts accepts."""
    arity = 4 if facts.accepts == "any" else 2
    card = 4 if facts.accepts in ("any", "pairwise") else 2
    p = draw(potentials(factor_graphs(max_variables=max_variables, max_card=card, max_arity=arity)))
    return submodular(p) if facts.accepts == "submodular" else p


def submodular(p: Potentials) -> Potentials:
    """Raise the diagonals of the pairwise tables of a binary model until they are submodular.

    Examples
    --------
    >>> p = Potentials(FactorGraph([2, 2], [(0, 1)]), [[[0.0, 1.0], [1.0, 0.0]]])
    >>> submodular(p).log_tables[0].tolist()
    [[2.0, 1.0], [1.0, 0.0]]
    """
    return Potentials(p.graph, [_submodular(np.array(t)) for t in p.log_tables], p.evidence)


def _submodular(table: FloatArray) -> FloatArray:
    if table.shape == (2, 2):
        diagonal = np.diag_indices(2)
        table[diagonal] = np.where(table[diagonal] > -np.inf, table[diagonal], 0.0)
        table[0, 0] += max(table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1], 0.0)
    return table


class SolverSuite(ABC):
    """Inherit, supply `solver`, and every check runs."""

    @abstractmethod
    def solver(self) -> Solver:
        """Return the solver."""

    @property
    def facts(self) -> SolverFacts:
        """The facts of the solver."""
        return self.solver().facts

    def solve(self, p: Potentials, **options: float) -> Assignment:
        """Solve; a warning is no failure."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return map_assignment(p, make(self.solver(), dict(options)))

    def check(self, p: Potentials, found: Assignment) -> None:
        """Compare a certificate with brute force."""
        best = Brute().maximise(p)[0].score
        slack = 4 * ROUNDING * scale_of(p)
        assert found.states.shape == (p.graph.n_variables,)
        assert_allclose(p.log_score(found.states), found.score, atol=slack, rtol=0)
        assert found.bound >= best - slack
        assert found.bound >= found.score - slack
        assert found.score <= best + slack
        if found.optimal:
            assert found.score >= best - slack
            assert found.bound <= best + slack
        for i, state in p.evidence.items():
            assert found.states[i] == state
        assert found.info is not None
        assert all(bound >= best - slack for bound in found.info.bounds)

    @checked
    @given(data=st.data())
    def test_certificate(self, data: st.DataObject) -> None:
        """Score, bound and optimality are true; optimality is proved where that is declared."""
        p = data.draw(accepted(self.facts))
        found = self.solve(p)
        self.check(p, found)
        if self.facts.proves == "always":
            assert found.optimal
        assert self.facts.bound or found.bound == np.inf or found.optimal

    @checked
    @given(data=st.data())
    def test_components(self, data: st.DataObject) -> None:
        """Disconnected examples of a batch are solved together."""
        batch = data.draw(st.lists(accepted(self.facts, 3), min_size=2, max_size=3))
        p = potentials_union(batch)
        found = self.solve(p)
        self.check(p, found)

    @checked
    @given(data=st.data())
    def test_same_again(self, data: st.DataObject) -> None:
        """The same call gives the same answer, and leaves the potentials as they were."""
        p = data.draw(accepted(self.facts))
        before = [tables.copy() for tables in p.groups]
        one, two = self.solve(p), self.solve(p)
        assert_array_equal(one.states, two.states)
        assert (one.score, one.bound) == (two.score, two.bound)
        for a, b in zip(before, p.groups, strict=True):
            assert_array_equal(a, b)

    @checked
    @given(data=st.data())
    def test_no_time(self, data: st.DataObject) -> None:
        """Without time there is still an assignment, and the bound is true."""
        p = data.draw(accepted(self.facts))
        found = self.solve(p, seconds=0.0)
        self.check(p, found)

    @checked
    @given(data=st.data())
    def test_interrupt(self, data: st.DataObject) -> None:
        """Ctrl-C returns the best assignment so far with a true bound, or is raised if there is none."""
        p = data.draw(accepted(self.facts))
        calls = iter(range(data.draw(st.integers(0, 3))))

        def stop(stage: str, fraction: float) -> None:
            assert stage
            assert 0 <= fraction <= 1
            if next(calls, None) is None:
                raise KeyboardInterrupt

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = map_assignment(p, self.solver(), progress=stop)
            except KeyboardInterrupt:
                return
        self.check(p, found)
        if found.info is not None and found.info.stopped == "interrupted":
            assert any("interrupted" in str(w.message) for w in told)

    @checked
    @given(p=potentials(factor_graphs(max_card=2, max_arity=1), evidence=False))
    def test_impossible_evidence_is_refused(self, p: Potentials) -> None:
        """A model in which every assignment has probability zero is refused."""
        graph = p.graph
        larger = FactorGraph([*graph.cards, 2], [*graph.scopes, (graph.n_variables,)])
        q = Potentials(larger, [*p.log_tables, np.array([0.0, -np.inf])], {graph.n_variables: 1})
        with_error(ImpossibleEvidenceError, lambda: self.solve(q))

    def test_one_assignment_only(self) -> None:
        """A solver finds one assignment, and says so when asked for more."""
        p = Potentials(FactorGraph([2], [(0,)]), [[0.0, 1.0]])
        with_error(InputError, lambda: n_best(p, 2, self.solver()))
