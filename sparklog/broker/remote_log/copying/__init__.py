"""Copies sealed segments of the partitions that this broker leads to a remote store."""
