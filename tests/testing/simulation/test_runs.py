"""Whole runs: calm ones, troubled ones, the same one twice."""

import pytest

from sparklog.testing.simulation.plan import draw_plan
from sparklog.testing.simulation.simulation import simulate


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_cluster_that_nothing_happens_to_breaks_no_rule_and_comes_to_rest(seed):
    outcome = simulate(draw_plan(seed, without_faults=True))
    assert outcome.violation is None, outcome
    assert outcome.acknowledged > 20
