"""A solver may need an optional package (OR-Tools, pytoulbar2): where it is not installed, its tests skip, visibly."""

import pytest

from isinglass.errors import MissingDependencyError


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    try:
        return (yield)
    except MissingDependencyError as error:
        pytest.skip(str(error))
