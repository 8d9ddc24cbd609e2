"""Ways to learn a Markov random field without inputs: every method registers here under its public name."""

from isinglass.learning.markov.by_loss import Flow, PiecewiseTraining, Ratios
from isinglass.learning.markov.camel import Camel
from isinglass.learning.markov.closed_form import ClosedForm
from isinglass.learning.markov.composite import Composite
from isinglass.learning.markov.em import ExpectationMaximisation
from isinglass.learning.markov.importance.method import ImportanceLikelihood
from isinglass.learning.markov.ipf import ProportionalFitting
from isinglass.learning.markov.likelihood import MaximumLikelihood
from isinglass.learning.markov.method import METHODS, Method, MethodFacts, make_method, register
from isinglass.learning.markov.nce import NoiseContrastive
from isinglass.learning.markov.objective import MarkovObjective, Task
from isinglass.learning.markov.pmm import PseudoMoments
from isinglass.learning.markov.pseudo import MaximumPseudolikelihood
from isinglass.learning.markov.sampled import (
    ContrastiveDivergence,
    PersistentDivergence,
    SampledLikelihood,
    StochasticLikelihood,
)
from isinglass.learning.markov.samples import Copies, Samples, TermCounts
from isinglass.learning.markov.scaling import IterativeScaling

__all__ = [
    "METHODS",
    "Camel",
    "ClosedForm",
    "Composite",
    "ContrastiveDivergence",
    "Copies",
    "ExpectationMaximisation",
    "Flow",
    "ImportanceLikelihood",
    "IterativeScaling",
    "MarkovObjective",
    "MaximumLikelihood",
    "MaximumPseudolikelihood",
    "Method",
    "MethodFacts",
    "NoiseContrastive",
    "PersistentDivergence",
    "PiecewiseTraining",
    "ProportionalFitting",
    "PseudoMoments",
    "Ratios",
    "SampledLikelihood",
    "Samples",
    "StochasticLikelihood",
    "Task",
    "TermCounts",
    "make_method",
    "register",
]
