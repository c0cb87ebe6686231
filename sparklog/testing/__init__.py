"""Clusters in a user's own tests, and the simulation. Empty until they come."""
