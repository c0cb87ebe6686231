"""Handlers of produces."""
