"""`ig.sample` by Markov chains warns where its draws are plainly not those of the model."""

import warnings

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import ConvergenceWarning


def test_chains_that_are_frozen_in_two_modes() -> None:
    p = ig.models.Ising(ig.lattice_graph((6, 6), 2, periodic=True)).potentials(coupling=1.0, field=0.02)
    with pytest.warns(ConvergenceWarning, match="gibbs: the chains disagree.*R-hat is inf"):
        ig.sample(p, 400, "gibbs", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ig.sample(p, 400, "swendsen-wang", random_state=0)


def test_hard_zeros_that_separate_assignments() -> None:
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [equal])
    with pytest.warns(ConvergenceWarning, match="gibbs: hard zeros may separate the assignments"):
        ig.sample(p, 10, "gibbs", random_state=0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gibbs", "tree-gibbs", "tempering"])
@pytest.mark.parametrize("n", [1, 100, 160, 500])
def test_no_false_alarm_on_many_weak_variables(name: str, n: int) -> None:
    p = ig.models.Ising(ig.grid_graph(20, 20, 2)).potentials(coupling=0.1, field=np.linspace(-3.0, 3.0, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ig.sample(p, n, name, random_state=n)) == n
