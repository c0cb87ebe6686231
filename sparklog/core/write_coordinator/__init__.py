"""Atomic writes as a state machine: which task attempts are members of a write, and which of them win."""
