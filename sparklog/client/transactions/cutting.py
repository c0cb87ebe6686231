"""Make a cut, and agree upon it: of all who read under one name, the first makes it for all (``cut_rounds``).

A cut needs brokers that know the questions. It also needs ``__transaction_state``, in which agreements are
kept: a cluster without that topic has never had an atomic write, and is not made to create it for a read.
"""

from collections.abc import Callable, Iterable, Mapping

from sparklog.client.cluster import Answer as Answered
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.offsets import latest
from sparklog.client.transactions.agreement import Agreement
from sparklog.client.transactions.cut import Answer, Cut
from sparklog.client.transactions.cut_rounds import (
    Agreed,
    Conversation,
    HighWatermarks,
    Visibilities,
    agreed,
    made,
)
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.writes.describe_visibility import (
    AskedPartition,
    AskedTopic,
    DescribeVisibilityRequest,
    DescribeVisibilityResponse,
)


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
    SparklogError for more partitions than the cluster keeps a cut of.
    """
    return _talk(cluster, agreed(topic_partitions), Agreement(cluster, name))


def made_cut(cluster: ClusterClient, topic_partitions: Iterable[TopicPartition]) -> Cut:
    """A new cut; errors as of ``agreed_cut``.

    A leader that cannot say any more what was ended since the first round has both rounds asked again.
    """
    return _talk(cluster, made(topic_partitions), None)


def _talk(cluster: ClusterClient, conversation: Conversation, agreement: Agreement | None) -> Cut:
    answer: object = None
    while True:
        try:
            question = conversation.send(answer)
        except StopIteration as end:
            cut: Cut = end.value
            return cut
        match question:
            case HighWatermarks(topic_partitions):
                answer = latest(cluster, topic_partitions, IsolationLevel.READ_UNCOMMITTED)
            case Visibilities():
                answer = _visibilities(cluster, question)
            case Agreed(value):
                assert agreement is not None
                answer = agreement.value() if value is None else agreement.put(value)


def _visibilities(cluster: ClusterClient, question: Visibilities) -> dict[TopicPartition, Answer] | None:
    since = question.since

    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> DescribeVisibilityRequest:
        return visibility_request(leaders, since)

    try:
        return cluster.call_leaders(since, build, read_visibility)
    except KafkaError as error:
        if error.code is not ErrorCode.offset_out_of_range or question.is_last:
            raise
        return None


def visibility_request(
    leaders: Mapping[TopicPartition, KnownLeader], since: Mapping[TopicPartition, int]
) -> DescribeVisibilityRequest:
    """For the partitions of one leader."""
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


def read_visibility(response: DescribeVisibilityResponse) -> dict[TopicPartition, Answered[Answer]]:
    """Each partition's error, and what its leader says if there is none."""
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
