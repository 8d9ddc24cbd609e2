"""Options that all experiments share, and how work is shared out."""

from dataclasses import fields

import pytest

import isinglass as ig
from isinglass.cli.main import build_parser
from isinglass_experiments.catalogue import EXPERIMENTS, make
from isinglass_experiments.common.experiment import parallel_map


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_takes_n_jobs(name, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    experiment = make(name, quick=True, n_jobs=-1)
    assert {"quick", "n_jobs"} <= {field.name for field in fields(experiment)}
    assert experiment.n_jobs == 3
    assert make(name, n_jobs=2).n_jobs == 2
    with pytest.raises(ig.InputError, match=r"n_jobs: expected .*or -1 for all processors"):
        make(name, n_jobs=0)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_command_line_passes_it_on(name, monkeypatch):
    seen = []
    monkeypatch.setattr(EXPERIMENTS[name], "run", lambda self, progress: seen.append(self.n_jobs) or 1 / 0)
    arguments = build_parser().parse_args(["reproduce", name, "--quick", "--n-jobs", "2", "--quiet"])
    with pytest.raises(ZeroDivisionError):
        arguments.run(arguments)
    assert seen == [2]


def test_work_is_done_in_order():
    assert list(parallel_map(pow, [(2, 3), (3, 2)], 2)) == [8, 9]
    assert list(parallel_map(pow, [], 2)) == []
