"""Gaussian fields in information form, and the sparse factor behind them."""

from isinglass.inference.gaussian.factor import SparseFactor
from isinglass.inference.gaussian.field import GaussianField

__all__ = ["GaussianField", "SparseFactor"]
