"""Binary digits: J. Domke, *Tractable Learning and Inference in High-Treewidth Graphical Models* (2009), section 6.2.

Every method is trained on 90 noisy digits and tested on 90 others, with the inference that it was trained for; see
`experiments.common.methods`. Its l2 is chosen by one rule, see `experiments.common.selection`. The thesis has one draw
of images and noise; we take the mean over several. The thesis starts all marginal losses from the likelihood with a
convex entropy; we start those of sweeps from the tree-reweighted likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple

from isinglass.datasets import NoisyDigits
from isinglass.typing import Array, JsonObject
from isinglass_experiments.common.experiment import Progress, Report, parallel_map, register, tell
from isinglass_experiments.common.methods import (
    LOSSES,
    METHODS,
    DigitsExperiment,
    Fitted,
    Plan,
    Training,
    checked_method,
    error_text,
    ink,
    mean_losses,
    measured,
    predict,
    start_of,
    starts_of,
    train,
)
from isinglass_experiments.common.selection import MOST, Selected, select
from isinglass_experiments.common.statistics import mean_and_error

NOISE = (0.1, 0.3, 0.5, 0.7)
QUICK_ROWS = ("pixels", "pseudo", "trw", "ucl-1", "ucl-4")
PUBLISHED = {  # table 1.1, and chapter 1 and section 6.2 (where .0134, .0158 and .0106 are misprints of .134, ...)
    "convex": {0.1: 0.0092, 0.3: 0.0304, 0.5: 0.0716, 0.7: 0.158},
    "ucl": {0.1: 0.0104, 0.3: 0.0319, 0.5: 0.0710, 0.7: 0.135},
    "uquad": {0.5: 0.0700, 0.7: 0.134},
    "ucl + entropy": {0.5: 0.059},
    "ucl-4": {0.1: 0.0087, 0.3: 0.0285, 0.5: 0.0599, 0.7: 0.105},
    "uquad-4": {0.5: 0.0601, 0.7: 0.106},
}
_SHOWN = 9  # test digits of a picture panel: one of each


class Job(NamedTuple):
    """What one process does at a time."""

    row: str
    noise: float
    draw: int


@register
@dataclass(frozen=True)
class Digits(DigitsExperiment):
    """Denoise binary digits.

    Parameters
    ----------
    quick : bool
        One draw at 50 % noise, 27 images, few methods, and fewer iterations.
    draws : int, optional
        Draws of images and noise, 0, 1, ...; by default one.
    noise : sequence of float, optional
        By default 0.1, 0.3, 0.5, 0.7.
    rows : sequence of str, optional
        Methods; by default all of `METHODS`.
    all_losses : bool
        Report the other test losses, too.
    n_jobs : int
        Processes that share the work; results do not depend on it.

    Examples
    --------
    >>> Digits(rows=["ucl-4"], draws=10).noise is None
    True
    """

    all_losses: bool = False

    name: ClassVar[str] = "digits"
    summary: ClassVar[str] = "binary digits under noise (Domke 2009, section 6.2): every method's test error"

    def run(self, progress: Progress | None = None) -> Report:
        """Train and test every method on every draw at every noise level."""
        plan = self._plan()
        jobs = [Job(row, noise, draw) for noise in plan.noise for draw in range(plan.draws) for row in plan.rows]
        starts = self._starts(plan, jobs, progress)
        work = [(job, *_before(job, starts), plan, self.all_losses) for job in jobs]
        cells: list[JsonObject] = []
        pictures: dict[str, list[tuple[str, Array]]] = {}
        for job, (cell, shown) in zip(jobs, parallel_map(_run_job, work, self.n_jobs), strict=True):
            tell(progress, f"{job.noise:.0%} noise, draw {job.draw}: {job.row}", (len(cells) + 1) / len(jobs))
            cells.append(cell)
            if job.draw == 0:
                columns = pictures.setdefault(f"digits-{100 * job.noise:g}", list(shown[:2]))
                columns.append(shown[2])
        return _report(plan, cells, self.all_losses, pictures)

    def _starts(self, plan: Plan, jobs: list[Job], progress: Progress | None) -> dict[Job, Selected]:
        """Train what others start from, once for each draw and noise level."""
        needed = list(dict.fromkeys(job._replace(row=row) for job in jobs for row in starts_of(job.row)))
        found: dict[Job, Selected] = {}
        while needed:
            ready = [job for job in needed if (first := start_of(job.row)) is None or job._replace(row=first) in found]
            names = ", ".join(dict.fromkeys(job.row for job in ready))
            tell(progress, f"training what others start from: {names}", 0.0)
            work = [(job, _before(job, found)[1], plan) for job in ready]
            found |= dict(zip(ready, parallel_map(_run_start, work, self.n_jobs), strict=True))
            needed = [job for job in needed if job not in found]
        return found

    def _plan(self) -> Plan:
        training = Training(max_iter=25, tol=1e-4, most=100) if self.quick else Training()
        rows, noise, images = (QUICK_ROWS, (0.5,), 3) if self.quick else (METHODS, NOISE, 10)
        plan = self.plan(rows, noise, images, training)
        for row in plan.rows:
            checked_method(row)
        return plan


def trained(rows: Sequence[str], data: NoisyDigits, training: Training) -> Iterator[tuple[str, Fitted]]:
    """Yield each method as soon as it is trained; what others start from is trained once, when first needed."""
    found: dict[str, Fitted] = {}
    for row in rows:
        for name in (*starts_of(row), row):
            if name not in found:
                first = start_of(name)
                start = None if first is None else found[first].theta
                found[name] = train(name, data.X, data.Y, training, start)
        yield row, found[row]


def _before(job: Job, found: dict[Job, Selected]) -> tuple[Selected | None, Selected | None]:
    """Return a method if it was trained already, and what it starts from."""
    first = start_of(job.row)
    return found.get(job), None if first is None else found[job._replace(row=first)]


def _run_start(job: Job, start: Selected | None, plan: Plan) -> Selected:
    data = plan.data(job.noise, job.draw)
    return select(job.row, data.X, data.Y, plan.training, start)


def _run_job(
    job: Job, found: Selected | None, start: Selected | None, plan: Plan, all_losses: bool
) -> tuple[JsonObject, list[tuple[str, Array]]]:
    """Train and test one method; return what is measured on test images, and pictures of some."""
    data = plan.data(job.noise, job.draw)
    if found is None:
        found = select(job.row, data.X, data.Y, plan.training, start)
    result = predict(found.whole, data.X_test)
    cell: JsonObject = {
        **job._asdict(),
        **measured(found.whole, result, data.Y_test),
        "seconds": found.seconds,
        "l2": found.l2,
        "validation": {f"{l2:g}": wrong for l2, wrong in found.errors.items()},
        "losses": mean_losses(result, data.Y_test) if all_losses else None,
    }
    if "-" in job.row:
        cell["test_converged"] = None
    pictures = [("truth", data.Y_test), ("input", data.X_test[..., 1]), (job.row, ink(result, data.Y_test))]
    return cell, [(title, images[:_SHOWN]) for title, images in pictures]


def _report(
    plan: Plan, cells: list[JsonObject], all_losses: bool, pictures: dict[str, list[tuple[str, Array]]]
) -> Report:
    summaries = [_summary(row, noise, cells) for row in plan.rows for noise in plan.noise]
    columns, rows = _error_table(plan, summaries)
    if all_losses:
        columns, rows = _loss_table(summaries)
    count = 9 * plan.images
    title = f"Binary digits: univariate test error, {count} training and {count} test images, draws: {plan.draws}"
    data = {
        "experiment": "digits",
        "images": count,
        "draws": plan.draws,
        "training": asdict(plan.training),
        "rows": summaries,
    }
    return Report(title, columns, rows, _notes(plan, cells), data, pictures, varied="noise (%)")


def _summary(row: str, noise: float, cells: list[JsonObject]) -> JsonObject:
    """Return one method at one noise level over draws, ready for JSON."""
    mine = [cell for cell in cells if (cell["row"], cell["noise"]) == (row, noise)]
    mean, standard_error = mean_and_error([cell["error"] for cell in mine])
    found: JsonObject = {"row": row, "noise": noise, "error": mean, "standard_error": standard_error}
    found["published"] = PUBLISHED.get(row, {}).get(noise)
    if mine[0]["losses"] is not None:
        found["losses"] = {name: mean_and_error([cell["losses"][name] for cell in mine])[0] for name in LOSSES}
    return {**found, "draws": mine}


def _error_table(plan: Plan, summaries: list[JsonObject]) -> tuple[list[str], list[list[str]]]:
    columns = ["method"]
    for noise in plan.noise:
        columns += [f"{noise:.0%} (l2)", "publ."]
    rows = []
    for row in plan.rows:
        cells = [[error_text(s, _penalty(s)), _known(s)] for s in summaries if s["row"] == row]
        rows.append([row, *(text for pair in cells for text in pair)])
    return columns, rows


def _loss_table(summaries: list[JsonObject]) -> tuple[list[str], list[list[str]]]:
    """One line for each method and noise level, with the other test losses per pixel or per edge."""
    rows = []
    for s in summaries:
        others = [f"{s['losses'][name]:.4f}" for name in LOSSES]
        rows.append([s["row"], f"{s['noise']:.0%}", error_text(s, _penalty(s)), _known(s), *others])
    return ["method", "noise", "error (l2)", "published", *LOSSES], rows


def _penalty(summary: JsonObject) -> str:
    """Write the l2 that was chosen, or the least and the largest over draws, where there is one."""
    chosen = sorted({draw["l2"] for draw in summary["draws"] if draw["l2"] is not None})
    return f" ({' to '.join(f'{l2:g}' for l2 in dict.fromkeys((chosen[0], chosen[-1])))})" if chosen else ""


def _known(summary: JsonObject) -> str:
    return "-" if summary["published"] is None else f"{summary['published']:.4f}"


def _notes(plan: Plan, cells: list[JsonObject]) -> list[str]:
    training = plan.training
    grid = ", ".join(f"{l2:g}" for l2 in sorted(training.grid))
    notes = [
        f"l2 on the sum over images, of {grid}: the one with the least error on the last third of the training images "
        f"after training on the others, at most {min(MOST, training.max_iter)} iterations, for all rows",
        f"L-BFGS, at most {training.max_iter} iterations; LOSS-K: K sweeps of the grid; they and lbp start from trw; "
        f"trw, lbp and pseudo infer to {training.tol:g}, at most {training.most} iterations, pseudo + start from the "
        "noisy picture; LOSS: of a convex energy, from convex",
    ]
    late = sum(not cell["converged"] for cell in cells)
    if late:
        notes.append(
            f"* training did not reach a gradient of 1e-4 of the objective, or inference its tolerance: {late}"
        )
    tests = sorted({f"{cell['row']} at {cell['noise']:.0%}" for cell in cells if cell["test_converged"] is False})
    if tests:
        notes.append(f"inference on test images did not converge: {', '.join(tests)}")
    return notes
