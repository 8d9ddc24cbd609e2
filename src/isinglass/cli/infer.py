"""``isinglass infer``: log Z, marginals or a most probable assignment of a model, in the UAI formats."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_json, add_model, add_quiet, memory_bytes
from isinglass.cli.report import Silence, check_writable, emit, json_text, progress_on_stderr, say
from isinglass.errors import InputError, require

if TYPE_CHECKING:
    from isinglass.inference import Algorithm, Assignment, Cost, Info, Result, Solver
    from isinglass.potentials import Potentials
    from isinglass.typing import JsonObject

    Chosen = type[Algorithm] | type[Solver]

_LOG_10 = math.log(10.0)
_SUMMARY = "compute log Z (PR), marginals (MAR) or a most probable assignment (MAP)"
_TEXT = """Infer on a model. The result is written in the format of the UAI competitions:
  PR   the decimal logarithm of the partition function Z (of Z with the evidence, if there is some)
  MAR  the marginal distribution of each variable
  MAP  the most probable state of each variable, all together
A report of one line goes to stderr: algorithm, log Z or score, whether it converged, what was needed, seconds. While
an iterative algorithm runs, a terminal shows its iteration and residual; a pipe gets a line every ten seconds."""
_EXAMPLES = """  isinglass infer model.uai
  isinglass infer model.uai.gz --task PR --memory 12GB
  isinglass infer model.uai --task MAR --evidence model.uai.evid --out model.MAR
  isinglass infer model.fg --task MAP --json --quiet"""


@dataclass(frozen=True)
class Answer:
    """A result as text in its UAI format, as fields for JSON, and as a line for people."""

    text: str
    fields: JsonObject
    line: str


_ITERATIVE = (
    ("--iterations", int, "N", "run exactly so many iterations (default: until --tol)"),
    ("--tol", float, "X", "stop when no message changes by more (default: 1e-8)"),
    ("--max-iter", int, "N", "stop after so many iterations at the latest (default: 1000)"),
    ("--damping", float, "X", "share of the old message, from 0 to below 1 (default: 0, trw 0.3)"),
    ("--schedule", str, "NAME", "auto, flooding, tree, grid, sequential or residual (default: auto)"),
)


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "infer", run, _SUMMARY, _TEXT, _EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "--task", type=str.upper, choices=("PR", "MAR", "MAP"), default="MAR", help="what to compute (default: MAR)"
    )
    text = "see: isinglass algorithms (default: exact if it fits in memory; the report names the algorithm)"
    parser.add_argument("--algorithm", metavar="NAME", help=text)
    text = "memory limit, such as 12GB or 500MiB; a model that needs more is refused (default: half of the free memory)"
    parser.add_argument("--memory", metavar="SIZE", help=text)
    text = "exact: repetitions of the search for an elimination order (default: a few on hard models, and "
    text += "some seconds of search if the result does not fit in memory)"
    parser.add_argument("--restarts", type=int, metavar="N", help=text)
    text = "threads; -1: one for each processor; the result does not depend on it (default: ISINGLASS_THREADS, or 1)"
    parser.add_argument("--jobs", type=int, metavar="N", help=text)
    text = "--task MAP: time limit of the solver, which then returns the best assignment so far (default: none)"
    parser.add_argument("--seconds", type=float, metavar="X", help=text)
    text = "seed of algorithms that draw random numbers (default: that of the algorithm; see its class)"
    parser.add_argument("--random-state", type=int, metavar="N", help=text)
    for flag, kind, metavar, text in _ITERATIVE:
        parser.add_argument(flag, type=kind, metavar=metavar, help=f"iterative algorithms: {text}")
    parser.add_argument("--out", metavar="FILE", help="where to write the result; .gz compresses (default: stdout)")
    add_json(parser, "the result")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read, infer, write."""
    from isinglass.io import read_model

    limit = memory_bytes(arguments.memory)
    algorithm = _algorithm(arguments.algorithm, arguments.task)
    check_writable(arguments.out, arguments.model, arguments.evidence)
    potentials = read_model(arguments.model, arguments.evidence)
    options = _memory_options(algorithm, limit, potentials) | _iterative_options(algorithm, arguments)
    given = {name: getattr(arguments, name) for name in ("restarts", "random_state", "seconds")}
    given["n_jobs"] = arguments.jobs
    options |= {option: value for option, value in given.items() if value is not None}
    if arguments.task == "PR" and _has_option(algorithm, "beliefs"):
        options["beliefs"] = False  # log Z alone
    answer_to = _most_probable if arguments.task == "MAP" else _beliefs
    bounded = algorithm is None or not _iterates(algorithm) or arguments.iterations is not None
    with progress_on_stderr(arguments.quiet, bounded) as progress:
        answer = answer_to(potentials, algorithm, arguments.task, options, progress)
    head = {"model": arguments.model, "task": arguments.task, "n_observed": len(potentials.evidence)}
    remedy = "name another algorithm, or give --json"
    require(arguments.json or answer.text, "--algorithm", "one that finds log Z of this model", answer.line, remedy)
    emit(json_text(head | answer.fields) if arguments.json else answer.text, arguments.out)
    if not arguments.quiet:
        say(answer.line)


