"""Historical bugs that can be switched back on, to prove that the simulation would have found them."""

from simulation.mutants.mutant import Mutant, applied
from simulation.mutants.registry import MUTANTS, find_mutant

__all__ = ["MUTANTS", "Mutant", "applied", "find_mutant"]
