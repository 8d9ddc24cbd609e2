"""``isinglass fit``: learn an estimator from a recipe and examples, and write it to a file."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.pages import add_report, prepare_report, write_report
from isinglass.cli.report import check_writable, one_line, print_table, progress_on_stderr, say, to_stdout
from isinglass.errors import InputError

if TYPE_CHECKING:
    from isinglass.cli.examples import Examples

INTERRUPTED = 130
_SUMMARY = "learn an estimator from examples"
_TEXT = """Learn an estimator, as a recipe says, and write it to a model file. The recipe is a TOML file:

  estimator = "chain"        # "chain": sequences; "grid": images; "graph"
  label = -1                 # chain: the column of the labels (default: the last)
  separator = "\\t"           # chain: between columns (default: spaces and tabs)

  scheme = "bioes"           # chain: learn spans, labels B-..., I-..., O, in this scheme (default: as they are)

  [columns]                  # chain: names for the columns that attributes are made of (default: c0, c1, ...)
  w = 0
  t = 1

  [forms]                    # chain: what words look like, as further columns w.lower, w.suffix3, ...: lower, shape,
  w = ["lower", "suffix3"]   # short-shape, is-title, is-upper, is-digit, prefix1 to prefix9, suffix1 to suffix9

  [windows]                  # chain: offsets that are looked at together (default: words up to two tokens away and
  w = [[-1], [0], [-1, 0]]   # pairs for the first column, and triples, too, for the others)
  t = [[0], [-1, 0]]
  "w.lower" = [[-1], [0]]    # (default for forms: the word itself; for lower and short-shape its neighbours, too)

  [options]                  # parameters of the estimator; those of inference, loss and optimizer as names, or as
  l2 = 1.0                   # tables: inference = {name = "bp", damping = 0.1}

DATA is text with one token a line and blank lines between sequences (chain; plain or .gz), or an .npz file: X and Y
(grid), or nodes, node_counts, edges, edge_counts, edge_features (if any) and Y (graph). A label -1 is "not observed".

Ctrl-C ends training; the best parameters so far are written, and the exit code is 130. With --checkpoint, a run that
was killed goes on where it was, to the same bits."""
_THREADS = "threads; results do not depend on them (default: n_jobs of the recipe, else ISINGLASS_THREADS, or 1)"
_EXAMPLES = """  isinglass fit chunk.toml train.txt --model chunk.isg
  isinglass fit digits.toml train.npz --model digits.isg --checkpoint digits.run --jobs 2
  isinglass fit chunk.toml train.txt --model chunk.isg --report page"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "fit", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("config", metavar="CONFIG", help="the recipe, a TOML file")
    parser.add_argument("data", metavar="DATA", help="examples to learn from: text, or .npz")
    parser.add_argument("--model", metavar="FILE", required=True, help="where the fitted estimator is written")
    parser.add_argument("--validation", metavar="FILE", help="examples that end training early (default: none)")
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="keep the state of the run; go on if there (default: none)"
    )
    parser.add_argument("--jobs", metavar="N", type=int, help=_THREADS)
    add_report(parser)
    add_quiet(parser)
    plain = parser.format_help
    parser.format_help = lambda: plain() + _all_options()  # type: ignore[method-assign]


def _all_options() -> str:
    """Return the options of all estimators, from their documentation; looked up when help is asked for."""
    from isinglass.cli.recipe import ESTIMATORS, option_text

    texts = [f"\n[options] of estimator = {name!r}:\n\n{option_text(name)}\n" for name in ESTIMATORS]
    return "".join(texts)


def run(arguments: argparse.Namespace) -> int | None:
    """Fit, write the model, print how it went."""
    from isinglass.cli.examples import Sentences, read_examples
    from isinglass.cli.recipe import Recipe

    recipe = Recipe.read(arguments.config)
    read = (arguments.config, arguments.data, arguments.validation)
    check_writable(arguments.model, *read, arguments.checkpoint, option="--model")
    if arguments.checkpoint is not None:
        check_writable(arguments.checkpoint, *read, option="--checkpoint")
    prepare_report(arguments.report)
    more = {name: value for name, value in (("n_jobs", arguments.jobs),) if value is not None}
    recipe = Recipe(**{**recipe.to_json(), "options": {**recipe.options, **more}})
    crf = recipe.make(checkpoint=arguments.checkpoint)
    data = read_examples(arguments.data, recipe, labelled=True)
    width = data.width if isinstance(data, Sentences) else None
    held_out = None
    if arguments.validation is not None:
        validation = read_examples(arguments.validation, recipe, labelled=True, width=width)
        held_out = (validation.X, validation.Y)
    began = time.perf_counter()
    with progress_on_stderr(arguments.quiet) as progress:
        most = crf.max_iter if isinstance(crf.max_iter, int) and crf.max_iter > 0 else 1
        crf.callback = lambda p: progress(f"iteration {p.iteration}, objective {p.value:.8g}", p.iteration / most)
        crf.fit(data.X, data.Y, validation=held_out)
    crf.set_params(callback=None, checkpoint=None)
    crf.save(arguments.model, notes={"recipe": recipe.to_json(), "columns": width})
    facts = _facts(crf, time.perf_counter() - began)
    if not arguments.quiet:
        print_table(f"wrote {arguments.model}", ["", ""], [[name, str(value)] for name, value in facts.items()])
    if arguments.report is not None:
        path = _page(crf, facts, data, arguments)
        to_stdout("" if arguments.quiet else f"wrote {one_line(path)}\n")
    if crf.message_ == "interrupted":
        say(f"interrupted; the best parameters so far are in {arguments.model}")
        return INTERRUPTED
    return None


def _facts(crf: Any, seconds: float) -> dict[str, object]:
    return {
        "estimator": type(crf).__name__,
        "parameters": len(crf.theta_),
        "iterations": crf.n_iter_,
        "objective": f"{crf.objective_:.8g}",
        "ended": crf.message_,
        "seconds": f"{seconds:.1f}",
    }


def _page(crf: Any, facts: dict[str, object], data: Examples, arguments: argparse.Namespace) -> str:
    """Write the page; return where."""
    from isinglass.cli.pages import training_sections
    from isinglass.io.files import read_text

    sections = training_sections(crf, facts, data, read_text(arguments.config))
    title = f"{type(crf).__name__}, fitted to {os.path.basename(arguments.data)}"
    return write_report(arguments, title, sections)


def opened(path: str) -> tuple[Any, Any, int | None]:
    """Return the estimator of a model file, its recipe, and how many columns its text had."""
    from isinglass.cli.recipe import Recipe
    from isinglass.errors import FileFormatError
    from isinglass.estimators import load, notes_of

    crf, notes = load(path), notes_of(path)
    width = notes.get("columns")
    try:
        recipe = Recipe.of(notes["recipe"])
        if width is not None and (type(width) is not int or not 0 < width < 2**20):
            raise InputError("columns", "a number of columns", f"{width!a:.40}")
    except (KeyError, TypeError, AttributeError, InputError) as error:
        remedy = "the file was not written by `isinglass fit`; load it in Python"
        raise FileFormatError(path, None, "a recipe in the model file", f"{error!s:.100}", remedy) from None
    return crf, recipe, width
