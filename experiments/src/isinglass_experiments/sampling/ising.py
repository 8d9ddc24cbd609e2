"""The Ising model on a torus, by samplers and approximations, beside its exact solution (Onsager 1944, Kaufman 1949).

For couplings K around the critical one, log(1 + 2^(1/2)) / 2 = .44069, and without field:

    energy of a site        e = -mean(sum_ij s_i s_j) / N        beside the exact one of the same torus
    magnetisation           |m| = mean |sum_i s_i| / N           beside Yang's of an infinite lattice
    Binder's cumulant       U = 1 - mean(m^4) / (3 mean(m^2)^2)

U of different sizes crosses at the critical coupling (Binder 1981). It is measured by Swendsen-Wang sampling at
couplings close to it; the crossing of two sizes is where a parabola through the differences of their U is zero.

log Z of the approximations is compared with Kaufman's, by site, and that of annealed importance sampling as a whole, in
nats with its standard error. Annealing begins with a spanning tree of the torus, and takes more and more temperatures
until its weights are reliable. Means of samples come with standard errors, from their effective sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyfit

from isinglass import AnnealedImportance, Potentials, infer, lattice_graph
from isinglass.errors import no_convergence_warnings
from isinglass.inference.algorithm import make
from isinglass.inference.sampling.algorithm import MonteCarlo
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.diagnostics import diagnose
from isinglass.models import Ising
from isinglass.typing import FloatArray, JsonObject
from isinglass_experiments.common.experiment import Experiment, Plot, Progress, Report, parallel_map, register, tell
from isinglass_experiments.sampling import onsager

COUPLINGS = (0.2, 0.3, 0.36, 0.4, 0.42, 0.44, 0.46, 0.5, 0.6)
NEAR = (0.436, 0.4385, 0.441, 0.4435, 0.446)  # where cumulants are measured
SIDES, QUICK_SIDES = (16, 32, 64, 128), (8, 16)
SAMPLERS = ("swendsen-wang", "wolff", "gibbs", "tree-gibbs", "tempering")
APPROXIMATIONS = ("bp", "trw", "mf")
SWEEPS, QUICK_SWEEPS, CHAINS = 4000, 300, 8
CUMULANT_SWEEPS, QUICK_CUMULANT_SWEEPS = 10000, 3000
TEMPERATURES, MOST_TEMPERATURES, QUICK_MOST_TEMPERATURES = (
    1000,
    64000,
    4000,
)  # of annealing, four times as many each time
LARGEST_ERROR = 0.3  # of log Z, in nats


class Observed(NamedTuple):
    """Means of a run, with their standard errors."""

    energy: float
    energy_error: float
    size: float  # |m|
    size_error: float
    squares: float  # m^2
    fourths: float  # m^4


def torus(side: int, coupling: float) -> Potentials:
    """Return the Ising model on a square torus.

    Examples
    --------
    >>> torus(4, 0.4).graph.n_factors
    48
    """
    return Ising(lattice_graph((side, side), 2, periodic=True)).potentials(coupling=coupling)


def observe(side: int, coupling: float, name: str, sweeps: int, seed: int) -> Observed:
    """Sample a torus and average over the last three quarters of the sweeps."""
    p = torus(side, coupling)
    algorithm = make(name, {"chains": CHAINS})
    assert isinstance(algorithm, MonteCarlo)
    sampler = algorithm.sampler(p)
    chains = Chains.start(p, CHAINS * sampler.replicas, seed)
    sampler.advance(chains, sweeps // 4)
    pairs, sites = p.graph.groups[1].scopes, side * side
    traces = np.empty((2, CHAINS, sweeps - sweeps // 4))
    for t in range(traces.shape[2]):
        sampler.advance(chains, 1)
        states = chains.states[:, :CHAINS]
        unequal = (states[pairs[:, 0]] != states[pairs[:, 1]]).sum(axis=0)
        traces[0, :, t] = -(len(pairs) - 2.0 * unequal) / sites
        traces[1, :, t] = 2.0 * states.mean(axis=0) - 1
    size = np.abs(traces[1:])
    found = diagnose(np.concatenate([traces[:1], size]))
    m = traces[1]
    moments = [float((m**k).mean()) for k in (2, 4)]
    return Observed(
        float(traces[0].mean()), float(found.stderr[0]), float(size.mean()), float(found.stderr[1]), *moments
    )


class Annealed(NamedTuple):
    """log Z by annealing, less Kaufman's, with its standard error."""

    gap: float
    stderr: float
    temperatures: int
    reliable: bool


