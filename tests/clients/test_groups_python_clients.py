"""Consumer groups of kafka-python and aiokafka, clients without librdkafka, against three brokers."""

import aiokafka.errors
import kafka.errors
import pytest

from sparklog.client.group.group_admin import GroupAdmin
from tests.clients.group_members import Member, all_of, until_shared
from tests.clients.python_group_members import AiokafkaMember, KafkaPythonMember, PythonMember
from tests.waiting import until

pytestmark = pytest.mark.integration

NAMES = {KafkaPythonMember: "kafka-python", AiokafkaMember: "aiokafka"}
CLIENTS = pytest.mark.parametrize("client", NAMES, ids=NAMES.values())


def values(count: int, first: int = 0) -> list[bytes]:
    return [b"v%d" % number for number in range(first, first + count)]


def new_topic(cluster, client: type[PythonMember], case: str, partitions: int) -> str:
    topic = f"{case}-{NAMES[client]}"
    cluster.create_topic(topic, partitions=partitions)
    return topic


@CLIENTS
def test_two_members_share_partitions_and_one_takes_over_when_the_other_leaves(cluster, client) -> None:
    topic = group = new_topic(cluster, client, "two", 4)
    with client(cluster, group, topic) as first:
        until_shared([first], all_of(topic, 4))
        with client(cluster, group, topic) as second:
            until_shared([first, second], all_of(topic, 4))
            assert len(first.owned) == len(second.owned) == 2
            for partition in range(4):
                cluster.produce(topic, values(5, 5 * partition), partition=partition)
            until(lambda: set(first.values + second.values) == set(values(20)), "all records")
            assert first.values.total() == second.values.total() == 10
        until_shared([first], all_of(topic, 4))


@CLIENTS
def test_the_last_member_that_leaves_empties_the_group_at_once(cluster, client) -> None:
    topic = group = new_topic(cluster, client, "leaves", 1)
    groups = GroupAdmin(cluster.client)
    with client(cluster, group, topic) as member:
        until_shared([member], all_of(topic, 1))
        assert groups.describe(group).group_state == "Stable"
    assert groups.describe(group).group_state == "Empty"


@CLIENTS
def test_a_member_resumes_where_the_group_has_committed(cluster, client) -> None:
    topic = group = new_topic(cluster, client, "resumes", 1)
    cluster.produce(topic, values(10))
    with client(cluster, group, topic) as first:
        until(lambda: set(first.values) == set(values(10)), lambda: first.values)
        assert first.committed(topic, 0) is None
        first.commit(topic, 0, 6, "a note")
        assert first.committed(topic, 0) == 6
    with client(cluster, group, topic) as second:
        until(lambda: set(second.values) == set(values(4, 6)), lambda: second.values)
    assert second.values.total() == 4


@CLIENTS
def test_a_commit_from_outside_a_group_with_members_is_refused(cluster, client) -> None:
    topic = group = new_topic(cluster, client, "outside", 1)
    with client(cluster, group, topic) as member, client(cluster, group, topic, outsider=True) as outsider:
        until_shared([member], all_of(topic, 1))
        with pytest.raises((aiokafka.errors.CommitFailedError, kafka.errors.CommitFailedError)):
            outsider.commit(topic, 0, 1)
        member.commit(topic, 0, 2)
        assert outsider.committed(topic, 0) == 2


def test_members_of_three_clients_share_one_group(cluster) -> None:
    topic = group = "three-clients"
    cluster.create_topic(topic, partitions=6)
    with (
        KafkaPythonMember(cluster, group, topic) as one,
        AiokafkaMember(cluster, group, topic) as two,
        Member(cluster, group, [topic], **{"partition.assignment.strategy": "range"}) as three,
    ):
        until_shared([one, two, three], all_of(topic, 6))
        assert [len(member.owned) for member in (one, two, three)] == [2, 2, 2]
