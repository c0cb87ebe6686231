"""Faults that follow a script, because faults drawn one by one would hardly ever play it."""
