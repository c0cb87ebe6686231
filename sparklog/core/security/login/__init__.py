"""Logins by SASL: PLAIN and SCRAM, both sides, and the order of a connection's requests until it is in."""
