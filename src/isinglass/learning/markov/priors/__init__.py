"""Priors on the parameters of a Markov random field, and the posteriors that are known."""

from isinglass.learning.markov.priors.penalties import (
    PRIORS,
    Dirichlet,
    Gaussian,
    Laplace,
    Penalties,
    Prior,
    make_prior,
)

__all__ = ["PRIORS", "Dirichlet", "Gaussian", "Laplace", "Penalties", "Prior", "make_prior"]
