"""Fuzz of every request: right, odd and damaged frames against real brokers (tests/proof/docs/fuzz.md)."""
