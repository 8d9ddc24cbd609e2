"""Ways to learn a Markov random field without inputs: every method registers here under its public name."""

from isinglass.learning.markov.likelihood.closed_form import ClosedForm
from isinglass.learning.markov.likelihood.em import ExpectationMaximisation
from isinglass.learning.markov.likelihood.importance import ImportanceLikelihood
from isinglass.learning.markov.likelihood.ipf import ProportionalFitting
from isinglass.learning.markov.likelihood.maximum import MaximumLikelihood
from isinglass.learning.markov.likelihood.sampled import (
    ContrastiveDivergence,
    PersistentDivergence,
    SampledLikelihood,
    StochasticLikelihood,
)
from isinglass.learning.markov.likelihood.scaling import IterativeScaling
from isinglass.learning.markov.local.by_loss import Flow, PiecewiseTraining
from isinglass.learning.markov.local.camel import Camel
from isinglass.learning.markov.local.composite import Composite
from isinglass.learning.markov.local.pmm import PseudoMoments
from isinglass.learning.markov.local.pseudo import MaximumPseudolikelihood
from isinglass.learning.markov.method import METHODS, Method, MethodFacts, make_method, register
from isinglass.learning.markov.objective import MarkovObjective, Task
from isinglass.learning.markov.samples import Copies, Samples, TermCounts
from isinglass.removed import missing_attribute

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
    "PersistentDivergence",
    "PiecewiseTraining",
    "ProportionalFitting",
    "PseudoMoments",
    "SampledLikelihood",
    "Samples",
    "StochasticLikelihood",
    "Task",
    "TermCounts",
    "make_method",
    "register",
]

__getattr__ = missing_attribute(__name__)
