"""Other solvers for convex free energies, for comparison with Newton's method; one file each.

All of them set the beliefs of a `Newton`, whose system they share. On small graphs of mixed arity, with weights in
[.1, 1], all of them and Newton's method agree in every belief to 1e-8, and with a conic solver to 1e-7.
"""

from isinglass.inference.free_energy.solvers.blocks import blocks
from isinglass.inference.free_energy.solvers.dual import dual
from isinglass.inference.free_energy.solvers.lbfgs import cg, lbfgs
from isinglass.inference.free_energy.solvers.messages import messages
from isinglass.inference.free_energy.solvers.primal import primal
from isinglass.inference.free_energy.solvers.shared import Solver

SOLVERS: dict[str, Solver] = {
    "primal": primal,
    "blocks": blocks,
    "dual": dual,
    "lbfgs": lbfgs,
    "cg": cg,
    "messages": messages,
}

__all__ = ["SOLVERS", "Solver"]
