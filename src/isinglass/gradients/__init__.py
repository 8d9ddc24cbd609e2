"""How a loss reaches the log potentials: rules that turn derivatives by log Z and the beliefs into those by φ."""

from isinglass.gradients.implicit import Implicit
from isinglass.gradients.rules import (
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
    "log_z_loss",
    "rule",
]
