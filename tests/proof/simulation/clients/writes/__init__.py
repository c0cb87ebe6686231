"""Atomic writes: jobs whose drivers decide which of their tasks' attempts count."""
