"""The sum of objectives over blocks of examples, in their order, whoever works on them.

    f(theta)  =  sum_b f_b(theta)  +  sum_j l2_j theta_j²

Which examples are in a block does not depend on the number of threads, each block is worked on by one thread, and the
blocks are added up in their order: so any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from isinglass.learning.objective import Objective
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray

BLOCK = 8192  # variables in a block: 10 images of 28 x 28, whose messages fit in a cache
LARGEST = 4 * BLOCK  # in large data: a fit takes 12 to 26 % less time, as each block has the same cost in Python
WANTED = 32  # blocks, for many threads, before they get larger
MOST_ENTRIES = 2**23  # of the planes of all examples, if they are kept
T = TypeVar("T")


@dataclass(eq=False)
class Total:
    """A function of the parameters: ``total(theta)`` returns its value and gradient.

    Parameters
    ----------
    parts : sequence of Objective
        Of the same parameters, each without a penalty.
    l2 : float or array (size,)
        The penalty of each parameter, or of all; with stages, for each of them.
    jobs : int
        How many threads work on the parts.
    examples : callable, optional
        Returns an objective for each example alone, for `planes`; called when first needed.
    keep : callable, optional
        Called after each evaluation, when all parts are done, for losses that keep something of each example.
    """

    parts: Sequence[Objective]
    l2: float | FloatArray = 0.0
    jobs: int = 1
    examples: Callable[[], Sequence[Objective]] | None = None
    keep: Callable[[Sequence[Objective]], None] | None = None

    def __post_init__(self) -> None:
        self.proved = True  # so far; see `Proving`
        self.spread = ThreadMap(min(self.jobs, len(self.parts)))

    @property
    def size(self) -> int:
        """Length of theta."""
        return self.parts[0].size

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        penalty = self.l2 * np.ones(self.size)
        value, gradient = float((penalty * theta**2).sum()), 2 * penalty * theta
        for losses, slope in self._each(lambda part: part.parts(theta)):
            value, gradient = value + float(losses.sum()), gradient + slope
        if self.keep is not None:
            self.keep(self.parts)
        self.proved = self.proved and all(part.proved for part in self.parts)
        return value, gradient

    def hessian_product(self, theta: FloatArray, v: FloatArray) -> FloatArray:
        """Return the Hessian, with penalties, times a vector."""
        total = 2 * self.l2 * np.ones(self.size) * v
        for product in self._each(lambda part: part.hessian_product(theta, v)):
            total = total + product
        return total

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties; no gradient is computed."""
        return sum(self._each(lambda part: float(part.losses(theta).sum())))

    @property
    def least(self) -> float:
        """What it is never below, if all maxima in it are exact."""
        return sum(part.least for part in self.parts)

    @property
    def n_examples(self) -> int:
        """The number of examples."""
        return sum(part.model.graph.n_components for part in self.parts)

    @cached_property
    def _each_example(self) -> Sequence[Objective]:
        assert self.examples is not None
        return self.examples()

    def planes(self, theta: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of some examples, without penalties, and their derivatives (rows, size)."""
        if self._few is not None:
            offsets, slopes = self._few
            values = offsets[rows] + slopes[rows] @ theta
            best = values.argmax(axis=1)
            return values[np.arange(len(rows)), best], slopes[rows, best]
        chosen = [(self._each_example[i],) for i in rows.tolist()]
        found = self.spread.with_blas(lambda one: one.parts(theta), chosen)
        self.proved = self.proved and all(one.proved for (one,) in chosen)
        return np.array([float(value.sum()) for value, _ in found]), np.array([slope for _, slope in found])

    @cached_property
    def _few(self) -> tuple[FloatArray, FloatArray] | None:
        """All planes of all examples, their values at zero (examples, planes) and slopes, where these are few."""
        found = []
        for one in self._each_example:
            planes = one.planes()
            if planes is None or len(planes[0]) * len(self._each_example) * self.size > MOST_ENTRIES:
                return None
            found.append(planes)
        most = max(len(values) for values, _ in found)
        offsets = np.full((len(found), most), -np.inf)
        slopes = np.zeros((len(found), most, self.size))
        for i, (values, each) in enumerate(found):
            offsets[i, : len(values)], slopes[i, : len(values)] = values, each
        return offsets, slopes

    def completed(self, theta: FloatArray) -> Total:
        """Return the function with the hidden labels that are best at theta, whatever its argument."""
        found = self._each(lambda part: part.best_completion(theta))
        parts = [replace(part, completion=states) for part, states in zip(self.parts, found, strict=True)]

        def examples() -> list[Objective]:
            alone = self._each_example
            cuts = np.cumsum([len(one.labels) for one in alone])[:-1]
            pairs = zip(alone, np.split(np.concatenate(found), cuts), strict=True)
            return [replace(one, completion=states) for one, states in pairs]

        return Total(parts, self.l2, self.jobs, examples)

    @property
    def iterations(self) -> int:
        """The most iterations that an inference took in the last evaluation."""
        return max((info.iterations for part in self.parts for info in part.infos), default=0)

    @property
    def converged_share(self) -> float:
        """The share of examples of which it is known that every inference converged."""
        counts = [part.model.graph.n_components for part in self.parts]
        missing = [min(1.0, sum(1 - info.converged_share for info in part.infos)) for part in self.parts]
        return 1 - sum(count * share for count, share in zip(counts, missing, strict=True)) / sum(counts)

    def _each(self, work: Callable[[Objective], T]) -> list[T]:
        """Do the work for each part; results are in the order of the parts."""
        return self.spread.with_blas(work, [(part,) for part in self.parts])


def block_size(variables: int, least: int = BLOCK, most: int = LARGEST, wanted: int = WANTED) -> int:
    """Return how many variables each of some blocks may have.

    Examples
    --------
    >>> block_size(1000), block_size(500_000), block_size(10**7)
    (8192, 15625, 32768)
    """
    return min(most, max(least, variables // wanted))


def blocks(sizes: IntArray, most: int | None = None) -> list[slice]:
    """Cut examples of some sizes into runs of at most `most` variables, by default `block_size`, or of one example.

    Examples
    --------
    >>> blocks(np.array([3, 3, 3, 9, 1]), most=6)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    most = block_size(int(sizes.sum())) if most is None else most
    starts, total = [0], 0
    for i, size in enumerate(sizes.tolist()):
        if total and total + size > most:
            starts.append(i)
            total = 0
        total += size
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(sizes)], strict=True)]
