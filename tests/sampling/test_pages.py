"""The code of the documentation runs as it stands."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "sampling.md").read_text()


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_the_page_on_sampling(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    assert capsys.readouterr().out == "False\n"
    assert names["x"].shape == (100, 144)
    assert names["longer"].info.iterations == 2000
