"""Hanging transactions: open in a partition, and no coordinator will ever end them (KIP-664).

A transaction that is open in a partition hangs if its coordinator has no open transaction of that producer
with that partition: a batch that was late has opened it again, or the coordinator's log was lost. It holds
back read-committed readers for ever. A coordinator ends every other one at its time-out at the latest.

A wrong answer would have an operator abort what its producer is about to commit. So the leaders of the
coordinators' topic must be the same before and after the coordinators were asked, and what they do not know
must still be open after that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.transactions.transaction_admin import PartitionProducer, TransactionAdmin
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in one partition."""

    topic_partition: TopicPartition
    producer: PartitionProducer


@dataclass(frozen=True, slots=True)
class KnownTransaction:
    """An open transaction that its coordinator still has, and ends at its time-out at the latest.

    With ``is_write`` it belongs to an atomic write, and ``transactional_id`` is the app id of that.
    """

    transactional_id: str
    transaction_state: str
    coordinator: int
    is_write: bool


def open_transactions(
    admin: TransactionAdmin, topic_partitions: Iterable[TopicPartition]
) -> list[OpenTransaction]:
    """The transactions that are open in these partitions; KafkaError if a leader does not answer."""
    return [
        OpenTransaction(topic_partition, producer)
        for topic_partition, producers in sorted(admin.producers(topic_partitions).items())
        for producer in producers
        if producer.open_since >= 0
    ]


def hanging_transactions(
    cluster: ClusterClient, topic_partitions: Iterable[TopicPartition], older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Those that hang, with a last batch from before ``now_ms - older_than_ms`` by its timestamp.

    KafkaError or OSError if a leader or a coordinator does not answer.
    """
    admin = TransactionAdmin(cluster)
    candidates = [
        one
        for one in open_transactions(admin, topic_partitions)
        if now_ms - one.producer.last_timestamp_ms > older_than_ms
    ]
    if not candidates:
        return []
    known = coordinated(cluster, candidates)
    hanging = [one for one in candidates if one not in known]
    still_open = _identities(open_transactions(admin, {one.topic_partition for one in hanging}))
    return [one for one in hanging if _identity(one) in still_open]


def coordinated(
    cluster: ClusterClient, transactions: Sequence[OpenTransaction]
) -> dict[OpenTransaction, KnownTransaction]:
    """Those of the open transactions that a coordinator still has. KafkaError or OSError."""
    deadline = cluster.deadline()
    backoff = cluster.backoff(deadline)
    leaders = _coordinators(cluster)
    while True:
        found = _lookup(TransactionAdmin(cluster), transactions)
        now_leading = _coordinators(cluster)
        if now_leading == leaders:
            return found
        leaders = now_leading
        moving = "the coordinators of transactions moved all the time"
        backoff.pause(partial(KafkaError, ErrorCode.not_coordinator, moving))


def _lookup(
    admin: TransactionAdmin, transactions: Sequence[OpenTransaction]
) -> dict[OpenTransaction, KnownTransaction]:
    producer_ids = sorted({one.producer.producer_id for one in transactions})
    found: dict[OpenTransaction, KnownTransaction] = {}
    for listing in admin.list_transactions(producer_ids=producer_ids):
        described = admin.describe(listing.transactional_id)
        if described is None:
            continue
        known = KnownTransaction(
            described.transactional_id,
            described.transaction_state,
            described.coordinator.id,
            described.is_write,
        )
        for one in transactions:
            is_same = one.producer.producer_id == listing.producer_id
            if is_same and one.topic_partition in described.partitions:
                found[one] = known
    return found


def _coordinators(cluster: ClusterClient) -> dict[int, KnownLeader]:
    """The leader of each partition of the coordinators' topic; KafkaError if one has none."""
    seen = cluster.metadata([TRANSACTION_STATE_TOPIC], max_age_ms=0)
    topic = seen.topics.get(TRANSACTION_STATE_TOPIC)
    if topic is None or topic.error_code is ErrorCode.unknown_topic_or_partition:
        return {}
    if topic.error_code is not ErrorCode.none:
        raise KafkaError(topic.error_code, f"topic {TRANSACTION_STATE_TOPIC!r}")
    leaders: dict[int, KnownLeader] = {}
    for topic_partition in topic.topic_partitions():
        leader = seen.leader(topic_partition)
        if not isinstance(leader, KnownLeader):
            raise KafkaError(leader, f"{topic_partition} has no leader, so its open transactions are unknown")
        leaders[topic_partition.partition] = leader
    return leaders


def _identity(one: OpenTransaction) -> tuple[TopicPartition, int, int]:
    return one.topic_partition, one.producer.producer_id, one.producer.open_since


def _identities(transactions: Iterable[OpenTransaction]) -> set[tuple[TopicPartition, int, int]]:
    return {_identity(one) for one in transactions}
