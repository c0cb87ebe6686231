"""Batches with fewer records, for compaction."""
