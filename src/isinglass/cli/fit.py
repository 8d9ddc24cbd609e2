"""``isinglass fit``: learn an estimator from a recipe and examples, and write it to a file."""

from __future__ import annotations

import argparse
import math
import os
import re
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.pages import add_report, prepare_report, write_report
from isinglass.cli.report import check_writable, one_line, print_table, progress_on_stderr, say, to_stdout
from isinglass.errors import FileFormatError, InputError, require
from isinglass.registry import did_you_mean
from isinglass.removed import refuse_removed

INTERRUPTED = 130
Recipe = dict[str, Any]
_CLASSES = {"chain": "ChainCRF", "grid": "GridCRF", "graph": "GraphCRF"}
_NOT_HERE = ("callback", "checkpoint", "verbose", "warm_start")  # options of the command, or of no file
_MOST = 10**9  # that a whole number in a recipe may be
_MANY_PARTS = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++\s*+\.\s*+){9}""")  # tomllib takes quadratic time and memory
_ENTRIES: dict[str, tuple[Any, Callable[[Any], object], str]] = {  # its default, what is right, and that in words
    "estimator": ("nothing", lambda given: given in tuple(_CLASSES), "'chain' or 'grid' or 'graph'"),
    "label": (-1, lambda given: type(given) is int, "the number of a column, from 0, or from the end: -1"),
    "separator": (None, lambda given: given is None or _separates(given), "text between columns"),
    "scheme": (None, lambda given: given in (None, "bio", "bioes"), "'bio' or 'bioes'"),
    "options": ({}, lambda given: isinstance(given, dict), "a table"),
}
_SUMMARY = "learn an estimator from examples"
_TEXT = """Learn an estimator, as a recipe says, and write it to a model file. The recipe is a TOML file:

  estimator = "chain"        # "chain": sequences; "grid": images; "graph"
  label = -1                 # chain: the column of the labels, from 0; -1 is the last (default)
  separator = "\\t"           # chain: between columns (default: spaces and tabs)
  scheme = "bioes"           # chain: learn spans, labels B-..., I-..., O, in this scheme (default: as they are)

  [options]                  # parameters of ChainCRF, GridCRF or GraphCRF: see python -m pydoc isinglass.ChainCRF
  l2 = 1.0

DATA is text with one token a line and blank lines between sequences (chain; plain or .gz), or an .npz file: X and Y
(grid), or nodes, node_counts, edges, edge_counts, edge_features (if any) and Y (graph). A label -1 is "not
observed"; so is ignore_label of the options, such as 255 for void pixels.

Attributes of a token are the values of its columns and of those up to two tokens away, alone and in pairs, and triples
from the second column on; where words are all there is, also what they look like. For others use ChainCRF in Python.

