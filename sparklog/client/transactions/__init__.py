"""Transactions from outside: which there are, which hang, and how to end them (KIP-664)."""
