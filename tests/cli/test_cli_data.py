"""Published models through the command line, against references computed by others."""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import data_folder

from isinglass.inference.junction_tree import orders
from isinglass.io import read_map, read_mar, read_pr, read_uai

pytestmark = pytest.mark.filterwarnings("ignore::isinglass.SearchWarning")  # before a model is skipped as too large

SCRIPT = Path(sys.executable).with_name("isinglass")
LOG_10 = np.log(10)
SMALL = "100MB"
TOO_LARGE = {"linkage_21", "Grids_15"}
NOT_SMALL = {"linkage_21", "linkage_24", "Grids_15"}  # found by a search of seconds; the slow test has them


@pytest.fixture(autouse=True)
def searched_once(monkeypatch):
    """Let the tasks of one model share its longer search for an elimination order, of which each took seconds."""
    genuine, known = orders._longer, {}

    def longer(potentials, order, needed, limit, progress):
        key = order.order.tobytes(), tuple(potentials.evidence), limit
        if key not in known:
            known[key] = genuine(potentials, order, needed, limit, progress)
        return known[key]

    monkeypatch.setattr(orders, "_longer", longer)


def rows_of(collection):
    """Read the index of a collection, or one row that makes the test skip."""
    index = Path(os.environ.get("ISINGLASS_DATA", "nowhere")) / collection / "index.csv"
    if not index.exists():
        return [pytest.param({}, id="no data")]
    with open(index) as file:
        return [pytest.param(row, id=row["name"]) for row in csv.DictReader(file)]


def check_pr(path, log10_z, atol=1e-6):
    assert read_pr(path) / LOG_10 == pytest.approx(float(log10_z), abs=atol)


def check_mar(path, reference, atol=1e-6):
    got, expected = read_mar(path), read_mar(reference)
    assert [len(m) for m in got] == [len(m) for m in expected]
    worst = max(float(np.abs(a - b).max()) for a, b in zip(got, expected, strict=True))
    assert worst < atol


def run_small(command, out, *argv):
    """Run with little memory; skip, visibly, what needs more."""
    code, _, err = command("infer", *argv, "--memory", SMALL, "--out", out)
    if code == 2 and "memory limit" in err:
        pytest.skip(f"needs more than {SMALL}: {err.strip()}")
    assert code == 0, err


@pytest.mark.long
@pytest.mark.parametrize("row", rows_of("uai"))
def test_uai(command, tmp_path, row):
    folder = data_folder("uai")
    if row["name"] in NOT_SMALL:
        pytest.skip(f"needs more than {SMALL}")
    path, out = folder / f"{row['name']}.uai.gz", tmp_path / "r"
    evidence = ["--evidence", folder / f"{row['name']}.uai.evid"]
    run_small(command, out, path, "--task", "PR", *evidence)
    check_pr(out, row["exact_log10Z"])
    run_small(command, out, path, "--task", "MAR", *evidence)
    check_mar(out, folder / f"{row['name']}.uai.MAR.gz")


@pytest.mark.long
@pytest.mark.parametrize("row", rows_of("protein_uai"))
def test_protein(command, tmp_path, row):
    folder = data_folder("protein_uai")
    if not row["exact_log10Z"]:
        pytest.skip("no reference")
    path, out = folder / f"{row['name']}.uai.gz", tmp_path / "r"
    run_small(command, out, path, "--task", "PR")
    check_pr(out, row["exact_log10Z"])
    run_small(command, out, path, "--task", "MAR")
    check_mar(out, folder / f"{row['name']}.uai.MAR.gz")
    run_small(command, out, path, "--task", "MAP")
    check_map(out, path, row)


def check_map(out, path, row):
    states = read_map(out)
    p = read_uai(path)
    assert float(p.log_score(states)) / LOG_10 == pytest.approx(float(row["exact_log10_MAP_value"]), abs=1e-6)
    reference = read_map(path.with_name(f"{row['name']}.uai.MAP"))
    assert float(p.log_score(states)) >= float(p.log_score(reference)) - 1e-9


@pytest.mark.parametrize("name", ["alarm", "testfast"])
def test_libdai(command, tmp_path, name):
    folder, out = data_folder("libdai"), tmp_path / "r"
    for argv in (
        [folder / f"{name}.uai", "--evidence", folder / f"{name}.uai.evid"],
        [folder / f"{name}.fg", "--evidence", folder / f"{name}.uai.evid"],
    ):
        run_small(command, out, *argv, "--task", "PR")
        check_pr(out, read_pr(folder / f"{name}.uai.PR") / LOG_10)
        run_small(command, out, *argv, "--task", "MAR")
        check_mar(out, folder / f"{name}.uai.MAR")


def measured(*argv):
    """Run the real program; return exit code, stderr, seconds and the peak of its resident memory in bytes."""
    start = time.perf_counter()
    process = subprocess.Popen([SCRIPT, *map(str, argv)], stderr=subprocess.PIPE, text=True)
    err = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return process.returncode, err, time.perf_counter() - start, usage.ru_maxrss * 1024


def report(name, task, seconds, peak, err):
    print(f"\n{name:20} {task}  {seconds:7.2f} s  {peak / 1e9:6.3f} GB  {err.strip()[:150]}")


@pytest.mark.slow
@pytest.mark.parametrize("row", rows_of("uai"))
def test_every_uai_instance(tmp_path, row):
    folder = data_folder("uai")
    name, out = row["name"], tmp_path / "r"
    common = [folder / f"{name}.uai.gz", "--evidence", folder / f"{name}.uai.evid", "--memory", "12GB", "--out", out]
    for task in ("PR", "MAR"):
        code, err, seconds, peak = measured("infer", *common, "--task", task)
        report(name, task, seconds, peak, err)
        if name in TOO_LARGE:
            assert (code, err.count("\n")) == (2, 1)
            assert "B, " in err
            assert "memory limit is 12 GB" in err
            assert seconds < 5
            continue
        assert code == 0, err
        assert peak < 12e9
        if task == "PR":
            check_pr(out, row["exact_log10Z"])
        else:
            check_mar(out, folder / f"{name}.uai.MAR.gz")


@pytest.mark.slow
@pytest.mark.parametrize("row", rows_of("protein_uai"))
def test_every_protein_with_a_reference(tmp_path, row):
    folder = data_folder("protein_uai")
    if not row["exact_log10Z"]:
        pytest.skip("no reference")
    name, out = row["name"], tmp_path / "r"
    path = folder / f"{name}.uai.gz"
    for task in ("PR", "MAR", "MAP"):
        code, err, seconds, peak = measured("infer", path, "--memory", "12GB", "--out", out, "--task", task)
        report(name, task, seconds, peak, err)
        assert code == 0, err
        if task == "PR":
            check_pr(out, row["exact_log10Z"])
        elif task == "MAR":
            check_mar(out, folder / f"{name}.uai.MAR.gz")
        else:
            check_map(out, path, row)


def test_json_has_the_same_numbers(command):
    folder = data_folder("libdai")
    argv = [folder / "alarm.uai", "--evidence", folder / "alarm.uai.evid"]
    got = json.loads(command("infer", *argv, "--json").out)
    assert got["log_z"] == pytest.approx(read_pr(folder / "alarm.uai.PR"), abs=1e-6)
