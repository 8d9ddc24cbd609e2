"""From parameters and features to log-potentials, and the transpose back."""

from isinglass.models.canonical import canonical_potentials
from isinglass.models.chains import chain_model
from isinglass.models.conditioning import ConditionedModel, Conditioning
from isinglass.models.conjunctions import conjunction_model
from isinglass.models.constant import ConstantTerm
from isinglass.models.entropy import EntropyModel
from isinglass.models.graphs import graph_model
from isinglass.models.grids import grid_model
from isinglass.models.inference import InferenceModel
from isinglass.models.model import Model
from isinglass.models.spins.boltzmann import BoltzmannMachine
from isinglass.models.spins.couplings import ModelFamily, PatternTerm
from isinglass.models.spins.hopfield import Hopfield, Recall
from isinglass.models.spins.ising import Ising
from isinglass.models.spins.potts import Potts
from isinglass.models.spins.restricted import RestrictedBoltzmannMachine
from isinglass.models.symmetry import SymmetricTerm
from isinglass.models.tables import table_model
from isinglass.models.terms import CallableTerm, CliqueTerm, EdgeTerm, IndicatorTerm, NodeTerm, SharedTerm, Term

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
    "RestrictedBoltzmannMachine",
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
