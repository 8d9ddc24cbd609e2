"""The pages that ``--report`` writes: what is on them, and how they were made."""
