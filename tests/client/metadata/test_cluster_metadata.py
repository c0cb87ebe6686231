"""The picture of a cluster goes forward, also when a broker that lags behind paints it."""

import uuid

from sparklog.client.metadata.cluster_metadata import (
    COORDINATORS_MAX,
    ClusterMetadata,
    KnownCoordinators,
    KnownLeader,
    metadata_of,
)
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog.wire.messages.discovery.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TP = TopicPartition("t", 0)
T_ID = uuid.UUID(int=1)


def picture(leader: int, epoch: int, *, topic: str = "t", topic_id: uuid.UUID = T_ID) -> ClusterMetadata:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=number, host="h", port=number) for number in (1, 2)],
        topics=[MetadataResponseTopic(name=topic, topic_id=topic_id, partitions=[partition])],
    )
    return metadata_of(response, MonotonicMs(5))


def test_a_leader_is_named_with_its_epoch_and_the_topics_id() -> None:
    assert picture(2, 7).leader(TP) == KnownLeader(BrokerId(2), 7, T_ID)


def test_why_there_is_no_leader_is_told() -> None:
    assert picture(-1, 7).leader(TP) is ErrorCode.leader_not_available
    assert picture(9, 7).leader(TP) is ErrorCode.leader_not_available
    assert picture(1, 7).leader(TopicPartition("t", 5)) is ErrorCode.unknown_topic_or_partition
    assert picture(1, 7).leader(TopicPartition("u", 0)) is ErrorCode.unknown_topic_or_partition


def test_an_older_leader_epoch_does_not_replace_a_newer_one() -> None:
    newer, older = picture(2, 8), picture(1, 7)
    assert newer.updated(older, is_complete=False).leader(TP) == KnownLeader(BrokerId(2), 8, T_ID)
    assert older.updated(newer, is_complete=False).leader(TP) == KnownLeader(BrokerId(2), 8, T_ID)


def test_a_topic_that_was_created_again_begins_anew() -> None:
    recreated = uuid.UUID(int=2)
    updated = picture(2, 8).updated(picture(1, 0, topic_id=recreated), is_complete=False)
    assert updated.leader(TP) == KnownLeader(BrokerId(1), 0, recreated)


def test_only_a_complete_answer_forgets_topics() -> None:
    both = picture(1, 0).updated(picture(1, 0, topic="u"), is_complete=False)
    assert sorted(both.topics) == ["t", "u"]
    assert sorted(both.updated(picture(1, 0), is_complete=True).topics) == ["t"]


def test_what_was_found_where_it_is_no_more_is_forgotten_unless_found_elsewhere_since() -> None:
    here, there = (Node(BrokerId(number), "h", 9092 + number) for number in (1, 2))
    known = KnownCoordinators()
    known.found(0, "g", here)
    assert (known.get(0, "g"), known.get(1, "g")) == (here, None)
    known.moved(0, "g", there)
    assert known.get(0, "g") == here
    known.moved(0, "g", here)
    assert known.get(0, "g") is None


def test_the_coordinators_found_first_are_forgotten_when_there_are_many() -> None:
    known = KnownCoordinators()
    for number in range(COORDINATORS_MAX + 1):
        known.found(1, f"app-{number}", Node(BrokerId(1), "h", 9092))
    assert known.get(1, "app-0") is None
    assert known.get(1, f"app-{COORDINATORS_MAX}") is not None
