"""Handlers of atomic writes."""
