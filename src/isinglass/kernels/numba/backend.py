"""Message passing by Numba: one method for each loop, which is imported (and compiled) when it is first called."""

from __future__ import annotations

from typing import Any

from isinglass.kernels.backend import GridKernels, MessageRun
from isinglass.kernels.layout import LANES, Bars, BeliefBars, Beliefs, Queue, Status, Values
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray, Mask


class NumbaPairs:
    """The loops of `messages.pairs`."""

    def flood(self, run: MessageRun, partner: IntArray, values: Values, new: Array, status: Status) -> None:
        """Update all links at once."""
        from isinglass.kernels.numba.messages.pairs import flood_pairs

        run.calls(
            flood_pairs, run.edges, partner, run.span, values, run.m, new, run.damping, *status, run.scratch,
            run.states, run.units,
        )  # fmt: skip

    def flood_back(
        self, run: MessageRun, partner: IntArray, values: Values, new_bar: Array, bars: Bars, moved: Mask
    ) -> None:
        """Reverse `flood`."""
        from isinglass.kernels.numba.messages.pairs import flood_pairs_back

        flood_pairs_back(
            run.edges, partner, run.span, values, run.m, new_bar, bars, moved, run.scratch, run.states, run.units
        )


class NumbaMessagePassing:
    """The loops of `messages`."""

    pairs = NumbaPairs()

    @cached_property
    def grids(self) -> GridKernels:
        """The loops of `grids`."""
        from isinglass.kernels.numba.grids import places
        from isinglass.kernels.numba.grids.read_out import read_out_planes, read_out_planes_back
        from isinglass.kernels.numba.grids.sizes import largest_in_planes
        from isinglass.kernels.numba.messages.changes import effects_in_planes

        return GridKernels(
            flood=_flood,
            flood_back=_flood_back,
            sweep=_sweep,
            sweep_back=_sweep_back,
            sweep_copies=_sweep_copies,
            sweep_stage=_sweep_stage,
            sweep_stage_back=_sweep_stage_back,
            spread=places.spread,
            collect=places.collect,
            spread_tables=places.spread_tables,
            add_tables=places.add_tables,
            effects=effects_in_planes,
            largest=largest_in_planes,
            read_out=read_out_planes,
            read_out_back=read_out_planes_back,
        )

    def take_tops(
        self, rows: FloatArray, out: FloatArray, tops: FloatArray, first: int, last: int
    ) -> tuple[float, float]:
        """Shift rows of log tables."""
        from isinglass.kernels.numba.messages.shifts import take_tops

        least, size = take_tops(rows, out, tops, first, last)
        return float(least), float(size)

    def flood(self, run: MessageRun, values: Values, new: Array, status: Status) -> None:
        """Update all links at once."""
        from isinglass.kernels.numba.messages.passes import flood

        run.calls(
            flood, run.edges, run.span, values, run.m, new, run.n, run.damping, *status[:3], run.scratch, run.states,
            run.units, run.semiring,
        )  # fmt: skip

    def flood_back(
        self, run: MessageRun, values: Values, bars: Bars, moved: Mask, flagged: Mask, sent: bool = False
    ) -> None:
        """Reverse `flood`."""
        from isinglass.kernels.numba.messages.adjoints import flood_back

        flood_back(
            run.edges, run.span, values, run.m, run.n, bars, run.damping, moved, flagged, sent, run.scratch,
            run.states, run.units, run.semiring,
        )  # fmt: skip

    def update_in_sequence(
        self, run: MessageRun, values: Values, sequence: IntArray, log: Array, status: Status
    ) -> None:
        """Update one link after the other."""
        from isinglass.kernels.numba.messages.passes import update_in_sequence

        run.calls(
            update_in_sequence, run.edges, values, sequence, run.m, run.n, log, run.damping, *status[:3], run.scratch,
            run.states, run.units, run.semiring,
        )  # fmt: skip

    def update_in_sequence_back(
        self, run: MessageRun, values: Values, sequence: IntArray, log: Array, bars: Bars, moved: Mask
    ) -> None:
        """Reverse `update_in_sequence`."""
        from isinglass.kernels.numba.messages.adjoints import update_in_sequence_back

        update_in_sequence_back(
            run.edges, values, sequence, run.m, run.n, log, len(log), bars, run.damping, moved, run.scratch,
            run.states, run.units, run.semiring,
        )  # fmt: skip

    def update_by_residual(self, run: MessageRun, values: Values, queue: Queue, status: Status) -> tuple[int, int]:
        """Update the links of largest change."""
        from isinglass.kernels.numba.messages.residual import update_by_residual

        updates, logged = run.calls(
            update_by_residual, run.edges, run.span, values, queue, run.m, run.n, run.damping, *status[:3], run.scratch,
            run.states, run.units, run.semiring,
        )  # fmt: skip
        return updates, logged

    def read_out_variables(self, run: MessageRun, values: Values, beliefs: Beliefs, active: Mask) -> None:
        """Write the beliefs of variables and their normalisers."""
        from isinglass.kernels.numba.messages.read_out import read_out_variables

        read_out_variables(
            run.edges, run.span, values, run.m, beliefs.variables, beliefs.z_variables, active, run.scratch,
            run.states, run.semiring,
        )  # fmt: skip

    def read_out_links(self, run: MessageRun, values: Values, beliefs: Beliefs, active: Mask, flagged: Mask) -> None:
        """Write the beliefs of links and their normalisers."""
        from isinglass.kernels.numba.messages.read_out import read_out_links

        read_out_links(
            run.edges, run.span, values, run.m, run.n, beliefs.factors, beliefs.first_belief, beliefs.z_links, active,
            flagged, run.scratch, run.states, run.units, run.semiring,
        )  # fmt: skip

    def read_out_back(
        self, run: MessageRun, values: Values, beliefs: Beliefs, given: BeliefBars, bars: Bars, active: Mask
    ) -> None:
        """Reverse `read_out`."""
        from isinglass.kernels.numba.messages.adjoints import read_out_back

        read_out_back(
            run.edges, run.span, values, run.m, *beliefs, *given, bars, active, run.scratch, run.states, run.semiring
        )

    def effects(self, run: MessageRun, old: Array, new: Array, status: Status) -> None:
        """Set residuals to what a change of messages can do to a probability."""
        from isinglass.kernels.numba.messages.changes import effects

        run.calls(effects, run.edges, run.span, old, new, run.damping, status.active, status.residual, run.semiring)

    def imaginary_effects(
        self, run: MessageRun, old: Array, new: Array, active: Mask, moved: FloatArray, size: FloatArray
    ) -> None:
        """Measure how far imaginary parts moved, and how large they are."""
        from isinglass.kernels.numba.messages.changes import imaginary_effects

        imaginary_effects(run.edges, old, new, run.damping, active, moved, size, run.semiring)


