"""Arithmetic that other loops are made of: semirings, runs of numbers, powers."""

from isinglass.runtime.compilation.jit import require_numba

require_numba()
