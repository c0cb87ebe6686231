"""All holes of security that can be switched on."""

from typing import Final

from simulation.mutants.security.checked_mutant import CheckedMutant
from simulation.mutants.security.limits import LIMITS
from simulation.mutants.security.rights import RIGHTS

CHECKED: Final[tuple[CheckedMutant, ...]] = (*RIGHTS, *LIMITS)


def find_checked(name: str) -> CheckedMutant | None:
    return next((mutant for mutant in CHECKED if mutant.name == name), None)
