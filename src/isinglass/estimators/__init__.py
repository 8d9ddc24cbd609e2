"""Estimators with scikit-learn's interface."""

from isinglass.estimators.base import CRF
from isinglass.estimators.graph import GraphCRF
from isinglass.estimators.grid import GridCRF
from isinglass.estimators.loading import load, notes_of
from isinglass.estimators.mrf import MRF
from isinglass.estimators.sequence.crf import ChainCRF
from isinglass.estimators.sequence.hmm import HMM
from isinglass.estimators.sequence.memm import MEMM
from isinglass.learning.training.loop import Epoch

__all__ = ["CRF", "HMM", "MEMM", "MRF", "ChainCRF", "Epoch", "GraphCRF", "GridCRF", "load", "notes_of"]
