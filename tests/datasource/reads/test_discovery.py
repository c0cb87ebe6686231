"""Topics are found as they are now, and count as gone only after a wait."""

from typing import Any

import pytest

from sparklog.client.cluster import NEW_TOPIC_WAIT_MS
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, TopicMetadata
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.reads.discovery import Discovery
from sparklog_datasource.reads.subscription import Subscription

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
UNKNOWN = ErrorCode.unknown_topic_or_partition


def topic(name: str, code: ErrorCode = ErrorCode.none) -> TopicMetadata:
    return TopicMetadata(name, TopicId(int=len(name)), {0: None}, error_code=code)  # type: ignore[dict-item]


class Cluster:
    """A cluster of which one broker, which is asked first, does not know the ``late`` topics."""

    def __init__(self, *names: str, late: tuple[str, ...] = ()) -> None:
        self.topics = dict.fromkeys(names)
        self.late = late
        self.waits: list[tuple[str, int]] = []

    def metadata(self, names: list[str] | None, *, max_age_ms: int) -> ClusterMetadata:
        assert max_age_ms == 0
        known = {name: topic(name) for name in self.topics if name not in self.late}
        if names is None:
            return ClusterMetadata(topics=known)
        return ClusterMetadata(topics={name: known.get(name, topic(name, UNKNOWN)) for name in names})

    def topic(self, name: str, *, timeout_ms: int) -> TopicMetadata:
        self.waits.append((name, timeout_ms))
        if name not in self.topics:
            raise KafkaError(UNKNOWN, f"there is no topic {name!r}")
        return topic(name)


def find(discovery: Discovery, cluster: Cluster, *known: str) -> dict[TopicPartition, Any]:
    return discovery.partitions(cluster, known)  # type: ignore[arg-type]


def test_partitions_come_with_the_ids_of_their_topics() -> None:
    found = find(Discovery(Subscription(topics=("a",)), True), Cluster("a", "b"))
    assert found == {A0: TopicId(int=1)}


def test_a_named_topic_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KafkaError, match="no topic 'b'"):
        find(Discovery(Subscription(topics=("a", "b")), True), Cluster("a"))


@pytest.mark.parametrize("subscription", [Subscription(topics=("a", "b")), Subscription(pattern=".")])
def test_a_topic_that_one_broker_does_not_know_yet_is_waited_for(subscription: Subscription) -> None:
    cluster = Cluster("a", "b", late=("b",))
    assert find(Discovery(subscription, True), cluster, "a", "b").keys() == {A0, B0}
    assert cluster.waits == [("b", NEW_TOPIC_WAIT_MS)]


def test_a_topic_that_was_there_and_is_gone_is_left_out_and_waited_for_once() -> None:
    discovery, cluster = Discovery(Subscription(pattern="."), True), Cluster("a")
    for _ in range(2):
        assert find(discovery, cluster, "a", "b").keys() == {A0}
    assert cluster.waits == [("b", NEW_TOPIC_WAIT_MS), ("b", 0)]
    cluster.topics["b"] = None
    assert find(discovery, cluster, "a", "b").keys() == {A0, B0}
    del cluster.topics["b"]
    find(discovery, cluster, "a", "b")
    assert cluster.waits[2:] == [("b", NEW_TOPIC_WAIT_MS)]


def test_where_losses_are_passed_over_a_named_topic_may_be_missing() -> None:
    assert find(Discovery(Subscription(topics=("a", "b")), False), Cluster("a")).keys() == {A0}


def test_a_pattern_that_finds_nothing_is_no_error() -> None:
    assert find(Discovery(Subscription(pattern="x"), True), Cluster("a")) == {}
