"""Groups as an administrator sees and changes them, against real brokers."""

from collections.abc import Iterator

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.group.committed_offsets import (
    CommittedOffset,
    commit_offsets,
    delete_offsets,
    fetch_committed,
)
from sparklog.client.group.group_admin import DEAD, GroupAdmin
from sparklog.client.group.group_consumer import GroupConsumer
from sparklog.client.group.settings import MemberSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

TOPIC = "of-group-admin"
T0, T1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


@pytest.fixture(scope="module")
def admin(cluster: InProcessCluster) -> GroupAdmin:
    cluster.create_topic(TOPIC, partitions=2)
    return GroupAdmin(cluster.client)


@pytest.fixture
def member(cluster: InProcessCluster, request: pytest.FixtureRequest) -> Iterator[GroupConsumer]:
    """The only member of a group that is named as the test, with both partitions."""
    settings = MemberSettings(group_id=request.node.name, topics=frozenset({TOPIC}))
    with (
        ClusterClient(cluster.bootstrap_servers, client_id="of-the-test") as client,
        GroupConsumer(client, settings) as consumer,
    ):
        while len(consumer.assignment) < 2:
            consumer.poll(50)
        yield consumer


def test_offsets_from_outside_make_a_group_that_is_listed_described_and_deleted(admin: GroupAdmin) -> None:
    group = "from-outside"
    coordinator = admin.coordinator(group)
    assert fetch_committed(coordinator) == {}
    assert admin.describe(group).group_state == DEAD
    assert commit_offsets(coordinator, {T0: 7, T1: 0}) == {}
    assert fetch_committed(coordinator) == {T0: CommittedOffset(7), T1: CommittedOffset(0)}
    assert fetch_committed(coordinator, [T1]) == {T1: CommittedOffset(0)}
    (listed,) = [one for one in admin.list_groups(["Empty"]) if one.group_id == group]
    assert listed.coordinator == admin.describe(group).coordinator.id
    assert group not in [one.group_id for one in admin.list_groups(["Stable"])]
    assert delete_offsets(coordinator, [T0]) == {}
    assert fetch_committed(coordinator) == {T1: CommittedOffset(0)}
    assert admin.delete([group, "no-such-group"]) == {
        group: ErrorCode.none,
        "no-such-group": ErrorCode.group_id_not_found,
    }
    assert admin.describe(group).group_state == DEAD


def test_a_group_with_a_member_is_described_with_it(
    admin: GroupAdmin, member: GroupConsumer, request: pytest.FixtureRequest
) -> None:
    group = admin.describe(request.node.name)
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (described,) = group.members
    assert described.client_id == "of-the-test"
    assert described.client_host == "/127.0.0.1"
    assert described.topics == frozenset({TOPIC})
    assert described.partitions == (T0, T1)
    assert group.owners() == {T0: described, T1: described}


def test_a_group_with_members_refuses_what_would_harm_them(
    admin: GroupAdmin, member: GroupConsumer, request: pytest.FixtureRequest
) -> None:
    group = request.node.name
    coordinator = admin.coordinator(group)
    assert commit_offsets(coordinator, {T0: 7}) == {T0: ErrorCode.unknown_member_id}
    assert delete_offsets(coordinator, [T0]) == {T0: ErrorCode.group_subscribed_to_topic}
    assert admin.delete([group]) == {group: ErrorCode.non_empty_group}
    assert len(member.assignment) == 2


def test_an_offset_of_a_partition_that_does_not_exist_is_refused_alone(admin: GroupAdmin) -> None:
    nowhere = TopicPartition("no-such-topic", 0)
    coordinator = admin.coordinator("half-wrong")
    assert commit_offsets(coordinator, {T0: 1, nowhere: 1}) == {nowhere: ErrorCode.unknown_topic_or_partition}
    assert fetch_committed(coordinator) == {T0: CommittedOffset(1)}
    admin.delete(["half-wrong"])
