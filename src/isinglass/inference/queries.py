"""Questions to a result: joint and conditional beliefs, correlation, mutual information, entropy, expectations.

    I(i; j)   =  sum_xi,xj  b(x_i, x_j) log [ b(x_i, x_j) / (b(x_i) b(x_j)) ]
    H         =  log Z - sum_a <b_a, phi_a>                                   since log p(x) = sum_a phi_a(x_a) - log Z
    E f(x)    =  sum_x  b(x) f(x)

(Cover and Thomas 2006, chapter 2.) The joint belief of several variables comes from the first of these that is
available: exact inference, the belief of a factor that contains all of them, the samples of a sampler, and, for two
variables, linear response (`isinglass.inference.linear_response`). If none is available, an error says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.graph.names import (
    EvidenceLike,
    VariableLike,
    evidence_numbers,
    is_name,
    name_of,
    variable_number,
    variable_numbers,
)
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, real_numbers, whole_number

if TYPE_CHECKING:
    from isinglass.inference.algorithm import Algorithm
    from isinglass.inference.result import FactorBeliefs, Info, VariableBeliefs
    from isinglass.inference.sampling.traces import Traces

Function = Callable[[IntArray], ArrayLike]
Variables = VariableLike | Sequence[VariableLike] | IntArray

MOST_STATES = 2**20  # joint states over which a sum is taken
ROUNDING = 1e-9  # how far below zero a belief may be by rounding alone


def table_of(result: Queries, variables: Sequence[int]) -> FloatArray:
    """Return the joint belief of distinct variables, one axis for each, from whatever the result has.

    Examples
    --------
    >>> import isinglass as ig
    >>> chain = ig.Potentials.from_groups(ig.chain_graph(3, 2), [np.zeros((3, 2)), np.eye(2)[None]])
    >>> np.allclose(table_of(ig.infer(chain, "bp"), [2, 0]), ig.infer(chain).joint([2, 0]))
    True
    """
    if len(variables) == 1:
        return np.asarray(result.variables[variables[0]], np.float64)
    if result.joint_of is not None:
        return np.asarray(result.joint(list(variables)), np.float64)
    found = _in_factor(result, variables)
    if found is not None:
        return found
    if result.traces is not None:
        return _in_draws(result, variables)
    if len(variables) == 2 and result.algorithm is not None:
        return _by_response(result, result.algorithm, variables[0], variables[1])
    names = ", ".join(name_of(result.potentials.graph, i) for i in variables)
    expected = "variables that share a factor, or a result with joint beliefs or draws"
    remedy = "infer with 'exact', or with a sampler such as 'gibbs', for more than two variables"
    raise InputError("variables", expected, f"{names}, with {result.info.algorithm!r}", remedy)


def _in_factor(result: Queries, variables: Sequence[int]) -> FloatArray | None:
    """Return the joint belief from a factor that holds all variables; None where there is none."""
    for group, beliefs in zip(result.potentials.graph.groups, result.factors.groups, strict=True):
        inside = np.ones(len(group), bool)
        for i in variables:
            inside &= (group.scopes == i).any(axis=1)
        if inside.any():
            row = int(np.argmax(inside))
            axes = [group.scopes[row].tolist().index(i) for i in variables]
            table = np.asarray(beliefs[row], np.float64)
            summed = table.sum(axis=tuple(k for k in range(group.arity) if k not in axes))
            return np.transpose(summed, np.argsort(np.argsort(axes)))
    return None


def _in_draws(result: Queries, variables: Sequence[int]) -> FloatArray:
    """Return the frequencies of joint states among the draws of a sampler."""
    assert result.traces is not None
    draws = result.traces.states[..., list(variables)].reshape(-1, len(variables))
    shape = tuple(result.potentials.graph.cards[list(variables)].tolist())
    places = np.ravel_multi_index(tuple(draws.T), shape)
    return np.bincount(places, minlength=int(np.prod(shape))).reshape(shape) / len(draws)


def _by_response(result: Queries, algorithm: Algorithm, i: int, j: int) -> FloatArray:
    """Return the joint belief of two variables by linear response."""
    from isinglass.inference.linear_response import covariance  # which imports results
    from isinglass.inference.result import Result

    product = np.outer(result.variables[i], result.variables[j]).astype(np.float64)
    observed = result.potentials.evidence
    if i in observed or j in observed:
        return product
    assert isinstance(result, Result)
    return product + covariance(result, algorithm, i, j)


class Queries:
    """What can be asked of a result; `Result` has the attributes."""

    potentials: Potentials
    component_log_z: Array
    variables: VariableBeliefs
    factors: FactorBeliefs
    info: Info
    joint_of: Callable[[IntArray], Array] | None
    traces: Traces | None
    algorithm: Algorithm | None

    def joint(self, variables: ArrayLike | Sequence[VariableLike]) -> Array:
        """Return the joint belief of any variables; see `Result`."""
        raise NotImplementedError

    def pair(self, i: VariableLike, j: VariableLike) -> FloatArray:
        """Return the joint belief of two variables, an array (states of i, states of j).

        If the two share no factor, it comes from exact inference, from the samples of a sampler, or from linear
        response: for a converged approximation, the derivative of one belief with respect to the potential of the
        other variable. Linear response keeps the beliefs of single variables, but an entry may be negative where the
        approximation is poor.

        Examples
        --------
        >>> import isinglass as ig
        >>> ring = ig.lattice_graph((6,), 2, periodic=True)
        >>> p = ig.Potentials.from_groups(ring, [np.zeros((6, 2)), np.eye(2)[None]])
        >>> ig.infer(p).pair(0, 3)[0].round(3), ig.infer(p, "bp").pair(0, 3)[0].round(3)
        (array([0.299, 0.201]), array([0.3, 0.2]))
        """
        graph = self.potentials.graph
        first, second = variable_number(graph, i, "i"), variable_number(graph, j, "j")
        if first == second:
            return np.diag(np.asarray(self.variables[first], np.float64))
        return table_of(self, [first, second])

    def conditional(self, variables: Variables, given: EvidenceLike | Variables = ()) -> FloatArray:
        """Return the conditional belief of some variables, given states of others.

        The same algorithm is run again, with the given states as evidence.

        Parameters
        ----------
        variables : variable or sequence of variables
            By numbers or names.
        given : mapping of variables to states, or sequence of variables
            States of other variables; or only the variables, for a table over all of their states.

        Returns
        -------
        array
            One axis for each variable of `variables`. If `given` lists variables without states, their axes come
            first; entries are NaN where the given states are impossible.

        Examples
        --------
        >>> import isinglass as ig
        >>> g = ig.FactorGraph({"rain": ["no", "yes"], "wet": ["no", "yes"]}, [("rain",), ("rain", "wet")])
        >>> r = ig.infer(ig.Potentials.from_values(g, [[0.8, 0.2], [[0.9, 0.1], [0.25, 0.75]]]))
        >>> r.conditional(["wet"], given={"rain": "yes"}), r.conditional("rain", given="wet").round(3).tolist()
        (array([0.25, 0.75]), [[0.935, 0.065], [0.348, 0.652]])
        """
        graph = self.potentials.graph
        wanted = _numbers(self, variables, "variables")
        if isinstance(given, Mapping):
            evidence = evidence_numbers(graph, given, "given")
            _require_apart(self, wanted, list(evidence))
            return _conditioned(self, wanted, evidence)
        known = _numbers(self, given, "given")
        _require_apart(self, wanted, known)
        shape = tuple(graph.cards[known].tolist())
        found = [_conditioned(self, wanted, dict(zip(known, states, strict=True))) for states in np.ndindex(*shape)]
        return np.stack(found).reshape(*shape, *found[0].shape)

    def correlation(self, i: VariableLike, j: VariableLike, values: tuple[ArrayLike, ArrayLike] | None = None) -> float:
        """Return the Pearson correlation of two variables; NaN where one of them is constant.

        Parameters
        ----------
        i, j : variable
        values : pair of arrays, optional
            A number for each state of i, and of j; by default 0, 1, ...

        Examples
        --------
        >>> import isinglass as ig
        >>> p = ig.Potentials.from_values(ig.FactorGraph([2, 2], [(0, 1)]), [[[3, 1], [1, 3]]])
        >>> ig.infer(p).correlation(0, 1)
        0.5
        """
        table = self.pair(i, j)
        given = tuple(map(np.arange, table.shape)) if values is None else values
        x, y = (_values(v, n, f"values[{k}]") for k, (v, n) in enumerate(zip(given, table.shape, strict=True)))
        x, y = x - table.sum(axis=1) @ x, y - table.sum(axis=0) @ y
        scale = float(np.sqrt((table.sum(axis=1) @ x**2) * (table.sum(axis=0) @ y**2)))
        return float(x @ table @ y) / scale if scale > 0 else float("nan")

    def mutual_information(self, i: VariableLike, j: VariableLike) -> float:
        """Return the mutual information of two variables, in nats.

        Examples
        --------
        >>> import isinglass as ig
        >>> p = ig.Potentials.from_values(ig.FactorGraph([2, 2], [(0, 1)]), [[[1, 0], [0, 1]]])
        >>> round(ig.infer(p).mutual_information(0, 1), 6)  # one bit
        0.693147
        """
        table = self.pair(i, j)
        return _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0)) - _entropy(table)

    def entropy(self, variables: Variables | None = None) -> float:
        """Return the entropy, in nats: of all variables together, or of the joint belief of some.

        With approximate inference it is the entropy of the approximation: the Bethe entropy for belief propagation, the
        entropy of the mean-field distribution for mean field, and so on.

        Examples
        --------
        >>> import isinglass as ig
        >>> r = ig.infer(ig.Potentials.from_values(ig.FactorGraph([2, 2], [(0, 1)]), [[[1, 1], [1, 1]]]))
        >>> round(r.entropy(), 6), round(r.entropy([0]), 6)
        (1.386294, 0.693147)
        """
        if variables is not None:
            return _entropy(table_of(self, _numbers(self, variables, "variables")))
        if self.algorithm is not None and self.algorithm.facts.semiring == "max":
            remedy = "use an algorithm that sums, such as 'bp'"
            raise InputError("result", "beliefs that approximate marginals", self.info.algorithm, remedy)
        log_z = float(self.component_log_z.sum())
        if not np.isfinite(log_z):
            remedy = "use an algorithm that estimates log Z, such as 'exact', 'bp' or 'ais'"
            raise InputError("result", "a result with log Z", f"log_z = {log_z} of {self.info.algorithm!r}", remedy)
        score = 0.0
        for beliefs, tables, ids in zip(
            self.factors.groups, self.potentials.groups, self.potentials.table_ids, strict=True
        ):
            of_factors = tables[ids]
            seen = beliefs > 0  # elsewhere 0 log 0
            score += float((beliefs[seen] * of_factors[seen]).sum())
        return log_z - score

    def expect(
        self,
        f: Function,
        variables: Variables | None = None,
        samples: int | None = None,
        random_state: RandomState = None,
    ) -> float:
        """Return the expectation of a function of some variables, or of all.

        Parameters
        ----------
        f : callable
            It takes states, an int array (assignments, variables), and returns a number for each assignment.
        variables : sequence of variables, optional
            The arguments of `f`, in this order; by default all variables.
        samples : int, optional
            Estimate the expectation from this number of samples, instead of a sum over all joint states. This is for
            functions of many variables; the algorithm must be able to sample. The result of a sampler uses the samples
            that it already has.
        random_state : int or Generator, optional

        Examples
        --------
        >>> import isinglass as ig
        >>> chain = ig.infer(ig.Potentials.from_groups(ig.chain_graph(8, 2), [np.zeros((8, 2)), np.eye(2)[None]]))
        >>> round(chain.expect(lambda x: x[:, 0] == x[:, 1], [0, 1]), 6), chain.expect(lambda x: x.sum(axis=1))
        (0.731059, 4.0)
        """
        require(callable(f), "f", "a function of states (assignments, variables)", type(f).__name__)
        graph = self.potentials.graph
        chosen = list(range(graph.n_variables)) if variables is None else _numbers(self, variables, "variables")
        if samples is not None:
            return _mean(f, _drawn(self, whole_number(samples, "samples", 1), random_state)[:, chosen])
        if self.traces is not None:
            return _mean(f, self.traces.states.reshape(-1, graph.n_variables)[:, chosen])
        size = float(np.prod(graph.cards[chosen].astype(float)))
        if size > MOST_STATES:
            got = f"{size:.3g} joint states of {len(chosen)} variables"
            raise InputError("variables", f"at most {MOST_STATES} joint states", got, "give samples=10_000")
        shape = tuple(graph.cards[chosen].tolist())
        states = np.array(list(itertools.product(*map(range, shape))), np.int64).reshape(-1, len(chosen))
        table = table_of(self, chosen).ravel() if chosen else np.ones(1)
        return float(table @ _evaluated(f, states))


def _numbers(result: Queries, variables: object, argument: str) -> list[int]:
    """Return the numbers of one variable or several."""
    one = is_name(variables) or isinstance(variables, int | np.integer)
    found = variable_numbers(result.potentials.graph, [variables] if one else variables, argument)
    return found.tolist()  # type: ignore[no-any-return]


def _require_apart(result: Queries, wanted: Sequence[int], given: Sequence[int]) -> None:
    both = sorted(set(wanted) & set(given))
    if both:
        got = name_of(result.potentials.graph, both[0])
        raise InputError("given", "variables other than those asked for", got, "leave it out of one of them")


def _conditioned(result: Queries, wanted: Sequence[int], evidence: Mapping[int, int]) -> FloatArray:
    """Return the belief of variables, given states of others; NaN where these are impossible."""
    from isinglass.errors import ImpossibleEvidenceError
    from isinglass.inference.api import infer  # which imports results

    shape = tuple(result.potentials.graph.cards[list(wanted)].tolist())
    known = result.potentials.evidence
    if any(known.get(i, s) != s for i, s in evidence.items()):
        return np.full(shape, np.nan)
    if all(i in known for i in evidence):
        return table_of(result, wanted)
    if result.algorithm is None:
        raise InputError("result", "the result of `infer`", "one without an algorithm", "infer with the evidence")
    try:
        return table_of(infer(result.potentials, result.algorithm, evidence=evidence), wanted)
    except ImpossibleEvidenceError:
        return np.full(shape, np.nan)


def _drawn(result: Queries, n: int, random_state: RandomState) -> IntArray:
    from isinglass.inference.api import sample  # which imports results

    if result.algorithm is None:
        raise InputError("samples", "the result of `infer`", "one without an algorithm", "use ig.sample")
    return sample(result.potentials, n, result.algorithm, random_state=random_state)


def _evaluated(f: Function, states: IntArray) -> FloatArray:
    """Return the values of a function, one for each assignment."""
    found = real_numbers(f(states), "f", f"a function that gives one number for each of {len(states)} assignments")
    if found.shape != (len(states),):
        expected = f"an array ({len(states)},), one number for each assignment"
        raise InputError("f", expected, f"shape {found.shape}", "it is given an array (assignments, variables)")
    return found


def _mean(f: Function, states: IntArray) -> float:
    return float(_evaluated(f, states).mean())


def _values(given: ArrayLike, n: int, argument: str) -> FloatArray:
    found = real_numbers(given, argument, f"{n} numbers, one for each state")
    if found.shape != (n,):
        raise InputError(argument, f"{n} numbers, one for each state", f"shape {found.shape}")
    return found


def _entropy(table: Array) -> float:
    """Return the entropy of a distribution, in nats."""
    if table.size and table.min() < -ROUNDING:
        remedy = "infer with 'exact', or with a sampler such as 'gibbs'"
        got = f"{table.min():.3g}: the linear response of this approximation is too poor"
        raise InputError("result", "beliefs that are not negative", got, remedy)
    positive = table[table > 0]
    return float(-(positive * np.log(positive)).sum())
