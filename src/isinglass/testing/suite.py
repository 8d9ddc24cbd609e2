"""The conformance suite: what every inference algorithm must fulfil, checked against brute force.

A test class inherits it and supplies two methods::

    class TestExact(InferenceSuite):
        def algorithm(self):
            return ig.Exact()

        def accepts(self, potentials):
            return True

The suite reads the algorithm's declared facts and checks that they are true: exactness where it is
declared, bounds on the right side, consistent beliefs, invariance to rescaling of tables and to relabelling of
variables and states, independence of the rest of the batch, determinism, a truthful `info`, gradients by
perturbation that agree with those through the run, exact max-marginals on forests in the max semiring.

A stochastic algorithm is inferred with fixed seeds. Its beliefs are compared with enumeration by the statistical checks
of `isinglass.testing.monte_carlo`, which state their error probability. Invariance to rescaling and relabelling is not
checked, as rounding and other names change what is drawn; the other checks are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import takewhile

import numpy as np
from hypothesis import assume, currently_in_test_context, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isinglass.errors import ImpossibleEvidenceError, InputError, no_convergence_warnings
from isinglass.gradients.perturbation import perturbation
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states
from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Facts, make
from isinglass.inference.api import infer, map_assignment, n_best, sample
from isinglass.inference.brute import Brute
from isinglass.inference.result import Gradients, Info, Result
from isinglass.potentials import Potentials, potentials_union
from isinglass.testing import monte_carlo
from isinglass.testing.strategies import factor_graphs, potentials, random_potentials, tried
from isinglass.typing import FloatArray, IntArray

TOLERANCE = 1e-9
ROUNDING = 1e-10

checked = tried(60)


def walk(suites: list[type[InferenceSuite]]) -> set[str]:
    """Return the names of registered algorithms that none of the suites tests."""
    return set(ALGORITHMS) - {type(suite().algorithm()).name for suite in suites}


class InferenceSuite(ABC):
    """Inherit, supply `algorithm` and `accepts`, and every check runs."""

    @abstractmethod
    def algorithm(self) -> Algorithm:
        """Return the algorithm, with a tolerance that suffices for ``TOLERANCE``."""

    @abstractmethod
    def accepts(self, potentials: Potentials) -> bool:
        """Tell whether the algorithm promises an answer on these potentials."""

    @property
    def facts(self) -> Facts:
        """The facts of the algorithm."""
        return self.algorithm().facts

    def run(self, p: Potentials, seed: int = 0) -> Result:
        """Infer; a warning about convergence is no failure, `info` is checked instead."""
        if currently_in_test_context():
            assume(self.accepts(p))
        with no_convergence_warnings():
            return infer(p, make(self.algorithm(), {"random_state": seed} if self.facts.stochastic else {}))

    def is_exact_on(self, p: Potentials) -> bool:
        """Tell whether the declared facts promise the true answer on these potentials."""
        exact = self.facts.exact
        return exact == "always" or (exact == "forests" and p.graph.is_forest)

    @checked
    @given(p=st.one_of(potentials(), potentials(factor_graphs(forest=True))))
    def test_against_brute_force(self, p: Potentials) -> None:
        """Exact where declared; bounds on the right side elsewhere."""
        result, truth = self.run(p), Brute().run(p)
        self.check_info(result)
        if self.is_exact_on(p) and result.info.converged:
            assert result.info.bound == "exact"
            assert_allclose(result.component_log_z, truth.component_log_z, atol=TOLERANCE, rtol=TOLERANCE)
            assert_allclose(result.variables.flat, truth.variables.flat, atol=TOLERANCE)
            for mine, true in zip(result.factors, truth.factors, strict=True):
                assert_allclose(mine, true, atol=TOLERANCE)
        check_bound(result.log_z, truth.log_z, result.info)

    @checked
    @given(p=potentials())
    def test_results_are_truthful(self, p: Potentials) -> None:
        """Beliefs are distributions, `info` agrees with the facts, and joint beliefs are refused where not declared."""
        result = self.run(p)
        check_shapes(result)
        for i, state in p.evidence.items():
            assert (result.variable(i) == np.eye(p.graph.cards[i])[state]).all()
        if self.is_exact_on(p) and result.info.converged:
            check_consistent(result)
        self.check_info(result)
        if not self.facts.joints:
            with_error(InputError, lambda: result.joint(range(min(2, p.graph.n_variables))))

    def check_info(self, result: Result) -> None:
        """`info` names the algorithm, agrees with the facts, and reports possible numbers."""
        facts, info, exact = self.facts, result.info, self.is_exact_on(result.potentials)
        assert info.algorithm == self.algorithm().name
        assert info.seconds >= 0
        assert info.residual >= 0
        assert info.bound in {facts.bound, None, *(["exact"] if exact else [])}
        assert facts.log_z or np.isnan(result.component_log_z).all()
        if facts.exact == "always":
            assert info.bound == "exact"
            assert info.converged

    def test_rescaling(self) -> None:
        """Adding a constant to a log table shifts log Z by it and does not change the beliefs."""
        if not self.facts.stochastic:
            self._check_rescaling()

    @checked
    @given(p=potentials(), seed=st.integers(0, 2**31))
    def _check_rescaling(self, p: Potentials, seed: int) -> None:
        shifts = np.random.default_rng(seed).normal(0, 3, p.graph.n_factors)
        moved = Potentials(p.graph, [t + s for t, s in zip(p.log_tables, shifts, strict=True)], p.evidence)
        before, after = self.run(p), self.run(moved)
        assume(before.info.converged and after.info.converged)
        assert_allclose(after.log_z, before.log_z + shifts.sum(), atol=TOLERANCE, rtol=TOLERANCE)
        assert_allclose(after.variables.flat, before.variables.flat, atol=TOLERANCE)

    def test_relabelling(self) -> None:
        """Renumbering variables (unless it finds local optima) and states changes nothing but their numbers."""
        if not self.facts.stochastic:
            self._check_relabelling()

    @checked
    @given(p=potentials(), seed=st.integers(0, 2**31))
    def _check_relabelling(self, p: Potentials, seed: int) -> None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(p.graph.n_variables)
        if self.facts.local:
            order = np.arange(p.graph.n_variables)
        states = [rng.permutation(k) for k in p.graph.cards]
        q = relabelled(p, order, states)
        before, after = self.run(p), self.run(q)
        assume(before.info.converged and after.info.converged)
        assert_allclose(after.log_z, before.log_z, atol=TOLERANCE, rtol=TOLERANCE)
        for i in range(p.graph.n_variables):
            assert_allclose(after.variable(int(order[i]))[states[i]], before.variable(i), atol=TOLERANCE)

    @checked
    @given(batch=st.lists(potentials(factor_graphs(max_variables=4)), min_size=2, max_size=4))
    def test_batch_independence(self, batch: list[Potentials]) -> None:
        """The result of an example is the same alone and in any batch; with random numbers, that of the first one."""
        for p in batch:
            assume(self.accepts(p))
        together = self.run(potentials_union(batch))
        variables = factors = 0
        for c, p in enumerate(batch[:1] if self.facts.stochastic else batch):
            alone = self.run(p)
            check_same(alone.component_log_z, together.component_log_z[c : c + 1])
            for i in range(p.graph.n_variables):
                check_same(alone.variable(i), together.variable(variables + i))
            for a in range(p.graph.n_factors):
                check_same(alone.factor(a), together.factor(factors + a))
            variables, factors = variables + p.graph.n_variables, factors + p.graph.n_factors

    @checked
    @given(p=potentials())
    def test_determinism_and_purity(self, p: Potentials) -> None:
        """The same call gives the same bits, and does not change its input."""
        kept = [t.copy() for t in p.groups]
        one, two = self.run(p), self.run(p)
        check_shapes(one)
        self.check_info(one)
        assert_array_equal(one.component_log_z, two.component_log_z)
        assert_array_equal(one.variables.flat, two.variables.flat)
        for before, now in zip(kept, p.groups, strict=True):
            assert_array_equal(before, now)

    def test_estimates(self) -> None:
        """Beliefs and log Z of a stochastic algorithm are right, with the errors that it reports; seeds matter."""
        if not self.facts.stochastic:
            return
        models = list(filter(self.accepts, monte_carlo.models()))
        beliefs: list[monte_carlo.Estimates] = []
        log_z: list[monte_carlo.Estimates] = []
        if not self.facts.log_z and models:  # with it each is inferred alone: the error of log Z is that of the batch
            results, truth = self._replicates(potentials_union(models))
            beliefs = monte_carlo.belief_estimates(results, truth) if results else []
        if not beliefs:  # the batch did not converge, but some of the models may
            for results, truth in filter(lambda found: found[0], map(self._replicates, models)):
                beliefs += monte_carlo.belief_estimates(results, truth)
                log_z += monte_carlo.log_z_estimates(results, truth) if self.facts.log_z else []
        assert beliefs, "the algorithm converges on none of the models that it accepts"
        varied = [np.ptp(found.values, axis=0).any() for found in beliefs]
        assert any(varied), "random_state changes nothing"  # it may be so for a model on which the estimate is exact
        for what, each in (("beliefs", beliefs), ("log Z", log_z)):
            for number, found in enumerate(each):
                found.check(f"{what} of model {number} of those that converge")

    def _replicates(self, p: Potentials) -> tuple[list[Result], Result]:
        """Infer with all seeds; return the results, or none if some have not converged, and the truth."""
        runs = (self.run(p, seed) for seed in range(monte_carlo.REPLICATES))
        results = list(takewhile(lambda result: result.info.converged, runs))
        return results if len(results) == monte_carlo.REPLICATES else [], Brute().run(p)

    def test_sample_frequencies(self) -> None:
        """Samples have the frequencies of the distribution, of variables and factors; all models are one batch."""
        models = list(filter(self.accepts, monte_carlo.models()))
        if not (self.facts.samples and models):
            return
        batch, first = potentials_union(models), 0
        draws = [sample(batch, 300, self.algorithm(), random_state=seed) for seed in range(monte_carlo.REPLICATES)]
        for number, p in enumerate(models):
            mine = slice(first, first + p.graph.n_variables)
            values = np.array([monte_carlo.frequencies(p, some[:, mine]) for some in draws])
            truth = monte_carlo.flat_beliefs(Brute().run(p))
            monte_carlo.Estimates(values, None, truth).check(f"model {number}: samples")
            first = mine.stop

    @checked
    @given(p=potentials(evidence=False))
    def test_impossible_evidence_is_refused(self, p: Potentials) -> None:
        """Every algorithm refuses a model in which all assignments have probability zero."""
        graph = p.graph
        larger = FactorGraph([*graph.cards, 2], [*graph.scopes, (graph.n_variables,)])
        q = Potentials(larger, [*p.log_tables, np.array([0.0, -np.inf])], {graph.n_variables: 1})
        assume(self.accepts(q))
        with_error(ImpossibleEvidenceError, lambda: infer(q, self.algorithm()))

    @checked
    @given(p=potentials(), n=st.integers(1, 12))
    def test_maximisation(self, p: Potentials, n: int) -> None:
        """Where declared: the best assignments, as sorting all of them gives."""
        algorithm = self.algorithm()
        assume(self.accepts(p))
        if not algorithm.facts.maximises:
            with_error(InputError, lambda: map_assignment(p, algorithm))
            return
        n = n if algorithm.facts.maximises == "many" else 1
        found, truth = n_best(p, n, algorithm), Brute().maximise(p, n)
        assert_allclose(p.log_score([m.states for m in found]), [m.score for m in found], atol=ROUNDING)
        if self.is_exact_on(p):
            assert found[0].optimal
        if found[0].optimal:
            assert_allclose([m.score for m in found], [m.score for m in truth], atol=TOLERANCE)
            assert len({tuple(m.states) for m in found}) == len(found)
        assert all(m.bound >= truth[0].score - TOLERANCE for m in found[:1])

    @checked
    @given(p=potentials(), seed=st.integers(0, 2**31))
    def test_samples_are_possible(self, p: Potentials, seed: int) -> None:
        """Where declared: samples agree with evidence and hard zeros, and with their seed."""
        algorithm = self.algorithm()
        assume(self.accepts(p))
        if not algorithm.facts.samples:
            with_error(InputError, lambda: sample(p, 1, algorithm))
            return
        with no_convergence_warnings():
            draws, again = (sample(p, 5, algorithm, random_state=seed) for _ in range(2))
        assert (p.log_score(draws) > -np.inf).all()
        assert_array_equal(draws, again)

    def test_sample_streams(self) -> None:
        """A stochastic algorithm draws the same samples of the first example alone and in any batch."""
        if self.facts.samples and self.facts.stochastic:
            self._check_sample_streams()

    @checked
    @given(batch=st.lists(potentials(factor_graphs(max_variables=4)), min_size=2, max_size=3))
    def _check_sample_streams(self, batch: list[Potentials]) -> None:
        if not all(map(self.accepts, batch)):
            return
        with no_convergence_warnings():
            together = sample(potentials_union(batch), 3, self.algorithm(), random_state=0)
            alone = sample(batch[0], 3, self.algorithm(), random_state=0)
        assert_array_equal(alone, together[:, : alone.shape[1]])

    def test_joints(self) -> None:
        """Where declared: the joint belief of any variables, in the order asked for."""
        if self.facts.joints:
            self._check_joints()

    @checked
    @given(p=potentials(), data=st.data())
    def _check_joints(self, p: Potentials, data: st.DataObject) -> None:
        n = p.graph.n_variables
        wanted = data.draw(st.lists(st.integers(0, n - 1), max_size=3, unique=True))
        assert_allclose(self.run(p).joint(wanted), Brute().run(p).joint(wanted), atol=TOLERANCE)

    @checked
    @given(p=st.one_of(potentials(), potentials(factor_graphs(forest=True))), seed=st.integers(0, 2**31))
    def test_perturbation(self, p: Potentials, seed: int) -> None:
        """Where declared: the gradient by perturbation is that of the converged run, and the true one if exact."""
        algorithm = self.algorithm()
        if not algorithm.facts.envelope:
            with_error(InputError, lambda: perturbation(p, algorithm))
            return
        result = self.run(p)
        assume(result.info.converged)
        log_z, variables, factors = random_cotangents(result, seed)
        try:
            mine = perturbation(p, algorithm, log_z, variables, factors)
        except InputError:  # the derivative did not converge, which is reported
            assume(False)
        others = [infer(p, algorithm, tape=True)]
        if self.is_exact_on(p):
            others.append(infer(p, Brute(), tape=True))
        for other in others:
            assert_same_gradients(mine, other.backward(log_z, variables, factors))

    def test_max_marginals(self) -> None:
        """In the max semiring, on forests: exact max-marginals and the score of a best assignment."""
        if self.facts.semiring != "sum":
            self._check_max_marginals()

    @checked
    @given(p=potentials(factor_graphs(forest=True)))
    def _check_max_marginals(self, p: Potentials) -> None:
        result = self.run(p)
        assume(result.info.converged)
        assert_allclose(result.log_z, Brute().maximise(p)[0].score, atol=TOLERANCE, rtol=TOLERANCE)
        assert_allclose(result.variables.flat, max_marginals(p), atol=TOLERANCE)

    def test_moderate_and_extreme_scales(self) -> None:
        """Potentials up to e^{+-300}, with and without hard zeros: no overflow, no NaN, right where exact."""
        rng = np.random.default_rng(0)
        for scale in (10.0, 50.0, 100.0, 300.0):
            for zeros in (0.0, 0.3):
                graph = FactorGraph([2, 3, 2, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3, 4), (2,)])
                p = random_potentials(graph, rng, scale, zeros)
                if not self.accepts(p):
                    continue
                result, truth = self.run(p), Brute().run(p)
                assert np.isfinite(result.log_z) or not self.facts.log_z
                assert np.isfinite(result.variables.flat).all()
                if self.is_exact_on(p):
                    assert_allclose(result.log_z, truth.log_z, rtol=1e-12)
                    assert_allclose(result.variables.flat, truth.variables.flat, atol=1e-9)
                check_bound(result.log_z, truth.log_z, result.info)


def random_cotangents(result: Result, seed: int) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Draw derivatives of a loss by log Z, variable beliefs and factor beliefs."""
    rng = np.random.default_rng(seed)
    log_z, variables = rng.normal(size=len(result.component_log_z)), rng.normal(size=result.variables.flat.size)
    return log_z, variables, [rng.normal(size=belief.shape) for belief in result.factors]


