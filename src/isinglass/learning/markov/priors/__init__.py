"""Priors on the parameters of a Markov random field, and the posteriors that are known."""

from isinglass.learning.markov.priors.penalties import (
    PRIORS,
    Dirichlet,
    Gaussian,
    Grouped,
    GroupLaplace,
    HorseshoeLike,
    Laplace,
    Penalties,
    Prior,
    make_prior,
    parameter_groups,
)

__all__ = [
    "PRIORS",
    "Dirichlet",
    "Gaussian",
    "GroupLaplace",
    "Grouped",
    "HorseshoeLike",
    "Laplace",
    "Penalties",
    "Prior",
    "make_prior",
    "parameter_groups",
]
