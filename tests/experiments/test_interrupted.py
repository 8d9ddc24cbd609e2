"""Ctrl-C in a fit ends the experiment that the fit is part of, not that fit alone."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.experiments.common.experiment import Experiment
from isinglass.experiments.demo import train_demo
from isinglass.learning.optimizers import Lbfgs
from isinglass.runtime.interrupts import ending_all


def interrupted(theta):
    raise KeyboardInterrupt


def test_a_fit_alone_keeps_its_best():
    assert Lbfgs().minimise(interrupted, np.zeros(2)).message == "interrupted"
    with ending_all(), pytest.raises(KeyboardInterrupt):
        Lbfgs().minimise(interrupted, np.zeros(2))
    assert Lbfgs().minimise(interrupted, np.zeros(2)).message == "interrupted"


def test_an_experiment_ends():
    class Twice(Experiment):
        def run(self, progress=None):
            Lbfgs().minimise(interrupted, np.zeros(2))
            raise AssertionError("it went on")

    with pytest.raises(KeyboardInterrupt):
        Twice().run()


def test_the_demo_ends(monkeypatch):
    calls = []
    monkeypatch.setattr(Lbfgs, "step", lambda self, f, state: calls.append(1) or interrupted(None))
    with pytest.raises(KeyboardInterrupt):
        train_demo(images=1, iterations=2)
    assert len(calls) == 1


def test_a_search_in_an_experiment_ends(monkeypatch):
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.3, field=0.1)
    solver = ig.inference.SOLVERS["icm"]
    solve = solver.solve
    monkeypatch.setattr(solver, "solve", lambda self, *given: (solve(self, *given), interrupted(None)))
    with pytest.warns(ig.ConvergenceWarning, match="interrupted"):
        assert ig.map_assignment(p, "icm").info.stopped == "interrupted"
    with ending_all(), pytest.raises(KeyboardInterrupt):
        ig.map_assignment(p, "icm")
