"""The partition of each record: Java's default partitioner, over whole columns.

The murmur2 hash of a record's key chooses its partition, as in Kafka's Java clients. Records without a key
stay in one partition for a batch, because few large batches are cheaper than many small ones; the next batch
is for the next partition (KIP-480).
"""

import random

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparklog.client.partitioning.murmur2 import Int64s, murmur2_column, positive_murmur2
from sparklog.records.bridge import nulls_of, numbers

Int32s = npt.NDArray[np.int32]


def partition_for_key(key: bytes, partitions_count: int) -> int:
    """The partition of a record with this key."""
    return positive_murmur2(key) % partitions_count


class Partitioner:
    """Spreads records over the partitions ``0 .. partitions_count - 1`` of one topic.

    ``start`` is the partition of the first batch without keys; by default a random one, so that many
    writers do not all begin with the same partition.
    """

    __slots__ = ("_sticky", "partitions_count")

    def __init__(self, partitions_count: int, *, start: int | None = None) -> None:
        self.partitions_count = partitions_count
        self._sticky = random.randrange(partitions_count) if start is None else start % partitions_count

    def for_key(self, key: bytes | None) -> int:
        """The partition of one record; without a key, the current batch's partition."""
        return self._sticky if key is None else partition_for_key(key, self.partitions_count)

    def next_batch(self) -> None:
        """Choose the next partition for records without keys."""
        self._sticky = (self._sticky + 1) % self.partitions_count


def positive_hashes(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint32]:
    """Java's ``toPositive(murmur2(key))`` for each key; undefined for nulls."""
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()  # an empty column has no chunk to hash
        if isinstance(keys, pa.ChunkedArray):
            return np.concatenate([positive_hashes(chunk) for chunk in keys.chunks])
    if pa.types.is_null(keys.type):
        return np.zeros(len(keys), np.uint32)
    if not _has_offsets(keys.type):
        keys = keys.cast(pa.binary())
    data, starts, lengths = _spans(keys)
    return murmur2_column(data, starts, lengths) & np.uint32(0x7FFFFFFF)


def split_by_partition(
    columns: pa.Table | pa.RecordBatch, partitions: Int32s | Int64s
) -> dict[int, pa.RecordBatch]:
    """The rows of each partition as a batch of its own, in their order; slices of one gathered batch."""
    batch = _one_batch(columns)
    if batch.num_rows == 0:
        return {}
    order = np.argsort(partitions, kind="stable")
    in_order = partitions[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=in_order[0] - 1))
    if len(starts) == 1:
        return {int(in_order[0]): batch}
    gathered = batch.take(numbers(order))
    ends = np.append(starts[1:], len(in_order))
    return {
        int(in_order[start]): gathered.slice(start, end - start)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    }


def _has_offsets(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_string(kind)
        or types.is_large_binary(kind)
        or types.is_large_string(kind)
    )


def _spans(keys: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    """A binary column's bytes, and where each key begins and how long it is; no copy of the bytes."""
    is_large = pa.types.is_large_binary(keys.type) or pa.types.is_large_string(keys.type)
    _, offsets_buffer, data_buffer = keys.buffers()
    if len(keys) == 0 or offsets_buffer is None:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int64 if is_large else np.int32)
    own: Int64s = offsets[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    lengths: Int64s = np.diff(own)
    if keys.null_count:  # a null may have bytes in the buffer; they are not hashed
        lengths[nulls_of(keys)] = 0
    return data, own[:-1], lengths


def _one_batch(columns: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    if isinstance(columns, pa.RecordBatch):
        return columns
    batches = columns.combine_chunks().to_batches()
    if len(batches) > 1:
        raise ValueError(f"{columns.nbytes} bytes are too many for one batch; split smaller tables")
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=columns.schema)
