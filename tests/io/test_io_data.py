"""Files that others wrote."""

import csv

import numpy as np
import pytest
from io_helpers import assert_identical, data_folder

from isinglass.io import read_evidence, read_fg, read_map, read_mar, read_pr, read_uai, write_uai


def canonical(potentials):
    """The tables by sorted scope, axes in that order; tables with equal scopes are added."""
    found = {}
    for scope, table in zip(potentials.graph.scopes, potentials.log_tables, strict=True):
        order = np.argsort(scope)
        key = tuple(np.array(scope)[order].tolist())
        found[key] = found.get(key, 0) + np.exp(table.transpose(order))
    return found


@pytest.mark.parametrize("name", ["alarm", "testfast"])
def test_libdai_and_uai_agree(name):
    folder = data_folder("libdai")
    p, q = read_fg(folder / f"{name}.fg"), read_uai(folder / f"{name}.uai", folder / f"{name}.uai.evid")
    assert p.graph.cards.tolist() == q.graph.cards.tolist()
    assert p.graph.n_factors == q.graph.n_factors
    a, b = canonical(p), canonical(q)
    assert a.keys() == b.keys()
    for scope in a:
        np.testing.assert_allclose(a[scope], b[scope], atol=1e-6)


def check_model(path, folder, tmp_path):
    name = path.name.removesuffix(".gz")
    evid = folder / f"{name}.evid"
    p = read_uai(path, evid if evid.exists() else None)
    if evid.exists():
        assert dict(p.evidence) == read_evidence(evid, p.graph.cards)
    write_uai(p.without_evidence(), tmp_path / "m.uai")
    assert_identical(p, read_uai(tmp_path / "m.uai", dict(p.evidence)))
    if (folder / f"{name}.PR").exists():
        assert np.isfinite(read_pr(folder / f"{name}.PR"))
    mar = folder / f"{name}.MAR.gz"
    if mar.exists():
        marginals = read_mar(mar)
        assert [len(m) for m in marginals] == p.graph.cards.tolist()
        np.testing.assert_allclose([m.sum() for m in marginals], 1, atol=1e-4)
    if (folder / f"{name}.MAP").exists():
        assert p.log_score(read_map(folder / f"{name}.MAP")) > -np.inf


@pytest.mark.long
@pytest.mark.parametrize(("collection", "count"), [("uai", 27), ("protein_uai", 11)])
def test_all_models_parse(collection, count, tmp_path):
    folder = data_folder(collection)
    paths = sorted(folder.glob("*.uai.gz"))
    assert len(paths) == count
    for path in paths:
        check_model(path, folder, tmp_path)


def test_protein_map_values():
    """The log-score of the stored MAP state is the stored MAP value: axes and order are right."""
    folder = data_folder("protein_uai")
    with open(folder / "index.csv") as file:
        rows = list(csv.DictReader(file))
    checked = 0
    for row in rows:
        name = next(v for v in row.values() if v.startswith("pdb"))
        path = folder / f"{name.removesuffix('.uai')}.uai"
        value = next((v for k, v in row.items() if "map" in k.lower()), "")
        if not path.with_name(path.name + ".MAP").exists():
            continue
        p = read_uai(path.with_name(path.name + ".gz"))
        score = float(p.log_score(read_map(path.with_name(path.name + ".MAP"))))
        assert score / np.log(10) == pytest.approx(float(value), abs=1e-5)
        checked += 1
    assert checked == 8
