"""The topic and the partition of each row. PURE.

The partition column decides if it is not null; otherwise the key does, by murmur2 as in Kafka's Java clients.
Rows with neither are written to one partition for ``STICKY_BYTES``, then to the next (KIP-480). The first
partition is random, so that many small writes do not all begin with the same partition.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparklog.client.partitioning.partitioner import Int32s, positive_hashes, split_by_partition
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.ids import topic_name_problem
from sparklog.records.bridge import nulls_of, values_of
from sparklog_datasource.writing.row_sizes import Int64s

STICKY_BYTES: Final = 128 * 1024

Bools = npt.NDArray[np.bool_]


class PartitionChoice:
    """Chooses partitions of one topic for one task."""

    def __init__(self, topic: str, partitions_count: int, first_sticky: int) -> None:
        self._topic = topic
        self._count = partitions_count
        self._sticky = first_sticky % partitions_count
        self._stuck_bytes = 0

    def choose(self, rows: pa.RecordBatch, sizes: Int64s) -> Int32s:
        """A partition for each row; SparklogError for a partition that does not exist."""
        key = rows.column("key")
        partitions = np.zeros(rows.num_rows, np.int32)
        is_open: Bools = np.ones(rows.num_rows, np.bool_)
        if not pa.types.is_null(key.type) and key.null_count < len(key):
            partitions = (positive_hashes(key) % self._count).astype(np.int32)
            is_open = nulls_of(key)
        column = rows.column("partition")
        if not pa.types.is_null(column.type) and column.null_count < len(column):
            is_given = ~nulls_of(column)
            partitions[is_given] = self._checked(values_of(column)[is_given])
            is_open = is_open & ~is_given
        if is_open.any():
            partitions[is_open] = self._stick(sizes[is_open])
        return partitions

    def _stick(self, sizes: Int64s) -> Int64s:
        ends = self._stuck_bytes + np.cumsum(sizes)
        steps = (ends - sizes) // STICKY_BYTES
        partitions: Int64s = (self._sticky + steps) % self._count
        last = int(ends[-1])
        self._sticky = (self._sticky + last // STICKY_BYTES) % self._count
        self._stuck_bytes = last % STICKY_BYTES
        return partitions

    def _checked(self, given: Int32s) -> Int32s:
        wrong = given[(given < 0) | (given >= self._count)]
        if len(wrong):
            raise SparklogError(
                f"column 'partition' names partition {wrong[0]}, but topic {self._topic!r} has the "
                f"partitions 0 to {self._count - 1}; correct it, or leave it null for "
                "the partitioner to choose"
            )
        return given


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The columns that are written, per topic; SparklogError for a row without a topic.

    The result has the columns key, value, headers and partition; missing columns are of type null.
    """
    rows = _written_columns(batch)
    if topic is not None:
        yield topic, rows
        return
    topics = batch.column("topic")
    if topics.null_count:
        raise SparklogError(
            "null topic present in the data: column 'topic' is null in "
            f"{topics.null_count} of {len(topics)} rows; set option topic, or filter these rows out"
        )
    codes = topics.dictionary_encode()
    names = codes.dictionary.to_pylist()
    for number, part in split_by_partition(rows, values_of(codes.indices)).items():
        problem = topic_name_problem(names[number])
        if problem:
            raise ConfigError(f"column 'topic': {problem}")
        yield names[number], part


def _written_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = {
        "key": _binary(batch, "key"),
        "value": _binary(batch, "value"),
        "headers": _column(batch, "headers"),
        "partition": _column(batch, "partition"),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _binary(batch: pa.RecordBatch, name: str) -> Any:
    """Text as its bytes, without a copy."""
    column = _column(batch, name)
    return column if pa.types.is_null(column.type) else column.cast(pa.binary())


def _column(batch: pa.RecordBatch, name: str) -> Any:
    index = batch.schema.get_field_index(name)
    return pa.nulls(batch.num_rows) if index < 0 else batch.column(index)
