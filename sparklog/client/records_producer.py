"""A producer of single records: gathers the records of each partition into batches for ``BatchProducer``.

A batch is sent when it is full, when ``linger_ms`` have passed since its first record, or at a flush. The
producer checks the time only when it is called: a caller that waits for input calls ``tick`` meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from sparklog.client.cluster import ClusterClient
from sparklog.client.partitioning.partitioner import Partitioner
from sparklog.client.producer import BatchProducer, Delivered
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.bridge import binaries, numbers
from sparklog.records.envelope import Compression
from sparklog.records.kafka.spans import headers_list
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog.records.row_columns import HEADERS_TYPE

Headers = Sequence[tuple[str, bytes | None]]

BATCH_BYTES: Final = 256 * 1024
BATCH_RECORDS_MAX: Final = 10_000
LINGER_MS: Final = 20


@dataclass(slots=True)
class _Gathering:
    """A batch that is being filled."""

    since_ms: int
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers | None) -> None:
        self.keys.append(key)
        self.values.append(value)
        self.timestamps_ms.append(timestamp_ms)
        self.headers.append(headers or ())
        self.size_bytes += len(key or b"") + len(value or b"")

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= BATCH_BYTES or len(self.values) >= BATCH_RECORDS_MAX

    def columns(self) -> pa.RecordBatch:
        return pa.record_batch(
            {
                "key": binaries(self.keys),
                "value": binaries(self.values),
                "timestamp": numbers(np.array(self.timestamps_ms, np.int64)),
                "headers": self._headers(),
            }
        )

    def _headers(self) -> pa.Array:
        pairs = [pair for headers in self.headers for pair in headers]
        if not pairs:
            return pa.nulls(len(self.headers), HEADERS_TYPE)
        names = binaries([name.encode() for name, _ in pairs]).view(pa.string())
        counts = np.array([len(headers) for headers in self.headers], np.int64)
        return headers_list(names, binaries([text for _, text in pairs]), counts)


class Producer:
    """For one thread. As a context manager it flushes when the block ends well."""

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        acks: int = ACKS_ALL,
        linger_ms: int = LINGER_MS,
        compression: Compression = Compression.NONE,
        payload_kind: PayloadKind = PayloadKind.RECORDS,
        timeout_ms: int = 120_000,
    ) -> None:
        self._cluster = cluster
        self._linger_ms = linger_ms
        self._compression = compression
        self._payload = payload(payload_kind)
        self._batches = BatchProducer(cluster, acks=acks, idempotent=acks == ACKS_ALL, timeout_ms=timeout_ms)
        self._partitioners: dict[str, Partitioner] = {}
        self._gathering: dict[TopicPartition, _Gathering] = {}

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Queue one record. KafkaError if there is no such topic, ProduceFailed for earlier failures."""
        partitioner = self._partitioner(topic)
        topic_partition = TopicPartition(topic, partitioner.for_key(key) if partition is None else partition)
        last = partitioner.partitions_count - 1
        if not 0 <= topic_partition.partition <= last:
            raise KafkaError(
                ErrorCode.unknown_topic_or_partition,
                f"topic {topic!r} has partitions 0 to {last}, but none {partition}",
            )
        gathering = self._gathering.get(topic_partition)
        if gathering is not None and gathering.size_bytes + len(key or b"") + len(value or b"") > BATCH_BYTES:
            self._dispatch(
                topic_partition
            )  # a huge record has its own batch, because a refusal would hit its neighbours too
            gathering = None
        if gathering is None:
            gathering = self._gathering[topic_partition] = _Gathering(self._cluster.clock.monotonic_ms())
        stamp_ms = self._cluster.clock.wall_ms() if timestamp_ms is None else timestamp_ms
        gathering.add(key, value, stamp_ms, headers)
        if gathering.is_full:
            self._dispatch(topic_partition)
        self.tick()

    def tick(self) -> None:
        """Send the batches that are older than ``linger_ms``."""
        oldest_ms = self._cluster.clock.monotonic_ms() - self._linger_ms
        for topic_partition in [
            topic_partition
            for topic_partition, gathering in self._gathering.items()
            if gathering.since_ms <= oldest_ms
        ]:
            self._dispatch(topic_partition)

    def flush(self) -> list[Delivered]:
        """Wait until every record is in the log or given up; raises ProduceFailed if any was given up."""
        for topic_partition in list(self._gathering):
            self._dispatch(topic_partition)
        return self._batches.flush()

    def delivered(self) -> list[Delivered]:
        """The batches delivered since the last call or flush."""
        return self._batches.delivered()

    def close(self) -> None:
        """End without waiting: records that were not flushed may be lost."""
        self._batches.close()

    def _dispatch(self, topic_partition: TopicPartition) -> None:
        gathering = self._gathering.pop(topic_partition)
        batch = self._payload.from_columns(
            gathering.columns(), now_ms=self._cluster.clock.wall_ms(), compression=self._compression
        )
        partitioner = self._partitioners[topic_partition.topic]
        if topic_partition.partition == partitioner.for_key(None):
            partitioner.next_batch()
        self._batches.send(topic_partition, batch)

    def _partitioner(self, topic: str) -> Partitioner:
        if topic not in self._partitioners:
            self._partitioners[topic] = Partitioner(len(self._cluster.topic(topic).partitions))
        return self._partitioners[topic]