def _lanes(phi: FloatArray, pitch: int, own: tuple[int, ...]) -> tuple[int, ...]:
    """Return one entry where the loops of `grids.binary` serve: two states, float64, shared tables, and long rows."""
    return (0,) if len(phi) == 2 and phi.itemsize == 8 and not own and pitch >= LANES else ()


def _flood(phi: FloatArray, *arrays: Any) -> float:
    from isinglass.kernels.numba.grids.flooding import flood_grid

    least: float = flood_grid(phi, *arrays, _lanes(phi, pitch=arrays[6], own=arrays[-1]))
    return least


def _flood_back(phi: FloatArray, *arrays: Any) -> None:
    from isinglass.kernels.numba.grids.flooding_back import flood_grid_back

    flood_grid_back(phi, *arrays, _lanes(phi, pitch=arrays[11], own=arrays[-1]))


def _sweep(*arrays: object) -> None:
    from isinglass.kernels.numba.grids.sweeps import sweep_grids

    sweep_grids(*arrays)


def _sweep_copies(*arrays: object) -> float:
    from isinglass.kernels.numba.grids.copies import sweep_copies

    least: float = sweep_copies(*arrays)
    return least


def _sweep_stage(*arrays: object) -> tuple[float, bool]:
    from isinglass.kernels.numba.grids.sweeps import sweep_stage

    residual, suspect = sweep_stage(*arrays)
    return residual, suspect


def _sweep_back(*arrays: object) -> None:
    from isinglass.kernels.numba.grids.sweeps_back import sweep_grids_back

    sweep_grids_back(*arrays)


def _sweep_stage_back(*arrays: object) -> None:
    from isinglass.kernels.numba.grids.sweeps_back import sweep_stage_back

    sweep_stage_back(*arrays)


NUMBA = NumbaMessagePassing()
