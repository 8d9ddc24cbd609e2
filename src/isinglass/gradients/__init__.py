"""How a loss reaches the log potentials: rules that turn derivatives by log Z and the beliefs into those by φ."""

from isinglass.gradients.hessian import hessian_vector_product
from isinglass.gradients.implicit import Implicit
from isinglass.gradients.perturbation import perturbation
from isinglass.gradients.risk import RiskGradients, risk_gradients
from isinglass.gradients.rule import (
    RULES,
    Envelope,
    GradientRule,
    Perturbation,
    Unrolled,
    forward,
    rule,
)
from isinglass.losses import Evaluation
from isinglass.losses.likelihood import log_z_loss

__all__ = [
    "RULES",
    "Envelope",
    "Evaluation",
    "GradientRule",
    "Implicit",
    "Perturbation",
    "RiskGradients",
    "Unrolled",
    "forward",
    "hessian_vector_product",
    "log_z_loss",
    "perturbation",
    "risk_gradients",
    "rule",
]
