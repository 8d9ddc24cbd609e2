"""The code of the documentation runs as it stands."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE, LEARNING = ((DOCS / name).read_text() for name in ("sampling.md", "sampled-learning.md"))


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_the_page_on_sampling(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    assert capsys.readouterr().out == "False\n"
    assert names["x"].shape == (100, 144)
    assert names["longer"].info.iterations == 2000


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_the_page_on_learning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", LEARNING, re.DOTALL):
        exec(block, names)
    assert abs(names["found"].log_z - names["rbm"].log_z("exact").log_z) < 0.2
    assert (tmp_path / "rbm.isg").exists()
