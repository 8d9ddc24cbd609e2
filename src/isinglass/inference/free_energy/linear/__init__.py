"""The linear systems of Newton's method: direct and iterative solvers."""
