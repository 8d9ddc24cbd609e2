"""The public names, and where each lives; `__init__.py` loads a name from here when it is first used."""

from . import datasets as datasets
from . import decoding as decoding
from . import errors as errors
from . import estimators as estimators
from . import features as features
from . import gradients as gradients
from . import graph as graph
from . import inference as inference
from . import io as io
from . import learning as learning
from . import losses as losses
from . import metrics as metrics
from . import models as models
from . import pages as pages
from . import testing as testing
from . import viz as viz
from .errors import (
    CacheWarning as CacheWarning,
)
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
)
from .errors import (
    FileFormatError as FileFormatError,
)
from .errors import (
    ImpossibleEvidenceError as ImpossibleEvidenceError,
)
from .errors import (
    InputError as InputError,
)
from .errors import (
    IsinglassError as IsinglassError,
)
from .errors import (
    MemoryLimitError as MemoryLimitError,
)
from .errors import (
    MissingDependencyError as MissingDependencyError,
)
from .errors import (
    SearchWarning as SearchWarning,
)
from .estimators import (
    HMM as HMM,
)
from .estimators import (
    MEMM as MEMM,
)
from .estimators import (
    MRF as MRF,
)
from .estimators import (
    ChainCRF as ChainCRF,
)
from .estimators import (
    GaussianMRF as GaussianMRF,
)
from .estimators import (
    GraphCRF as GraphCRF,
)
from .estimators import (
    GridCRF as GridCRF,
)
from .estimators import (
    MultiLabelCRF as MultiLabelCRF,
)
from .estimators import (
    VectorAutoregression as VectorAutoregression,
)
from .estimators import (
    diagnose as diagnose,
)
from .gradients import (
    hessian_vector_product as hessian_vector_product,
)
from .gradients import (
    perturbation as perturbation,
)
from .graph import (
    EliminationOrder as EliminationOrder,
)
from .graph import (
    FactorGraph as FactorGraph,
)
from .graph import (
    Independence as Independence,
)
from .graph import (
    JunctionTree as JunctionTree,
)
from .graph import (
    ancestral_graph as ancestral_graph,
)
from .graph import (
    chain_graph as chain_graph,
)
from .graph import (
    cliques as cliques,
)
from .graph import (
    complete_graph as complete_graph,
)
from .graph import (
    d_separated as d_separated,
)
from .graph import (
    disjoint_union as disjoint_union,
)
from .graph import (
    elimination_order as elimination_order,
)
from .graph import (
    from_networkx as from_networkx,
)
from .graph import (
    grid_graph as grid_graph,
)
from .graph import (
    implied_independencies as implied_independencies,
)
from .graph import (
    is_chordal as is_chordal,
)
from .graph import (
    junction_tree as junction_tree,
)
from .graph import (
    lattice_graph as lattice_graph,
)
from .graph import (
    markov_blanket as markov_blanket,
)
from .graph import (
    moralise as moralise,
)
from .graph import (
    pairwise_graph as pairwise_graph,
)
from .graph import (
    random_graph as random_graph,
)
from .graph import (
    separated as separated,
)
from .graph import (
    to_networkx as to_networkx,
)
from .graph import (
    tree_graph as tree_graph,
)
from .graph import (
    triangulate as triangulate,
)
from .inference import (
    ICM as ICM,
)
from .inference import (
    QPBO as QPBO,
)
from .inference import (
    TRWS as TRWS,
)
from .inference import (
    AnnealedImportance as AnnealedImportance,
)
from .inference import (
    Annealing as Annealing,
)
from .inference import (
    Assignment as Assignment,
)
from .inference import (
    Auto as Auto,
)
from .inference import (
    BeliefPropagation as BeliefPropagation,
)
from .inference import (
    Brute as Brute,
)
from .inference import (
    ConvexFreeEnergy as ConvexFreeEnergy,
)
from .inference import (
    EntropyWeights as EntropyWeights,
)
from .inference import (
    Exact as Exact,
)
from .inference import (
    Expansion as Expansion,
)
from .inference import (
    FractionalBeliefPropagation as FractionalBeliefPropagation,
)
from .inference import (
    GaussianField as GaussianField,
)
from .inference import (
    Gibbs as Gibbs,
)
from .inference import (
    Gradients as Gradients,
)
from .inference import (
    GraphCut as GraphCut,
)
from .inference import (
    ImportanceSampling as ImportanceSampling,
)
from .inference import (
    Info as Info,
)
from .inference import (
    IntegerProgram as IntegerProgram,
)
from .inference import (
    IteratedLocalSearch as IteratedLocalSearch,
)
from .inference import (
    LinearProgram as LinearProgram,
)
from .inference import (
    MaxProduct as MaxProduct,
)
from .inference import (
    MeanField as MeanField,
)
from .inference import (
    ParallelTempering as ParallelTempering,
)
from .inference import (
    Result as Result,
)
from .inference import (
    StructuredMeanField as StructuredMeanField,
)
from .inference import (
    SwendsenWang as SwendsenWang,
)
from .inference import (
    Toulbar2 as Toulbar2,
)
from .inference import (
    Trace as Trace,
)
from .inference import (
    TreeGibbs as TreeGibbs,
)
from .inference import (
    TreeReweighted as TreeReweighted,
)
from .inference import (
    Wolff as Wolff,
)
from .inference import (
    algorithms as algorithms,
)
from .inference import (
    infer as infer,
)
from .inference import (
    map_assignment as map_assignment,
)
from .inference import (
    map_solvers as map_solvers,
)
from .inference import (
    n_best as n_best,
)
from .inference import (
    sample as sample,
)
from .inference import (
    trace as trace,
)
from .io import (
    BayesianNetwork as BayesianNetwork,
)
from .io import (
    from_bayesian_network as from_bayesian_network,
)
from .io import (
    read_bif as read_bif,
)
from .io import (
    read_conll as read_conll,
)
from .io import (
    read_evidence as read_evidence,
)
from .io import (
    read_fg as read_fg,
)
from .io import (
    read_model as read_model,
)
from .io import (
    read_uai as read_uai,
)
from .io import (
    write_conll as write_conll,
)
from .io import (
    write_evidence as write_evidence,
)
from .io import (
    write_model as write_model,
)
from .io import (
    write_uai as write_uai,
)
from .learning import (
    combinations as combinations,
)
from .learning import (
    induce_features as induce_features,
)
from .learning import (
    learn_structure as learn_structure,
)
from .models import (
    canonical_potentials as canonical_potentials,
)
from .potentials import (
    Potentials as Potentials,
)
from .potentials import (
    potentials_union as potentials_union,
)
from .warming import (
    warmup as warmup,
)

__version__: str
