"""The Potts model of 10 states: Murphy (2012), figure 19.8, and Baxter's exact energies (Baxter 1973).

    log p(x) = J sum_ij [x_i = x_j] - log Z

on a torus. The transition at J_c = log(1 + 10^(1/2)) = 1.4261 is of first order: there the energy of a site jumps from
-.968 (disordered) to -1.664 (ordered). The figure shows samples of 128 x 128 sites at J = 1.42, 1.44 and 1.46. A
region is a connected set of sites with equal states. Chains of Swendsen-Wang sampling start at random states and at one
state for all sites. At J_c both phases stay for a long time, so that each start gives the energy of its own phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass import Potentials, lattice_graph
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.clusters import SwendsenWangSampler
from isinglass.inference.sampling.diagnostics import diagnose
from isinglass.typing import IntArray, JsonObject
from isinglass_experiments.common.experiment import Experiment, Progress, Report, parallel_map, register, tell

STATES = 10
CRITICAL = float(np.log1p(np.sqrt(STATES)))
BAXTER = {"random": -0.968203, "equal": -1.664253}
STRENGTHS = (1.42, CRITICAL, 1.44, 1.46)
SIDE, QUICK_SIDE = 128, 48
SWEEPS, QUICK_SWEEPS, CHAINS = 3000, 600, 4


class Phase(NamedTuple):
    """What chains of one start found."""

    energy: float
    error: float
    largest: float  # share of the sites in the largest region
    regions: int
    picture: IntArray


def potts(side: int, strength: float) -> Potentials:
    """Return the Potts model on a square torus.

    Examples
    --------
    >>> potts(4, 1.4).graph.n_variables
    16
    """
    graph = lattice_graph((side, side), STATES, periodic=True)
    return Potentials.from_groups(graph, [np.zeros((1, STATES)), strength * np.eye(STATES)[None]])


def regions(picture: IntArray) -> IntArray:
    """Return the size of the region of each site of a torus.

    Examples
    --------
    >>> regions(np.array([[0, 0, 1], [2, 1, 2], [0, 1, 1]])).tolist()
    [[3, 3, 4], [2, 4, 2], [3, 4, 4]]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    index = np.arange(picture.size).reshape(picture.shape)
    ends = []
    for axis in (0, 1):
        same = picture == np.roll(picture, -1, axis)
        ends.append(np.stack([index[same], np.roll(index, -1, axis)[same]]))
    pairs = np.concatenate(ends, axis=1)
    links = coo_array((np.ones(pairs.shape[1], np.int8), (pairs[0], pairs[1])), (picture.size, picture.size))
    labels = connected_components(links, directed=False)[1]
    sizes: IntArray = np.bincount(labels)[labels].reshape(picture.shape)
    return sizes


def sampled(side: int, strength: float, start: str, sweeps: int, seed: int) -> Phase:
    """Sample from one start; the last half of the sweeps is averaged."""
    p = potts(side, strength)
    sampler, rng = SwendsenWangSampler(p), np.random.default_rng(seed)
    states = np.zeros((CHAINS, side * side), np.int64) if start == "equal" else rng.integers(0, 10, (CHAINS, side**2))
    chains = Chains.at(p, states, seed)
    sampler.advance(chains, sweeps // 2)
    pairs, trace = p.graph.groups[1].scopes, np.empty((1, CHAINS, sweeps - sweeps // 2))
    for t in range(trace.shape[2]):
        sampler.advance(chains, 1)
        trace[0, :, t] = -(chains.states[pairs[:, 0]] == chains.states[pairs[:, 1]]).sum(axis=0) / side**2
    picture = chains.assignments[0].reshape(side, side)
    sizes = regions(picture)
    number = round(float((1 / sizes).sum()))
    share = float(sizes.max() / sizes.size)
    return Phase(float(trace.mean()), float(diagnose(trace).stderr[0]), share, number, sizes)


@register
@dataclass(frozen=True)
class PottsTransition(Experiment):
    """Sample the Potts model of 10 states on either side of its transition.

    Parameters
    ----------
    quick : bool
        48 x 48 sites and 600 sweeps.
    n_jobs : int
        Processes that share the runs.
    """

    quick: bool = False
    n_jobs: int = 2

    name: ClassVar[str] = "potts"
    summary: ClassVar[str] = "the Potts model of 10 states at its transition (Murphy 2012, figure 19.8; Baxter 1973)"

    def run(self, progress: Progress | None = None) -> Report:
        """Sample every strength from both starts."""
        side, sweeps = (QUICK_SIDE, QUICK_SWEEPS) if self.quick else (SIDE, SWEEPS)
        work: list[tuple[object, ...]] = [
            (side, strength, start, sweeps, i) for i, strength in enumerate(STRENGTHS) for start in BAXTER
        ]
        found = []
        for i, one in enumerate(parallel_map(sampled, work, self.n_jobs)):
            found.append(one)
            tell(progress, f"J = {work[i][1]:.4f}, {work[i][2]} start", i / len(work))
        return _report(side, sweeps, work, found)


def _report(side: int, sweeps: int, work: list[tuple[object, ...]], found: list[Phase]) -> Report:
    rows, runs, pictures = [], [], []
    for (_, strength, start, *_rest), one in zip(work, found, strict=True):
        at_transition = strength == CRITICAL
        published = f"{BAXTER[str(start)]:.3f}" if at_transition else ""
        energy = f"{one.energy:.3f} ± {one.error:.3f}"
        name = f"{strength:.4f}" + (" = J_c" if at_transition else "")
        rows.append([name, str(start), energy, published, f"{100 * one.largest:.0f} %", f"{one.regions:,}"])
        runs.append(
            {"strength": strength, "start": start, **{k: v for k, v in one._asdict().items() if k != "picture"}}
        )
        if start == "random":
            pictures.append((f"J = {strength:.3f}", np.log(one.picture[None])))
    columns = ["J", "start", "energy of a site", "Baxter", "largest region", "regions"]
    notes = [
        f"torus of {side} x {side}, {CHAINS} chains of {sweeps} sweeps of Swendsen-Wang, the last half averaged",
        "pictures: the logarithm of the size of each site's region, from random starts",
    ]
    data: JsonObject = {"experiment": "potts", "side": side, "sweeps": sweeps, "runs": runs}
    return Report("The Potts model of 10 states", columns, rows, notes, data, {"potts": pictures})
