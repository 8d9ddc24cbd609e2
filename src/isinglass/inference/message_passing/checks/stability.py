"""Whether a fixed point of message passing is stable: the leading eigenvalue of its iteration.

At a fixed point of m <- F(m), with logarithms of messages, a small change e becomes B e, with damping d

    B  =  d I + (1 - d) J,      J  =  dF/dm,

so that it decays if the spectral radius of B is below one (Mooij and Kappen 2005). The radius is estimated by
Arnoldi's method (1951): a few products with B', whose eigenvalues are those of B, span a space, and the largest
eigenvalue of B' restricted to that space is taken. Each component has its own space, which starts from a
random vector.
"""

from __future__ import annotations

import numpy as np

from isinglass.graph.message_graph import entry_components
from isinglass.inference.algorithm import FixedPoint
from isinglass.kernels.layout import Edges
from isinglass.potentials import Potentials
from isinglass.segments import place_in
from isinglass.typing import FloatArray, IntArray, Mask

PRODUCTS, ROOM = 80, 2**28  # the most products, and the most bytes for the vectors that they give
NOTHING = 1e-10  # of a product's length, and of one: what is left of it is no larger, so that it is rounding


def spectral_radii(equations: FixedPoint, edges: Edges, n_components: int, damping: float) -> FloatArray:
    """Estimate the spectral radius of the damped iteration of each component."""
    space = _Space(entry_components(edges), n_components)
    products = min(PRODUCTS, max(20, ROOM // (8 * max(1, len(space.owner)))))
    change = space.normalised(noise_of_messages(edges, 0))
    basis, restricted = [change], np.zeros((n_components, products, products))
    for k in range(products):
        change = damping * change + (1 - damping) * equations.back(change)[0].real
        before = space.lengths(change)
        for _ in range(2):  # the second time for rounding
            for j, one in enumerate(basis):
                along = space.dot(one, change)
                change = change - along[space.owner] * one
                restricted[:, j, k] += along
        change = space.normalised(change, NOTHING * np.maximum(before, 1.0))
        if k + 1 == products or not change.any():
            break
        restricted[:, k + 1, k] = space.last
        basis.append(change)
    radii: FloatArray = np.abs(np.linalg.eigvals(restricted)).max(axis=1, initial=0.0)
    return radii


def coupled_components(potentials: Potentials) -> Mask:
    """Tell which components have a table of several variables that is not constant.

    Without one, messages do not depend on others: there is one fixed point, and the first iteration reaches it.
    """
    coupled, component = np.zeros(potentials.graph.n_components, bool), potentials.graph.factor_component
    for group, tables, ids in zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity > 1:
            flat = tables.reshape(len(tables), -1)
            differ = (flat != flat[:, :1]).any(axis=1)
            coupled[component[group.factors[differ[ids]]]] = True
    return coupled


class _Space:
    """Vectors of message entries, with a length for each component."""

    def __init__(self, owner: IntArray, n: int) -> None:
        self.owner, self.n, self.last = owner, n, np.zeros(n)

    def dot(self, one: FloatArray, two: FloatArray) -> FloatArray:
        """Multiply component by component."""
        return np.bincount(self.owner, one * two, self.n).astype(np.float64, copy=False)

    def lengths(self, values: FloatArray) -> FloatArray:
        """Return the length of each component."""
        lengths: FloatArray = np.sqrt(self.dot(values, values))
        return lengths

    def normalised(self, values: FloatArray, least: FloatArray | float = 0.0) -> FloatArray:
        """Divide by the lengths, which are kept in `last`; what is no longer than `least` becomes zero."""
        lengths = self.lengths(values)
        self.last = np.where(lengths > least, lengths, 0.0)
        scale: FloatArray = np.divide(1.0, self.last, out=np.zeros(self.n), where=self.last > 0)
        return values * scale[self.owner]


def noise_of_messages(edges: Edges, seed: int) -> FloatArray:
    """Draw a normal number for each entry of a message, by its place in its component alone."""
    place = place_in(entry_components(edges))
    noise: FloatArray = np.random.default_rng(seed).normal(size=int(place.max(initial=-1)) + 1)[place]
    return noise
