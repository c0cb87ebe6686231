"""Atomic writes: the members that write, and the driver that decides."""
