"""Batch reads in whole runs: what a cut shows of atomic writes, while these begin, commit and fail."""

from dataclasses import replace

import pytest

from simulation.plans.plan import draw_plan
from simulation.run import simulate


def is_plain(plan):
    """Whether it has atomic writes, and nothing that takes away what they wrote."""
    return plan.writes and not plan.transactions and plan.tier is None


SEEDS = [seed for seed in range(1, 150) if is_plain(draw_plan(seed))]


def busy(seed):
    """The plan of a seed whose one app writes without pause into all partitions; nothing goes wrong."""
    plan = draw_plan(seed, without_faults=True)
    changes = {
        "timeout_ms": 8_000,
        "tasks_max": 3,
        "partitions_max": 3,
        "interval_ms": 20.0,
        "linger_ms": 5.0,
    }
    return replace(plan, writes=(replace(plan.writes[0], **changes),))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_tasks_read_all_of_a_write_or_nothing_while_others_write(seed):
    outcome = simulate(busy(seed))
    assert outcome.violation is None
    assert outcome.marks["a batch read saw an atomic write"]
    assert outcome.marks["a cut hid an atomic write"]
