"""Priors on the parameters of a Markov random field, and the posteriors that are known."""

from isinglass.learning.markov.priors.penalties import (
    PRIORS,
    Dirichlet,
    Gaussian,
    GroupLaplace,
    Laplace,
    Penalties,
    Prior,
    make_prior,
    parameter_groups,
)
from isinglass.removed import missing_attribute

__all__ = [
    "PRIORS",
    "Dirichlet",
    "Gaussian",
    "GroupLaplace",
    "Laplace",
    "Penalties",
    "Prior",
    "make_prior",
    "parameter_groups",
]

__getattr__ = missing_attribute(__name__)