def anneal(side: int, coupling: float, most: int, seed: int) -> Annealed:
    """Estimate log Z of a torus with as many temperatures as are needed, at most `most`.

    Examples
    --------
    >>> found = anneal(4, 0.3, 1000, 0)
    >>> found.reliable, bool(abs(found.gap) < 4 * found.stderr < 0.3)
    (True, True)
    """
    potentials, exact, steps = torus(side, coupling), onsager.log_z(coupling, side, side), TEMPERATURES
    while True:
        with no_convergence_warnings():
            found = infer(potentials, AnnealedImportance(steps, 100, start="tree", random_state=seed))
        error = found.info.stderr
        assert error is not None
        reliable = found.info.converged and error <= LARGEST_ERROR
        if reliable or steps >= most:
            return Annealed(float(found.log_z) - exact, error, steps, reliable)
        steps *= 4


def crossing(couplings: Sequence[float], small: FloatArray, large: FloatArray) -> float:
    """Return where the cumulants of two sizes cross: the rising root of a parabola through their differences.

    Examples
    --------
    >>> k = np.array([0.0, 1.0, 2.0])
    >>> round(crossing(k, k, 2 * k - 0.5), 6)
    0.5
    """
    middle = float(np.mean(couplings))
    c0, c1, c2 = polyfit(np.asarray(couplings) - middle, large - small, 2)
    slope = math.sqrt(max(c1 * c1 - 4 * c0 * c2, 0.0))  # where it crosses zero, rising
    if slope == 0 or (c1 < 0 and c2 == 0):
        return float("nan")
    return middle + float(-2 * c0 / (c1 + slope) if c1 > 0 else (slope - c1) / (2 * c2))  # neither cancels


@register
@dataclass(frozen=True)
class IsingTransition(Experiment):
    """Compare samplers and approximations with the exact solution of the Ising model on a torus.

    Parameters
    ----------
    quick : bool
        Sides of 8 and 16, fewer sweeps.
    n_jobs : int
        Processes that share the runs.
    """

    quick: bool = False
    n_jobs: int = 2

    name: ClassVar[str] = "ising"
    summary: ClassVar[str] = "samplers and approximations beside the exact Ising model (Onsager 1944, Kaufman 1949)"

    def run(self, progress: Progress | None = None) -> Report:
        """Sample every coupling, approximate log Z, and find where cumulants cross."""
        sides = QUICK_SIDES if self.quick else SIDES
        sweeps = QUICK_SWEEPS if self.quick else SWEEPS
        compared = sides[-1] if self.quick else 32
        work: list[tuple[object, ...]] = [
            (compared, k, name, sweeps, i) for name in SAMPLERS for i, k in enumerate(COUPLINGS)
        ]
        observed = []
        for i, one in enumerate(parallel_map(observe, work, self.n_jobs)):
            observed.append(one)
            tell(progress, f"samplers, coupling {work[i][1]}", 0.5 * i / len(work))
        by_name = {name: observed[i * len(COUPLINGS) : (i + 1) * len(COUPLINGS)] for i, name in enumerate(SAMPLERS)}
        more = QUICK_CUMULANT_SWEEPS if self.quick else CUMULANT_SWEEPS
        near: list[tuple[object, ...]] = [
            (side, k, "swendsen-wang", more, i) for side in sides for i, k in enumerate(NEAR)
        ]
        found = []
        for i, one in enumerate(parallel_map(observe, near, self.n_jobs)):
            found.append(one)
            tell(progress, f"cumulants, side {near[i][0]}", 0.5 + 0.5 * i / len(near))
        most = QUICK_MOST_TEMPERATURES if self.quick else MOST_TEMPERATURES
        steps: list[tuple[object, ...]] = [(compared, k, most, i) for i, k in enumerate(COUPLINGS)]
        annealed = list(parallel_map(anneal, steps, self.n_jobs))
        cumulants = np.array([1 - o.fourths / (3 * o.squares**2) for o in found]).reshape(len(sides), len(NEAR))
        return _report(compared, by_name, approximated(compared), annealed, sides, cumulants)


def approximated(side: int) -> dict[str, list[float]]:
    """Return log Z by site of the approximations, less the exact one, at every coupling."""
    found: dict[str, list[float]] = {name: [] for name in APPROXIMATIONS}
    with no_convergence_warnings():
        for k in COUPLINGS:
            p, exact = torus(side, k), onsager.log_z(k, side, side)
            for name in APPROXIMATIONS:
                found[name].append((infer(p, name).log_z - exact) / side**2)
    return found


