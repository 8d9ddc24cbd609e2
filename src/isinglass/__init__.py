"""Isinglass: undirected graphical models, learned for the inference that will really be run.

Public names load when they are first used, so that importing the package is fast and needs nothing but
the standard library; ``dir(isinglass)`` lists them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "isinglass.errors": (
        "ConvergenceWarning",
        "FileFormatError",
        "ImpossibleEvidenceError",
        "InputError",
        "IsinglassError",
        "MemoryLimitError",
        "MissingDependencyError",
    ),
    "isinglass.graph": (
        "EliminationOrder",
        "FactorGraph",
        "chain_graph",
        "complete_graph",
        "disjoint_union",
        "elimination_order",
        "from_networkx",
        "grid_graph",
        "lattice_graph",
        "pairwise_graph",
        "random_graph",
        "to_networkx",
        "tree_graph",
    ),
    "isinglass.potentials": ("Potentials", "potentials_union"),
    "isinglass.io": (
        "read_evidence",
        "read_fg",
        "read_model",
        "read_uai",
        "write_evidence",
        "write_fg",
        "write_model",
        "write_uai",
    ),
    "isinglass.inference": (
        "Assignment",
        "Brute",
        "Exact",
        "Info",
        "Result",
        "algorithms",
        "infer",
        "map_assignment",
        "n_best",
        "sample",
    ),
}
_MODULES = ("datasets", "graph", "inference", "io", "testing", "viz")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF), *_MODULES]  # noqa: PLE0604

if TYPE_CHECKING:
    from isinglass import datasets, graph, inference, io, testing, viz
    from isinglass.errors import (
        ConvergenceWarning,
        FileFormatError,
        ImpossibleEvidenceError,
        InputError,
        IsinglassError,
        MemoryLimitError,
        MissingDependencyError,
    )
    from isinglass.graph import (
        EliminationOrder,
        FactorGraph,
        chain_graph,
        complete_graph,
        disjoint_union,
        elimination_order,
        from_networkx,
        grid_graph,
        lattice_graph,
        pairwise_graph,
        random_graph,
        to_networkx,
        tree_graph,
    )
    from isinglass.inference import (
        Assignment,
        Brute,
        Exact,
        Info,
        Result,
        algorithms,
        infer,
        map_assignment,
        n_best,
        sample,
    )
    from isinglass.io import (
        read_evidence,
        read_fg,
        read_model,
        read_uai,
        write_evidence,
        write_fg,
        write_model,
        write_uai,
    )
    from isinglass.potentials import Potentials, potentials_union


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"isinglass.{name}")
    else:
        raise AttributeError(f"module 'isinglass' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
