"""Make a cut, and agree upon it: of all who read under one name, the first makes it for all.

A cut needs brokers that know the questions. It also needs ``__transaction_state``, in which agreements are
kept: a cluster without that topic has never had an atomic write, and is not made to create it for a read.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from sparklog.client.cluster import Answer as Answered
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata import KnownLeader
from sparklog.client.offsets import latest
from sparklog.client.transactions.agreement import Agreement
from sparklog.client.transactions.cut import Answer, Cut, cut_of, decode, encode
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.writes.describe_visibility import (
    AskedPartition,
    AskedTopic,
    DescribeVisibilityRequest,
    DescribeVisibilityResponse,
)

ATTEMPTS_MAX: Final = 5


def serves_cuts(cluster: ClusterClient) -> bool:
    """Whether a cut can be made and agreed upon; ClusterUnavailable if no broker answers."""
    try:
        cluster.require(DescribeVisibilityRequest.API_KEY)
    except KafkaError:
        return False
    topic = cluster.metadata([TRANSACTION_STATE_TOPIC]).topics.get(TRANSACTION_STATE_TOPIC)
    return topic is not None and topic.error_code is ErrorCode.none


def agreed_cut(
    cluster: ClusterClient, name: str, topic_partitions: Callable[[], Iterable[TopicPartition]]
) -> Cut:
    """The cut that was agreed upon under ``name``. Without one, a cut of ``topic_partitions`` is made.

    KafkaError or ClusterUnavailable if a leader or the coordinator does not answer in the client's time.
    """
    agreement = Agreement(cluster, name)
    value = agreement.value()
    if value is None:
        value = agreement.put(encode(made_cut(cluster, topic_partitions())))
    return decode(value)


def made_cut(cluster: ClusterClient, topic_partitions: Iterable[TopicPartition]) -> Cut:
    """A new cut; errors as of ``agreed_cut``.

    A leader that cannot say any more what was ended since the first round has both rounds asked again.
    """
    wanted = list(topic_partitions)
    attempt = 1
    while True:
        since = latest(cluster, wanted, IsolationLevel.READ_UNCOMMITTED)
        try:
            return cut_of(_described(cluster, since))
        except KafkaError as error:
            if error.code is not ErrorCode.offset_out_of_range or attempt == ATTEMPTS_MAX:
                raise
        attempt += 1


def _described(cluster: ClusterClient, since: Mapping[TopicPartition, int]) -> dict[TopicPartition, Answer]:
    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> DescribeVisibilityRequest:
        topics: dict[str, AskedTopic] = {}
        for topic_partition, leader in leaders.items():
            topic = topics.setdefault(topic_partition.topic, AskedTopic(name=topic_partition.topic))
            topic.partitions.append(
                AskedPartition(
                    partition_index=topic_partition.partition,
                    current_leader_epoch=leader.leader_epoch,
                    since_offset=since[topic_partition],
                )
            )
        return DescribeVisibilityRequest(topics=list(topics.values()))

    return cluster.call_leaders(since, build, _read)


def _read(response: DescribeVisibilityResponse) -> dict[TopicPartition, Answered[Answer]]:
    return {
        TopicPartition(topic.name, one.partition_index): (
            one.error_code,
            Answer(one.high_watermark, one.stable_offset, frozenset(one.writes))
            if one.error_code is ErrorCode.none
            else None,
        )
        for topic in response.topics
        for one in topic.partitions
    }
