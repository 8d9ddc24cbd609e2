"""Priors on the parameters of a Markov random field.

    gaussian    log p(theta) = - sum_j theta_j² / (2 scale²)         the penalty l2 = 1 / (2 scale²)
    laplace     log p(theta) = - sum_j |theta_j| / scale             an l1 penalty: many parameters become exactly zero
    group       log p(theta) = - sum_g sqrt(d_g) ||theta_g|| / scale      whole tables become exactly zero
    dirichlet   log p(theta) = total (theta . E_0[f] - log Z(theta))

A group g has the d_g parameters of the table of a factor of two or more variables: an edge is there or not (Murphy
2012, section 19.6.3).

The last is conjugate: it stands for `total` virtual samples of the model with theta = 0, spread evenly over all cells
of the joint table (Dawid and Lauritzen 1993, hyper-Dirichlet). It keeps every table entry above zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass.models import Model, Term
from isinglass.registry import Registry, choose
from isinglass.typing import IntArray
from isinglass.validation import positive


class Penalties(NamedTuple):
    """What a prior adds to an objective.

    `groups`: the scale of a group lasso (`isinglass.learning.optimizers.proximal`); 0: there is none.
    """

    l2: float = 0.0
    l1: float = 0.0
    virtual: float = 0.0
    groups: float = 0.0


class Prior:
    """Base class of priors; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]

    def penalties(self) -> Penalties:
        """Return what the prior adds to the objective."""
        raise NotImplementedError


PRIORS: Registry[type[Prior]] = Registry("prior")


@PRIORS.register("gaussian")
@dataclass(frozen=True)
class Gaussian(Prior):
    """Independent normal parameters of mean zero: ``"gaussian"``.

    Parameters
    ----------
    scale : float, default=1
        Their standard deviation.
    """

    scale: float = 1.0

    name: ClassVar[str] = "gaussian"

    def penalties(self) -> Penalties:
        """Return an l2 penalty."""
        return Penalties(l2=0.5 / positive(self.scale, "prior.scale") ** 2)


@PRIORS.register("laplace")
@dataclass(frozen=True)
class Laplace(Prior):
    """Independent double-exponential parameters: ``"laplace"``.

    Parameters
    ----------
    scale : float, default=1
        Their mean absolute value.
    """

    scale: float = 1.0

    name: ClassVar[str] = "laplace"

    def penalties(self) -> Penalties:
        """Return an l1 penalty."""
        return Penalties(l1=1 / positive(self.scale, "prior.scale"))


@PRIORS.register("group")
@dataclass(frozen=True)
class GroupLaplace(Prior):
    """Tables of edges that are all zero or not, a group lasso: ``"group"``.

    Parameters
    ----------
    scale : float, default=1
        The penalty of a table of d entries is sqrt(d) / scale times its norm.
    """

    scale: float = 1.0

    name: ClassVar[str] = "group"

    def penalties(self) -> Penalties:
        """Return a penalty on groups."""
        return Penalties(groups=positive(self.scale, "prior.scale"))


@PRIORS.register("dirichlet")
@dataclass(frozen=True)
class Dirichlet(Prior):
    """Virtual samples, spread evenly over all joint states: ``"dirichlet"``.

    Parameters
    ----------
    total : float, default=1
        How many.
    """

    total: float = 1.0

    name: ClassVar[str] = "dirichlet"

    def penalties(self) -> Penalties:
        """Return virtual samples."""
        return Penalties(virtual=positive(self.total, "prior.total"))


def make_prior(prior: str | Prior) -> Prior:
    """Return the prior that a name or an object stands for.

    Examples
    --------
    >>> make_prior("dirichlet").penalties().virtual
    1.0
    """
    return choose(PRIORS, Prior, prior, {}, "gaussian")


def parameter_groups(model: Model) -> IntArray:
    """Return the group of each parameter: one for each table of two or more variables; -1 for tables of one.

    Parameters that are no tables, such as couplings or weights of features, are groups of their own.

    Examples
    --------
    >>> import isinglass as ig
    >>> from isinglass.models import table_model
    >>> parameter_groups(table_model(ig.chain_graph(3, 2))).tolist()
    [-1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1]
    """
    holders = {term.name: term for term in model.terms}
    found, first = [np.zeros(0, np.int64)], 0
    for name, shape in model.parameters.items():
        size, tables = prod(shape), holders[name].n_tables
        if model.kinds[name] == "node" or not size:
            found.append(np.full(size, -1))
            continue
        count = size
        if holds_tables(holders[name]):
            count = tables
        found.append(first + np.repeat(np.arange(count), size // count))
        first += count
    return np.concatenate(found).astype(np.int64)


def holds_tables(term: Term) -> bool:
    """Tell whether the parameters of a term are tables, one after the other."""
    return prod(term.shape) == term.n_tables * prod(term.cards) and term.shape[-len(term.cards) :] == term.cards
