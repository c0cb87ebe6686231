"""Fuzz of every request: right, odd and damaged frames against real brokers (docs/fuzz.md)."""
