"""Clients of a typed topic, whose columns change while they write and read."""
