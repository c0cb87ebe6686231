"""Carries out the faults of a plan upon a cluster."""
