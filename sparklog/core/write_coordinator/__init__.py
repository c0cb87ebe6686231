"""Atomic writes as a state machine: the task attempts that are members of a write, and those that win."""