def _algorithm(name: str | None, task: str) -> Chosen | None:
    """Look the algorithm up, before the model is read; None leaves the choice to the library."""
    from isinglass.inference import ALGORITHMS, SOLVERS

    if name is None:
        return None
    if task == "MAP" and name in SOLVERS:
        return SOLVERS[name]
    able = [other for other, cls in ALGORITHMS.items() if _serves(cls, task)]
    able += list(SOLVERS) if task == "MAP" else []
    if name in SOLVERS:
        raise InputError("--algorithm", f"one for --task {task} ({', '.join(map(repr, able))})", repr(name))
    if ALGORITHMS[name].name not in able:
        does = {"MAP": "finds a most probable assignment", "PR": "finds log Z", "MAR": "finds marginals"}[task]
        expected = f"one that {does}, for --task {task} ({', '.join(map(repr, able))})"
        raise InputError("--algorithm", expected, repr(name))
    return ALGORITHMS[name]


def _serves(cls: type[Algorithm], task: str) -> bool:
    """Tell whether an algorithm has an answer to the task; max-marginals are neither log Z nor marginals."""
    if task == "MAP":
        return bool(cls.facts.maximises)
    return cls.facts.semiring == "sum" and (task == "MAR" or cls.facts.log_z)


def _has_option(algorithm: Chosen | None, name: str) -> bool:
    """Tell whether an algorithm, by default exact, has an option."""
    from isinglass.inference import Exact

    return name in {f.name for f in fields(algorithm or Exact)}  # type: ignore[arg-type]


def _iterates(algorithm: Chosen) -> bool:
    """Tell whether --tol and its like are for this algorithm; solvers have options of their own."""
    from isinglass.inference import Solver

    return not issubclass(algorithm, Solver) and algorithm.facts.iterative


def _memory_options(algorithm: Chosen | None, limit: int | None, potentials: Potentials) -> JsonObject:
    """Pass the limit to an algorithm that takes one; compare it with the cost of one that does not."""
    from isinglass.inference import Solver
    from isinglass.runtime.memory import require_memory
    from isinglass.validation import bytes_text

    if limit is None:
        return {}
    if algorithm is None or _has_option(algorithm, "memory_limit"):
        return {"memory_limit": limit}
    if issubclass(algorithm, Solver):
        raise InputError("--memory", "an algorithm that takes a limit", repr(algorithm.name), "leave it out")
    needed = algorithm().cost(potentials).bytes
    require_memory(needed, limit, f"{algorithm.name} needs {bytes_text(needed)}", "raise --memory")
    return {}


def _iterative_options(algorithm: Chosen | None, arguments: argparse.Namespace) -> JsonObject:
    """Collect what was given for iterative algorithms; refuse it for others."""
    from isinglass.inference import ALGORITHMS

    names = {flag: flag[2:].replace("-", "_") for flag, *_ in _ITERATIVE}
    chosen = {flag: name for flag, name in names.items() if getattr(arguments, name) is not None}
    if chosen and (algorithm is None or not _iterates(algorithm)):
        got = "the default, exact" if algorithm is None else repr(algorithm.name)
        able = ", ".join(key for key, cls in ALGORITHMS.items() if cls.facts.iterative)
        raise InputError(next(iter(chosen)), f"an iterative algorithm (--algorithm {able})", got)
    return {name: getattr(arguments, name) for name in chosen.values()}


