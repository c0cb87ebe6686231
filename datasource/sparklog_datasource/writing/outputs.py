"""Where a task's batches go: to a producer of its own, or to a member of an atomic write.

    begin(topic_partitions), send, send, ... begin(more), send, ... finish

As a context manager an output ends its threads. If the block fails, a member withdraws what it has written.
"""

from collections.abc import Iterable
from typing import Protocol, Self

from sparklog.client.cluster import ClusterClient
from sparklog.client.producer import BatchProducer, Transaction
from sparklog.client.transactions.writes.failed_writes import WriteFailed
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import NO_PRODUCER_ID, WriteMember
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import MEMBER_EPOCH
from sparklog_datasource.writing.delivery import attempt_name
from sparklog_datasource.writing.write_options import WriteOptions


class Output(Protocol):
    @property
    def producer_id(self) -> int:
        """The producer id of the member that may win; -1 without one."""

    def begin(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Batches for these partitions come next."""

    def send(self, topic_partition: TopicPartition, batch: bytes) -> None: ...

    def finish(self) -> None:
        """Wait until everything is in the log."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, *_: object) -> None: ...


class PlainOutput:
    """At least once: an idempotent producer, unless the options say otherwise."""

    def __init__(self, options: WriteOptions, cluster: ClusterClient) -> None:
        self._producer = BatchProducer(
            cluster,
            acks=options.acks,
            idempotent=options.is_idempotent,
            timeout_ms=options.delivery_timeout_ms,
        )

    @property
    def producer_id(self) -> int:
        return NO_PRODUCER_ID

    def begin(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Nothing has to be said beforehand."""

    def send(self, topic_partition: TopicPartition, batch: bytes) -> None:
        self._producer.send(topic_partition, batch)

    def finish(self) -> None:
        self._producer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._producer.close()


class MemberOutput:
    """Exactly once: a member of ``write``, which is registered with its first partitions."""

    def __init__(self, options: WriteOptions, cluster: ClusterClient, write: WriteIdentity) -> None:
        self._timeout_ms = options.delivery_timeout_ms
        self._cluster = cluster
        # The first write of a cluster creates __transaction_state, whatever the patience with rows.
        calls_ms = max(self._timeout_ms, options.connection.retry_timeout_ms)
        self._member = WriteMember(cluster, write, attempt_name(), timeout_ms=calls_ms)
        self._producer: BatchProducer | None = None

    @property
    def producer_id(self) -> int:
        return self._member.producer_id

    def begin(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Raises AlreadyCommitted if there is nothing to write any more."""
        if self._producer is not None:
            self._member.add(topic_partitions)
            return
        self._member.open(topic_partitions)
        transaction = Transaction(self._member.write.app_id, self.producer_id, MEMBER_EPOCH)
        self._producer = BatchProducer(self._cluster, timeout_ms=self._timeout_ms, transaction=transaction)

    def send(self, topic_partition: TopicPartition, batch: bytes) -> None:
        if self._producer is None:
            raise WriteFailed(f"a batch for {topic_partition} before the task became a member of its write")
        self._producer.send(topic_partition, batch)

    def finish(self) -> None:
        if self._producer is not None:
            self._producer.flush()
            self._member.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._producer is not None:
                self._producer.close()
        finally:
            if kind is not None:
                self._member.withdraw()
            self._member.close()
