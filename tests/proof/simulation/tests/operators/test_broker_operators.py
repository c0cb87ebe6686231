"""Operators in whole runs: brokers stop, restart, are drained and filled under faults; no rule is broken."""

import pytest

from simulation.plans.plan import draw_plan
from simulation.plans.wishes import WITH_THROTTLES, WITH_WISHES, draw_wishes
from simulation.run import simulate

TAKE_OVER = "a controller took over with an operation under way"


def test_a_share_of_the_seeds_has_operators():
    drawn = sum(draw_wishes(seed) is not None for seed in range(1, 2_001))
    assert abs(drawn / 2_000 - WITH_WISHES) < 0.03


@pytest.mark.parametrize(
    ("seed", "reached"),
    [
        (33, ["a broker was drained", "a broker was stopped on demand"]),
        (67, ["a broker was filled", "brokers were restarted on demand", TAKE_OVER]),
        (71, ["a plan's throttle ended with its moves", "a broker was sent the lower of two throttles"]),
    ],
)
def test_operations_go_on_under_faults_and_no_rule_is_broken(seed, reached):
    outcome = simulate(draw_plan(seed))
    assert outcome.violation is None
    assert set(reached) <= outcome.marks.keys()


def test_half_of_the_operators_move_partitions_with_a_throttle():
    plans = [plan for seed in range(1, 4_001) if (plan := draw_wishes(seed)) is not None]
    share = sum(plan.throttles for plan in plans) / len(plans)
    assert abs(share - WITH_THROTTLES) < 0.07


def test_a_run_without_faults_has_no_operators():
    assert draw_plan(33).wishes is not None
    assert draw_plan(33, without_faults=True).wishes is None
