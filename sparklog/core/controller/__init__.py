"""Cluster image, elections, assignment: what the controller decides, pure."""
