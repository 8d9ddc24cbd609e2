"""Exact solutions of the Ising model on square lattices: Onsager (1944), Kaufman (1949), Yang (1952).

With coupling K and no field, on a torus of m x n sites (Kaufman):

    Z = 1/2 (2 sinh 2K)^(mn/2) [ prod 2 cosh(m g_{2r+1} / 2) + prod 2 sinh(m g_{2r+1} / 2)
                               + prod 2 cosh(m g_{2r} / 2)   + prod 2 sinh(m g_{2r} / 2) ],      r = 0, ..., n - 1
    cosh g_k = cosh 2K coth 2K - cos(pi k / n),   g_0 = 2K + log tanh K,   all others positive

The magnetisation of an infinite lattice is (1 - sinh(2K)^-4)^(1/8) beyond the critical K = log(1 + 2^(1/2)) / 2, and
zero below (Yang).
"""

from __future__ import annotations

import numpy as np

CRITICAL = float(np.log1p(np.sqrt(2.0)) / 2)
STEP = 1e-4  # of the derivative of log Z


def log_z(coupling: float, height: int, width: int) -> float:
    """Return log Z of a torus without field, at a coupling above zero.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.lattice_graph((3, 4), 2, periodic=True)).potentials(coupling=0.4)
    >>> bool(abs(log_z(0.4, 3, 4) - ig.infer(p, "exact").log_z) < 1e-10)
    True
    """
    k, m, n = float(coupling), height, width
    index = np.arange(1, 2 * n)
    cosh = np.cosh(2 * k) / np.tanh(2 * k) - np.cos(np.pi * index / n)
    g = np.concatenate([[2 * k + np.log(np.tanh(k))], np.arccosh(np.maximum(cosh, 1.0))])
    terms, signs = [], []
    for part in (g[1::2], g[0::2]):
        size = m * np.abs(part) / 2
        with np.errstate(divide="ignore"):  # at the critical coupling g_0 is zero
            sinh = np.log(-np.expm1(-2 * size))
        terms += [(size + np.log1p(np.exp(-2 * size))).sum(), (size + sinh).sum()]
        signs += [1.0, float(np.prod(np.sign(part)))]
    top = max(terms)
    total = sum(s * np.exp(t - top) for s, t in zip(signs, terms, strict=True))
    return float(m * n / 2 * np.log(2 * np.sinh(2 * k)) - np.log(2) + top + np.log(total))


def energy(coupling: float, height: int, width: int) -> float:
    """Return the energy of a site of a torus: minus the mean of the sum of s_i s_j over the links, by site.

    Examples
    --------
    >>> round(energy(CRITICAL, 64, 64), 3)  # of an infinite lattice: -1.414
    -1.424
    """
    ahead, behind = (log_z(coupling + step, height, width) for step in (STEP, -STEP))
    return -(ahead - behind) / (2 * STEP) / (height * width)


def magnetisation(coupling: float) -> float:
    """Return the spontaneous magnetisation of an infinite lattice.

    Examples
    --------
    >>> magnetisation(0.4), round(magnetisation(0.5), 4)
    (0.0, 0.9113)
    """
    return 0.0 if coupling <= CRITICAL else float((1 - np.sinh(2 * coupling) ** -4) ** 0.125)
