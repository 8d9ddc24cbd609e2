"""Estimators with scikit-learn's interface."""

from isinglass.estimators.chain import ChainCRF
from isinglass.estimators.crf import CRF
from isinglass.estimators.graph import GraphCRF
from isinglass.estimators.grid import GridCRF
from isinglass.estimators.hmm import HMM
from isinglass.estimators.memm import MEMM
from isinglass.estimators.mrf import MRF
from isinglass.estimators.opening import load, notes_of
from isinglass.estimators.training import Epoch

__all__ = ["CRF", "HMM", "MEMM", "MRF", "ChainCRF", "Epoch", "GraphCRF", "GridCRF", "load", "notes_of"]
