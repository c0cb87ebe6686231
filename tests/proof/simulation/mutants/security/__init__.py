"""Holes of security, and bugs of batches that are cut, each with the check that finds it: seeds cannot."""

from simulation.mutants.security.checked_mutant import CheckedMutant
from simulation.mutants.security.registry import CHECKED

__all__ = ["CHECKED", "CheckedMutant"]
