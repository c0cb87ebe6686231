"""Shared parts of the benchmarks: clusters to measure, loads to put on them, and the table of results."""
