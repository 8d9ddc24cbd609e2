"""Published experiments, run again: ours beside the published values (``isinglass reproduce NAME``)."""

from isinglass.experiments import fatchain as _fatchain  # noqa: F401
from isinglass.experiments import hopfield as _hopfield  # noqa: F401
from isinglass.experiments import labelbias as _labelbias  # noqa: F401
from isinglass.experiments import most_probable as _most_probable  # noqa: F401
from isinglass.experiments import skipchain as _skipchain  # noqa: F401
from isinglass.experiments import snakes as _snakes  # noqa: F401
from isinglass.experiments import tagging as _sequences  # noqa: F401
from isinglass.experiments.common.experiment import EXPERIMENTS, Experiment, Report, make
from isinglass.experiments.domke import chains as _chains  # noqa: F401
from isinglass.experiments.domke import convergence as _convergence  # noqa: F401
from isinglass.experiments.domke import digits as _digits  # noqa: F401  (registers itself)
from isinglass.experiments.domke import entropy as _entropy  # noqa: F401
from isinglass.experiments.domke import iterations as _iterations  # noqa: F401
from isinglass.experiments.domke import scaling as _scaling  # noqa: F401
from isinglass.experiments.domke import scenes as _scenes  # noqa: F401
from isinglass.experiments.erma import experiment as _erma  # noqa: F401
from isinglass.experiments.fields import dca as _dca  # noqa: F401
from isinglass.experiments.fields import estimators as _estimators  # noqa: F401
from isinglass.experiments.fields import ipf as _ipf  # noqa: F401
from isinglass.experiments.fields import spelling as _spelling  # noqa: F401
from isinglass.experiments.fields import structure as _structure  # noqa: F401
from isinglass.experiments.margins import experiment as _max_margin  # noqa: F401
from isinglass.experiments.sampling import ising as _ising  # noqa: F401
from isinglass.experiments.sampling import potts as _potts  # noqa: F401
from isinglass.experiments.sampling import race as _race  # noqa: F401

__all__ = ["EXPERIMENTS", "Experiment", "Report", "make"]
