"""Requests of the wire as the controller's commands, and its results as responses of the wire."""
