"""Short forms of what many tests check."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.errors import no_convergence_warnings


def refuses(words, call, *arguments, error=ig.InputError, **options):
    """Check that a call is refused by an error that says some words (a regular expression)."""
    with pytest.raises(error, match=words):
        call(*arguments, **options)


def quiet(p, algorithm, **options):
    """Infer, without warnings of what has not converged."""
    with no_convergence_warnings():
        return ig.infer(p, algorithm, **options)


def each_close(found, wanted, **tolerance):
    """Check arrays one by one."""
    for one, other in zip(found, wanted, strict=True):
        assert_allclose(one, other, **tolerance)


def each_equal(found, wanted):
    """Check arrays one by one, to the last bit."""
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one, other)


def beliefs_close(found, truth, rtol=1e-12, **tolerance):
    """Check log Z, and the beliefs of variables and of factors."""
    assert_allclose(found.log_z, truth.log_z, rtol=rtol)
    assert_allclose(found.variables.flat, truth.variables.flat, **tolerance)
    each_close(found.factors, truth.factors, **tolerance)


def richardson(value, step=1e-3):
    """Return the derivative of a function at zero, by central differences of order four."""
    coarse, fine = ((value(h) - value(-h)) / (2 * h) for h in (step, step / 2))
    return np.asarray(4 * fine - coarse) / 3
