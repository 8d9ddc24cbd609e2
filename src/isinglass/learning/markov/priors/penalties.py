"""Priors on the parameters of a Markov random field.

    gaussian    log p(theta) = - sum_j theta_j² / (2 scale²)         the penalty l2 = 1 / (2 scale²)
    laplace     log p(theta) = - sum_j |theta_j| / scale             an l1 penalty: many parameters become exactly zero
    dirichlet   log p(theta) = total (theta . E_0[f] - log Z(theta))

The last is conjugate: it stands for `total` virtual samples of the model with theta = 0, spread evenly over all cells
of the joint table (Dawid and Lauritzen 1993, hyper-Dirichlet). It keeps every table entry above zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from isinglass.registry import Registry, choose
from isinglass.validation import positive


class Penalties(NamedTuple):
    """What a prior adds to an objective."""

    l2: float = 0.0
    l1: float = 0.0
    virtual: float = 0.0


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
