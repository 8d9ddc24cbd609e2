"""Estimators for sequences: chain CRF, MEMM and HMM."""
