"""Bugs of transactions, of atomic writes, and of what batch reads agree upon."""
