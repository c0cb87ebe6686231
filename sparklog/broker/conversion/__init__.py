"""Batches between the log and clients that speak another format or kind of payload."""
