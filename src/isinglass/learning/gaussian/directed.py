"""Directed Gaussian models: sparse regressions beside sparse precisions (Murphy 2012, sections 10.2.5 and 19.4.4.1).

    x_t = m_t + sum_k W_tk (x_k - m_k) + noise of variance v_t,        k over the parents of t

is a Gaussian field of precision J = (I - W)' diag(1 / v) (I - W). Two parents of a variable are joined in J even if
they are not in the graph: the moral graph. A directed graph and an undirected one can say the same exactly if the
latter is chordal, with the parents of each variable joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, diags_array, eye_array

from isinglass.errors import InputError
from isinglass.graph.semantics.directed import parents_of
from isinglass.inference.gaussian.field import GaussianField
from isinglass.typing import FloatArray
from isinglass.validation import variables_of

DETERMINED = 8  # a variance of at most so many roundings of its terms is zero


class Regressions(NamedTuple):
    """A directed Gaussian model.

    Attributes
    ----------
    weights : array (n, n)
        Row t has the weights of the parents of variable t.
    variances : array (n,)
        Of the noise.
    mean : array (n,)
    """

    weights: FloatArray
    variances: FloatArray
    mean: FloatArray

    def field(self) -> GaussianField:
        """Return the same distribution in information form.

        Examples
        --------
        >>> collider = Regressions(np.array([[0, 0, 0], [0, 0, 0], [1.0, 1.0, 0]]), np.ones(3), np.zeros(3))
        >>> collider.field().edges().tolist()  # the parents are married
        [[0, 1], [0, 2], [1, 2]]
        """
        n = len(self.mean)
        left = csc_array(eye_array(n, format="csc") - csc_array(self.weights))
        return GaussianField(csc_array(left.T @ diags_array(1 / self.variances) @ left), mean=self.mean)

    @classmethod
    def of(cls, field: GaussianField, order: Sequence[int] | None = None) -> Regressions:
        """Return the directed model of a field, in which each variable depends on those before it in an order.

        Examples
        --------
        >>> chain = GaussianField([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
        >>> Regressions.of(chain).weights.round(3)[2]
        array([0. , 0.5, 0. ])
        """
        n = field.n_variables
        chosen = np.arange(n) if order is None else variables_of(order, n, "order")
        if len(chosen) != n:
            raise InputError("order", f"all of {n} variables", f"{len(chosen)}")
        back = chosen[::-1]
        C = np.linalg.cholesky(field.precision[back][:, back].toarray())  # the last variable is eliminated first
        own = np.diag(C)
        weights, variances = np.zeros((n, n)), np.empty(n)
        weights[np.ix_(back, back)] = np.eye(n) - (C / own).T
        variances[back] = own**-2.0
        return cls(weights, variances, field.mean)


def regressions(covariance: FloatArray, mean: FloatArray, dag: Any) -> Regressions:
    """Return the maximum of the likelihood of a directed model: a regression of each variable on its parents.

    Examples
    --------
    >>> S = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> regressions(S, np.zeros(2), [(), (0,)]).weights
    array([[0. , 0. ],
           [0.5, 0. ]])
    """
    parents, n = parents_of(dag), len(mean)
    if len(parents) != n:
        raise InputError("dag", f"the parents of each of {n} variables", f"{len(parents)}")
    weights, variances = np.zeros((n, n)), np.empty(n)
    for t, before in enumerate(parents):
        P = list(before)
        weights[t, P] = np.linalg.lstsq(covariance[np.ix_(P, P)], covariance[P, t], rcond=None)[0] if P else 0.0
        variances[t] = covariance[t, t] - weights[t, P] @ covariance[P, t]
        terms = covariance[t, t] + np.abs(weights[t, P]) @ np.abs(covariance[P, t])
        if variances[t] <= DETERMINED * n * np.finfo(float).eps * terms:
            got = f"variable {t}, which its parents determine"
            raise InputError("X", "variables that the others do not determine", got, "more samples, or fewer parents")
    return Regressions(weights, variances, mean)
