"""Committed offsets of a group: saved, read, and expired."""
