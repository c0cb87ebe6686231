"""Segments, indexes, logs, recovery and checkpoints on a disk."""
