"""The public names, and where each lives; `__init__.py` loads a name from here when it is first used."""

from .canonical import canonical_potentials
from .chains import chain_model
from .conditioning import ConditionedModel, Conditioning
from .conjunctions import conjunction_model
from .constant import ConstantTerm
from .entropy import EntropyModel
from .graphs import graph_model
from .grids import grid_model
from .inference import InferenceModel
from .model import Model
from .spins.boltzmann import BoltzmannMachine
from .spins.couplings import ModelFamily, PatternTerm
from .spins.hopfield import Hopfield, Recall
from .spins.ising import Ising
from .spins.potts import Potts
from .symmetry import SymmetricTerm
from .tables import table_model
from .terms import CallableTerm, CliqueTerm, EdgeTerm, IndicatorTerm, NodeTerm, SharedTerm, Term

__all__ = [
    "BoltzmannMachine",
    "CallableTerm",
    "CliqueTerm",
    "ConditionedModel",
    "Conditioning",
    "ConstantTerm",
    "EdgeTerm",
    "EntropyModel",
    "Hopfield",
    "IndicatorTerm",
    "InferenceModel",
    "Ising",
    "Model",
    "ModelFamily",
    "NodeTerm",
    "PatternTerm",
    "Potts",
    "Recall",
    "SharedTerm",
    "SymmetricTerm",
    "Term",
    "canonical_potentials",
    "chain_model",
    "conjunction_model",
    "graph_model",
    "grid_model",
    "table_model",
]