def _beliefs(
    potentials: Potentials,
    algorithm: Chosen | None,
    task: str,
    options: JsonObject,
    progress: Silence,
) -> Answer:
    """Compute log Z and, for MAR, give the marginals too."""
    from isinglass.inference import infer
    from isinglass.io.formats.results import mar_text, pr_text

    name = None if algorithm is None else algorithm.name
    result = infer(potentials, name, progress=progress, **options)
    cost = _cost(result.info.algorithm, options, potentials)
    values: JsonObject = {"log_z": result.log_z, "log10_z": result.log_z / _LOG_10, **asdict(result.info)}
    values |= {"bytes": cost.bytes, "steps": cost.steps}
    if task == "PR":
        text = pr_text(result.log_z) if math.isfinite(result.log_z) else ""
        return Answer(text, values, _belief_line(result, cost.text))
    values["marginals"] = [belief.tolist() for belief in result.variables]
    return Answer(mar_text(result.variables), values, _belief_line(result, cost.text))


def _most_probable(
    potentials: Potentials,
    algorithm: Chosen | None,
    task: str,
    options: JsonObject,
    progress: Silence,
) -> Answer:
    """Maximise. What an algorithm needs is found first; a solver is priced by its time limit alone."""
    from isinglass.inference import ALGORITHMS, map_assignment
    from isinglass.io.formats.results import map_text

    name = "exact" if algorithm is None else algorithm.name
    cost = _cost(name, options, potentials) if name in ALGORITHMS else None
    start = time.perf_counter()
    found = map_assignment(potentials, name, progress=progress, **options)
    seconds = time.perf_counter() - start
    values = {
        "algorithm": name,
        "score": found.score,
        "log10_score": found.score / _LOG_10,
        "score_bound": found.bound,
        "optimal": found.optimal,
        "seconds": seconds,
        "states": found.states.tolist(),
    }
    stopped = f"stopped at {progress.last}; " if algorithm is not None and _iterates(algorithm) else ""
    if found.info is not None:
        stopped = f"{found.info.iterations} iterations, stopped: {found.info.stopped}"
        values |= {"iterations": found.info.iterations, "stopped": found.info.stopped, "did": found.info.did}
    if cost is not None:
        values |= {"bytes": cost.bytes, "steps": cost.steps}
        stopped += cost.text
    return Answer(map_text(found.states), values, _score_line(name, found, stopped, seconds))


def _cost(name: str, options: JsonObject, potentials: Potentials) -> Cost:
    """Price an algorithm; threads do not change that."""
    from isinglass.inference.algorithm import make

    return make(name, {option: value for option, value in options.items() if option != "n_jobs"}).cost(potentials)


def _belief_line(result: Result, cost: str) -> str:
    from isinglass.inference import ALGORITHMS

    info = result.info
    bound = {"exact": "exact", "upper": "an upper bound", "lower": "a lower bound"}.get(info.bound or "", "no bound")
    if info.stderr is not None:
        bound = f"standard error {info.stderr:.2g}"
    log_z = f"log Z = {result.log_z:.9g} (log10 Z = {result.log_z / _LOG_10:.9g}), {bound}; "
    return (
        f"{info.algorithm}: {log_z if ALGORITHMS[info.algorithm].facts.log_z else ''}"
        f"{_convergence(info)}{cost}; {info.seconds:.3g} s"
    )


def _convergence(info: Info) -> str:
    """Say whether an iterative or stochastic algorithm converged; the others say nothing."""
    from isinglass.inference import ALGORITHMS

    facts = ALGORITHMS[info.algorithm].facts
    if not (facts.iterative or facts.stochastic):
        return ""
    verdict = "converged" if info.converged else "NOT converged"
    count = f"{info.iterations} iteration{'' if info.iterations == 1 else 's'}"
    return f"{verdict} after {count}, {'standard error' if facts.stochastic else 'residual'} {info.residual:.2g}; "


def _score_line(name: str, found: Assignment, cost: str, seconds: float) -> str:
    limit = f"no assignment scores above {found.bound:.9g}" if math.isfinite(found.bound) else "no bound"
    proof = "optimal" if found.optimal else f"not proved optimal, {limit}"
    return f"{name}: score = {found.score:.9g} (log10 {found.score / _LOG_10:.9g}), {proof}; {cost}; {seconds:.3g} s"