Ctrl-C ends training; the best parameters so far are written, and the exit code is 130. With --checkpoint, a run that
was killed goes on where it was."""
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
    text = "keep the state of the run; go on if there (default: none)"
    parser.add_argument("--checkpoint", metavar="FILE", help=text)
    parser.add_argument("--jobs", metavar="N", type=int, help=_THREADS)
    add_report(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int | None:
    """Fit, write the model, print how it went."""
    from isinglass import estimators
    from isinglass.cli.examples import Sentences, read_examples

    recipe, text = read_recipe(arguments.config)
    read = (arguments.config, arguments.data, arguments.validation)
    check_writable(arguments.model, *read, arguments.checkpoint, option="--model")
    if arguments.checkpoint is not None:
        check_writable(arguments.checkpoint, *read, option="--checkpoint")
    prepare_report(arguments.report, *read, arguments.model, arguments.checkpoint)
    cls = getattr(estimators, _CLASSES[recipe["estimator"]])
    known = [name for name in cls._get_param_names() if name not in _NOT_HERE]
    with _errors_of(arguments.config, text):
        for name in recipe["options"]:
            _require_known(f"options.{name}", name, known)
    options = dict(recipe["options"])
    if recipe["estimator"] == "chain" and "ignore_label" in options:
        options["ignore_label"] = str(options["ignore_label"])  # labels in columns of text are text
    crf = cls(**options, checkpoint=arguments.checkpoint)
    if arguments.jobs is not None:
        crf.set_params(n_jobs=arguments.jobs)
    data = read_examples(arguments.data, recipe, labelled=True)
    width = len(data.rows[0][0]) if isinstance(data, Sentences) else 0
    held_out = None
    if arguments.validation is not None:
        held_out = read_examples(arguments.validation, recipe, labelled=True, width=width)
    began = time.perf_counter()
    with progress_on_stderr(arguments.quiet) as progress:
        most = crf.max_iter if isinstance(crf.max_iter, int) and crf.max_iter > 0 else 1
        crf.callback = lambda p: progress(f"iteration {p.iteration}, objective {p.value:.8g}", p.iteration / most)
        with _errors_of(arguments.config, text, recipe["options"]):
            crf.fit(data.X, data.Y, validation=held_out and (held_out.X, held_out.Y))
    crf.set_params(callback=None, checkpoint=None)
    crf.save(arguments.model, notes={"recipe": recipe, "columns": width})
    facts = {
        "estimator": type(crf).__name__,
        "parameters": len(crf.theta_),
        "iterations": crf.n_iter_,
        "objective": f"{crf.objective_:.8g}",
        "ended": crf.message_,
        "seconds": f"{time.perf_counter() - began:.1f}",
    }
    if not arguments.quiet:
        print_table(f"wrote {arguments.model}", ["", ""], [[name, str(value)] for name, value in facts.items()])
    if arguments.report is not None:
        from isinglass.cli.pages import training_sections

        title = f"{facts['estimator']}, fitted to {os.path.basename(arguments.data)}"
        path = write_report(arguments, title, training_sections(crf, facts, data, text))
        to_stdout("" if arguments.quiet else f"wrote {one_line(path)}\n")
    if crf.message_ == "interrupted":
        say(f"interrupted; the best parameters so far are in {arguments.model}")
        return INTERRUPTED
    return None


def read_recipe(path: str) -> tuple[Recipe, str]:
    """Read a recipe, a TOML file; return also its text."""
    from isinglass.io.files import read_text, shown_path

    text = read_text(path, limit=2**20)
    try:
        if _MANY_PARTS.search(text):
            raise ValueError("a key of ten or more parts")
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        place = re.search(r" \(at line (\d+), column \d+\)", str(error))
        got = str(error).replace(place[0], "") if place else str(error)
        raise FileFormatError(shown_path(path), int(place[1]) if place else None, "TOML", got) from None
    with _errors_of(path, text):
        return checked_recipe(given), text


@contextmanager
def _errors_of(path: str, text: str, options: Collection[str] | None = None) -> Iterator[None]:
    """Name the file, and the line of the entry, in errors about a recipe; of `options` alone, if they are given."""
    from isinglass.io.files import shown_path

    try:
        yield
    except InputError as error:
        names = re.findall(r"\w+", error.argument)
        if options is not None and not {*names[:1]} & {*options}:
            raise
        named = [name for name in (*names, *re.findall(r"\w+", error.got)) if name != "options" or names == ["options"]]
        line = next(filter(None, (_line(text, name) for name in named)), None)
        remedy = f"{error.remedy}; " * bool(error.remedy) + "see: isinglass fit --help"
        expected = f"{error.expected} as {error.argument}"
        raise FileFormatError(shown_path(path), line, expected, error.got, remedy) from None


def _line(text: str, key: str) -> int | None:
    """Return the line of a key in TOML, as far as this can be told without a parser that keeps lines."""
    found = re.search(rf"""(?m)^[ \t]*\[*["']?{key}["']?[ \t]*[=\]]""", text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def checked_recipe(given: Mapping[str, Any]) -> Recipe:
    """Return all entries of a recipe.

    Examples
    --------
    >>> checked_recipe({"estimator": "grid", "options": {"iterations": 4}})
    {'estimator': 'grid', 'label': -1, 'separator': None, 'scheme': None, 'options': {'iterations': 4}}
    """
    for key in given:
        refuse_removed(f"[{key}] in a recipe")
        _require_known("an entry", key, _ENTRIES)
    recipe = {key: given.get(key, default) for key, (default, _, _) in _ENTRIES.items()}
    for key, (default, fine, expected) in _ENTRIES.items():
        require(fine(recipe[key]), key, expected, f"{recipe[key]!a:.40}")
        plain = recipe[key] == default or recipe["estimator"] == "chain" or key in ("estimator", "options")
        require(plain, key, "none, unless estimator is 'chain'", f"{recipe[key]!a:.40}")
    for key, value in {**recipe, **recipe["options"]}.items():
        odd = [part for part in _parts(value) if key != "options" and not _plain(part)]
        require(not odd, key, f"text, finite numbers, whole ones up to {_MOST}", f"{odd[:1]!a:.40}")
    return recipe


def _separates(given: object) -> bool:
    return isinstance(given, str) and given != "" and not {*given} & {*"\r\n"}


def _parts(value: Any) -> list[object]:
    """Return the values in tables and lists of TOML."""
    if not isinstance(value, dict | list):
        return [value]
    return [found for part in (value.values() if isinstance(value, dict) else value) for found in _parts(part)]


def _plain(part: object) -> bool:
    """Tell whether a model file can hold a value, and no count is beyond what any machine has time for."""
    return (
        part is None
        or isinstance(part, str)
        or (isinstance(part, float) and math.isfinite(part))
        or (isinstance(part, int) and abs(part) <= _MOST)
    )


def _require_known(argument: str, name: str, known: Collection[str]) -> None:
    require(name in known, argument, f"one of {', '.join(known)}", f"{name!a:.40}", did_you_mean(name, known))


def opened(path: str) -> tuple[Any, Recipe, int]:
    """Return the estimator of a model file, its recipe, and how many columns its text had."""
    from isinglass.estimators import load, notes_of

    crf, notes = load(path), notes_of(path)
    try:
        recipe, width = checked_recipe(notes["recipe"]), notes["columns"]
        require(type(width) is int and 0 <= width < 2**20, "columns", "a number of columns", f"{width!a:.40}")
    except (KeyError, TypeError, AttributeError, InputError) as error:
        remedy = "the file was not written by `isinglass fit`; load it in Python"
        raise FileFormatError(path, None, "a recipe in the model file", f"{error!s:.100}", remedy) from None
    return crf, recipe, width
