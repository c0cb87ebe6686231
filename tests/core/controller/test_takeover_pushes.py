"""What a new controller tells brokers, and what it must not tell them before it has elected."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.topic_commands import CreateTopics


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


def kinds_of_pushes(broker, done):
    """What the broker is sent about partitions, in order."""
    return [
        type(one).__name__
        for one in done
        if isinstance(one, (act.SendUpdateMetadata, act.SendLeaderAndIsr))
        and one.broker == broker
        and one.topics
    ]


def test_a_broker_gets_its_role_before_it_names_the_leader_that_it_moved_to(world):
    world.start(1, 2, 3)
    world.create()
    done = world.crash(1)
    assert world.state().leader == 2
    for broker in (2, 3):
        assert kinds_of_pushes(broker, done) == ["SendLeaderAndIsr", "SendUpdateMetadata"]


def test_a_broker_gets_the_address_of_a_new_partitions_leader_before_its_role(world):
    world.start(1, 2, 3)
    created = world.submit(CreateTopics((world.new_topic(),), 10_000))
    for broker in (1, 2, 3):
        assert kinds_of_pushes(broker, created) == ["SendUpdateMetadata", "SendLeaderAndIsr"]


def test_a_broker_that_registers_gets_the_leaders_addresses_before_its_roles(world):
    world.start(1, 2, 3)
    world.create()
    world.crash(2)
    assert kinds_of_pushes(2, world.start(2)) == ["SendUpdateMetadata", "SendLeaderAndIsr"]
