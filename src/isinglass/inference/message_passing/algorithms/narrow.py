"""Messages in float32: half of the memory of messages and tapes, and twice as many numbers in a vector.

The loops over planes (regular grids, see `moves.planes`) then work on float32: potentials, tables, messages, and
derivatives by messages. All else is float64: potentials that come in, the read-out of beliefs and log Z, its reverse,
and sums of derivatives over many sites. At a fixed point log Z is stationary in the messages, so their rounding enters
it to second order only.

Range. A product of table entries and messages below 1e-25 (float64: 1e-290) counts as an underflow. A component with
such a product, or with hard zeros, is run again from its start with float64, and, if it must, with logarithms: what it
gives then is, bit by bit, what ``dtype="float64"`` gives with the same tolerance, whatever lies beside it in a batch.

Tolerance. With u = 2^-24, rounding alone moves the logarithm of a message of k states by an oscillation of at most
2 (k + 4) u: a product of four numbers, a sum of k products, the tables themselves. Two iterations at a fixed point
differ by twice that at most, so that the residual, tanh(osc / 4), falls to (k + 4) u or below. The least tolerance is
four times that, 1.4e-6 for two states. Measured on 280 random grids, and on 32 close to the critical point: 3e-7.

Elsewhere float32 gains nothing: loops that go from variable to variable are not bound by memory, nor vectors; measured,
they take as long as with float64 (flooding) or 1.1 times as long (its reverse). So other graphs are refused, and so are
damping, counting numbers and complex potentials, which those loops serve.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing.moves.lattices import lattice_of
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Plan
from isinglass.kernels.backend import message_passing_kernels
from isinglass.kernels.layout import NARROW, WIDE
from isinglass.potentials import Potentials
from isinglass.typing import DType

UNIT = 2.0**-24  # the largest relative error of a rounding
NAMES: dict[object, DType] = {"float64": WIDE, "float32": NARROW}
REMEDY = "float32 serves undamped flooding or grid sweeps, with real potentials, on regular grids of one size"


def dtype_of(name: object) -> DType:
    """Return the dtype of a name.

    Examples
    --------
    >>> dtype_of("float32").itemsize
    4
    """
    if not isinstance(name, str) or name not in NAMES:
        raise InputError("dtype", " or ".join(map(repr, NAMES)), f"{name!r:.40}")
    return NAMES[name]


def name_of(dtype: object) -> object:
    """Return the name of a dtype that is given as NumPy has it; anything else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> name_of(np.float32), name_of(np.dtype("float64")), name_of("float32"), name_of(3)
    ('float32', 'float64', 'float32', 3)
    """
    given = isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic))
    return np.dtype(dtype).name if given else dtype  # type: ignore[call-overload]


def narrowed(plan: Plan, potentials: Potentials) -> Plan:
    """Return a plan with float32, and a tolerance that it can reach; refuse what it cannot serve."""
    schedules = {part.schedule for part in plan.parts if part.wanted.any()}
    refused = {
        "complex potentials, as derivatives by complex steps have": potentials.dtype.kind == "c",
        "graphs other than regular grids of one size": lattice_of(potentials.graph) is None,
        "schedules other than 'flooding' and 'grid'": not schedules <= {"flooding", "grid"},
        "damping": plan.damping != 0,
        "kernels without loops for grids": message_passing_kernels().grids is None,
    }
    for what, true in refused.items():
        if true:
            raise InputError("dtype", f"'float64' for {what}", "'float32'", REMEDY)
    return replace(plan, dtype=NARROW, tol=max(plan.tol, least_tol(potentials.graph)))


def least_tol(graph: FactorGraph) -> float:
    """Return the least tolerance that messages in float32 certainly reach.

    Examples
    --------
    >>> import isinglass as ig
    >>> round(least_tol(ig.grid_graph(2, 2, 2)), 9)
    1.431e-06
    """
    return 4 * (int(graph.cards.max(initial=1)) + 4) * UNIT


def narrow_share(outcome: Outcome) -> float:
    """Return the share of components whose messages were float32."""
    kept = sum(int(run.wanted.sum()) for run, _ in outcome.runs if run.is_narrow)
    return kept / max(1, len(outcome.converged))