def assert_same_gradients(one: Gradients, two: Gradients) -> None:
    """Check that gradients by the log tables agree, relative to their size or absolutely."""
    for a, b in zip(one.groups, two.groups, strict=True):
        assert_allclose(a, b, atol=1e-7 * max(1.0, float(np.abs(b).max(initial=0.0))), rtol=0)


def max_marginals(p: Potentials) -> FloatArray:
    """Return the flat max-marginals of all variables, each summing to one, by enumeration."""
    first = first_states(p.graph)
    flat = Brute().run(p).variables.flat * 0.0
    for i, state in p.evidence.items():
        flat[first[i] + state] = 1.0
    flat[first[:-1][p.graph.cards == 1]] = 1.0
    for table in Brute().tables(p):
        for axis, i in enumerate(table.free):
            top = table.values.max(axis=tuple(k for k in range(table.values.ndim) if k != axis))
            flat[first[i] : first[i + 1]] = np.exp(top - top.max()) / np.exp(top - top.max()).sum()
    return flat


def relabelled(p: Potentials, order: IntArray, states: list[IntArray]) -> Potentials:
    """Rename variable i to ``order[i]`` and its state s to ``states[i][s]``."""
    cards = np.empty_like(p.graph.cards)
    cards[order] = p.graph.cards
    tables = []
    for scope, table in zip(p.graph.scopes, p.log_tables, strict=True):
        moved = table
        for axis, i in enumerate(scope):
            moved = np.take(moved, np.argsort(states[i]), axis=axis)
        tables.append(moved)
    scopes = [tuple(int(order[i]) for i in scope) for scope in p.graph.scopes]
    evidence = {int(order[i]): int(states[i][s]) for i, s in p.evidence.items()}
    return Potentials(FactorGraph(cards, scopes), tables, evidence)


