"""Bugs with a check of their own, such as holes of security: it finds each, and nothing without it."""

import pytest

from simulation.mutants import MUTANTS
from simulation.mutants.security import CHECKED
from simulation.mutants.security.checked_mutant import switched_on


@pytest.mark.parametrize("mutant", CHECKED, ids=lambda mutant: mutant.name)
def test_a_hole_is_found_by_its_check_and_shipped_code_has_none(mutant):
    mutant.check()
    with switched_on(mutant), pytest.raises(AssertionError):
        mutant.check()
    mutant.check()


def test_no_two_have_the_same_name():
    names = [mutant.name for mutant in (*MUTANTS, *CHECKED)]
    assert len(set(names)) == len(names)