def _report(
    side: int,
    observed: dict[str, list[Observed]],
    log_z: dict[str, list[float]],
    annealed: Sequence[Annealed],
    sides: Sequence[int],
    cumulants: FloatArray,
) -> Report:
    exact = [onsager.energy(k, side, side) for k in COUPLINGS]
    rows = []
    for i, k in enumerate(COUPLINGS):
        energies = [_with_error(one[i].energy, one[i].energy_error) for one in observed.values()]
        sizes = _with_error(observed["swendsen-wang"][i].size, observed["swendsen-wang"][i].size_error)
        errors = [f"{values[i]:+.4f}" for values in log_z.values()]
        gap = f"{annealed[i].gap:+.3f} +- {annealed[i].stderr:.3f}{'' if annealed[i].reliable else '*'}"
        rows.append([f"{k:g}", f"{exact[i]:.4f}", *energies, sizes, f"{onsager.magnetisation(k):.4f}", *errors, gap])
    of_side = dict(zip(sides, cumulants, strict=True))
    crossings = {f"{a} and {b}": crossing(NEAR, *pair) for (a, b), pair in _pairs(sides, cumulants).items()}
    furthest = max(abs(one.gap) / one.stderr for one in annealed)
    notes = [
        f"torus of {side} x {side}; energies of a site beside Kaufman's; |m| by swendsen-wang beside Yang's of an "
        "infinite lattice; log Z of a site less Kaufman's; in brackets: standard errors of the last digits",
        f"log Z by annealing, in nats of the whole torus, less Kaufman's: at most {furthest:.1f} standard errors away, "
        f"at most {max(a.stderr for a in annealed):.2f} (*: the weights are not reliable)",
        *(
            f"cumulants of sides {which} cross at {k:.4f} (exact: {onsager.CRITICAL:.4f})"
            for which, k in crossings.items()
        ),
    ]
    columns = ["K", "exact e", *observed, "|m|", "Yang", *(f"log Z, {name}" for name in log_z), "log Z, ais"]
    data: JsonObject = {
        "experiment": "ising",
        "side": side,
        "couplings": list(COUPLINGS),
        "exact": exact,
        "observed": {name: [one._asdict() for one in found] for name, found in observed.items()},
        "log_z": log_z,
        "ais": [one._asdict() for one in annealed],
        "near": list(NEAR),
        "cumulants": {str(s): row.tolist() for s, row in of_side.items()},
        "crossings": crossings,
    }
    lines = {"exact": (COUPLINGS, exact)}
    lines |= {name: (COUPLINGS, [one.energy for one in found]) for name, found in observed.items()}
    by_site: dict[str, tuple[Sequence[float], Sequence[float]]] = {n: (COUPLINGS, v) for n, v in log_z.items()}
    by_site["ais"] = (COUPLINGS, [one.gap / side**2 for one in annealed])
    plots = {
        "energy": Plot("coupling", "energy of a site", lines),
        "magnetisation": Plot("coupling", "|m|", _sizes(observed)),
        "log_z": Plot("coupling", "log Z of a site, less exact", by_site),
        "binder": Plot(
            "coupling", "U", {f"side {s}": (NEAR, r) for s, r in zip(sides, cumulants.tolist(), strict=True)}
        ),
    }
    return Report("The Ising model on a torus", columns, rows, notes, data, plots=plots)


def _with_error(value: float, error: float) -> str:
    """Write a value, with its standard error in units of the last digit."""
    return f"{value:.4f}({1e4 * error:.0f})"


def _pairs(sides: Sequence[int], cumulants: FloatArray) -> dict[tuple[int, int], tuple[FloatArray, FloatArray]]:
    """Return the cumulants of neighbouring sizes."""
    places = pairwise(range(len(sides)))
    return {(sides[a], sides[b]): (cumulants[a], cumulants[b]) for a, b in places}


def _sizes(observed: dict[str, list[Observed]]) -> dict[str, tuple[Sequence[float], Sequence[float]]]:
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        "Yang": (COUPLINGS, [onsager.magnetisation(k) for k in COUPLINGS])
    }
    for name, found in observed.items():
        lines[name] = (COUPLINGS, [one.size for one in found])
    return lines
