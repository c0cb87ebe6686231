"""Requests that wait (for replication, for bytes, for followers), and the state between fetches."""
