"""A second interpreter that has imported the library; `context.Process` forks from it.

What is killed in a test, or interrupted, is a process of its own. To import the library there anew would take most of
its time. It shares nothing with the process of the test, not even the seed of Python's hashes.
"""

import multiprocessing

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(
    ["pytest", "hypothesis", "numba.np.arraymath", "isinglass.estimators", "isinglass.kernels.numba.backend"]
)
