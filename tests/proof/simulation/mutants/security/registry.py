"""All bugs that a check of their own finds: holes of security, and of batches that are cut or passed over."""

from typing import Final

from simulation.mutants.security.checked_mutant import CheckedMutant
from simulation.mutants.security.cut_batches import CUT_BATCHES
from simulation.mutants.security.kept import KEPT
from simulation.mutants.security.limits import LIMITS
from simulation.mutants.security.passed_over import PASSED_OVER
from simulation.mutants.security.rights import RIGHTS

CHECKED: Final[tuple[CheckedMutant, ...]] = (*RIGHTS, *LIMITS, *KEPT, *CUT_BATCHES, *PASSED_OVER)


def find_checked(name: str) -> CheckedMutant | None:
    return next((mutant for mutant in CHECKED if mutant.name == name), None)
