"""Tests that compare bits are marked as such: `pytest -m bits` runs them, under several kernels in `make portable`."""

import inspect
import os

import pytest

from isinglass.runtime.helper import SWITCH

os.environ.setdefault(SWITCH, "0")  # tests run in as many processes as there are processors

collect_ignore = ["browser.py", "conftest.py", "cli/conftest.py"]  # no doctests there, and two modules of one name
EXACT = ("array_equal", "tobytes", ".view(np.int64)")


def pytest_collection_modifyitems(items):
    for item in items:
        function = getattr(item, "function", None)
        if function is not None and any(word in inspect.getsource(function) for word in EXACT):
            item.add_marker(pytest.mark.bits)
