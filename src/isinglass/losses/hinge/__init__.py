"""Hinge losses: how far the best wrong labels outscore the right ones, and what finds those labels."""
