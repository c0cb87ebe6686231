"""Coordinators on this broker: one shard for each partition of an internal topic that this broker leads."""
