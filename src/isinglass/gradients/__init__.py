"""How a loss reaches the log potentials: rules that turn derivatives by log Z and the beliefs into those by φ."""

from isinglass.gradients.hessian import hessian_vector_product
from isinglass.gradients.implicit import Implicit
from isinglass.gradients.perturbation import perturbation
from isinglass.gradients.rule import (
    RULES,
    Envelope,
    Evaluation,
    GradientRule,
    Perturbation,
    Unrolled,
    log_z_loss,
    rule,
)

__all__ = [
    "RULES",
    "Envelope",
    "Evaluation",
    "GradientRule",
    "Implicit",
    "Perturbation",
    "Unrolled",
    "hessian_vector_product",
    "log_z_loss",
    "perturbation",
    "rule",
]
