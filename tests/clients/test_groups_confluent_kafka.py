"""Consumer groups of confluent-kafka (librdkafka) against three brokers."""

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.group_members import Member, all_of, until_shared
from tests.waiting import until

pytestmark = pytest.mark.integration


def values(count: int, first: int = 0) -> list[str]:
    return [f"v{number}" for number in range(first, first + count)]


def consumer_of(cluster, group: str, **settings) -> Consumer:
    return Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, **settings})


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_partitions_and_take_over_those_of_one_that_leaves(cluster, assignor) -> None:
    topic = group = f"shared-{assignor}"
    cluster.create_topic(topic, partitions=4)
    cluster.produce(topic, values(200))
    settings = {"partition.assignment.strategy": assignor}
    with Member(cluster, group, [topic], **settings) as first:
        until_shared([first], all_of(topic, 4))
        with Member(cluster, group, [topic], **settings) as second:
            until_shared([first, second], all_of(topic, 4))
            assert len(first.owned) == len(second.owned) == 2
        until_shared([first], all_of(topic, 4))
        cluster.produce(topic, values(200, 200))
        expected = {value.encode() for value in values(400)}
        until(lambda: set(first.values) | set(second.values) == expected, "all records")


def test_committed_offsets_survive_their_consumer(cluster) -> None:
    topic = group = "committed"
    cluster.create_topic(topic, partitions=2)
    cluster.produce(topic, values(10), partition=0)
    first = consumer_of(cluster, group)
    first.commit(offsets=[TopicPartition(topic, 0, 6)], asynchronous=False)
    first.close()
    with Member(cluster, group, [topic]) as second:
        until(lambda: len(second.values) == 4, lambda: second.values)
    assert set(second.values) == {b"v6", b"v7", b"v8", b"v9"}
    third = consumer_of(cluster, group)
    zero, one = third.committed([TopicPartition(topic, number) for number in (0, 1)], timeout=30)
    assert (zero.offset, one.offset) == (6, -1001)
    third.close()


def test_a_static_member_that_returns_causes_no_rebalance(cluster) -> None:
    topic = group = "static"
    cluster.create_topic(topic, partitions=4)
    with Member(cluster, group, [topic], **{"group.instance.id": "one"}) as one:
        until_shared([one], all_of(topic, 4))
        two = Member(cluster, group, [topic], **{"group.instance.id": "two"})
        until_shared([one, two], all_of(topic, 4))
        owned, rebalances = two.owned, one.rebalances
        two.leave()  # a static member does not leave the group when it closes
        with Member(cluster, group, [topic], **{"group.instance.id": "two"}) as again:
            until(lambda: again.owned == owned, lambda: (again.owned, owned))
            assert one.rebalances == rebalances


def test_the_twin_of_a_static_member_fences_the_older_one(cluster) -> None:
    topic = group = "twins"
    cluster.create_topic(topic, partitions=2)
    older = Member(cluster, group, [topic], **{"group.instance.id": "twin"})
    until_shared([older], all_of(topic, 2))
    with Member(cluster, group, [topic], **{"group.instance.id": "twin"}) as newer:
        until_shared([newer], all_of(topic, 2))
        until(lambda: older.fatal is not None, "the older twin to be fenced")
    assert "fenced" in str(older.fatal)
    older.leave()


def test_a_stranger_s_commit_to_a_group_with_members_is_refused(cluster) -> None:
    topic = group = "strangers"
    cluster.create_topic(topic, partitions=2)
    with Member(cluster, group, [topic]) as member:
        until_shared([member], all_of(topic, 2))
        stranger = consumer_of(cluster, group)
        with pytest.raises(KafkaException) as refused:
            stranger.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
        stranger.close()


def test_a_commit_to_a_partition_that_does_not_exist_is_refused_alone(cluster) -> None:
    topic = group = "partly-absent"
    cluster.create_topic(topic, partitions=1)
    consumer = consumer_of(cluster, group)
    both = [TopicPartition(topic, 0, 1), TopicPartition(topic, 7, 1)]
    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=both, asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    (kept,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    assert kept.offset == 1
    consumer.close()


def test_administrators_list_describe_and_delete_groups(cluster) -> None:
    topic = group = "administered"
    cluster.create_topic(topic, partitions=2)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def state() -> str:
        listed = {one.group_id: one.state.name for one in admin.list_consumer_groups().result(30).valid}
        return listed.get(group, "")

    with Member(cluster, group, [topic], **{"client.id": "me"}) as member:
        until_shared([member], all_of(topic, 2))
        assert state() == "STABLE"
        described = admin.describe_consumer_groups([group])[group].result(30)
        (shown,) = described.members
        assert (shown.client_id, shown.host) == ("me", "/127.0.0.1")
        owned = {(one.topic, one.partition) for one in shown.assignment.topic_partitions}
        assert (described.partition_assignor, owned) == ("range", all_of(topic, 2))
        with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([group])[group].result(30)
    assert state() == "EMPTY"
    admin.delete_consumer_groups([group])[group].result(30)
    assert state() == ""
    with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
        admin.delete_consumer_groups([group])[group].result(30)
    assert admin.describe_consumer_groups([group])[group].result(30).state.name == "DEAD"


def test_administrators_read_and_alter_offsets(cluster) -> None:
    topic = group = "altered"
    cluster.create_topic(topic, partitions=2)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 5), TopicPartition(topic, 1, 7)])
    altered = admin.alter_consumer_group_offsets([asked])[group].result(30)
    assert [one.error for one in altered.topic_partitions] == [None, None]
    everything = ConsumerGroupTopicPartitions(group)
    listed = admin.list_consumer_group_offsets([everything])[group].result(30)
    assert {one.partition: one.offset for one in listed.topic_partitions} == {0: 5, 1: 7}
