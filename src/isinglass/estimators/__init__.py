"""Estimators with scikit-learn's interface."""

from isinglass.estimators.crf import CRF, Epoch
from isinglass.estimators.graph import GraphCRF
from isinglass.estimators.grid import GridCRF

__all__ = ["CRF", "Epoch", "GraphCRF", "GridCRF"]
