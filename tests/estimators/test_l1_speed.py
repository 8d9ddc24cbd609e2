"""OWL-QN beside CRFsuite's, on named entities: the objective after as many evaluations."""

import os

import pytest

import isinglass as ig
from isinglass.learning.optimizers import OwlQn
from isinglass_experiments.data import entity_attributes, load_wnut17

THEIRS = {10: 40999.68354, 20: 13982.005114, 50: 2081.92, 100: 1882.61}  # python-crfsuite 0.9.12, c1 = c2 = 0.1


@pytest.mark.long
@pytest.mark.skipif("ISINGLASS_DATA" not in os.environ, reason="needs the data folder")
def test_as_low_as_crfsuite_after_as_many_evaluations():
    data = load_wnut17()
    seen = []

    def note(progress):
        seen.append((progress.state.evaluations, progress.value))
        return progress.state.evaluations >= max(THEIRS)

    crf = ig.ChainCRF(l2=0.1, optimizer=OwlQn(l1=0.1, tol=0), callback=note)
    crf.fit([entity_attributes(words) for words in data.words_train], data.Y_train)
    for most, value in THEIRS.items():
        assert min(v for n, v in seen if n <= most) <= 1.01 * value
