"""Requests of the members of consumer groups, and of administrators about groups and their offsets."""
