"""How a loss reaches the log potentials: rules that turn derivatives by log Z and the beliefs into those by φ."""

from isinglass.gradients.rules import (
    RULES,
    Cotangents,
    Envelope,
    Evaluation,
    GradientRule,
    Perturbation,
    Unrolled,
    rule,
)

__all__ = ["RULES", "Cotangents", "Envelope", "Evaluation", "GradientRule", "Perturbation", "Unrolled", "rule"]
