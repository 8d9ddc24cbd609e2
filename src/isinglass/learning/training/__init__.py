"""A training run: choices, the problem that they make, the loop, stages. These are the parts of an estimator."""

from isinglass.learning.training.checks import checked_labels
from isinglass.learning.training.choices import Choices, training_choices
from isinglass.learning.training.problem import TrainingObjective, TrainingProblem, fingerprint

__all__ = ["Choices", "TrainingObjective", "TrainingProblem", "checked_labels", "fingerprint", "training_choices"]
