"""Whether a fixed point of message passing is stable: the leading eigenvalue of its iteration.

At a fixed point of m <- F(m), with logarithms of messages, a small change e becomes B e, with damping d

    B  =  d I + (1 - d) J,      J  =  dF/dm,

so that it dies out if the spectral radius of B is below one (Mooij and Kappen 2005). The radius is estimated by the
power method: a few products with J', whose eigenvalues are those of J, on a random vector, component by component.
Leading eigenvalues may be a complex pair, so that the growth is averaged over the second half of the products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.edges import Edges
from isinglass.inference.algorithm import FixedPoint

PRODUCTS = 40


def spectral_radii(equations: FixedPoint, edges: Edges, n_components: int, damping: float) -> NDArray[np.float64]:
    """Estimate the spectral radius of the damped iteration of each component."""
    owner = _component_of_entry(edges)
    change, growth = noise_of_messages(edges, 0), np.zeros(n_components)
    size = _norms(change, owner, n_components)
    for k in range(PRODUCTS):
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        change = change * scale[owner]
        change = damping * change + (1 - damping) * equations.back(change)[0].real
        size = _norms(change, owner, n_components)
        with np.errstate(divide="ignore"):
            growth += np.log(size) if 2 * k >= PRODUCTS else 0.0
    radii: NDArray[np.float64] = np.exp(growth / (PRODUCTS - PRODUCTS // 2))
    return radii


def noise_of_messages(edges: Edges, seed: int) -> NDArray[np.float64]:
    """Draw a normal number for each entry of a message, by its place in its component alone."""
    owner = _component_of_entry(edges)
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner) if len(owner) else np.zeros(1, np.int64)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    noise = np.empty(len(owner))
    noise[order] = np.random.default_rng(seed).normal(size=int(counts.max(initial=0)))[place]
    return noise


def _component_of_entry(edges: Edges) -> NDArray[np.int64]:
    """Return the component of each entry of a message."""
    return np.repeat(edges.component[edges.edge_link], np.diff(edges.start))


def _norms(values: NDArray[np.float64], owner: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    norms: NDArray[np.float64] = np.sqrt(np.bincount(owner, values**2, n))
    return norms
