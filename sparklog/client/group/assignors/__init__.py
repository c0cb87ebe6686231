"""Assignors: rules by which the leader of a group divides partitions among the members."""
