"""Estimators with scikit-learn's interface."""

from isinglass.estimators.crf import CRF
from isinglass.estimators.diagnosis import Cause, Diagnosis, diagnose
from isinglass.estimators.estimator import Estimator
from isinglass.estimators.field.autoregression import VectorAutoregression
from isinglass.estimators.field.gaussian import GaussianMRF
from isinglass.estimators.field.mrf import MRF
from isinglass.estimators.graph import GraphCRF
from isinglass.estimators.grid import GridCRF
from isinglass.estimators.multilabel import MultiLabelCRF
from isinglass.estimators.persistence import ESTIMATORS, load, notes_of, register
from isinglass.estimators.sequence.crf import ChainCRF
from isinglass.estimators.sequence.hmm import HMM
from isinglass.estimators.sequence.memm import MEMM
from isinglass.learning.training.history import Epoch
from isinglass.removed import missing_attribute

__all__ = [
    "CRF",
    "ESTIMATORS",
    "HMM",
    "MEMM",
    "MRF",
    "Cause",
    "ChainCRF",
    "Diagnosis",
    "Epoch",
    "Estimator",
    "GaussianMRF",
    "GraphCRF",
    "GridCRF",
    "MultiLabelCRF",
    "VectorAutoregression",
    "diagnose",
    "load",
    "notes_of",
    "register",
]

__getattr__ = missing_attribute(__name__)
