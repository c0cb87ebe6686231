"""A producer of ready-made batches: each in its partition once, in order, over failing leaders and networks.

The caller's thread numbers batches and queues them. One thread per leader sends them (``leader_sender``). The
*router*, one more thread, finds leaders for partitions without one and gives up batches whose time is up.
``produce_queue`` decides which batch may be sent, and what a refusal means.

With ``idempotent`` every batch gets the producer's id and a sequence before it is first sent, and keeps both,
so that a leader recognises a repeated batch and does not write it again. Without it one batch per partition
is in flight, which keeps the order, but a repeated batch may be written twice.

With a ``transaction`` every batch is one of that transaction, which was begun elsewhere, with the partition
in it. Whoever began it ends it.

An error is final for its partition, because the sequences after a lost batch cannot be used. The next
``send`` or ``flush`` raises it, with all failures since.
"""

from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClientClosed, ProduceFailed
from sparklog.client.producing.leader_sender import ProduceTerms, Transaction
from sparklog.client.producing.produce_ledger import Delivered, ProduceLedger
from sparklog.client.producing.produce_queue import IN_FLIGHT_MAX, QueuedBatch
from sparklog.client.producing.produce_router import ProduceRouter
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS, ACKS_ALL
from sparklog.records.envelope import SEQUENCE_MODULUS, BatchHeader, parse_header
from sparklog.records.restamp import set_producer
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["BatchProducer", "Delivered", "Transaction"]

BUFFER_BYTES_MAX: Final = 32 * 1024 * 1024
LOOK_AT_CLOCK_MS: Final = 1_000
"""A lost wake-up costs no more than this."""


