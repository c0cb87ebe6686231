"""The same troubles where a record counts only once it is on disk."""

from dataclasses import replace

import pytest

from simulation.plans.plan import draw_plan
from simulation.run import simulate


@pytest.mark.parametrize("seed", range(1, 11))
def test_with_fsync_no_rule_is_broken_either_and_writes_are_acknowledged(seed):
    plan = draw_plan(seed)
    outcome = simulate(replace(plan, settings={**plan.settings, "log.flush.acks": "fsync"}))
    assert outcome.violation is None, outcome
    assert outcome.acknowledged > 0
