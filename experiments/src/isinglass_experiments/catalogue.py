"""All experiments: a module registers its experiments when it is imported."""

import isinglass_experiments.domke.chains
import isinglass_experiments.domke.convergence
import isinglass_experiments.domke.digits
import isinglass_experiments.domke.entropy
import isinglass_experiments.domke.iterations
import isinglass_experiments.domke.scaling
import isinglass_experiments.domke.scenes
import isinglass_experiments.erma.experiment
import isinglass_experiments.fatchain
import isinglass_experiments.fields.dca
import isinglass_experiments.fields.estimators
import isinglass_experiments.fields.ipf
import isinglass_experiments.fields.spelling
import isinglass_experiments.fields.structure
import isinglass_experiments.hopfield
import isinglass_experiments.labelbias
import isinglass_experiments.margins.experiment
import isinglass_experiments.most_probable
import isinglass_experiments.sampling.ising
import isinglass_experiments.sampling.potts
import isinglass_experiments.sampling.race
import isinglass_experiments.skipchain
import isinglass_experiments.snakes
import isinglass_experiments.tagging  # noqa: F401
from isinglass_experiments.common.experiment import EXPERIMENTS, Experiment, Report, make

__all__ = ["EXPERIMENTS", "Experiment", "Report", "make"]
