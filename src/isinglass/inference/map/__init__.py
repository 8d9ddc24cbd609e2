"""Most probable assignments: solvers with a common frame, each registered under its public name."""
