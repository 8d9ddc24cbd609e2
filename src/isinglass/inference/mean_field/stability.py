"""Whether a fixed point of mean field is a maximum of its bound or a saddle point.

Let C be the covariances that the beliefs q give to the indicators of states (block by block: of a variable, or of a
tree), and W the second derivative of the expected log tables by q. To first order a change v of the effective
potentials t moves the beliefs by C v, and these move the potentials to W C v. The second derivative of the bound by q
is W - C^-1, on changes that keep q normalised: the fixed point is a maximum, and the ascent comes back to it, if the
largest eigenvalue of W C is below one (Wainwright and Jordan 2008, section 5.3.2).

W C is symmetric in the inner product <u, v> = u'C v. So Lanczos' method (Golub and Van Loan 2013, chapter 10) finds the
largest eigenvalue in a few products, from below: a value above one proves a saddle point, and its vector points to
where the bound is larger. All components take their steps together, each with numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isinglass.segments import Largest, place_in, sum_at
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, generator

PRODUCTS = 30
NOTHING = 1e-13  # of the first vector's size: what is left is rounding
Product = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Leading:
    """The largest eigenvalue of each component, and its vector over states, with a largest entry of one."""

    values: FloatArray  # (components,)
    vector: FloatArray  # (states,)


def seeded(random_state: RandomState, owner: IntArray, state: IntArray) -> FloatArray:
    """Draw a number for each state, by its place inside its component alone.

    States of equal number have a part in common: where all variables lean to the same side, the ascent need not move
    borders between parts that lean to different ones.
    """
    place = place_in(owner)
    shared, own = generator(random_state).spawn(2)
    common = shared.standard_normal(int(state.max(initial=-1)) + 1)[state]
    drawn: FloatArray = common + 0.1 * own.standard_normal(int(place.max(initial=-1)) + 1)[place]
    return drawn


def leading(covariance: Product, coupling: Product, start: FloatArray, owner: IntArray, n: int) -> Leading:
    """Find the leading eigenvalue of W C by Lanczos' method, from a change `start` of the potentials."""
    vectors: list[FloatArray] = []
    images: list[FloatArray] = []
    alphas, betas = np.zeros((PRODUCTS, n)), np.zeros((PRODUCTS, n))
    u, least = start, None
    for k in range(PRODUCTS):
        for v, w in zip(vectors, images, strict=True):  # again, against rounding
            u = u - sum_at(owner, w * u, n)[owner] * v
        image = covariance(u)
        size = np.sqrt(np.maximum(sum_at(owner, u * image, n), 0))
        least = NOTHING * size if least is None else least
        scale = np.where(size > least, 1 / np.where(size > 0, size, 1), 0)
        if not scale.any():
            break
        betas[k] = size * (scale > 0)
        vectors.append(u * scale[owner])
        images.append(image * scale[owner])
        u = coupling(images[-1])
        alphas[k] = sum_at(owner, images[-1] * u, n)
    m = len(vectors)
    if m == 0:
        return Leading(np.zeros(n), np.zeros_like(start))
    matrix = np.zeros((n, m, m))
    at = np.arange(m)
    matrix[:, at, at] = alphas[:m].T
    matrix[:, at[1:], at[:-1]] = betas[1:m].T
    values, found = np.linalg.eigh(matrix)
    vector = sum(found[:, k, -1][owner] * v for k, v in enumerate(vectors))
    top = Largest(owner, n)(np.asarray(vector))
    return Leading(values[:, -1], np.asarray(vector / np.where(top > 0, top, 1)[owner]))


def slope(f: Callable[[Array], Array], at: Array, along: FloatArray, size: FloatArray) -> FloatArray:
    """Differentiate by central differences of a step of `size`, for each entry, over what stays finite."""
    with np.errstate(invalid="ignore"):
        difference = f(at + size * along).real - f(at - size * along).real
    return np.where(np.isfinite(difference), difference, 0) / (2 * size)
