"""A small model for the tests of the command line, and checks of what it prints."""

import functools
import math
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from isinglass.cli import main as entry
from isinglass.cli.main import build_parser, main
from isinglass.cli.report import ProgressLines

UAI = "MARKOV\n3\n2 3 2\n3\n2 0 1\n2 1 2\n1 2\n\n6\n1 2 3 4 5 6\n6\n.5 1 0 2 3 1\n2\n1 3\n"
EVID = "1 2 1\n"
FG = "2\n\n2\n0 1\n2 2\n3\n0 1.5\n1 0.5\n3 2\n\n1\n1\n2\n2\n0 1\n1 2\n"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@functools.cache
def parser_of(*functions):
    """Return the parser of commands that run these functions, which takes longer to make than most of them run."""
    return build_parser()


def known_parser(_):
    return parser_of(*(module.run for module in vars(entry).values() if hasattr(module, "add_parser")))


@pytest.fixture
def command(capsys, monkeypatch):
    """Run a command in this process; a mistake must be one clean line.

    Lines of progress, which come every ten seconds, are left out: where loops are compiled first, they would come.
    """
    monkeypatch.setattr(ProgressLines.__init__, "__defaults__", (math.inf,))
    monkeypatch.setattr(entry, "build_parser", known_parser)

    def run(*argv):
        code = main([str(a) for a in argv])
        outcome = Outcome(code, *capsys.readouterr())
        if code:
            one_clean_line(outcome.err)
        return outcome

    return run


@pytest.fixture
def model(tmp_path):
    (tmp_path / "m.uai").write_text(UAI)
    (tmp_path / "m.uai.evid").write_text(EVID)
    (tmp_path / "m.fg").write_text(FG)
    return tmp_path / "m.uai"


def one_clean_line(err):
    assert err.startswith("isinglass: "), err
    assert err.count("\n") == 1, err
    assert err.endswith("\n")
    assert err[:-1].isprintable(), ascii(err)
    assert "Traceback" not in err


def data_folder(name):
    root = os.environ.get("ISINGLASS_DATA")
    if not root:
        pytest.skip("ISINGLASS_DATA is not set")
    folder = Path(root) / name
    if not folder.is_dir():
        pytest.skip(f"no folder {name} in ISINGLASS_DATA")
    return folder
