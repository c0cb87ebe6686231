"""Decisions about partitions that exist: leaders, in-sync replicas, moves."""
