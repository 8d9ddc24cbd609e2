"""The public names, and where each lives; `__init__.py` loads a name from here when it is first used."""

from . import datasets as datasets, graph as graph, inference as inference, io as io, testing as testing, viz as viz
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
    FileFormatError as FileFormatError,
    ImpossibleEvidenceError as ImpossibleEvidenceError,
    InputError as InputError,
    IsinglassError as IsinglassError,
    MemoryLimitError as MemoryLimitError,
    MissingDependencyError as MissingDependencyError,
)
from .graph import (
    EliminationOrder as EliminationOrder,
    FactorGraph as FactorGraph,
    chain_graph as chain_graph,
    complete_graph as complete_graph,
    disjoint_union as disjoint_union,
    elimination_order as elimination_order,
    from_networkx as from_networkx,
    grid_graph as grid_graph,
    lattice_graph as lattice_graph,
    pairwise_graph as pairwise_graph,
    random_graph as random_graph,
    to_networkx as to_networkx,
    tree_graph as tree_graph,
)
from .inference import (
    Assignment as Assignment,
    Brute as Brute,
    Exact as Exact,
    Info as Info,
    Result as Result,
    algorithms as algorithms,
    infer as infer,
    map_assignment as map_assignment,
    n_best as n_best,
    sample as sample,
)
from .io import (
    read_evidence as read_evidence,
    read_fg as read_fg,
    read_model as read_model,
    read_uai as read_uai,
    write_evidence as write_evidence,
    write_fg as write_fg,
    write_model as write_model,
    write_uai as write_uai,
)
from .potentials import (
    Potentials as Potentials,
    potentials_union as potentials_union,
)

__version__: str
