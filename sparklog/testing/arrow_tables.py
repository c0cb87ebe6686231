"""Arrow tables for tests of typed topics: written and read back whole. For more there is Spark."""

import pyarrow as pa

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.partitioning.partitioner import Partitioner, positive_hashes, split_by_partition
from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.client.topic_schemas import describe_schemas, schema_with_version
from sparklog.model.errors import SchemaError
from sparklog.model.ids import TopicPartition
from sparklog.records.arrow.arrow_types import columns_of_arrow
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.bridge import nulls_of
from sparklog.records.envelope import Compression
from sparklog.records.typed_decoding import TypedReading

ROWS_MAX = 10_000
"""Rows of one batch of the log."""


def send_table(client: ClusterClient, topic: str, table: pa.Table, partition: int | None) -> None:
    """Write the rows of a table, and wait until they are acknowledged by all replicas that are in sync.

    SchemaError for columns that the topic does not take.
    """
    void = [field.name for field in table.schema if pa.types.is_null(field.type)]
    table = table.drop_columns(void)
    written = WrittenRows.fitting(_columns(client, topic).newest, columns_of_arrow(table.schema), void)
    partitioner = Partitioner(len(client.topic(topic).partitions))
    with BatchProducer(client) as producer:
        for batch in table.combine_chunks().to_batches(max_chunksize=ROWS_MAX):
            rows = written.rows(batch)
            for number, part in _placed(written, rows, partitioner, partition).items():
                data = written.encode(part, now_ms=client.clock.wall_ms(), compression=Compression.NONE)
                producer.send(TopicPartition(topic, number), data)


def read_table(client: ClusterClient, topic: str) -> pa.Table:
    """All rows that readers may see now, by partition and offset, with the topic's columns."""
    columns = _columns(client, topic)
    reading = TypedReading(
        columns,
        columns.newest.columns,
        lambda version: TopicColumns(schema_with_version(client, topic, version)),
    )
    topic_partitions = client.topic(topic).topic_partitions()
    starts = offsets.earliest(client, topic_partitions)
    ends = offsets.latest(client, topic_partitions, IsolationLevel.READ_COMMITTED)
    batches = [
        batch
        for one in sorted(topic_partitions)
        for batch in read_range(client, one, starts[one], ends[one], typed=reading)
    ]
    names = [field.name for field in reading.wanted]
    return pa.Table.from_batches(batches, schema=reading.schema).select(names)


def _columns(client: ClusterClient, topic: str) -> TopicColumns:
    document = describe_schemas(client, [topic]).get(topic)
    if document is None:
        raise SchemaError(f"topic {topic!r} has no columns: create it with schema=, or send records")
    return TopicColumns(document)


def _placed(
    written: WrittenRows, rows: pa.RecordBatch, partitioner: Partitioner, partition: int | None
) -> dict[int, pa.RecordBatch]:
    keys = written.keys(rows)
    if partition is not None or keys is None:
        return {partitioner.for_key(None) if partition is None else partition: rows}
    partitions = (positive_hashes(keys) % partitioner.partitions_count).astype("int32")
    partitions[nulls_of(keys)] = partitioner.for_key(None)
    return split_by_partition(rows, partitions)
