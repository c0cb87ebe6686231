"""Records for assertions: a few, written and read back whole. For more there is ``sparklog.client``."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.reader import read_range
from sparklog.client.records_producer import Producer
from sparklog.model.ids import TopicPartition

Text = str | bytes | None
Sendable = Text | tuple[Text, Text]
"""A value, or a key and a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as it was read."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def send_records(
    client: ClusterClient, topic: str, records: Iterable[Sendable], partition: int | None
) -> None:
    """Write records, and wait until they are acknowledged by all replicas that are in sync."""
    with Producer(client) as producer:
        for record in records:
            key, value = record if isinstance(record, tuple) else (None, record)
            producer.send(topic, _bytes(value), key=_bytes(key), partition=partition)


def read_records(client: ClusterClient, topic: str) -> list[Record]:
    """Everything that readers may see now, by partition and offset."""
    topic_partitions = client.topic(topic).topic_partitions()
    starts = offsets.earliest(client, topic_partitions)
    ends = offsets.latest(client, topic_partitions, IsolationLevel.READ_COMMITTED)
    return [
        record
        for topic_partition in sorted(topic_partitions)
        for batch in read_range(client, topic_partition, starts[topic_partition], ends[topic_partition])
        for record in _records(topic_partition, batch)
    ]


def _records(topic_partition: TopicPartition, batch: pa.RecordBatch) -> Iterator[Record]:
    stamps_us = batch.column("timestamp").cast(pa.int64()).to_pylist()
    columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value", "headers"))
    for stamp_us, offset, key, value, headers in zip(stamps_us, *columns, strict=True):
        yield Record(
            partition=topic_partition.partition,
            offset=offset,
            timestamp_ms=stamp_us // 1_000,
            key=key,
            value=value,
            headers=tuple((header["key"], header["value"]) for header in headers or ()),
        )


def _bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