class BatchProducer:
    """See the module. Its methods are for one thread; its own threads end with ``close``.

    As a context manager it flushes when the block ends well, and only closes when it does not.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        acks: int = ACKS_ALL,
        idempotent: bool = True,
        in_flight_max: int = IN_FLIGHT_MAX,
        timeout_ms: int = 120_000,
        buffer_bytes_max: int = BUFFER_BYTES_MAX,
        transaction: Transaction | None = None,
    ) -> None:
        if acks not in ACKS:
            raise ConfigError(f"acks={acks}: must be 0, 1 or -1 (all)")
        if idempotent and acks != ACKS_ALL:
            raise ConfigError(f"acks={acks}: an idempotent producer needs acks=-1 (all)")
        if transaction is not None and not idempotent:
            raise ConfigError("a transaction needs an idempotent producer")
        if not 1 <= in_flight_max <= IN_FLIGHT_MAX:
            raise ConfigError(f"in_flight_max={in_flight_max}: must be between 1 and {IN_FLIGHT_MAX}")
        self._cluster = cluster
        self._terms = ProduceTerms(acks, min(cluster.request_timeout_ms, timeout_ms), transaction)
        self._timeout_ms = timeout_ms
        self._is_idempotent = idempotent
        self._buffer_bytes_max = buffer_bytes_max
        self._ledger = ProduceLedger(in_flight_max if idempotent else 1)
        self._identity: tuple[int, int] | None = None
        if transaction is not None:
            self._identity = (transaction.producer_id, transaction.producer_epoch)
        self._next_sequences: dict[TopicPartition, int] = {}
        self._sent_count = 0
        self._router = ProduceRouter(cluster, self._ledger, self._terms, timeout_ms)

    def __enter__(self) -> "BatchProducer":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def send(self, topic_partition: TopicPartition, batch: bytes | bytearray) -> None:
        """Queue one whole batch, which belongs to the producer from now on; waits while the buffer is full.

        Raises KafkaError if there is no such topic or partition, ProduceFailed for earlier failures.
        """
        header = parse_header(batch)
        if header.size_bytes != len(batch):
            raise ValueError(
                f"{len(batch)} bytes for {topic_partition} are not one batch, which has {header.size_bytes}"
            )
        self._raise_what_failed()
        if topic_partition not in self._next_sequences:
            self._begin(topic_partition)
        self._wait_for_room(len(batch))
        queued = self._number(topic_partition, batch, header)
        with self._ledger.changed:
            failure = self._ledger.queue_locked(topic_partition).failure
            if failure is None:
                self._ledger.add_locked(queued)
        if failure is not None:
            self._raise_what_failed()
            raise ProduceFailed([failure])

    def flush(self) -> list[Delivered]:
        """Wait until every batch is in the log or given up; the batches delivered since the last flush.

        Always ends, because no batch is tried for longer than ``timeout_ms``. Raises ProduceFailed if any
        batch failed.
        """
        with self._ledger.changed:
            while self._ledger.unsettled_count and self._ledger.broken is None:
                self._ledger.changed.wait(LOOK_AT_CLOCK_MS / 1_000)
        self._raise_what_failed()
        return self.delivered()

    def delivered(self) -> list[Delivered]:
        """The batches delivered since the last call or flush, in the order of sending; does not wait."""
        with self._ledger.changed:
            return self._ledger.take_delivered_locked()

    @property
    def buffered_bytes(self) -> int:
        return self._ledger.buffered_bytes

    def close(self) -> None:
        """End the threads; batches that were not flushed may or may not be in the log."""
        with self._ledger.changed:
            self._ledger.is_closing = True
            self._ledger.changed.notify_all()
        self._router.close()

    def _number(
        self, topic_partition: TopicPartition, batch: bytes | bytearray, header: BatchHeader
    ) -> QueuedBatch:
        data = batch
        if self._identity is not None:
            sequence = self._next_sequences[topic_partition]
            data = batch if isinstance(batch, bytearray) else bytearray(batch)
            is_transactional = self._terms.transaction is not None
            set_producer(data, 0, *self._identity, sequence, is_transactional=is_transactional)
            self._next_sequences[topic_partition] = (
                sequence + header.last_offset_delta + 1
            ) % SEQUENCE_MODULUS
        self._sent_count += 1
        deadline_ms = self._cluster.clock.monotonic_ms() + self._timeout_ms
        return QueuedBatch(topic_partition, data, header.record_count, self._sent_count, deadline_ms)

    def _begin(self, topic_partition: TopicPartition) -> None:
        """Check that a new partition exists; before the first batch of all, get a producer id."""
        if topic_partition.partition not in self._cluster.topic(topic_partition.topic).partitions:
            self._cluster.metadata([topic_partition.topic], max_age_ms=0)  # it may have been added since
            partitions = self._cluster.topic(topic_partition.topic).partitions
            if topic_partition.partition not in partitions:
                raise KafkaError(
                    ErrorCode.unknown_topic_or_partition,
                    f"topic {topic_partition.topic!r} has {len(partitions)} partitions, "
                    f"but none {topic_partition.partition}",
                )
        if self._is_idempotent and self._identity is None:
            self._identity = self._init_producer_id()
        self._router.start()
        self._next_sequences[topic_partition] = 0

    def _init_producer_id(self) -> tuple[int, int]:
        response: InitProducerIdResponse = self._cluster.call_any(
            InitProducerIdRequest(), lambda answer: answer.error_code, timeout_ms=self._timeout_ms
        )
        if response.error_code is not ErrorCode.none:
            raise KafkaError(
                response.error_code, f"no producer id from the cluster at {self._cluster.bootstrap_servers}"
            )
        return response.producer_id, response.producer_epoch

    def _wait_for_room(self, size_bytes: int) -> None:
        ledger = self._ledger
        with ledger.changed:
            while ledger.unsettled_count and ledger.buffered_bytes + size_bytes > self._buffer_bytes_max:
                if ledger.has_failures or ledger.broken is not None:
                    break
                ledger.changed.wait(LOOK_AT_CLOCK_MS / 1_000)
            if ledger.is_closing:
                raise ClientClosed("the producer is closed")
        self._raise_what_failed()

    def _raise_what_failed(self) -> None:
        with self._ledger.changed:
            failures = self._ledger.take_failures_locked()
            broken = self._ledger.broken
        if failures:
            raise ProduceFailed(failures)
        if broken is not None:
            raise broken
