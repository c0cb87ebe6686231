"""When a group is at rest: every way in which it is not."""

from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState
from tests.waiting import until

from chaos.access import Access
from chaos.groups import unrest, wait_for_rest
from sparklog.testing import InProcessCluster

TOPICS = {"t": 2}


def _described(*members, state=ConsumerGroupState.STABLE):
    """A group whose members have these partitions of ``t``."""
    assigned = [
        SimpleNamespace(topic_partitions=[SimpleNamespace(topic="t", partition=one) for one in partitions])
        for partitions in members
    ]
    return SimpleNamespace(state=state, members=[SimpleNamespace(assignment=one) for one in assigned])


def test_a_stable_group_with_an_owner_for_each_partition_is_at_rest():
    assert unrest(_described([0], [1]), 2, TOPICS) is None


@pytest.mark.parametrize(
    ("described", "wrong"),
    [
        (
            _described([0], [1], state=ConsumerGroupState.PREPARING_REBALANCING),
            "its state is PREPARING_REBALANCING",
        ),
        (_described([0], [1], []), "it has 3 members, and 2 run"),
        (_described([0, 1]), "it has 1 members, and 2 run"),
        (_described([0], [0, 1]), "t/0 has 2 owners"),
        (_described([0], []), "t/1 has 0 owners"),
    ],
)
def test_a_group_is_not_at_rest_while_anything_is_wrong(described, wrong):
    assert unrest(described, 2, TOPICS) == wrong


@pytest.mark.integration
def test_a_group_that_nobody_has_joined_has_not_come_to_rest():
    with InProcessCluster(brokers=1) as cluster:
        said = []

        def is_dead() -> bool:  # once the group's coordinator has loaded
            said.append(wait_for_rest(Access(cluster.bootstrap_servers), "nobody", 2, TOPICS, timeout_s=0.0))
            return said[-1] == "its state is DEAD"

        until(is_dead, lambda: said[-1])
