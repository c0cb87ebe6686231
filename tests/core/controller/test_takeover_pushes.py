"""What a new controller tells brokers, and what it must not tell them before it has elected."""

import pytest

from sparklog.core.controller import actions as act


@pytest.mark.bug(
    "B2",
    "records",
    "A leader without its log's tail is told to lead its old epoch again, and followers truncate.",
)
def test_a_leader_that_restarted_unproven_is_never_told_that_it_leads(world):
    """Found by the simulation: the first message of a new controller came before its election, so a broker
    that had lost its log's tail in a power cut led its old epoch again, and its followers cut theirs."""
    world.create()
    world.expire(1)
    world.register(1, boot="another boot")
    done = world.activate()
    roles = [one for one in done if isinstance(one, act.SendLeaderAndIsr)]
    assert {send.broker for send in roles} == {1, 2, 3}
    for send in roles:
        for topic in send.topics:
            for _, state in topic.partitions:
                assert (state.leader, state.leader_epoch, state.isr) == (2, 1, (2, 3))
