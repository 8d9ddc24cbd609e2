"""What went before the first release, and what to use instead; this table and its uses go at 0.1.0.

A key is what its user wrote: ``isinglass.Name``, ``algorithm 'name'``, ``Class(option=)``, ``argument='value'`` or
``isinglass command --option``. Names, registries, options, estimators and the command line look here before they say
that they do not know something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Self

from isinglass.errors import RemovedError

EXTRA = "pip install isinglass-experiments; in a clone: pip install ./experiments"
REMOVED: dict[str, str] = {
    # profiling
    "isinglass.Profile": "use cProfile or py-spy",
    "isinglass bench": "in a clone of the repository, use make bench; for your own code, cProfile or py-spy",
    # experiments
    "isinglass reproduce --finished": "--checkpoints DIR goes on from the cells that are there",
    "isinglass.experiments": f"it is the package isinglass_experiments ({EXTRA})",
    # data sets and features of images
    **{
        f"isinglass.{part}.{name}": f"it is isinglass_experiments.data.{name} ({EXTRA})"
        for part, names in {
            "datasets": (
                "Alignment Chunking Contingency Entities Letters MultiLabel Photographs Snakes Stereo "
                "chunk_attributes entity_attributes label_graph load_alignment load_conll2000 "
                "load_contingency load_horses load_letters load_scene_labels load_snakes load_stereo "
                "load_street_scenes load_wnut17 load_words snake_graph stereo_model"
            ),
            "features": "ImageFeatures RegionGraph region_graph",
        }.items()
        for name in names.split()
    },
    # restricted Boltzmann machines
    "isinglass.RBM": (
        "use machine = models.BoltzmannMachine(visible, hidden, 'restricted') and MRF(machine, method='pcd')"
        ".fit(machine.with_hidden(V)), or scikit-learn's BernoulliRBM"
    ),
    "isinglass.models.RestrictedBoltzmannMachine": "use models.BoltzmannMachine(visible, hidden, 'restricted')",
    # the search for a penalty
    "isinglass.estimators.L2Trial": "use scikit-learn's GridSearchCV",
    "l2='auto'": "use scikit-learn's GridSearchCV over l2",
    # chains of second order
    "ChainCRF(order=)": "leave out order=1; use attributes of neighbouring tokens in place of order=2",
    # methods of learning
    "isinglass.learning.optimisers": "use isinglass.learning.optimizers",
    "isinglass.learning.optimizers.OPTIMISERS": "use OPTIMIZERS",
    "isinglass.learning.Total": "use Objective, or fit of an estimator",
    "method 'nce'": "use 'pseudo', or 'ml' where log Z is wanted",
    "method 'ratio-matching'": "use 'mpf' or 'pseudo'",
    "loss 'ratio-matching'": "use 'mpf' or 'pseudo'",
    "prior 'horseshoe'": "use 'group'",
    "isinglass.learning.markov.NoiseContrastive": "use method 'pseudo', or 'ml' where log Z is wanted",
    "isinglass.learning.markov.Ratios": "use Flow",
    "isinglass.learning.markov.priors.HorseshoeLike": "use GroupLaplace",
    "isinglass.losses.RatioMatching": "use MinimumProbabilityFlow",
    "isinglass.losses.LocalLoss": "derive from Loss",
    "Pseudolikelihood(joint_states=)": "use loss 'cl' (method='ml' of MRF), which sums over hidden variables",
    # samplers
    "algorithm 'metropolis'": "use 'gibbs'",
    "isinglass.Metropolis": "use Gibbs",
    # importance sampling
    "AnnealedImportance(direction=)": "leave it out: chains go from the start to the model",
    "AnnealedImportance(data=)": "leave it out: chains go from the start to the model",
    "ImportanceLikelihood(sweeps=)": "leave it out: draws need no chains",
    # maximisers
    "isinglass.DualDecomposition": 'use "trws", whose bound is the same or nearly so',
    "isinglass.Swap": 'use "expansion" or "ils"',
    "isinglass.diverse_best": "use ig.n_best, or add penalties to the unary log-potentials and maximise again",
    "isinglass.perturb_and_map": "use ig.sample",
    "isinglass.PerturbedSamples": "use ig.sample",
    "algorithm 'dual'": 'use "trws", whose bound is the same or nearly so',
    "algorithm 'swap'": 'use "expansion" or "ils"',
    "algorithm 'perturb-and-map'": 'use "exact", "gibbs" or another algorithm that samples',
    "LinearProgram(cycles=)": 'use "ilp" or "toulbar2"',
    # files
    "isinglass.write_fg": "use ig.write_uai",
    "isinglass.io.write_fg": "use write_uai",
    # recipes
    "isinglass diagnose": "use ig.diagnose in Python",
    "[columns] in a recipe": "leave other columns out of the file, or fit ChainCRF in Python",
    "[forms] in a recipe": "leave it out, or use ig.features.with_forms and ChainCRF in Python",
    "[windows] in a recipe": "leave it out, or use ig.features.window_attributes and ChainCRF in Python",
    # the number of threads
    "BeliefPropagation(threads=)": "use n_jobs=",
    "FractionalBeliefPropagation(threads=)": "use n_jobs=",
    "TreeReweighted(threads=)": "use n_jobs=",
    "MaxProduct(threads=)": "use n_jobs=",
    "Exact(threads=)": "use n_jobs=",
    "Gibbs(threads=)": "use n_jobs=",
    "TreeGibbs(threads=)": "use n_jobs=",
    "SwendsenWang(threads=)": "use n_jobs=",
    "Wolff(threads=)": "use n_jobs=",
    "ParallelTempering(threads=)": "use n_jobs=",
    "AnnealedImportance(threads=)": "use n_jobs=",
    # scores
    "isinglass.metrics.multilabel_scores": "use scikit-learn's f1_score, jaccard_score and hamming_loss",
    "isinglass.metrics.MultiLabelScores": "use scikit-learn's f1_score, jaccard_score and hamming_loss",
    # pages and drawings
    **dict.fromkeys(
        ("isinglass.pages.Lines", "isinglass.pages.Bars", "isinglass.pages.Heat"),
        "draw it with Matplotlib: ig.pages.Picture takes a figure",
    ),
    "isinglass.pages.Facts": "use ig.pages.Table",
    "isinglass.pages.Tokens": "use ig.pages.Table",
    "isinglass.pages.Note": "text is a part of a page by itself",
    "Pictures(title=)": "use the heading of the section",
    "Pictures(slider=)": "put one ig.pages.Pictures for each panel into ig.pages.Steps",
    "Steps(rest=)": "put what is shown at all steps into parts of their own",
    "isinglass.viz.Table": "use ig.pages.Table",
    "isinglass.viz.html_page": "use ig.pages.html_page",
    # belief propagation
    "BeliefPropagation(dtype=)": "messages are float64",
    "TreeReweighted(weight_steps=)": "use weights=None, the probabilities of uniform spanning trees",
    "TreeReweighted(weight_tol=)": "use weights=None, the probabilities of uniform spanning trees",
    "schedule='random'": "use 'sequential' or 'residual'",
    "weights='optimised'": "use weights=None, the probabilities of uniform spanning trees",
    # optimizers
    "OwlQn(align=)": "leave it out: the direction is cut in all coordinates first, in those at zero near the minimum",
    **dict.fromkeys(
        ("optimizer 'n-slack'", "isinglass.learning.optimizers.NSlack", "isinglass.learning.optimizers.NSlackState"),
        "use 'cutting-plane' or 'bcfw', which have the same minimum and proof",
    ),
    "isinglass.learning.optimizers.SteepestState": "use isinglass.learning.optimizers.LbfgsState",
}


def refuse_removed(key: str) -> None:
    """Raise `RemovedError` for what is in the table.

    Examples
    --------
    >>> refuse_removed("isinglass.infer")
    """
    if key in REMOVED:
        raise RemovedError(f"{key} was removed before the first release; {REMOVED[key]}")


def refuse_removed_options(owner: str, options: Iterable[str]) -> None:
    """Raise `RemovedError` for an option that went, with the class or the name of the choice that had it."""
    for option in options:
        refuse_removed(f"{owner}({option}=)")


class RemovedOptions:
    """Base of classes that refuse options that went with what to use instead."""

    def __new__(cls, *_: object, **options: object) -> Self:
        """Refuse options that went."""
        refuse_removed_options(cls.__name__, options)
        return super().__new__(cls)


def missing_attribute(module: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package that had more names once."""

    def attribute(name: str) -> object:
        refuse_removed(f"{module}.{name}")
        refuse_removed(f"isinglass.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return attribute
