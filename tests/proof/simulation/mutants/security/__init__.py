"""Holes of security, each with the check that finds it. The simulation has no users: seeds cannot."""

from simulation.mutants.security.checked_mutant import CheckedMutant
from simulation.mutants.security.registry import CHECKED

__all__ = ["CHECKED", "CheckedMutant"]
