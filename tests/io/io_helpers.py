"""What the tests of the file formats share."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from isinglass.graph import FactorGraph
from isinglass.potentials import Potentials


def data_folder(*parts: str) -> Path:
    """The reference data, or a skip when the environment does not say where it is."""
    root = os.environ.get("ISINGLASS_DATA")
    if not root:
        pytest.skip("ISINGLASS_DATA is not set; it names the folder of the reference data")
    return Path(root, *parts)


@st.composite
def models(draw, with_evidence=True, cover=False):
    """Random potentials: mixed cards, one-state variables, constants, hard zeros, huge and tiny values."""
    cards = draw(st.lists(st.integers(1, 4), max_size=5))
    n = len(cards)
    scope = st.lists(st.integers(0, n - 1), unique=True, max_size=3) if n else st.just([])
    scopes = draw(st.lists(scope, max_size=6))
    if cover:
        scopes += [[v] for v in range(n)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1e-12, 1.0, 100.0]))
    tables = [np.array(scale * rng.normal(size=[cards[v] for v in s])) for s in scopes]
    for table in tables:
        table[rng.random(table.shape) < 0.2] = -np.inf
    observed = [v for v in range(n) if with_evidence and draw(st.booleans())]
    evidence = {v: draw(st.integers(0, cards[v] - 1)) for v in observed}
    return Potentials(FactorGraph(cards, scopes), [np.clip(t, None, 700) for t in tables], evidence)


def assert_same_structure(p, q):
    assert p.graph.cards.tolist() == q.graph.cards.tolist()
    assert p.graph.scopes[:] == q.graph.scopes[:]
    assert dict(p.evidence) == dict(q.evidence)


def assert_identical(p, q):
    """The same model to the last bit."""
    assert_same_structure(p, q)
    for a, b in zip(p.log_tables, q.log_tables, strict=True):
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def assert_close(p, q):
    assert_same_structure(p, q)
    for a, b in zip(p.log_tables, q.log_tables, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=2.3e-16)


def one_line(error) -> str:
    """The message of an error, which must be one printable line."""
    text = str(error)
    assert text.isprintable(), text
    assert 0 < len(text) < 400 + len(getattr(error, "file", ""))
    return text
