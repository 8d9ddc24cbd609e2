"""Whether numbers are finite, by one thread and by several."""

import numpy as np
import pytest

from isinglass.runtime.finite import PART, all_finite


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(3 * PART + 5,), (7, PART), (PART, 5), (2, 3)])
def test_one_number_is_found_wherever_it_is(threads, shape):
    rng = np.random.default_rng(0)
    values = np.full(shape, 1e305)  # their sum is infinite
    assert all_finite(values, threads)
    assert all_finite(values.T, threads)
    for bad in (np.nan, np.inf, -np.inf):
        place = tuple(rng.integers(0, shape))
        values[place] = bad
        assert not all_finite(values, threads)
        assert not all_finite(values.T, threads)
        values[place] = 0
