"""A strike that cannot be made: an aim that is gone is a miss, a mistake of the harness is a finding."""

from random import Random

import pytest

from chaos.nemesis import Nemesis
from chaos.part import strike
from chaos.report import Part


class Failing(Nemesis):
    """A fault that fails to begin, unless there is no error."""

    kind = "failing"

    def __init__(self, error):
        self._error = error

    def begin(self, cluster, rng):
        if self._error is not None:
            raise self._error
        return "broker 2"

    def end(self):
        pass


@pytest.fixture
def part():
    return Part(seed=1, seconds=0.0)


def test_a_fault_that_begins_has_struck(part):
    assert strike(Failing(None), None, Random(1), part) == ("failing: broker 2", True)
    assert part.missed == {}
    assert part.findings == []


@pytest.mark.parametrize("error", [ProcessLookupError(), RuntimeError("ZooKeeper is not running")])
def test_a_fault_whose_aim_is_gone_has_missed_and_is_no_finding(part, error):
    told, has_struck = strike(Failing(error), None, Random(1), part)
    assert not has_struck
    assert "did not strike" in told
    assert part.missed == {"failing": 1}
    assert part.findings == []


@pytest.mark.parametrize("error", [TypeError("no such argument"), AttributeError("gone"), AssertionError()])
def test_a_mistake_of_the_harness_is_a_finding_and_no_miss(part, error):
    told, has_struck = strike(Failing(error), None, Random(1), part)
    assert not has_struck
    assert part.missed == {}
    assert part.findings == [told]