def check_shapes(result: Result) -> None:
    """Beliefs have the shape of their variable or table and sum to one."""
    graph = result.potentials.graph
    assert len(result.variables) == graph.n_variables
    assert len(result.factors) == graph.n_factors
    for i, belief in enumerate(result.variables):
        assert belief.shape == (graph.cards[i],)
    for scope, belief in zip(graph.scopes, result.factors, strict=True):
        assert belief.shape == tuple(graph.cards[list(scope)])
    for belief in [*result.variables, *result.factors]:
        assert (belief >= 0).all()
        assert_allclose(belief.sum(), 1, atol=ROUNDING)


def check_consistent(result: Result) -> None:
    """Factor beliefs sum to the beliefs of their variables."""
    for scope, belief in zip(result.potentials.graph.scopes, result.factors, strict=True):
        for axis, i in enumerate(scope):
            others = tuple(k for k in range(belief.ndim) if k != axis)
            assert_allclose(belief.sum(axis=others), result.variable(i), atol=TOLERANCE)


def check_same(one: FloatArray, other: FloatArray) -> None:
    """Allow for rounding: sums may be made in another order."""
    assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def check_bound(log_z: float, truth: float, info: Info) -> None:
    """A declared bound is on the right side of the true log Z."""
    slack = TOLERANCE * max(1.0, abs(truth))
    if info.bound in ("exact", "upper"):
        assert log_z >= truth - slack
    if info.bound in ("exact", "lower"):
        assert log_z <= truth + slack


def with_error(kind: type[Exception], call: Callable[[], object]) -> None:
    """Check that a call raises."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}")
