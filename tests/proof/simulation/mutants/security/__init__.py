"""Holes of security, and bugs of batches that are cut, most with a check of their own that finds them."""

from simulation.mutants.security.checked_mutant import CheckedMutant
from simulation.mutants.security.registry import CHECKED

__all__ = ["CHECKED", "CheckedMutant"]
