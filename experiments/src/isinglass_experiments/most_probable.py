"""Solvers for most probable assignments, side by side: score, bound, gap and seconds, on models of every kind.

The random grids have standard normal potentials and couplings J ~ N(0, s²) between neighbours (|J| where they attract),
drawn with fixed seeds: Ising models with spins -1 and 1, and Potts models of five states. `stereo` is the Tsukuba pair
at half its size with eight disparities. The proteins are side-chain placements of the UAI 2008 competition, the others
are instances of 2014 with their evidence, read from the data folder.

Every solver gets the same time limit. A solver that does not take a model says nothing about it. Seconds are those of a
clock, compilation excluded: each solver first runs on a small model of the same kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass import InputError, MissingDependencyError, Potentials, grid_graph, map_assignment, read_uai
from isinglass.errors import no_convergence_warnings
from isinglass.inference import SOLVERS
from isinglass_experiments.common.experiment import Experiment, Progress, Report, chosen_rows, register, tell
from isinglass_experiments.data import load_stereo, stereo_model
from isinglass_experiments.data.files import data_file

PROTEINS = ("1ajj", "1akg", "1b2v", "1etl", "1k51", "1not", "1pen", "1plc", "1rb9", "2erl", "2fdn")
UAI = ("CSP_12", "Grids_11", "ObjectDetection_18", "Segmentation_12")
DEFAULT = ("auto", "graph-cut", "qpbo", "expansion", "icm", "annealing", "ils", "trws", "toulbar2")


class Problem(NamedTuple):
    """A model by its name, and how to make it."""

    name: str
    make: Callable[[], Potentials]


class Found(NamedTuple):
    """What a solver found on a model."""

    problem: str
    solver: str
    score: float
    bound: float
    optimal: bool
    seconds: float
    did: str


@register
@dataclass(frozen=True)
class MostProbable(Experiment):
    """Compare the solvers for most probable assignments.

    Parameters
    ----------
    quick : bool
        Grids of a fifth of the size, two proteins, and two seconds for each solver.
    rows : sequence of str, optional
        Solvers.
    seconds : float
        The time limit of each solver on each model.
    data : str, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Has no effect: solvers are timed one after the other.
    """

    quick: bool = False
    rows: Sequence[str] | None = None
    seconds: float = 10.0
    data: str | None = None
    n_jobs: int = 1

    name: ClassVar[str] = "map"
    summary: ClassVar[str] = "solvers for most probable assignments: score, bound and seconds on every kind of model"

    def run(self, progress: Progress | None = None) -> Report:
        """Run every solver on every model."""
        solvers = chosen_rows(self.rows, tuple(SOLVERS), DEFAULT)
        seconds = min(self.seconds, 2.0) if self.quick else self.seconds
        problems = list(self._problems())
        found: list[Found] = []
        for i, problem in enumerate(problems):
            potentials = problem.make()
            for solver in solvers:
                tell(progress, f"{problem.name}: {solver}", i / len(problems))
                found += solved(problem.name, potentials, solver, seconds)
        return _report(found, seconds)

    def _problems(self) -> Iterator[Problem]:
        large, middle = (60, 20) if self.quick else (300, 100)
        yield Problem(f"attractive Ising {large}x{large}", lambda: ising(large, 9, attractive=True))
        yield Problem(f"Ising {large}x{large}", lambda: ising(large, 3))
        yield Problem(f"attractive Potts {middle}x{middle}", lambda: potts(middle, 10, 0.5, attractive=True))
        yield Problem(f"Potts {middle}x{middle}, s = 1", lambda: potts(middle, 11, 1.0))
        step = 8 if self.quick else 2
        pair = load_stereo(self.data)
        images = pair.left[::step, ::step], pair.right[::step, ::step]
        yield Problem("stereo", lambda: stereo_model(*images, n_disparities=16 // step))
        for name in PROTEINS[:2] if self.quick else PROTEINS:
            file = data_file(f"protein_uai/pdb{name}.uai.gz", self.data)
            yield Problem(f"protein {name}", lambda file=file: read_uai(file))  # type: ignore[misc]
        for name in UAI[:1] if self.quick else UAI:
            file = data_file(f"uai/{name}.uai.gz", self.data)
            evidence = Path(str(file).replace(".uai.gz", ".uai.evid"))
            yield Problem(name, lambda file=file, evidence=evidence: read_uai(file, evidence))  # type: ignore[misc]


def ising(side: int, seed: int, attractive: bool = False) -> Potentials:
    """Return a random Ising model on a square grid, s = 0.5.

    Examples
    --------
    >>> ising(3, seed=0)
    Potentials: 9 variables (2 states), 21 factors (arity 1-2)
    """
    graph, rng, spins = grid_graph(side, side, 2), np.random.default_rng(seed), np.array([-1.0, 1.0])
    field, coupling = rng.normal(0, 1, side * side), rng.normal(0, 0.5, len(graph.groups[1]))
    coupling = np.abs(coupling) if attractive else coupling
    return Potentials.from_groups(graph, [field[:, None] * spins, coupling[:, None, None] * np.outer(spins, spins)])


def potts(side: int, seed: int, s: float, attractive: bool = False) -> Potentials:
    """Return a random Potts model of five states on a square grid."""
    graph, rng = grid_graph(side, side, 5), np.random.default_rng(seed)
    field, coupling = rng.normal(0, 1, (side * side, 5)), rng.normal(0, s, len(graph.groups[1]))
    coupling = np.abs(coupling) if attractive else coupling
    return Potentials.from_groups(graph, [field, coupling[:, None, None] * np.eye(5)])


def solved(problem: str, potentials: Potentials, solver: str, seconds: float) -> list[Found]:
    """Return what a solver finds in a time limit; nothing where it does not take the model, or is not installed."""
    try:
        with no_convergence_warnings():
            map_assignment(ising(3, 0, attractive=True), solver, seconds=1.0)  # compiles
            began = time.perf_counter()
            found = map_assignment(potentials, solver, seconds=seconds)
            took = time.perf_counter() - began
    except (InputError, MissingDependencyError):
        return []
    did = "" if found.info is None else found.info.did
    return [Found(problem, solver, found.score, found.bound, found.optimal, took, did)]


def _report(found: list[Found], seconds: float) -> Report:
    columns = ["model", "solver", "score", "bound", "gap", "optimal", "seconds"]
    notes = [
        f"each solver has {seconds:g} s; gap: bound less score, relative to the score; -: no bound",
        "a solver that is not listed for a model does not take it, or needs a package that is not installed",
        *(f"auto on {one.problem}: {one.did}" for one in found if one.solver == "auto" and one.did),
    ]
    rows = [
        [
            one.problem,
            one.solver,
            f"{one.score:.4f}",
            f"{one.bound:.4f}" if np.isfinite(one.bound) else "-",
            f"{(one.bound - one.score) / max(1.0, abs(one.score)):.1e}" if np.isfinite(one.bound) else "-",
            "yes" if one.optimal else "-",
            f"{one.seconds:.3f}",
        ]
        for one in found
    ]
    data = {"experiment": "map", "seconds": seconds, "rows": [one._asdict() for one in found]}
    return Report("Solvers for most probable assignments", columns, rows, notes, data)
