"""What can be asked about a cluster, and changed."""

from collections.abc import Callable
from typing import Any

import pytest

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition

Start = Callable[..., Any]
Connect = Callable[..., ClusterClient]
BatchOf = Callable[..., bytes]


def test_a_topic_is_created_described_and_deleted(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(2)
    admin = Admin(client_of(fake))
    ids = admin.create_topics([NewTopic(name="t", partitions=2, configs={"retention.ms": "60000"})])
    assert ids == {"t": fake.topics["t"].topic_id}
    assert admin.list_topics() == ["t"]
    (described,) = admin.describe_topics(["t"])
    assert described.topic_id == ids["t"]
    assert described.configs == {"retention.ms": "60000"}
    assert [partition.leader for partition in described.partitions] == [1, 2]
    admin.delete_topics(["t"])
    assert admin.list_topics() == []


def test_a_description_tells_three_offsets_of_each_partition(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    log = fake.log("t")
    log.log_start_offset = 1
    log.append(batch_of("a", "b", "c"))
    log.high_watermark = 2
    (described,) = Admin(client_of(fake)).describe_topics(["t"])
    (partition,) = described.partitions
    assert partition.log_start_offset == 1
    assert partition.high_watermark == 2
    assert partition.log_end_offset == 4


def test_a_partition_without_a_leader_does_not_spoil_a_description(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.create_topic("t", 2)
    fake.log("t", 1).leader = -1
    (described,) = Admin(client_of(fake)).describe_topics()
    assert [partition.high_watermark for partition in described.partitions] == [0, -1]
    assert [partition.leader for partition in described.partitions] == [1, -1]


def test_a_refusal_is_raised_with_the_servers_words(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake()
    fake.create_topic("t")
    admin = Admin(client_of(fake))
    with pytest.raises(
        KafkaError, match=r"^TOPIC_ALREADY_EXISTS: Topic 't': topic_already_exists"
    ) as refused:
        admin.create_topics([NewTopic(name="t")])
    assert refused.value.code is ErrorCode.topic_already_exists
    with pytest.raises(KafkaError, match="'nowhere'"):
        admin.delete_topics(["nowhere"])


def test_a_change_is_tried_again_while_there_is_no_controller(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(2)
    fake.controller_refusals.extend([ErrorCode.not_controller] * 2)
    assert list(Admin(client_of(fake)).create_topics([NewTopic(name="t")])) == ["t"]


def test_a_change_that_is_refused_until_the_time_is_over_is_refused_in_the_servers_words(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.controller_refusals.extend([ErrorCode.not_controller] * 1_000)
    admin = Admin(client_of(fake, retry_timeout_ms=200))
    with pytest.raises(KafkaError, match=r"^NOT_CONTROLLER: Topic 't': not_controller"):
        admin.create_topics([NewTopic(name="t")])


def test_internal_topics_are_listed_only_when_asked_for(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake()
    fake.create_topic("__consumer_offsets")
    fake.create_topic("t")
    admin = Admin(client_of(fake))
    assert admin.list_topics() == ["t"]
    assert admin.list_topics(include_internal=True) == ["__consumer_offsets", "t"]


def test_offsets_are_found_by_time(start_fake: Start, client_of: Connect, batch_of: BatchOf) -> None:
    fake = start_fake()
    fake.create_topic("t")
    for number in range(3):
        fake.log("t").append(batch_of("a", "b", now_ms=1_000 * number))
    admin = Admin(client_of(fake))
    tp = TopicPartition("t", 0)
    found = admin.offsets_for_times({tp: 500})[tp]
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (2, 1_000)
    assert admin.offsets_for_times({tp: 5_000}) == {tp: None}
    assert admin.earliest([tp]) == {tp: 0}
    assert admin.latest([tp]) == {tp: 6}


def test_the_cluster_is_described_with_its_live_brokers(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(3)
    admin = Admin(client_of(fake))
    described = admin.describe_cluster()
    assert described.cluster_id == "fake-cluster"
    assert [broker.id for broker in described.brokers] == [1, 2, 3]
